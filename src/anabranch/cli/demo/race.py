"""The second act: the same query over the same calls, first with every cell where it is, then with cells that move."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from anabranch.cli.demo import story
from anabranch.cli.demo.answer import compare, flow_over
from anabranch.cli.demo.sides import Side, Sides, why
from anabranch.cli.demo.story import Story
from anabranch.testing import paced

if TYPE_CHECKING:
    from anabranch import ContinuousQuery

WARM = 2  # epochs that are not counted: the first run's are slow, since Spark compiles what both use


class Race:
    def __init__(self, console: Console, spark: Any, folder: Path, told: Story) -> None:
        self.console = console
        self.spark = spark
        self.folder = folder
        self.story = told

    def run(self) -> bool:
        """Whether both answers are Spark batch's."""
        self.console.print(
            f"[bold]A load arrives[/]: the same query on {story.SITES} sites. A row takes a site {story.SERVICE_US} "
            "µs, emulated: it sleeps, so that sites behave like machines. First static, then adaptive."
        )
        story.write(self.story, story.numbers_by_site(self.spark), self.folder)
        static, adaptive = Side("static"), Side("adaptive")
        with Sides(self.console, self.story, static, adaptive) as sides, paced(self.story.pace):
            self.one(static, sides, "static")
            self.one(adaptive, sides, "balance")
        self.result(static, adaptive)
        same = [compare(self.console, self.spark, self.folder, s.name) for s in (static, adaptive)]
        return all(same)

    def one(self, side: Side, sides: Sides, policies: str) -> None:
        writer = flow_over(self.spark, self.folder, files=1).writeStream.format("parquet")
        writer = writer.options(path=str(self.folder / side.name), sites=story.SITES, cells=story.CELLS)
        writer = writer.options(policies=policies, roundEpochs=1, flushAtEnd=True, progress=False)
        writer = writer.option("checkpointLocation", str(self.folder / f"{side.name}-checkpoint"))
        query: ContinuousQuery = writer.trigger(availableNow=True).start()
        try:
            while not query.awaitTermination(0.1):
                side.follow(query.recentProgress, query.journal())
                sides.show(side)
        finally:
            query.stop()
        side.follow(query.recentProgress, query.journal())
        sides.show(side)

    def result(self, static: Side, adaptive: Side) -> None:
        table = Table(title=f"Rows per second, from epoch {WARM + 1} on", title_justify="left")
        for name in ("", "static", "adaptive", "gain"):
            table.add_column(name, justify="right" if name else "left")
        spans = [(c.name, c.first, self.story.last(c)) for c in self.story.chapters]
        for name, first, last in [*spans, ("the whole run", 0, self.story.epochs)]:
            rates = static.rate(max(first, WARM), last), adaptive.rate(max(first, WARM), last)
            table.add_row(name, *(f"{r:,.0f}" for r in rates), f"{rates[1] / rates[0]:.2f} x" if rates[0] else "")
        self.console.print(table)
        self.console.print(f"{len(adaptive.moves)} cells moved, as the journal tells. The first for each reason:")
        for move in firsts(adaptive, self.story):
            self.console.print(f"  {why(move)}", highlight=False)


def firsts(side: Side, told: Story) -> list[Any]:
    """The first move of each chapter."""
    found: dict[int, Any] = {}
    for move in side.moves:
        found.setdefault(told.chapter(round(move["at"])).first, move)
    return list(found.values())
