"""`anabranch lab`: the papers' experiments. `list` them, `run` some, `report` on what has been run."""

from __future__ import annotations

import os
from typing import Annotated

import typer

lab = typer.Typer(help="The papers' experiments, on the simulator and on Spark.", no_args_is_help=True)


@lab.command("list")
def list_() -> None:
    """Show every experiment and the question it answers."""
    from rich.console import Console
    from rich.table import Table

    from anabranch.lab.registry import BUILDERS, built

    table = Table(show_edge=False, pad_edge=False)
    for name in ("name", "id", "figure", "question"):
        table.add_column(name)
    for name in BUILDERS:
        experiment = built(name)
        table.add_row(name, experiment.number, experiment.figure, experiment.asks)
    Console(highlight=False).print(table)


@lab.command()
def run(
    name: Annotated[str, typer.Argument(help="An experiment, e.g. flux.fig6, or a paper, e.g. flux.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 1,
    small: Annotated[bool, typer.Option("--small", help="A quarter of the sites and fewer points: seconds.")] = False,
    processes: Annotated[int, typer.Option(min=1, help="How many at once.")] = os.cpu_count() or 1,
) -> None:
    """Run experiments and compare each claim of the paper with what came out."""
    import time

    from rich.console import Console

    from anabranch.lab.experiment import PAPER, SMALL
    from anabranch.lab.registry import built, matching
    from anabranch.lab.report import findings, show
    from anabranch.lab.simulate import simulate

    console = Console()
    experiments = [built(n, SMALL if small else PAPER, seed) for n in matching(name)]
    began = time.perf_counter()
    with console.status("") as status:
        results = simulate(experiments, processes, lambda done, of: status.update(f"{done} of {of} runs"))
    for experiment, result in zip(experiments, results, strict=True):
        show(console, experiment, findings(experiment, result))
    console.print(f"\n{time.perf_counter() - began:.0f} s")
