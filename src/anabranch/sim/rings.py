"""Rings: many queues of small numbers, worked on in bulk. What lanes are made of."""

from __future__ import annotations

from typing import Any

import numpy as np


class Rings:
    """Many queues of numbers, each of a fixed size, filled and emptied in bulk. Positions count from the beginning;
    what has been popped can be read until as many as `size` more have been appended."""

    def __init__(self, count: int, size: int, kind: type[np.signedinteger[Any]]) -> None:
        self.size = 1 << (size - 1).bit_length()
        self.head = np.zeros(count, dtype=np.int64)
        self.tail = np.zeros(count, dtype=np.int64)
        self._flat = np.zeros(count * self.size, dtype=kind)

    def append(self, rings: Any, values: Any) -> None:
        """Each value to the end of its ring; the rings are in ascending order."""
        counts = np.bincount(rings, minlength=len(self.tail))
        rank = np.arange(len(rings)) - (np.cumsum(counts) - counts).take(rings)
        self._flat[self._place(rings, self.tail.take(rings) + rank)] = values
        self.tail += counts

    def pop(self, rings: Any, counts: Any) -> Any:
        """So many from the head of each of these rings, one ring after the other."""
        found = self.between(rings, self.head[rings], counts)
        self.head[rings] += counts
        return found

    def between(self, rings: Any, start: Any, counts: Any) -> Any:
        """So many from a position on."""
        first = np.cumsum(counts) - counts
        position = np.arange(int(counts.sum())) + np.repeat(start - first, counts)
        return self._flat[self._place(np.repeat(rings, counts), position)]

    def remove(self, rings: Any, value: int) -> None:
        """The value out of each of these rings, which keep their order."""
        for ring in rings:
            place = self._place(ring, np.arange(self.head[ring], self.tail[ring]))
            kept = self._flat[place][self._flat[place] != value]
            self._flat[place[: len(kept)]] = kept
            self.tail[ring] = self.head[ring] + len(kept)

    def _place(self, rings: Any, position: Any) -> Any:
        return rings * self.size + (position & (self.size - 1))
