"""The three kinds of stateful operators at a site: what they keep, what they give out, how their state is folded.

A port is one input's state. A frame has a second one, `CONTEXT`: the rows it has given out and may still look back at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.kernels.aggregate import close, merge
from anabranch.kernels.frame import advance, frame, relevant, trim
from anabranch.kernels.join import join
from anabranch.kernels.specs import CELL, AggregateSpec, FrameSpec, JoinSpec
from anabranch.state.compaction import FAN_IN

Fold = Callable[[list[pa.Table]], pa.Table]
PENDING, CONTEXT = 0, 1


@dataclass(frozen=True)
class Epoch:
    """What a site has before it this epoch; one entry per port."""

    deltas: list[pa.Table]
    states: list[list[pa.Table]]
    horizons: list[int | None]
    closed: int | None  # released up to here before
    watermark: int | None  # to be released up to here now

    def state(self, port: int) -> pa.Table:
        """The port's state as one table of chunks, in the columns of its delta."""
        return together(self.states[port], self.deltas[port])


@dataclass(frozen=True)
class Outcome:
    rows: pa.Table  # with the cell that each comes from
    keep: list[pa.Table | None]  # new state per port


def appended(tables: list[pa.Table]) -> pa.Table:
    """The fold of state that is rows: one behind the other, nothing copied."""
    return pa.concat_tables(tables)


class SiteOperator(ABC):
    kind: ClassVar[str]
    releases: ClassVar[bool]  # whether a cell has work to do when the watermark moves, rows or no rows
    postpones: ClassVar[bool] = False  # whether that work is as heavy as the rows', and is put off with them

    @abstractmethod
    def run(self, spec: Any, epoch: Epoch) -> Outcome: ...

    def fold(self, spec: Any, port: int) -> Fold:
        """How several segments of a port become one."""
        return appended

    def fan_in(self, port: int) -> int:
        """How many segments of a size become one."""
        return FAN_IN


class JoinOperator(SiteOperator):
    """New results are those with a new row on at least one side; both sides keep what can still meet a later row."""

    kind = "join"
    releases = False

    def run(self, spec: JoinSpec, epoch: Epoch) -> Outcome:
        states = [epoch.state(p) for p in range(len(epoch.deltas))]
        rows = join(replace(spec, output=(*spec.output, (0, CELL, CELL))), states, epoch.deltas)
        return Outcome(rows, [since(d, h) for d, h in zip(epoch.deltas, epoch.horizons, strict=True)])


class AggregateOperator(SiteOperator):
    """Partials are kept per (key, pane) and given out, window by window, as the watermark passes their ends."""

    kind = "aggregate"
    releases = True

    def run(self, spec: AggregateSpec, epoch: Epoch) -> Outcome:
        new = merge(spec, [epoch.deltas[0]])
        parts = [*epoch.states[0], new]
        if epoch.watermark is None:
            return Outcome(close(spec, [new.slice(0, 0)], None, -(2**62)), [new])
        rows = close(spec, [p.select(new.column_names) for p in parts], epoch.closed, epoch.watermark)
        return Outcome(rows, [since(new, epoch.horizons[0])])

    def fold(self, spec: AggregateSpec, port: int) -> Fold:
        return lambda tables: merge(spec, tables)


class FrameOperator(SiteOperator):
    """Rows wait until the watermark makes their order final; then each is given out with what it can see."""

    kind = "frame"
    releases = True
    postpones = True

    def run(self, spec: FrameSpec, epoch: Epoch) -> Outcome:
        delta = epoch.deltas[PENDING]
        waiting = together([*epoch.states[PENDING], delta], delta)
        if epoch.watermark is None:
            rows = frame(replace(spec, output=(*spec.output, CELL)), delta.slice(0, 0), delta.slice(0, 0))
            return Outcome(rows, [delta, None])
        times = waiting["_t"]
        due = pc.less(times, epoch.watermark)
        if epoch.closed is not None:  # what was given out before may still lie in a segment
            due = pc.and_(due, pc.greater_equal(times, epoch.closed))
        released = waiting.filter(due)
        spec = replace(spec, output=(*spec.output, CELL))
        context = [delta.slice(0, 0), *(c.select(delta.column_names) for c in epoch.states[CONTEXT])]
        rows, seen_later = advance(spec, relevant(spec, context, released), released)
        return Outcome(rows, [since(delta, epoch.horizons[PENDING]), seen_later])

    def fold(self, spec: FrameSpec, port: int) -> Fold:
        if port == CONTEXT:
            return lambda tables: trim(spec, pa.concat_tables(tables))
        return appended

    def fan_in(self, port: int) -> int:
        """Two contexts together are hardly more than one: each key's last rows. Every epoch reads them all."""
        return 2 if port == CONTEXT else FAN_IN


OPERATORS: dict[str, SiteOperator] = {o.kind: o for o in (JoinOperator(), AggregateOperator(), FrameOperator())}


def together(tables: list[pa.Table], like: pa.Table) -> pa.Table:
    names = like.column_names
    return pa.concat_tables([like.slice(0, 0), *(t.select(names) for t in tables)])


def rows_per_cell(rows: pa.Table, cells: int) -> Any:
    """How many rows each of so many cells has."""
    if rows.num_rows == 0:
        return np.zeros(cells, np.int64)
    return np.bincount(rows[CELL].to_numpy(), minlength=cells)


def since(rows: pa.Table, horizon: int | None) -> pa.Table:
    """The rows that are still of use."""
    if horizon is None or rows.num_rows == 0 or pc.min(rows["_t"]).as_py() >= horizon:
        return rows
    return rows.filter(pc.greater_equal(rows["_t"], horizon))
