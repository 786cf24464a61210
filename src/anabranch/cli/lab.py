"""`anabranch lab`: the papers' experiments. `list` them, `run` some, `report` on what has been run."""

from __future__ import annotations

import os
from enum import StrEnum
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

lab = typer.Typer(help="The papers' experiments, on the simulator and on Spark.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option("--out", help="The folder of results.", file_okay=False)]
RESULTS = Path("lab-results")


class SizeName(StrEnum):
    paper = "paper"
    small = "small"


@lab.command("list")
def list_() -> None:
    """Show every experiment and the question it answers."""
    from rich.console import Console
    from rich.table import Table

    from anabranch.lab.agreement import COMPARED
    from anabranch.lab.registry import BUILDERS, built

    table = Table(show_edge=False, pad_edge=False)
    for name in ("name", "id", "figure", "on Spark", "question"):
        table.add_column(name, no_wrap=name in ("name", "id"))
    for name in BUILDERS:
        experiment = built(name)
        spark = "yes" if name in COMPARED else "no"
        table.add_row(name, experiment.number, experiment.figure, spark, experiment.asks)
    Console(highlight=False).print(table)


@lab.command()
def run(
    name: Annotated[str, typer.Argument(help="An experiment, e.g. flux.fig6, or a paper, e.g. flux.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same simulated run.")] = 1,
    size: Annotated[
        SizeName, typer.Option(help="small: a quarter of the sites and fewer points, in seconds.")
    ] = SizeName.paper,
    spark: Annotated[
        bool, typer.Option("--spark", help="On Spark and on the simulator, at this machine's size: do they agree?")
    ] = False,
    out: Folder = RESULTS,
    processes: Annotated[int, typer.Option(min=1, help="How many simulations at once.")] = os.cpu_count() or 1,
) -> None:
    """Run experiments, compare each claim of the paper with what came out, and keep the results.

    Ends with 1 if a claim is neither reproduced nor told apart by a reason that holds.
    """
    from rich.console import Console

    from anabranch.lab.runs import run_compared, run_simulated

    console = Console(highlight=False)
    if spark:
        with TemporaryDirectory(prefix="anabranch-lab-") as folder:
            settled = run_compared(console, name, seed, out, partial(_session, Path(folder) / "spark.log"))
    else:
        settled = run_simulated(console, name, size.value, seed, out, processes)
    raise typer.Exit(0 if settled else 1)


def _session(log: Path, slots: int) -> Any:
    import anabranch as ab
    from anabranch.cli.quiet import jvm_log

    with jvm_log(log):
        return ab.session(
            "anabranch-lab", master=f"local[{slots}]", spark__sql__streaming__numRecentProgressUpdates="1000"
        )


@lab.command()
def report(out: Folder = RESULTS) -> None:
    """Show all results that are kept, beside the paper's numbers; make a PNG of each figure and one HTML page.

    Runs nothing.
    """
    from rich.console import Console

    from anabranch.lab.runs import report_kept

    report_kept(Console(highlight=False), out)
