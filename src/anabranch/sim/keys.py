"""Keys: how likely each group is, which cell it lies in, and a seeded stream of cells for the producers.

Each cell has as many groups as any other, neighbours in number, since the Flux paper's groups are "partitioned evenly";
which group is how likely is the scenario's business. Unequal cells are drawn by a table, so a cell's share is right
to four in a million.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.sim.scenario import Keys, SelfSimilar, TwoLevel, Uniform, Zipf

TABLE_BITS = 18


def group_weights(keys: Keys, groups: int) -> Any:
    """The probability of each rank, most likely first where they differ."""
    rank = np.arange(1, groups + 1, dtype=float)
    if isinstance(keys, Uniform):
        weight = np.ones(groups)
    elif isinstance(keys, Zipf):
        weight = rank**-keys.exponent
    elif isinstance(keys, SelfSimilar):
        power = np.log(1 - keys.h) / np.log(keys.h)
        weight = np.diff((np.concatenate([[0.0], rank]) / groups) ** power)
    else:
        assert isinstance(keys, TwoLevel)
        hot = max(1, round(groups * keys.groups))
        weight = np.full(groups, (1 - keys.rows) / max(groups - hot, 1))
        weight[:hot] = keys.rows / hot
    return weight / weight.sum()


def cell_weights(keys: Keys, groups: int, cells: int) -> Any:
    """The probability of each cell."""
    weight = group_weights(keys, groups)
    if not isinstance(keys, Uniform) and keys.order is not None:
        weight = weight[np.random.default_rng(keys.order).permutation(groups)]
    found = np.zeros(cells)
    np.add.at(found, np.arange(groups) * cells // groups, weight)
    return found


class CellStream:
    """Cells of the rows to come, as long a piece of it as wanted."""

    def __init__(self, rng: np.random.Generator, weights: Any) -> None:
        self.rng = rng
        self.cells = len(weights)
        self._kind = np.int16 if self.cells <= 1 << 15 else np.int32
        self._table = None
        if not np.allclose(weights, 1 / self.cells, rtol=1e-9):
            share = np.floor(np.cumsum(weights / weights.sum()) * (1 << TABLE_BITS) + 0.5).astype(np.int64)
            self._table = np.repeat(np.arange(self.cells, dtype=self._kind), np.diff(share, prepend=0))

    def draw(self, shape: tuple[int, int]) -> Any:
        if self._table is None:
            return self.rng.integers(0, self.cells, size=shape, dtype=self._kind)
        return self._table.take(self.rng.integers(0, len(self._table), size=shape, dtype=np.uint32))
