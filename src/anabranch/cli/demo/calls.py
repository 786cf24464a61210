"""Phone calls and reports of suspicious numbers, drawn from a seed and written as files while a query reads them.

What file `n` holds follows from the seed and `n` alone, so the same arguments make the same streams on any machine.
Event time runs `SPEED` times as fast as the clock, so that minutes of windows fit into seconds of demo. Calls come up
to `DISORDER` late, less than the delay that the query allows.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SPEED = 10
DISORDER_S = 4
NUMBERS = 40_000  # phones there are
SUSPECTS = 3_000  # of which these are reported, in turn, so that no number is reported twice within a minute
REPORTS_PER_S = 30  # per second of event time: each number every 100 s
FIRST_US = 1_767_225_600_000_000  # 2026-01-01 00:00:00 UTC
FIRST_PHONE = 34_600_000_000

CALLS = "call BIGINT, phone BIGINT, ts TIMESTAMP, duration INT"
REPORTS = "phone BIGINT, ts TIMESTAMP"
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Load:
    """What to generate."""

    seed: int
    rate: int  # calls per second of the clock
    files_per_s: int = 2

    @property
    def span_us(self) -> int:
        """Event time in one file."""
        return SPEED * 1_000_000 // self.files_per_s


def calls_of(load: Load, n: int) -> pa.Table:
    """The calls of file n. Suspects are few, and talk longer."""
    rng = np.random.default_rng((load.seed, n, 0))
    rows = load.rate // load.files_per_s
    suspect = rng.random(rows) < 0.1
    phone = np.where(suspect, rng.integers(0, SUSPECTS, rows), rng.integers(SUSPECTS, NUMBERS, rows))
    duration = rng.exponential(np.where(suspect, 420, 150)).astype("int32") + 1
    ts = (
        FIRST_US
        + n * load.span_us
        + rng.integers(0, load.span_us, rows)
        - rng.integers(0, DISORDER_S * 1_000_000, rows)
    )
    return pa.table(
        {
            "call": np.arange(n * rows, (n + 1) * rows),
            "phone": FIRST_PHONE + phone,
            "ts": pa.array(np.maximum(ts, FIRST_US), _TIME),
            "duration": duration,
        }
    )


def reports_of(load: Load, n: int) -> pa.Table:
    """The numbers reported in file n."""
    rows = REPORTS_PER_S * load.span_us // 1_000_000
    number = np.arange(n * rows, (n + 1) * rows)
    turn = np.random.default_rng(load.seed).permutation(SUSPECTS)
    return pa.table(
        {
            "phone": FIRST_PHONE + turn[number % SUSPECTS],
            "ts": pa.array(FIRST_US + number * 1_000_000 // REPORTS_PER_S, _TIME),
        }
    )


class Feed(threading.Thread):
    """Writes the files, one of each stream per tick. Readers see whole files only."""

    def __init__(self, load: Load, folder: Path, seconds: int) -> None:
        super().__init__(name="anabranch-demo-feed", daemon=True)
        self.load = load
        self.folder = folder
        self.files = seconds * load.files_per_s
        self.rows = 0
        self._stopped = threading.Event()
        for name in ("calls", "reports"):
            (folder / name).mkdir(parents=True)

    def run(self) -> None:
        begin = time.monotonic()
        for n in range(self.files):
            if self._stopped.wait(max(0.0, begin + n / self.load.files_per_s - time.monotonic())):
                return
            for name, table in (("reports", reports_of(self.load, n)), ("calls", calls_of(self.load, n))):
                aside = self.folder / name / f".{n:06d}.parquet"
                pq.write_table(table, aside)
                os.rename(aside, self.folder / name / f"{n:06d}.parquet")
                self.rows += table.num_rows

    def stop(self) -> None:
        self._stopped.set()
        self.join()
