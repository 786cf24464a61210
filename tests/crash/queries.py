"""The queries that are crashed, their input as files, and the sinks they write to."""

from __future__ import annotations

import functools
import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import anabranch as ab

START = 1_700_000_000_000_000
SCHEMA = "k INT, v INT, ts TIMESTAMP"
TEXTS = {
    "join": """SELECT l.k, l.v AS a, r.v AS b, l.ts AS t, r.ts AS u FROM l JOIN r
               ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 4 SECONDS AND l.ts""",
    "window": """SELECT k, window.start AS t, count(*) AS n, sum(v) AS total, avg(v) AS mean
                 FROM l GROUP BY k, window(ts, '8 seconds', '4 seconds')""",
    "frame": """SELECT k, v, ts, count(v) OVER w AS n, max(v) OVER w AS most FROM l
                WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)""",
    "chain": """SELECT l.k, window.start AS t, count(*) AS n, sum(r.v) AS total FROM l JOIN r
                ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 4 SECONDS AND l.ts
                GROUP BY l.k, window(l.ts, '6 seconds')""",
}
FILES = ("parquet", "json", "csv", "orc")


def make_input(folder: Path, epochs: int = 3, first: int = 0, rows: int = 40) -> None:
    """One file per stream and epoch; in order from file to file, in none within one; no two rows at the same time."""
    for name in ("l", "r"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for epoch in range(first, first + epochs):
            draw = random.Random(f"{name} {epoch}")
            steps = range(epoch * rows, (epoch + 1) * rows)
            times = [START + step * 500_000 + draw.randrange(400) * 1000 for step in steps]
            draw.shuffle(times)
            table = pa.table(
                {
                    "k": pa.array([draw.randrange(5) for _ in times], pa.int32()),
                    "v": pa.array([draw.randrange(100) for _ in times], pa.int32()),
                    "ts": pa.array(times, pa.timestamp("us", "UTC")),
                }
            )
            path = folder / name / f"{epoch:04d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))


def source_of(folder: Path) -> Path:
    """Where the input lies: in the folder itself, or where its file `source` says (in a copied checkpoint)."""
    note = folder / "source"
    return Path(note.read_text()) if note.exists() else folder


def flow_of(session: Any, folder: Path, query: str) -> Any:
    return _flow_of(session, source_of(folder), query)


@functools.cache
def _flow_of(session: Any, folder: Path, query: str) -> Any:
    streams = {}
    for name in ("l", "r"):
        df = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
        streams[name] = ab.stream(df, name, event_time="ts")
    text = TEXTS[query]
    return ab.sql(text, **{n: s for n, s in streams.items() if f"{n}.k" in text or n == "l"})


def started(session: Any, folder: Path, query: str, sink: str, **options: Any) -> Any:
    """The query, on the same checkpoint and output whenever it starts in the same folder."""
    given: dict[str, Any] = {"sites": 2, "cells": 8, "flushAtEnd": True, "checkpointLocation": folder / "checkpoint"}
    trigger = options.pop("trigger", {"availableNow": True})
    writer = flow_of(session, folder, query).writeStream.options(**{**given, **options}).trigger(**trigger)
    if sink == "function":
        return writer.foreachBatch(Keyed(folder / "out")).start()
    if sink == "table":
        return writer.toTable("crashed")
    if sink == "partitioned":
        return writer.partitionBy("k").start(str(folder / "out"))
    return writer.format(sink).start(str(folder / "out"))


class Keyed:
    """A user's function that honours the epoch: one file per epoch, replaced as a whole when the epoch comes again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, rows: Any, epoch: int) -> None:
        self.folder.mkdir(exist_ok=True)
        aside = self.folder / f".{epoch}.tmp"
        aside.write_text(json.dumps(sorted(texts(rows)), indent=0))
        aside.rename(self.folder / f"{epoch}.json")


def texts(rows: Any) -> list[str]:
    """Every row as one text; the same for the same values, whatever file they came from."""
    return [str([str(v) for v in row]) for row in rows.collect()]


def answer(session: Any, folder: Path, query: str) -> list[str]:
    """What Spark says in batch."""
    own = session.newSession()
    for name in ("l", "r"):
        own.read.schema(SCHEMA).parquet(str(source_of(folder) / name)).createOrReplaceTempView(name)
    return sorted(texts(own.sql(TEXTS[query])))


def output(session: Any, folder: Path, query: str, sink: str) -> list[str]:
    """What the query has written so far, through Spark's readers."""
    out = folder / "out"
    if sink == "function":
        return sorted(row for file in out.glob("*.json") for row in json.loads(file.read_text()))
    schema = flow_of(session, folder, query).schema
    place = folder / "warehouse" / "crashed" if sink == "table" else out
    format = sink if sink in FILES else "parquet"
    rows = session.newSession().read.schema(schema).format(format).load(str(place))
    return sorted(texts(rows.select(*schema.names)))
