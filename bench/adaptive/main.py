"""`python -m bench adaptive`: play scenarios, print each bar as it is known, save the figures."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import adaptive, machine, report
from bench.adaptive.scenario import Field, Figure
from bench.run import ROOT


def parser() -> argparse.ArgumentParser:
    known = "\n".join(f"  {s.name:12}{s.about}" for s in adaptive.ALL)
    out = argparse.ArgumentParser(
        prog="python -m bench adaptive",
        description="What disturbances cost a running query, with adaptation and without.",
        epilog=f"scenarios:\n{known}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("names", nargs="*", help="scenarios (default: all)")
    out.add_argument("--quick", action="store_true", help="fewer points: a look, not a measurement")
    out.add_argument("--memory", default="4g", help="driver memory of the Spark sessions (default 4g)")
    out.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder for the JSON file")
    return out


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        chosen = adaptive.select(args.names)
    except ValueError as error:
        console.print(f"[red]{error}[/red]")
        return 2
    before = machine.describe()
    figures: list[Figure] = []
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="bench-adaptive-", ignore_cleanup_errors=True) as scratch:
        field = Field(Path(scratch), args.quick, args.memory, say=lambda text: console.print(escape(text)))
        for scenario in chosen:
            began = time.perf_counter()
            for figure in scenario.measure(field):
                figures.append(figure)
                console.print(escape(shown(figure)))
            seconds[scenario.name] = round(time.perf_counter() - began, 1)
    console.print(table(figures))
    bars = [vars(f) | {"reached": f.reached} for f in figures]
    parameters = {"names": [s.name for s in chosen], "quick": args.quick, "memory": args.memory, "seconds": seconds}
    runs = [
        {
            "name": name, "answer": field.answers.get(name, ""), "rows": run.rows, "epoch_ms": run.ms,
            "busy_ms": [[s["busyMs"] for s in p["sites"]] for p in run.progress], "journal": run.journal,
        }
        for name, run in field.runs.items()
    ]  # fmt: skip
    path = report.write(parameters, before, bars, runs, args.out)
    console.print(f"{sum(seconds.values()):.0f} s, saved as {path.name}")
    wrong = [name for name, answer in field.answers.items() if answer != "equal"]
    return 1 if wrong or any(f.reached is False for f in figures) else 0


def shown(figure: Figure) -> str:
    verdict = {True: "reached", False: "NOT REACHED", None: ""}[figure.reached]
    return f"  {figure.name}: {figure.value:.3g} {figure.unit} {limit(figure)} {verdict}".rstrip()


def limit(figure: Figure) -> str:
    if figure.limit is None:
        return ""
    return f"{'<=' if figure.at_most else '>='} {figure.limit:.3g} {figure.unit}".rstrip()


def table(figures: list[Figure]) -> Table:
    out = Table(title="Bars", title_justify="left")
    out.add_column("what")
    for heading in ("bar", "measured"):
        out.add_column(heading, justify="right")
    out.add_column("reached")
    for f in figures:
        verdict = {True: "[green]yes[/green]", False: "[red]no[/red]", None: ""}[f.reached]
        out.add_row(escape(f.name), limit(f), f"{f.value:.3g} {f.unit}".rstrip(), verdict)
    return out
