"""What befalls the sites in the demo's second act, as data, and the calls that go with it.

Four sites stand in for six machines: each row takes a site `SERVICE_US` of emulated service, most of which it sleeps.
Epoch n has the calls of file n, the same number in every epoch, as fast as the query takes them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.cli.demo.calls import FIRST_PHONE, NUMBERS, Load, calls_of, reports_of
from anabranch.routing.assignment import Assignment
from anabranch.routing.cells import cell_expression
from anabranch.testing import Pace, Slow

Numbers = Any  # an int64 array of phone numbers
SITES = 4
CELLS = 64
SERVICE_US = 1000
HOT_SHARE = 0.5  # of the calls go to the hot numbers


@dataclass(frozen=True)
class Chapter:
    """From epoch `first` on."""

    first: int
    name: str
    told: str
    slow: tuple[int, float] | None = None  # site, and how many times slower
    hot: int | None = None  # the numbers that lay at this site in the beginning


@dataclass(frozen=True)
class Story:
    chapters: tuple[Chapter, ...]
    epochs: int
    calls: int  # per epoch
    seed: int = 1

    def chapter(self, epoch: int) -> Chapter:
        return [c for c in self.chapters if c.first <= epoch][-1]

    def last(self, chapter: Chapter) -> int:
        """The epoch after its last one."""
        return min((c.first for c in self.chapters if c.first > chapter.first), default=self.epochs)

    @property
    def pace(self) -> Pace:
        slow = [Slow(*c.slow, first=c.first, until=self.last(c)) for c in self.chapters if c.slow is not None]
        return Pace(SERVICE_US, tuple(slow))


def story(seed: int = 1) -> Story:
    return Story(
        (
            Chapter(0, "all sites alike", "All sites are alike."),
            Chapter(3, "site 1 is slow", "A load arrives on site 1: it is 3 times slower.", slow=(1, 3.0)),
            Chapter(7, "hot numbers", "The load is gone. Half of all calls now are of the numbers of site 3.", hot=3),
            Chapter(10, "other hot numbers", "The hot set drifts: now it is those that began at site 2.", hot=2),
        ),
        epochs=13, calls=1_000, seed=seed,
    )  # fmt: skip


def numbers_by_site(spark: Any) -> list[Numbers]:
    """Where each number's calls lie before anything moves. Spark's hash decides that, so Spark is asked."""
    cell = cell_expression("xxhash64(phone)", CELLS)
    numbers = spark.range(FIRST_PHONE, FIRST_PHONE + NUMBERS).selectExpr("id AS phone")
    found = numbers.selectExpr("phone", f"{cell} AS cell").toArrow()
    owner = np.array(Assignment.initial(CELLS, SITES).owner)
    site = owner[found["cell"].to_numpy()]
    return [found["phone"].to_numpy()[site == s] for s in range(SITES)]


def write(told: Story, numbers: list[Numbers], folder: Path) -> None:
    """One file per stream and epoch."""
    load = Load(told.seed, told.calls * 2)  # two files a second
    for name in ("calls", "reports"):
        (folder / name).mkdir(parents=True)
    for epoch in range(told.epochs):
        hot = told.chapter(epoch).hot
        calls = calls_of(load, epoch)
        if hot is not None:
            calls = heated(calls, numbers[hot], np.random.default_rng((told.seed, epoch, 1)))
        for name, table in (("calls", calls), ("reports", reports_of(load, epoch))):
            path = folder / name / f"{epoch:06d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + epoch, 1_700_000_000 + epoch))  # files are read in this order


def heated(calls: pa.Table, numbers: Numbers, rng: np.random.Generator) -> pa.Table:
    phones = calls["phone"].to_numpy()
    hot = rng.random(len(phones)) < HOT_SHARE
    drawn = np.where(hot, rng.choice(numbers, len(phones)), phones)
    return calls.set_column(calls.schema.get_field_index("phone"), "phone", pa.array(drawn))
