"""Pacing: how long the next collection phase lasts. In the driver's unit of time: epochs, or seconds.

`FixedPacing` is Flux's rule (F8): as long as the last move phase, half as long as before if nothing moved, never below
a minimum that somebody has to find. `DampedPacing` finds it itself (F12): it doubles when moves did not deliver
what was predicted of them, since then the round was too short to see the load as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """How the last round went."""

    moves: int
    move_time: float  # length of its move phase
    delivered: float | None  # observed gain over predicted gain of the moves before; None: nothing to compare


class Pacing(ABC):
    """`length` is that of the running phase."""

    def __init__(self, least: float, first: float | None = None) -> None:
        self.least = least
        self.length = least if first is None else first

    @abstractmethod
    def next(self, outcome: Outcome) -> float:
        """The length of the next phase, which becomes `length`."""


class FixedPacing(Pacing):
    def next(self, outcome: Outcome) -> float:
        self.length = max(self.least, outcome.move_time if outcome.moves else self.length / 2)
        return self.length


class DampedPacing(Pacing):
    """Twice as long after moves that delivered less than half of what was predicted; back by a quarter at a time when
    they deliver, or when there is nothing to move."""

    POOR = 0.5

    def __init__(self, least: float, most: float, first: float | None = None) -> None:
        super().__init__(least, first)
        self.most = most

    def next(self, outcome: Outcome) -> float:
        if outcome.delivered is not None and outcome.delivered < self.POOR:
            wanted = self.length * 2
        else:
            wanted = self.length * 0.75
        self.length = min(self.most, max(self.least, outcome.move_time, wanted))
        return self.length
