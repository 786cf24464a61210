"""The verbs and their options. Each verb is one function of a sibling module, imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from anabranch.cli.lab import lab
from anabranch.errors import AnabranchError

app = typer.Typer(
    name="anabranch",
    help="Continuous queries on Spark, with exactly Spark's batch answers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(lab, name="lab")


def run() -> None:
    """Run the command; an error of ours is told in its own words, without a traceback."""
    try:
        app()
    except AnabranchError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise SystemExit(1) from None


def _version(wanted: bool) -> None:
    if wanted:
        import anabranch

        print(f"anabranch {anabranch.__version__}")
        raise typer.Exit


@app.callback()
def anabranch(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Continuous queries on Spark, with exactly Spark's batch answers."""


@app.command()
def demo(
    seconds: Annotated[int, typer.Option(min=3, max=600, help="How long calls come in, live.")] = 5,
    rate: Annotated[int, typer.Option(min=100, help="Calls per second.")] = 20_000,
    sites: Annotated[int, typer.Option(min=0, help="Sites of the live query; 0: one per core.")] = 0,
    seed: Annotated[int, typer.Option(help="The same seed, length and rate make the same calls.")] = 1,
    act: Annotated[int | None, typer.Option(min=1, max=2, help="Only one: 1 live, 2 static and adaptive.")] = None,
) -> None:
    """Find fraud in generated phone calls, and check the answers against Spark batch.

    Calls are joined with numbers reported as suspicious within the minute before, and the hits counted by duration in
    windows of a minute that slide by ten seconds. First live, stopped and restarted. Then on four sites that behave
    like machines, while a load arrives on one of them and a hot set of numbers drifts: static and adaptive, side by
    side.

    Everything is written to a temporary folder, which is removed.
    """
    from anabranch.cli.demo.run import run_demo

    raise typer.Exit(run_demo(seconds, rate, sites, seed, act))


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="A file with one SELECT statement.", exists=True, dir_okay=False)],
    stream: Annotated[
        list[str],
        typer.Option(
            help="A stream and its columns: 'calls(phone BIGINT, ts TIMESTAMP)'. Its first timestamp is its event time."
        ),
    ],
    table: Annotated[list[str] | None, typer.Option(help="A static table and its columns, written alike.")] = None,
    strategy: Annotated[str, typer.Option(help="How the flow is cut into subqueries.")] = "subquery-cluster",
    extended: Annotated[bool, typer.Option("--extended", help="Show the compiler's notes too.")] = False,
) -> None:
    """Show how a query would run, or why it would not. Needs no data.

    Starts a local Spark, which analyses the expressions.
    """
    from anabranch.cli.explain import explain_file

    print(explain_file(file, stream, table or [], strategy, extended))


@app.command()
def checkpoint(
    path: Annotated[str, typer.Argument(help="The checkpointLocation of a query, or its stateLocation.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show the plan that the checkpoint was made for.")] = False,
) -> None:
    """Show what a checkpoint holds: its query, epoch, watermark and state.

    Reads the manifest only, and changes nothing. The query may be running.
    """
    from anabranch.cli.checkpoint import show_checkpoint

    show_checkpoint(path, plan)


@app.command()
def journal(
    path: Annotated[str, typer.Argument(help="The checkpointLocation of a query, or its stateLocation.")],
    id: Annotated[int | None, typer.Option(help="Tell everything about one decision.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many, the newest ones.")] = 20,
    refused: Annotated[bool, typer.Option("--refused", help="Only what was refused.")] = False,
    all: Annotated[bool, typer.Option("--all", help="What was done and what was refused.")] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON, with all fields.")] = False,
) -> None:
    """Show what a query decided about its cells, why, and what came of it.

    Reads the journal only, and changes nothing. The query may be running.
    """
    from anabranch.cli.journal import show_journal

    show_journal(path, id, last, "all" if all else "refused" if refused else "done", json)
