"""What a workload is: streams, SQL in two dialects, sizes. Only data, no engine.

Event time is tied to the number of rows, not to the number of epochs: a workload has one event rate, and a larger
epoch is a longer piece of the same stream. State and matches per row therefore do not change with the epoch size.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z, a multiple of every window length used here

Kind = Literal["int", "double", "time"]
Mode = Literal["drain", "steady", "fixed_cost"]


@dataclass(frozen=True)
class Uniform:
    """Integers, uniform in [0, n)."""

    n: int


@dataclass(frozen=True)
class Zipf:
    """Integers in [0, n), P(rank r) ~ 1 / r^s; the ranks move on by `drift` keys each minute of event time."""

    n: int
    s: float
    drift: int = 0


@dataclass(frozen=True)
class Quarters:
    """Doubles that are multiples of 1/4, so that sums are exact in any order and answers compare to the bit."""

    n: int = 4000


Column = Uniform | Zipf | Quarters


@dataclass(frozen=True)
class Stream:
    """One stream: every row has `ts` (unordered within an epoch, never late) and the columns."""

    name: str
    rows: int  # per epoch
    columns: tuple[tuple[str, Column], ...]


@dataclass(frozen=True)
class Workload:
    """One line of the result table."""

    name: str
    family: str
    about: str
    streams: tuple[Stream, ...]
    epoch_seconds: float  # event time that one epoch covers
    epochs: int
    quick_epochs: int
    sql: str  # Spark SQL over the stream names, for Anabranch and, as a rule, Spark
    duckdb_sql: str
    output: tuple[tuple[str, Kind], ...]
    warmup: int = 0  # epochs left out of the figures; at least a fifth is
    check_epochs: int = 6  # epochs whose answers are compared
    decided: str = "true"  # which output rows are final before the last epoch, over `output`; {cut} is a time in us
    spark: bool = True  # whether Spark's own streaming can run the query
    spark_sql: str = ""  # the same query as Spark's own streaming needs it, where it refuses `sql`
    mode: Mode = "drain"
    variants: tuple[tuple[str, str], ...] = field(default=())  # fixed_cost: label and SQL

    @property
    def rows(self) -> int:
        """Rows per epoch over all streams."""
        return sum(s.rows for s in self.streams)

    @property
    def joins(self) -> bool:
        return len(self.streams) > 1

    @property
    def dropped(self) -> int:
        """How many epochs at the beginning do not count."""
        return min(max(self.warmup, -(-self.epochs // 5)), self.epochs - 1)

    def cut_us(self, epochs: int) -> int:
        """An event time that the watermark has passed when the last of `epochs` epochs begins."""
        return START_US + int((epochs - 1) * self.epoch_seconds * 1e6) - 100_000

    def resized(self, rows: int | None = None, epochs: int | None = None) -> Workload:
        """The same stream cut into epochs of another size, at the same event rate."""
        out = self
        if rows is not None:
            scale = rows / self.rows
            streams = tuple(replace(s, rows=max(1, round(s.rows * scale))) for s in self.streams)
            out = replace(out, streams=streams, epoch_seconds=self.epoch_seconds * scale)
        if epochs is not None:
            out = replace(out, epochs=epochs)
        return out

    def named(self, name: str, about: str, **changes: Any) -> Workload:
        """A copy under another name, with other fields changed."""
        return replace(self, name=name, about=about, **changes)
