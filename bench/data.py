"""Make a workload's files: deterministic, one parquet file for each stream and epoch, kept by a hash of what made them.

Spark's file source takes files in the order of their modification time, so that is set, one second apart.
A stream written for fewer epochs is a prefix of the same stream written for more.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.workload import START_US, Column, Quarters, Stream, Uniform, Workload, Zipf

VERSION = 1  # of the generator: raise it when the same parameters would make other rows
ROW_GROUP = 131_072

Array = np.ndarray[Any, np.dtype[Any]]


def folder(workload: Workload, root: Path) -> Path:
    """Where the files of a workload are, written if they are not there yet."""
    key = repr((VERSION, workload.streams, workload.epoch_seconds, workload.epochs))
    target = root / f"{workload.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    if not (target / "_done").exists():
        shutil.rmtree(target, ignore_errors=True)
        for index, stream in enumerate(workload.streams):
            write(stream, index, workload, target / stream.name)
        (target / "_done").touch()
    return target


def files(workload: Workload, data: Path, stream: str, epochs: int) -> list[str]:
    return [str(data / stream / f"epoch-{e:05d}.parquet") for e in range(epochs)]


def write(stream: Stream, index: int, workload: Workload, target: Path) -> None:
    target.mkdir(parents=True)
    length_us = int(workload.epoch_seconds * 1e6)
    for epoch in range(workload.epochs):
        rng = np.random.default_rng([index, epoch, stream.rows])
        start = START_US + epoch * length_us
        ts = start + rng.integers(1, length_us, stream.rows)  # above every time of the epoch before: nothing is late
        columns = {"ts": pa.array(ts, pa.timestamp("us", tz="UTC"))}
        for name, column in stream.columns:
            columns[name] = pa.array(draw(column, rng, ts))
        path = target / f"epoch-{epoch:05d}.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=ROW_GROUP)
        modified = START_US // 1_000_000 + epoch
        os.utime(path, (modified, modified))


def draw(column: Column, rng: np.random.Generator, ts: Array) -> Array:
    """One value for each event time in `ts`."""
    match column:
        case Uniform(n):
            return rng.integers(0, n, len(ts))
        case Quarters(n):
            return rng.integers(0, n, len(ts)) / 4
        case Zipf(n, s, drift):
            weights = 1 / np.arange(1, n + 1) ** s
            ranks = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(len(ts)))
            moved = (ts - START_US) // 60_000_000 * drift
            keys: Array = (np.minimum(ranks, n - 1) + moved) % n
            return keys
