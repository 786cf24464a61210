"""The demo from start to finish, in two acts: a live query that is stopped and restarted; the same query while a load
arrives and keys become hot, static and adaptive (`race.py`). Both are compared with Spark batch, and nothing is left.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

import anabranch as ab
from anabranch.cli.demo import story
from anabranch.cli.demo.answer import compare, flow_over
from anabranch.cli.demo.calls import Feed, Load
from anabranch.cli.demo.live import View
from anabranch.cli.demo.race import Race
from anabranch.cli.quiet import jvm_log

if TYPE_CHECKING:
    from anabranch import ContinuousQuery, Flow

LENGTHS = ("under 1 min", "1 to 5 min", "5 to 15 min", "over 15 min")
INTERRUPTED = 130
LIVE = "live"  # the folder of the first act's answer
WINDOWS_SHOWN = 4


def run_demo(seconds: int, rate: int, sites: int, seed: int, act: int | None) -> int:
    """0 if the answers are Spark's, 1 if not, 130 after Ctrl-C. `act`: 1 or 2; None: both."""
    console = Console()
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="anabranch-demo-"))
    cores = os.cpu_count() or 1
    spark: Any = None
    try:
        console.print("[dim]Starting Spark …[/]")
        with jvm_log(folder / "spark.log"):
            spark = ab.session(
                "anabranch-demo",
                master=f"local[{max(cores, story.SITES)}]",  # sites that sleep need a task slot each, and no core
                spark__sql__session__timeZone="UTC",
                spark__sql__shuffle__partitions="2",
                spark__sql__warehouse__dir=str(folder / "warehouse"),
            )
        identical = True
        if act != 2:
            identical &= Demo(console, spark, folder / "live", sites or cores).run(Load(seed, rate), seconds)
        if act != 1:
            identical &= Race(console, spark, folder / "race", story.story(seed)).run()
        console.print(f"[dim]{time.monotonic() - begin:.0f} s in all; Ctrl-C stops cleanly at any time[/]")
        return 0 if identical else 1
    except KeyboardInterrupt:
        console.print("\nstopped")
        return INTERRUPTED
    finally:
        if spark is not None:
            spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Demo:
    def __init__(self, console: Console, spark: Any, folder: Path, sites: int) -> None:
        self.console = console
        self.spark = spark
        self.folder = folder
        self.sites = sites

    def run(self, load: Load, seconds: int) -> bool:
        self.console.print(
            f"[bold]Call fraud[/]: {load.rate:,} calls a second for {seconds} s, joined with the numbers reported as "
            "suspicious in the minute before, counted by length in windows of a minute that slide by ten seconds."
        )
        feed = Feed(load, self.folder, seconds)
        flow = flow_over(self.spark, self.folder)
        with View(self.console, "running") as view:
            self.live(flow, feed, view)
            view.title = "stopped and restarted: the rest, and the windows still open"
            self.rest(flow, view)
        totals = view.totals
        self.console.print(
            f"{totals.rows:,} rows in {totals.epochs} epochs, {totals.late} late, {totals.results:,} results;\n"
            "stopped once and restarted from its checkpoint"
        )
        self.result()
        return compare(self.console, self.spark, self.folder, LIVE)

    def live(self, flow: Flow, feed: Feed, view: View) -> None:
        """The continuous query, while calls come in."""
        feed.start()
        query = self.writer(flow).trigger(processingTime="1 second").start()
        try:
            while feed.is_alive() and query.isActive:
                view.show(query.recentProgress)
                time.sleep(0.5)
        finally:
            feed.stop()
            query.stop()
        self.settle(query, view)

    def rest(self, flow: Flow, view: View) -> None:
        """From the checkpoint: what is not yet read, and then, as no more will come, the windows still open."""
        query = self.writer(flow).option("flushAtEnd", True).trigger(availableNow=True).start()
        try:
            while not query.awaitTermination(0.5):
                view.show(query.recentProgress)
        finally:
            query.stop()
        self.settle(query, view)

    def writer(self, flow: Flow) -> Any:
        writer = flow.writeStream.format("parquet").option("path", str(self.folder / LIVE))
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        return writer.option("sites", self.sites).option("progress", False)

    @staticmethod
    def settle(query: ContinuousQuery, view: View) -> None:
        view.show(query.recentProgress)
        error = query.exception()
        if error is not None:
            raise error

    # -- what came out -----------------------------------------------------------------------------------------

    def result(self) -> None:
        rows = self.spark.read.parquet(str(self.folder / LIVE)).collect()
        calls = {(r["minute"], r["length"]): r for r in rows}
        minutes = sorted({r["minute"] for r in rows})[-WINDOWS_SHOWN:]
        table = Table(title=f"Calls of suspicious numbers, the last {len(minutes)} windows", title_justify="left")
        table.add_column("minute from")
        for name in (*LENGTHS, "longest"):
            table.add_column(name, justify="right")
        for minute in minutes:
            found = [calls.get((minute, name)) for name in LENGTHS]
            longest = max(r["longest"] for r in found if r)
            table.add_row(
                f"{minute:%H:%M:%S}",
                *[f"{r['calls']:,}" if r else "0" for r in found],
                f"{longest // 60}:{longest % 60:02}",
            )
        self.console.print(table)
