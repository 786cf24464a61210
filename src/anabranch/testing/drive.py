"""Epochs one by one through the runtime, without a streaming query around them.

The plan, the sites, the state and the manifests are the real ones; only Spark's own bookkeeping of a stream is left
out, which takes most of the time of a small epoch. `live.py` runs the same script as a real streaming query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import anabranch as ab
from anabranch.control.actions import Move, Resize
from anabranch.settings import parse
from anabranch.spark import compat
from anabranch.spark.api import Flow
from anabranch.spark.runtime import Runtime
from anabranch.spark.taps import unified
from anabranch.testing import tables
from anabranch.testing.pace import Pace, paced
from anabranch.testing.script import (
    Abort,
    Epoch,
    Hurry,
    Memory,
    Rescale,
    Restart,
    Script,
    Shuffle,
    Static,
    Step,
    Stream,
    Tick,
)
from anabranch.testing.sink import Aborted, KeepingSink, Kept

MOST_SITES = 64


def opened(session: SparkSession, streams: Sequence[Stream], folder: Path) -> dict[str, Flow]:
    """The streams as `ab.stream`s over one folder each, which may still be empty."""
    found = {}
    for stream in streams:
        path = folder / stream.name
        path.mkdir(parents=True, exist_ok=True)
        df = session.readStream.schema(tables.schema_of(stream.ddl)).option("maxFilesPerTrigger", 1).parquet(str(path))
        delay = f"{stream.delay_us} microseconds"
        found[stream.name] = ab.stream(df, stream.name, event_time=stream.event_time, delay=delay)
    return found


def loaded(session: SparkSession, statics: Sequence[Static]) -> dict[str, DataFrame]:
    return {s.name: tables.frame(session, s.ddl, s.rows) for s in statics}


def drive(
    flow: Flow,
    streams: Sequence[Stream],
    script: Script,
    location: Path,
    options: Mapping[str, Any] | None = None,
    kept: Kept | None = None,
) -> pa.Table:
    """All rows that the flow gives for the script, with everything flushed at its end."""
    driver = _Driver(flow, streams, location, dict(options or {}), kept or Kept())
    try:
        for step in script:
            driver.take(step)
        driver.finish()
    finally:
        driver.runtime.close()
    found = driver.kept.table()
    return found if found is not None else nothing(flow)


def nothing(flow: Flow) -> pa.Table:
    return compat.arrow_schema(flow.schema).empty_table()


class _Driver:
    def __init__(
        self, flow: Flow, streams: Sequence[Stream], location: Path, options: dict[str, Any], kept: Kept
    ) -> None:
        self.flow = flow
        self.streams = {s.name: s for s in streams}
        self.location = str(location)
        self.settings = parse({k: str(v) for k, v in options.items()}, {})[0]
        self.plan = flow.plan(self.settings.strategy)
        self.schema = flow.schema
        self.kept = kept
        self.session = compat.plain_session(flow.session)
        self.batch = 0
        self.abort: Abort | None = None
        self.memory: dict[int, int | None] = {}
        self.pace: Pace | None = None
        self.runtime = self._started()

    def _started(self) -> Runtime:
        runtime = Runtime(
            self.session, self.plan, self.flow.inputs, self.flow.statics, self.settings, KeepingSink(self.kept),
            self.location, self.schema, "driven",
        )  # fmt: skip
        runtime.memory = self.memory
        with paced(self.pace):
            runtime.open()
        return runtime

    def take(self, step: Step) -> None:
        if isinstance(step, Restart):
            self.restart(step.sites)
        elif isinstance(step, Abort):
            self.abort = step
        elif isinstance(step, Tick):
            self.runtime.catch_up()
        elif isinstance(step, Shuffle):
            self.shuffle(Random(step.seed), step.share)
        elif isinstance(step, Rescale):
            self.runtime.ask(Resize(step.sites))
            self.settings = replace(self.settings, sites=step.sites)
        elif isinstance(step, Memory):
            every = range(MOST_SITES) if step.site is None else [step.site]
            self.memory |= dict.fromkeys(every, step.bytes)
            self.runtime.memory = self.memory
        elif isinstance(step, Hurry):
            self.hurry(step.rows)
        else:
            self.epoch(step)

    def shuffle(self, rng: Random, share: float) -> None:
        layout = self.runtime.layout()
        for operator in sorted(layout.operators):
            cells = layout.of(operator).cells
            for cell in sorted(rng.sample(range(cells), max(1, round(cells * share)))):
                self.runtime.ask(Move(operator, cell, rng.randrange(layout.sites)))

    def hurry(self, rows: int | None) -> None:
        """One second of service per row, so many seconds of patience, and nobody sleeps."""
        self.pace = None if rows is None else Pace(1e6, virtual=True)
        self.settings = replace(self.settings, time_budget_us=None if rows is None else rows * 1_000_000)
        self.runtime.settings = self.settings

    def restart(self, sites: int | None = None) -> None:
        self.runtime.close()
        if sites is not None:
            self.settings = replace(self.settings, sites=sites)
        self.runtime = self._started()

    def epoch(self, epoch: Epoch) -> None:
        batch, self.batch = self.batch, self.batch + 1
        abort, self.abort = self.abort, None
        rows = self.rows(epoch)
        self.kept.abort = abort
        with paced(self.pace):
            try:
                self.runtime.on_batch(rows, batch)
            except Aborted:
                assert abort is not None
                self.restart()
                self.runtime.on_batch(rows, batch)
            if abort is not None and abort.at == "offsets":
                self.restart()
                self.runtime.on_batch(rows, batch)

    def rows(self, epoch: Epoch) -> DataFrame:
        """What Spark would hand to foreachBatch."""
        inputs = {
            name: replace(source, df=tables.frame(self.session, self.streams[name].ddl, epoch.get(name, ())))
            for name, source in self.flow.inputs.items()
        }
        return unified(self.runtime.builder.taps, inputs, self.flow.statics, self.settings.cells)

    def finish(self) -> None:
        self.runtime.settings = replace(self.settings, flush_at_end=True)
        self.runtime.finish()
