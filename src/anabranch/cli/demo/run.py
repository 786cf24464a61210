"""The demo from start to finish: feed, continuous query, restart that finishes it, result, check, clean-up."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

import anabranch as ab
from anabranch.cli.demo.calls import CALLS, DISORDER_S, REPORTS, Feed, Load
from anabranch.cli.demo.live import View
from anabranch.cli.quiet import jvm_log

if TYPE_CHECKING:
    from anabranch import ContinuousQuery, Flow

FRAUD = """
SELECT window.start AS minute,
       CASE WHEN c.duration < 60 THEN 'under 1 min' WHEN c.duration < 300 THEN '1 to 5 min'
            WHEN c.duration < 900 THEN '5 to 15 min' ELSE 'over 15 min' END AS length,
       count(*) AS calls, count(DISTINCT c.phone) AS phones, max(c.duration) AS longest
FROM calls c JOIN reports r
  ON c.phone = r.phone AND r.ts BETWEEN c.ts - INTERVAL 60 SECONDS AND c.ts
GROUP BY window(c.ts, '60 seconds', '10 seconds'),
         CASE WHEN c.duration < 60 THEN 'under 1 min' WHEN c.duration < 300 THEN '1 to 5 min'
              WHEN c.duration < 900 THEN '5 to 15 min' ELSE 'over 15 min' END
"""
LENGTHS = ("under 1 min", "1 to 5 min", "5 to 15 min", "over 15 min")
INTERRUPTED = 130
WINDOWS_SHOWN = 8


def run_demo(seconds: int, rate: int, sites: int, seed: int) -> int:
    """0 if the answer is Spark's, 1 if not, 130 after Ctrl-C."""
    console = Console()
    begin = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="anabranch-demo-"))
    spark: Any = None
    try:
        console.print(
            f"[bold]Call fraud[/]: {rate:,} calls a second for {seconds} s, joined with the numbers reported as "
            "suspicious in the minute before, counted by length in windows of a minute that slide by ten seconds.\n"
            "[dim]Starting Spark …[/]"
        )
        with jvm_log(folder / "spark.log"):
            spark = ab.session(
                "anabranch-demo",
                spark__sql__session__timeZone="UTC",
                spark__sql__shuffle__partitions="2",
                spark__sql__warehouse__dir=str(folder / "warehouse"),
            )
        identical = Demo(console, spark, folder, sites).run(Load(seed, rate), seconds)
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
        feed = Feed(load, self.folder, seconds)
        flow = self.flow()
        with View(self.console, "running") as view:
            self.live(flow, feed, view)
            view.title = "stopped and restarted: the rest, and the windows still open"
            self.rest(flow, view)
        totals = view.totals
        self.console.print(
            f"{totals.rows:,} rows in {totals.epochs} epochs, {totals.late} late, {totals.results:,} results; "
            "stopped once and restarted from its checkpoint"
        )
        self.result()
        return self.check()

    def flow(self) -> Flow:
        delay = f"{DISORDER_S + 1} seconds"
        read = self.spark.readStream
        calls = ab.stream(read.schema(CALLS).parquet(str(self.folder / "calls")), "calls", event_time="ts", delay=delay)
        reports = ab.stream(
            read.schema(REPORTS).parquet(str(self.folder / "reports")), "reports", event_time="ts", delay=delay
        )
        return ab.sql(FRAUD, calls=calls, reports=reports)

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
        writer = flow.writeStream.format("parquet").option("path", str(self.folder / "out"))
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
        rows = self.spark.read.parquet(str(self.folder / "out")).collect()
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
                f"{longest // 60} min {longest % 60:02} s",
            )
        self.console.print(table)

    def check(self) -> bool:
        """Spark batch, with the same SQL, over the same files."""
        for name, schema in (("calls", CALLS), ("reports", REPORTS)):
            self.spark.read.schema(schema).parquet(str(self.folder / name)).createOrReplaceTempView(name)
        want = Counter(map(tuple, self.spark.sql(FRAUD).collect()))
        got = Counter(map(tuple, self.spark.read.parquet(str(self.folder / "out")).collect()))
        if got == want:
            self.console.print(f"identical to Spark batch: [bold green]yes[/] ({sum(want.values()):,} rows)")
        else:
            self.console.print(
                f"identical to Spark batch: [bold red]no[/] ({(want - got).total():,} rows missing, "
                f"{(got - want).total():,} too many)"
            )
        return got == want
