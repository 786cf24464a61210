"""Report: each number of the paper's beside ours, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from anabranch.lab.results import Finding, Outcome

YES, EXPLAINED, NO = "yes", "explained", "no"
WORDS = {
    "paper": {YES: "reproduced", EXPLAINED: "differs", NO: "not reproduced"},
    "simulator": {YES: "agrees", EXPLAINED: "differs", NO: "does not agree"},
}


def verdict(finding: Finding) -> str:
    if finding.reproduced:
        return YES
    return EXPLAINED if finding.explained else NO


def in_words(outcome: Outcome, finding: Finding) -> str:
    return WORDS[outcome.against][verdict(finding)]


def heads(outcome: Outcome) -> tuple[str, str]:
    """What the two columns of numbers are."""
    return outcome.against, "ours" if outcome.against == "paper" else outcome.driver


def title(outcome: Outcome) -> str:
    return f"{outcome.number}, {outcome.figure}" + ("" if outcome.driver == "simulator" else f", on {outcome.driver}")


def show(console: Console, outcome: Outcome) -> None:
    """One experiment: its question, its claims, and a sentence where ours differs."""
    console.print(f"\n[bold]{outcome.name}[/bold]  {title(outcome)}   [dim]{told(outcome)}[/dim]")
    console.print(escape(outcome.asks), style="dim")
    console.print(_table(outcome))
    for finding in outcome.findings:
        if finding.why:
            console.print(f"  {escape(finding.says)}: {escape(finding.why)}")


def told(outcome: Outcome) -> str:
    return f"{outcome.size}, seed {outcome.seed}, {outcome.seconds:.0f} s"


def _table(outcome: Outcome) -> Table:
    table = Table(show_edge=False, pad_edge=False, expand=True)
    paper, ours = heads(outcome)
    table.add_column("claim", ratio=5)
    table.add_column(paper, ratio=2)
    table.add_column(ours, ratio=2)
    table.add_column("", min_width=14)
    colours = {YES: "green", EXPLAINED: "yellow", NO: "red"}
    for f in outcome.findings:
        said = f"[{colours[verdict(f)]}]{in_words(outcome, f)}[/]"
        table.add_row(escape(f.says), escape(f.paper), escape(f.text), said)
    return table


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line on all claims."""
    said = [in_words(o, f) for o in outcomes for f in o.findings]
    words = [w for kind in WORDS.values() for w in kind.values()]
    counts = [f"{said.count(w)} {w}" for w in dict.fromkeys(words) if w in said]
    return f"{len(said)} claims: {', '.join(counts)}" if said else "no claims"
