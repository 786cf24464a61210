"""Turns: which cells of a site are processed in an epoch, together with which, and which have to wait. Pure.

Cells wait for two reasons. Cold ones take turns (F11): those that have waited longest come first, as many as a part of
the memory holds. And where time is bounded (F3), cells are processed a batch at a time until it is over.

A batch has cells of one level (released up to the same watermark), and no more state than the memory holds, so that a
site whose memory was cut works its way through what it has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from anabranch.site.ticket import Behind

TURN = 0.25  # of the memory: what cold cells may take at once
HOT = 0.75  # of the memory: what hot ones may take while there are cold ones
ROOMY = 0.5  # of the memory, below which cold cells come back
FULL = 0.9  # of the memory, in which everything has to fit for all of them to come back
FIRST = 1 / 8  # of the rows: how many an epoch whose time is bounded begins with, to see how fast it goes


@dataclass(frozen=True)
class Batch:
    cells: tuple[int, ...]
    level: int | None  # released up to here before
    rows: int


@dataclass(frozen=True)
class Cells:
    """What a site knows of its cells before it begins; arrays are indexed by cell."""

    mine: tuple[int, ...]
    rows: Sequence[int]  # that arrived or were held
    bytes: Sequence[int]  # of state
    cold: frozenset[int]
    behind: Mapping[int, Behind]
    released: int | None

    def level(self, cell: int) -> int | None:
        return self.behind[cell][0] if cell in self.behind else self.released

    def waited(self, cell: int) -> tuple[bool, int, int]:
        """For an order in which those come first that have waited longest."""
        return (cell not in self.behind, self.behind[cell][1] if cell in self.behind else 0, cell)


def cold_turns(cells: Cells, budget: int | None, watermark: int | None, everyone: bool) -> frozenset[int]:
    """The cold cells that are processed in this epoch, at least one if any has something to do."""
    eager = [c for c in sorted(cells.cold, key=cells.waited) if cells.rows[c] or _unreleased(cells, c, watermark)]
    if budget is None or everyone:
        return frozenset(eager)
    taken: list[int] = []
    used = 0
    for cell in eager:
        if taken and used + cells.bytes[cell] > TURN * budget:
            break
        taken.append(cell)
        used += cells.bytes[cell]
    return frozenset(taken)


def _unreleased(cells: Cells, cell: int, watermark: int | None) -> bool:
    return cell in cells.behind and cells.behind[cell][0] != watermark


def batches(cells: Cells, chosen: Collection[int], budget: int | None, stepwise: bool) -> list[Batch]:
    """The chosen cells, those that waited longest first. Stepwise, each batch has as many rows as all before it."""
    ordered = sorted(chosen, key=cells.waited)
    total = sum(cells.rows[c] for c in ordered)
    step = max(total * FIRST, 1) if stepwise else float("inf")
    found: list[Batch] = []
    group: list[int] = []
    rows = size = done = 0
    for cell in ordered:
        full = budget is not None and size + cells.bytes[cell] > budget
        if group and (cells.level(cell) != cells.level(group[0]) or full or rows >= step):
            found.append(Batch(tuple(group), cells.level(group[0]), rows))
            done += rows
            step = max(step, done)
            group, rows, size = [], 0, 0
        group.append(cell)
        rows += cells.rows[cell]
        size += cells.bytes[cell]
    if group:
        found.append(Batch(tuple(group), cells.level(group[0]), rows))
    return found


def in_time(todo: Sequence[Batch], rows: Sequence[int], room: float) -> frozenset[int]:
    """The cells of some batches that can be processed while there is time for so many rows, in their order."""
    found, used = [], 0.0
    for batch in todo:
        for cell in batch.cells:
            used += rows[cell]
            if used - rows[cell] / 2 <= room:  # begun if more than half of it is in time
                found.append(cell)
    return frozenset(found)


@dataclass(frozen=True)
class Tiers:
    """Which cells change their tier."""

    spill: tuple[int, ...] = ()
    restore: tuple[int, ...] = ()


def full(budget: int | None) -> int | None:
    """How much state a site should have, so that all of it stays hot although it grows and shrinks."""
    return None if budget is None else int(FULL * budget)


def tiers(hot: Mapping[int, int], cold: Mapping[int, int], rows: Sequence[int], budget: int | None) -> Tiers:
    """After an epoch: bytes of state per hot and per cold cell, rows of the epoch per cell.

    Past the budget cells go cold until the rest leaves room for turns: those with the fewest rows for their size first.
    Where more than half is free, the cold ones with the most rows for their size come back; all of them where all fit.
    """
    if budget is None:
        return Tiers(restore=tuple(cold))
    total = sum(hot.values())
    if total + sum(cold.values()) <= FULL * budget:
        return Tiers(restore=tuple(cold))

    def worth(cell: int, size: int) -> tuple[float, int]:
        return rows[cell] / max(size, 1), cell

    if total > budget or (cold and total > HOT * budget):
        spill: list[int] = []
        for cell in sorted(hot, key=lambda c: worth(c, hot[c])):
            if total <= HOT * budget:
                break
            if hot[cell]:
                spill.append(cell)
                total -= hot[cell]
        return Tiers(spill=tuple(spill))
    restore: list[int] = []
    if total < ROOMY * budget:
        for cell in sorted(cold, key=lambda c: worth(c, cold[c]), reverse=True):
            if total + cold[cell] <= HOT * budget:
                restore.append(cell)
                total += cold[cell]
    return Tiers(restore=tuple(restore))
