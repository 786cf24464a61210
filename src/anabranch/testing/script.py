"""What happens to a query, written as data: epochs of rows, and what befalls it between them.

    [{"l": [(1, 0)], "r": [(1, 2)]}, ABORT, {"r": [(1, 5)]}, Restart(sites=3), {}, TICK]

A dict is an epoch: rows per stream, as tuples in the order of the stream's columns. A stream that is missing has
nothing new in that epoch. Timestamps may be microseconds. A crash is a value in the list and befalls the epoch after;
so are moves, other numbers of sites, and shortages of memory and time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Row = tuple[Any, ...]
Epoch = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Stream:
    """A stream of a test: its columns as (name, Spark type)."""

    name: str
    columns: tuple[tuple[str, str], ...]
    event_time: str | None = "ts"
    delay_us: int = 0

    @property
    def ddl(self) -> str:
        return ", ".join(f"`{name}` {type}" for name, type in self.columns)

    def time(self, row: Row) -> int | None:
        """A row's event time in microseconds."""
        place = [name for name, _ in self.columns].index(self.event_time or "")
        value: int | None = row[place]
        return value


@dataclass(frozen=True)
class Static:
    """A static DataFrame of a test."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]

    @property
    def ddl(self) -> str:
        return ", ".join(f"`{name}` {type}" for name, type in self.columns)


@dataclass(frozen=True)
class Restart:
    """Stop, and start again from the checkpoint, maybe on another number of sites."""

    sites: int | None = None


@dataclass(frozen=True)
class Abort:
    """The process dies in the next epoch, and a new one takes over.

    write   the sites have kept their state, the sink has nothing
    commit  the sink has the rows, no manifest tells so
    offsets the manifest is there, Spark has not committed its offsets
    """

    at: Literal["write", "commit", "offsets"] = "commit"


@dataclass(frozen=True)
class Tick:
    """Time passes without new rows: what the watermark allows is released."""


@dataclass(frozen=True)
class Shuffle:
    """Cells, drawn by the seed, move to other sites after the next epoch."""

    seed: int
    share: float = 0.5  # of all cells


@dataclass(frozen=True)
class Rescale:
    """Another number of sites after the next epoch, without a restart."""

    sites: int


@dataclass(frozen=True)
class Memory:
    """From the next epoch on, the sites have so much memory for hot state (None: no bound)."""

    bytes: int | None
    site: int | None = None  # None: each of them


@dataclass(frozen=True)
class Hurry:
    """From the next epoch on, a site has the time for about so many rows (None: for all) and holds the others."""

    rows: int | None


RESTART = Restart()
ABORT = Abort()
TICK = Tick()

Step = Epoch | Restart | Abort | Tick | Shuffle | Rescale | Memory | Hurry
Script = Sequence[Step]


def epochs(script: Script) -> list[Epoch]:
    """The epochs with rows, in order."""
    return [step for step in script if isinstance(step, Mapping)]
