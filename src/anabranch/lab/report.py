"""Report: the paper's numbers beside ours, in the terminal, and claims as plain data for whoever keeps them."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from anabranch.lab.experiment import Claim, Experiment, Results


@dataclass(frozen=True)
class Finding:
    """One claim and what became of it."""

    says: str
    paper: str
    ours: float
    text: str
    reproduced: bool
    why: str  # where it is not, or only nearly


def findings(experiment: Experiment, results: Results) -> list[Finding]:
    return [_finding(claim, results) for claim in experiment.claims]


def _finding(claim: Claim, results: Results) -> Finding:
    ours = float(claim.ours(results))
    holds = claim.low <= ours <= claim.high
    why = ""
    if claim.differs is not None:
        why = claim.differs.why if claim.differs.true(results) else f"(not so in this run: {claim.differs.why})"
    return Finding(claim.says, claim.paper, ours, written(ours, claim.unit, claim.digits), holds, why)


def written(value: float, unit: str = "", digits: int = 3) -> str:
    text = f"{value:.{digits}g}" if abs(value) < 1e5 else f"{value:.{max(digits - 1, 1)}e}"
    return f"{text} {unit}".strip()


def show(console: Console, experiment: Experiment, found: list[Finding], seconds: float | None = None) -> None:
    took = "" if seconds is None else f"   ({seconds:.0f} s)"
    console.print(f"\n[bold]{experiment.name}[/bold]  {experiment.number}, {experiment.figure}{took}", highlight=False)
    console.print(experiment.asks, style="dim", highlight=False)
    table = Table(show_edge=False, pad_edge=False, expand=True)
    table.add_column("claim", ratio=5)
    table.add_column("paper", ratio=2)
    table.add_column("ours", ratio=2)
    table.add_column("")
    for f in found:
        verdict = "[green]reproduced[/green]" if f.reproduced else "[red]not reproduced[/red]"
        table.add_row(f.says, f.paper, f.text, verdict)
    console.print(table)
    for f in found:
        if f.why:
            console.print(f"  {f.says}: {f.why}", highlight=False)
