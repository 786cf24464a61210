"""`python -m bench`: run workloads on engines in turn, compare their answers, print and save the figures.

`python -m bench adaptive` goes to `bench/adaptive`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bench import machine, report, workloads
from bench.engines import ENGINES, Engine
from bench.run import ROOT, Measurement, Options, compare, measure, middle
from bench.workload import Workload


def parser() -> argparse.ArgumentParser:
    known = "\n".join(f"  {w.name:24}{w.about}" for w in workloads.ALL)
    out = argparse.ArgumentParser(
        prog="python -m bench",
        description="Spark's own streaming, DuckDB and Anabranch on the same files.",
        epilog=f"workloads:\n{known}\n\nadaptation: python -m bench adaptive --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("names", nargs="*", help="workloads or families (default: all)")
    out.add_argument("--engines", help="comma-separated, from: " + ", ".join(e.name for e in ENGINES))
    out.add_argument("--rows", type=int, help="rows per epoch over all streams; the event rate stays")
    out.add_argument("--epochs", type=int, help="number of epochs")
    out.add_argument("--repeat", type=int, default=1, help="runs of each engine, in turns; the median run counts")
    out.add_argument("--quick", action="store_true", help="few epochs: a look, not a measurement")
    out.add_argument("--no-check", action="store_true", help="do not compare answers")
    out.add_argument("--memory", default="4g", help="driver memory of every Spark session (default 4g)")
    out.add_argument("--rounds", type=int, default=3, help="rounds of fixed_cost")
    out.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder for the JSON file")
    out.add_argument("--verbose", action="store_true", help="show what the engines print")
    return out


def main(argv: list[str] | None = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["adaptive"]:
        from bench.adaptive.main import main as adaptive

        return adaptive(given[1:])
    args = parser().parse_args(given)
    console = Console(width=None if sys.stdout.isatty() else 160)
    try:
        chosen = [sized(w, args) for w in workloads.select(args.names)]
    except ValueError as error:
        console.print(f"[red]{error}[/red]")
        return 2
    wanted = set(args.engines.split(",")) if args.engines else {e.name for e in ENGINES}
    if unknown := wanted - {e.name for e in ENGINES}:
        console.print(f"[red]no engine named {', '.join(sorted(unknown))}[/red]")
        return 2
    options = Options(memory=args.memory, rounds=args.rounds, verbose=args.verbose)
    before = machine.describe()
    runs: list[Measurement] = []
    results: dict[tuple[str, str], Measurement] = {}
    for workload in chosen:
        engines = [e for e in ENGINES if e.name in wanted and e.runs(workload)]
        for found in workload_runs(workload, engines, options, args.repeat, check=not args.no_check, console=console):
            runs.extend(found)
            results[workload.name, found[0].engine] = middle(found)
    report.show(results, console)
    parameters = {k: str(v) if isinstance(v, Path) else v for k, v in vars(args).items() if k != "out"}
    parameters["workloads"] = [asdict(w) for w in chosen]
    path = report.save(runs, results, parameters, before, args.out)
    console.print(f"saved as {path.name}")
    return 1 if any(m.error or m.answer not in ("", "equal") for m in results.values()) else 0


def sized(workload: Workload, args: argparse.Namespace) -> Workload:
    epochs = args.epochs or (workload.quick_epochs if args.quick else None)
    rows = args.rows if workload.mode == "drain" else None
    return workload.resized(rows=rows, epochs=epochs)


def workload_runs(
    workload: Workload, engines: list[Engine], options: Options, repeat: int, *, check: bool, console: Console
) -> list[list[Measurement]]:
    """All runs of a workload, one list for each engine. Engines take turns, so that a slow minute hits them alike."""
    found: dict[str, list[Measurement]] = {e.name: [] for e in engines}
    for turn in range(repeat):
        for engine in engines:
            with console.status(f"{workload.name} on {engine.name}, run {turn + 1} of {repeat}"):
                m = measure(workload, engine, options)
            found[engine.name].append(m)
            said = escape(m.error) or f"{m.rows_per_s:,.0f} rows/s, {m.peak_mb:,.0f} MB"
            console.print(f"{workload.name} on {engine.name}: {said}")
    for engine in engines if check and workload.mode != "fixed_cost" else []:
        if engine.adapter == "duck":
            continue  # it is what the others are compared with
        with console.status(f"{workload.name} on {engine.name}, answers"):
            answer = compare(workload, engine, options)
        for m in found[engine.name]:
            m.answer = answer
    return [runs for runs in found.values() if runs]


if __name__ == "__main__":
    sys.exit(main())
