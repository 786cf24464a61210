"""Aggregates over sliding runs of rows in numpy, for values sorted by group.

`rolling` combines, for each row, the `width` rows that end `shift` rows before it, within its group. It adds up runs
of 1, 2, 4, ... rows and puts each frame together from those, log2(width) passes over the arrays: no subtraction, so
that a huge value, an infinity or a NaN that has left the frame leaves no trace, which running sums cannot promise
for floating point. Sums of integers do use running sums, over limbs, where they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch.kernels.engine import Ints

Values = npt.NDArray[Any]
Combine = Callable[[list[Values], list[Values]], list[Values]]


@dataclass(frozen=True)
class Frames:
    """Rows in order, and for each row its frame [first, last] of positions; last < first where it is empty."""

    rank: Ints  # place of the row within its group
    width: int
    shift: int

    @property
    def last(self) -> Ints:
        out: Ints = np.arange(len(self.rank)) - self.shift
        return out

    @property
    def first(self) -> Ints:
        here = np.arange(len(self.rank))
        out: Ints = np.maximum(here - self.rank, here - self.shift - self.width + 1)
        return out


def rolling(frames: Frames, values: Sequence[Values], identity: Sequence[Any], combine: Combine) -> list[Values]:
    """`combine` over each row's frame; `values` are parallel arrays that together are one value."""
    rank, n = frames.rank, len(frames.rank)
    longest = int(rank.max()) + 1 if n else 0
    width = min(frames.width, longest)
    back = frames.shift
    level = list(values)
    result = [np.full(n, i, v.dtype) for i, v in zip(identity, values, strict=True)]
    step = 1
    while width > 0:
        if width & 1 and back < longest:
            _fold(result, level, rank, back, identity, combine)
            back += step
        width >>= 1
        if width:
            doubled = [v.copy() for v in level]
            _fold(doubled, level, rank, step, identity, combine)
            level = doubled
            step *= 2
    return result


def _fold(
    into: list[Values], level: list[Values], rank: Ints, back: int, identity: Sequence[Any], combine: Combine
) -> None:
    """into[p] = level[p - back] combined with into[p], where that row is in the group. Earlier rows come first."""
    n = len(rank)
    inside = rank[back:] >= back
    earlier = [np.where(inside, v[: n - back], i) for v, i in zip(level, identity, strict=True)]
    for target, combined in zip(into, combine(earlier, [v[back:] for v in into]), strict=True):
        target[back:] = combined


def running_sum(frames: Frames, values: Ints) -> Ints:
    """Exact sums of integers (rows, or rows by limbs) over each frame."""
    total = np.zeros((len(values) + 1, *values.shape[1:]), np.int64)
    np.cumsum(values, axis=0, out=total[1:])
    last, first = frames.last, frames.first
    first = np.minimum(first, last + 1)  # an empty frame
    first, last = np.maximum(first, 0), np.maximum(last, -1)
    out: Ints = total[last + 1] - total[first]
    return out


def add(a: list[Values], b: list[Values]) -> list[Values]:
    return [a[0] + b[0]]


def least(a: list[Values], b: list[Values]) -> list[Values]:
    return [np.fmin(a[0], b[0])]  # ignores NaN: with NaN as identity it is the largest value


def greatest(a: list[Values], b: list[Values]) -> list[Values]:
    return [np.maximum(a[0], b[0])]  # passes NaN on: the largest value


def chan(a: list[Values], b: list[Values]) -> list[Values]:
    """Two parts' (count, mean, sum of squared deviations) as one."""
    (n1, m1, s1), (n2, m2, s2) = a, b
    n = n1 + n2
    some = np.where(n == 0, 1.0, n)
    gap = m2 - m1
    # An empty part has mean 0; it must not meet an infinite one (0 * inf).
    mean = np.where(n1 == 0, m2, np.where(n2 == 0, m1, m1 + gap * (n2 / some)))
    apart = np.where((n1 == 0) | (n2 == 0), 0.0, gap * gap * (n1 * n2 / some))
    return [n, mean, s1 + s2 + apart]
