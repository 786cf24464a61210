"""A saturating load on many sites: the same rows every epoch, as evenly over the cells as asked for.

A machine with few cores runs many sites if rows take their time asleep (`pace.py`); the session then needs a task slot
for each site: `ab.session(master="local[16]")`. Keys are chosen by the hash that routes them, so that every cell has as
many rows as its weight says: what is measured is the policy, and not the luck of the draw.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import anabranch as ab
from anabranch.routing.cells import cell_expression
from anabranch.testing.events import Event, befalls
from anabranch.testing.pace import Pace, paced

START_US = 1_767_225_600_000_000
COUNT = "SELECT k, window.start AS t, count(*) AS n FROM a GROUP BY k, window(ts, '{seconds} seconds')"
JOIN = """SELECT a.k, a.ts AS t, b.ts AS u, a.v FROM a JOIN b ON a.k = b.k
          AND b.ts BETWEEN a.ts - INTERVAL {seconds} SECONDS AND a.ts + INTERVAL {seconds} SECONDS"""


@dataclass(frozen=True)
class Load:
    """An epoch is one second of event time."""

    epochs: int
    sites: int = 16
    cells: int = 256
    rows: int = 10_240  # per stream and epoch
    weights: Callable[[int], Sequence[float]] | None = None  # epoch -> weight of each cell; None: all alike
    query: str = COUNT
    seconds: int = 4  # of the window: state covers as many epochs
    payload: int = 0  # bytes of `v` in each row
    keys: int = 64  # per cell

    @property
    def streams(self) -> tuple[str, ...]:
        return ("a", "b") if "b.ts" in self.query else ("a",)

    @property
    def ddl(self) -> str:
        return "k BIGINT, ts TIMESTAMP" + (", v STRING" if self.payload else "")


@dataclass(frozen=True)
class Run:
    """What a run told of itself."""

    progress: list[dict[str, Any]]  # of the epochs with rows
    journal: list[dict[str, Any]]
    rows: int  # per epoch, all streams
    after: list[dict[str, Any]]  # progress of the epochs without new rows that gave out the rest

    @property
    def ms(self) -> list[float]:
        return [p["durationMs"]["triggerExecution"] for p in self.progress]

    def rate(self, first: int = 0, last: int | None = None) -> float:
        """Rows per second over some epochs."""
        took = self.ms[first:last]
        return self.rows * len(took) / sum(took) * 1000

    def busiest(self, first: int = 0, last: int | None = None) -> float:
        """Median over the epochs of the longest site's milliseconds."""
        return float(median(max(s["busyMs"] for s in p["sites"]) for p in self.progress[first:last]))

    @property
    def drain_ms(self) -> list[float]:
        return [p["durationMs"]["triggerExecution"] for p in self.after]

    @property
    def left(self) -> int:
        """Rows that were still held in the end."""
        return sum(s["heldRows"] for s in [*self.progress, *self.after][-1]["sites"])

    @property
    def moves(self) -> list[dict[str, Any]]:
        return [e for e in self.journal if e["verdict"] == "enacted" and e["action"]["kind"] == "move"]


def keys_by_cell(session: SparkSession, cells: int, per_cell: int) -> list[list[int]]:
    """As many keys of every cell."""
    found: list[list[int]] = [[] for _ in range(cells)]
    first = 0
    while any(len(keys) < per_cell for keys in found):
        step = cells * per_cell * 2
        cell = cell_expression("xxhash64(id)", cells)
        rows = session.range(first, first + step).selectExpr("id", f"{cell} AS c").toArrow()
        for key, number in zip(rows["id"].to_pylist(), rows["c"].to_pylist(), strict=True):
            if len(found[number]) < per_cell:
                found[number].append(key)
        first += step
    return found


def write(session: SparkSession, load: Load, folder: Path) -> None:
    """One file per stream and epoch."""
    keys = keys_by_cell(session, load.cells, load.keys)
    for stream in load.streams:
        (folder / stream).mkdir(parents=True)
        for epoch in range(load.epochs):
            weights = list(load.weights(epoch)) if load.weights else [1.0] * load.cells
            counts = shares(weights, load.rows)
            chosen = [keys[c][(epoch * 31 + n) % load.keys] for c, count in enumerate(counts) for n in range(count)]
            times = [START_US + epoch * 1_000_000 + n * 997_003 % 1_000_000 for n in range(len(chosen))]
            columns = {"k": pa.array(chosen, pa.int64()), "ts": pa.array(times, pa.timestamp("us", "UTC"))}
            if load.payload:
                columns["v"] = pa.array([f"{n:0{load.payload}d}" for n in range(len(chosen))])
            path = folder / stream / f"{epoch:05d}.parquet"
            pq.write_table(pa.table(columns), path)
            os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))


def shares(weights: Sequence[float], rows: int) -> list[int]:
    """Whole numbers in proportion to the weights that add up to `rows`."""
    whole, out, given = sum(weights), [], 0
    so_far = 0.0
    for weight in weights:
        so_far += weight
        upto = round(so_far / whole * rows)
        out.append(upto - given)
        given = upto
    return out


def run_load(
    session: SparkSession, load: Load, folder: Path, *, pace: Pace | None = None,
    options: Mapping[str, Any] | None = None, events: Mapping[int, Event] | None = None, sink: str = "noop",
    name: str = "run",
) -> Run:  # fmt: skip
    """A streaming query over the load, one file per stream and epoch. The files are written once per folder."""
    if not (folder / "input").exists():
        write(session, load, folder / "input")
    streams = {}
    for stream in load.streams:
        reader = session.readStream.schema(load.ddl).option("maxFilesPerTrigger", 1)
        streams[stream] = ab.stream(reader.parquet(str(folder / "input" / stream)), stream, event_time="ts")
    flow = ab.sql(load.query.format(seconds=load.seconds), **streams)
    given = {"sites": load.sites, "cells": load.cells, "combine": "never", "policies": "static", "progress": False}
    writer = flow.writeStream.format(sink).options(**given | dict(options or {}))
    writer = writer.option("checkpointLocation", str(folder / name)).trigger(availableNow=True)
    if sink != "noop":
        writer = writer.option("path", str(folder / f"{name}-out"))
    with ExitStack() as stack:
        stack.enter_context(paced(pace))
        stack.enter_context(befalls(events or {}))
        query = writer.start()
        query.awaitTermination()
    progress = query.recentProgress
    parts = [[p for p in progress if (p["kind"] == "batch") == batch] for batch in (True, False)]
    return Run(parts[0], query.journal(), load.rows * len(load.streams), parts[1])


def wrong_answer(session: SparkSession, load: Load, folder: Path, name: str = "run") -> str:
    """What is wrong with the answer of a run with the sink `parquet`, compared with Spark batch over the same files;
    empty if nothing is. Compared are the number of rows and the sum of their hashes."""
    own = session.newSession()
    for stream in load.streams:
        own.read.schema(load.ddl).parquet(str(folder / "input" / stream)).createOrReplaceTempView(stream)
    want = own.sql(load.query.format(seconds=load.seconds))
    got = own.read.parquet(str(folder / f"{name}-out"))
    figures = [
        rows.selectExpr("count(*)", f"sum(CAST(xxhash64({', '.join(rows.columns)}) AS DECIMAL(38)))").first()
        for rows in (want, got.select(want.columns))
    ]
    if not figures[0] or not figures[0][0]:
        return "there is nothing to compare"
    return "" if figures[0] == figures[1] else f"{figures[1]} where Spark batch has {figures[0]} (rows, sum of hashes)"
