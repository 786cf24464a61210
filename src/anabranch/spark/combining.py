"""Whether Spark merges partials before the exchange: worth its grouping only where it makes few rows of many.

Learnt from the epochs: a large one is merged, and goes on being merged while that takes away at least half of the rows.
Where it does not, it is tried again after a while, as keys change.
"""

from __future__ import annotations

LARGE = 20_000  # rows of an epoch, below which there is nothing to win
WORTH = 0.5  # rows left over rows that came
AGAIN = 50  # epochs until another try


class Combining:
    """One per query; knows each of its stages."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.rows: dict[str, int] = {}  # of the last epoch, before any merging
        self.pause: dict[str, int] = {}  # epochs until another try

    def wanted(self, stage: str) -> bool:
        if self.mode != "auto":
            return self.mode == "always"
        return self.rows.get(stage, 0) >= LARGE and self.pause.get(stage, 0) == 0

    def learn(self, stage: str, rows: int, arrived: int, combined: bool) -> None:
        """`rows` came in this epoch, and `arrived` of them, or of what they were merged to, reached the sites."""
        self.rows[stage] = rows
        if combined and rows and arrived > WORTH * rows:
            self.pause[stage] = AGAIN
        elif self.pause.get(stage, 0):
            self.pause[stage] -= 1
