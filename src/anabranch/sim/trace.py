"""Trace: what a run measured, interval by interval, and what happened in it, event by event.

Two runs of the same scenario have equal traces, to the last bit: `digest` is what the tests compare.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """One interval, `start` to `end`."""

    start: float
    end: float
    rows: int  # processed
    latency: float  # seconds from entering the site to being processed, summed over the rows

    @property
    def throughput(self) -> float:
        return self.rows / (self.end - self.start)

    @property
    def mean_latency(self) -> float:
        return self.latency / self.rows if self.rows else float("nan")


@dataclass(frozen=True)
class Moved:
    """A cell's move, from the order to the restart of its input."""

    started: float
    quiesced: float
    ended: float
    operator: str
    cell: int
    donor: int
    receiver: int


@dataclass
class Trace:
    samples: list[Sample] = field(default_factory=list)
    moves: list[Moved] = field(default_factory=list)
    rounds: list[tuple[float, float, int]] = field(default_factory=list)  # decided at, phase length, moves
    notes: list[tuple[float, str]] = field(default_factory=list)
    _rows: int = 0
    _latency: float = 0.0
    _since: float = 0.0

    def processed(self, rows: int, latency: float) -> None:
        self._rows += rows
        self._latency += latency

    def sample(self, now: float) -> None:
        """End an interval and begin the next."""
        if now > self._since:
            self.samples.append(Sample(self._since, now, self._rows, self._latency))
        self._rows, self._latency, self._since = 0, 0.0, now

    def note(self, now: float, text: str) -> None:
        self.notes.append((now, text))

    def between(self, start: float, end: float) -> Iterator[Sample]:
        return (s for s in self.samples if s.start >= start - 1e-9 and s.end <= end + 1e-9)

    def throughput(self, start: float = 0.0, end: float = float("inf")) -> float:
        """Rows per second over the intervals that lie within."""
        samples = list(self.between(start, end))
        return sum(s.rows for s in samples) / sum(s.end - s.start for s in samples)

    def latency(self, start: float = 0.0, end: float = float("inf")) -> float:
        """Mean over the rows of the intervals that lie within."""
        samples = list(self.between(start, end))
        return sum(s.latency for s in samples) / max(sum(s.rows for s in samples), 1)

    def digest(self) -> str:
        text = repr((self.samples, self.moves, self.rounds, self.notes))
        return hashlib.sha256(text.encode()).hexdigest()
