"""Per-row frames: for each released row, functions over the rows just before it in event-time order.

`context` is what earlier epochs released, as far as the new rows can still see it. Rows are sorted once by key and
order (radix passes over small integers), and every function is a few numpy passes over the sorted columns; picked
values (first, last, lag, min and max of any flat type) are gathered by row number and keep their type.

Known limits: sums have the type of their column, so the compiler widens it first, and one out of range is an error;
order columns and min and max do not take nested types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import UnsupportedQuery
from anabranch.kernels import decimals, engine, rolling
from anabranch.kernels.engine import Ints
from anabranch.kernels.rolling import Frames
from anabranch.kernels.specs import TIME, FrameCall, FrameSpec

Mask = npt.NDArray[np.bool_]
LITTLE = 4  # context rows per released row: up to here, sorting all is cheaper than finding out which matter


def frame(spec: FrameSpec, context: pa.Table, released: pa.Table) -> pa.Table:
    """`spec.output` and the calls' results for the rows of `released`, in the order in which they come."""
    return advance(spec, context, released)[0]


def advance(spec: FrameSpec, context: pa.Table, released: pa.Table) -> tuple[pa.Table, pa.Table]:
    """What `frame` gives, and the rows of `released` that later ones can still see: the last `depth` of each key."""
    table = pa.concat_tables([context, released.select(context.column_names)], promote_options="default")
    order, rank = _sorted(spec, table)
    ordered = _Ordered(table, order, rank)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    wanted = place[len(context) :]
    columns = {name: released[name] for name in spec.output}
    for call in spec.calls:
        columns[call.output] = ordered.call(call, wanted)
    last = order[_from_end(rank) <= spec.depth]
    kept = np.sort(last[last >= len(context)]) - len(context)
    return pa.table(columns), released if len(kept) == len(released) else _rows(released, kept)


def trim(spec: FrameSpec, table: pa.Table) -> pa.Table:
    """The last `depth` rows of each key, in the order in which they come."""
    if len(table) == 0:
        return table
    order, rank = _sorted(spec, table)
    kept = np.sort(order[_from_end(rank) <= spec.depth])
    return table if len(kept) == len(table) else _rows(table, kept)


def _from_end(rank: Ints) -> Ints:
    """Each row's place in its key counted from the last, which is 1."""
    lengths = np.diff(np.append(np.flatnonzero(rank == 0), len(rank)))
    out: Ints = np.repeat(lengths, lengths) - rank
    return out


def relevant(spec: FrameSpec, context_tables: list[pa.Table], released: pa.Table) -> pa.Table:
    """The context that `released` can see, and maybe more: rows of keys that it has. More does no harm."""
    context = pa.concat_tables(context_tables, promote_options="default")
    if len(context) == 0 or len(released) == 0:
        return context.slice(0, 0)
    if not spec.keys or len(context) <= LITTLE * len(released):
        return context
    pairs = [(context[k], released[k]) for k in spec.keys]
    codes, count = engine.factorize([pa.chunked_array([*a.chunks, *b.chunks], a.type) for a, b in pairs])
    present = np.zeros(count, bool)
    present[codes[len(context) :]] = True
    kept = present[codes[: len(context)]]
    return context if kept.all() else _rows(context, np.flatnonzero(kept))


def _rows(table: pa.Table, rows: Ints) -> pa.Table:
    return pa.table([engine.gather(table[n], rows, True) for n in table.column_names], schema=table.schema)


# -- order -------------------------------------------------------------------------------------------------------------


def _sorted(spec: FrameSpec, table: pa.Table) -> tuple[Ints, Ints]:
    """Row numbers sorted by key, time and order columns, ties as they come; and each one's rank within its key."""
    n = len(table)
    codes = engine.factorize([table[k] for k in spec.keys])[0] if spec.keys and n else np.zeros(n, np.int64)
    times = np.asarray(table[TIME])
    order = np.arange(n)
    if np.any(times[1:] < times[:-1]):
        order = order[np.argsort(times, kind="stable")]
    # numpy sorts 16-bit integers by radix: two passes at most are a tenth of one comparison sort.
    for digit in range(0, int(codes.max(initial=0)).bit_length(), 16):
        order = order[np.argsort(((codes[order] >> digit) & 0xFFFF).astype(np.uint16), kind="stable")]
    codes = codes[order]
    if spec.order:
        order = _untied(spec, table, order, codes, times[order])
    fresh = np.ones(n, bool)
    fresh[1:] = codes[1:] != codes[:-1]
    here = np.arange(n)
    return order, here - np.maximum.accumulate(np.where(fresh, here, 0))


def _untied(spec: FrameSpec, table: pa.Table, order: Ints, codes: Ints, times: Ints) -> Ints:
    """The order columns decide only between rows of one key and one time, which are few as a rule."""
    same = (codes[1:] == codes[:-1]) & (times[1:] == times[:-1])
    if not same.any():
        return order
    after = np.concatenate([[False], same])
    places = np.flatnonzero(after | np.concatenate([same, [False]]))
    runs = np.cumsum(~after)[places]
    rows = order[places]
    by = np.arange(len(rows))
    for key in reversed(spec.order):
        column = engine.gather(table[key.column], rows)
        ranks, _ = _ranks(column)
        null = np.asarray(column.is_null())
        ranks = np.where(null, len(rows) if key.nulls_last else -len(rows), -ranks if key.descending else ranks)
        by = by[np.argsort(ranks[by], kind="stable")]
    by = by[np.argsort(runs[by], kind="stable")]
    out = order.copy()
    out[places] = rows[by]
    return out


def _ranks(column: pa.ChunkedArray) -> tuple[Ints, Ints]:
    """Dense ranks of the values (NaN largest, NULLs anything), and for each rank a row that has it."""
    if engine.is_nested(column.type):
        raise UnsupportedQuery(f"rows cannot be ordered by values of type {column.type}")
    encoded = pc.dictionary_encode(engine.whole(engine.encode(column)))
    codes = np.asarray(pc.fill_null(encoded.indices, 0)).astype(np.int64)
    ascending = np.asarray(pc.array_sort_indices(encoded.dictionary)).astype(np.int64)
    rank = np.zeros(max(1, len(ascending)), np.int64)
    rank[ascending] = np.arange(len(ascending))
    ranks = rank[codes]
    row = np.zeros(len(ascending), np.int64)
    valid = np.flatnonzero(np.asarray(column.is_valid()))
    row[ranks[valid]] = valid
    return ranks, row


# -- functions ---------------------------------------------------------------------------------------------------------


class _Ordered:
    """The rows in order, and the functions over their frames; results are for the positions `wanted`."""

    def __init__(self, table: pa.Table, order: Ints, rank: Ints) -> None:
        self.table = table
        self.order = order
        self.rank = rank

    def call(self, call: FrameCall, wanted: Ints) -> pa.ChunkedArray:
        frames = Frames(self.rank, max(0, call.preceding + call.following + 1), -call.following)
        kind = call.kind
        if kind == "lag":
            return self._lag(call, wanted)
        if kind == "count" and not call.columns:
            return _numbers(rolling.running_sum(frames, np.ones(len(self.rank), np.int64))[wanted])
        column = self.table[call.columns[0]]
        valid = np.asarray(column.is_valid())[self.order]
        if kind in ("first_value", "last_value"):
            return self._edge(call, frames, column, valid, wanted)
        count = rolling.running_sum(frames, valid.astype(np.int64))[wanted]
        if kind == "count":
            return _numbers(count)
        if kind in ("sum", "avg", "avg_decimal"):
            return self._sum(call, frames, column, count, wanted)
        if kind in ("min", "max"):
            return self._extreme(kind, frames, column, count, wanted)
        if kind in ("var_pop", "var_samp", "stddev_pop", "stddev_samp"):
            return self._spread(kind, frames, column, wanted)
        if kind == "collect_list":
            return self._collect(frames, column, valid, count, wanted)
        raise UnsupportedQuery(f"unknown frame function {kind}")

    def _floats(self, column: pa.ChunkedArray, null: float) -> npt.NDArray[np.float64]:
        return np.asarray(pc.fill_null(column.cast(pa.float64()), null))[self.order]

    def _sum(
        self, call: FrameCall, frames: Frames, column: pa.ChunkedArray, count: Ints, wanted: Ints
    ) -> pa.ChunkedArray:
        empty = count == 0
        if call.kind == "avg" or pa.types.is_floating(column.type):
            with np.errstate(invalid="ignore", over="ignore"):
                total = rolling.rolling(frames, [self._floats(column, 0.0)], [0.0], rolling.add)[0][wanted]
                total = total / np.where(empty, 1, count) if call.kind == "avg" else total
            return _numbers(total, empty).cast(pa.float64() if call.kind == "avg" else column.type)
        limbs = rolling.running_sum(frames, decimals.to_limbs(column)[self.order])[wanted]
        if call.kind == "sum":
            return pa.chunked_array([decimals.from_limbs(limbs, column.type, empty)])
        # The sum of an average may need more digits than the column has.
        total = decimals.from_limbs(limbs, pa.decimal128(38, column.type.scale), empty)
        precision, scale = (int(p) for p in call.params)
        return pa.chunked_array([decimals.average(pa.chunked_array([total]), count, precision, scale)])

    def _extreme(
        self, kind: str, frames: Frames, column: pa.ChunkedArray, count: Ints, wanted: Ints
    ) -> pa.ChunkedArray:
        empty = count == 0
        combine = rolling.least if kind == "min" else rolling.greatest
        if pa.types.is_float64(column.type) or pa.types.is_float32(column.type):
            nothing = np.nan if kind == "min" else -np.inf
            best = rolling.rolling(frames, [self._floats(column, nothing)], [nothing], combine)[0][wanted]
            return _numbers(best, empty).cast(column.type)
        # Anything else by rank, and the value from a row that has it.
        ranks, row = _ranks(column)
        limit = np.iinfo(np.int64)
        nothing_rank = limit.max if kind == "min" else limit.min
        ranks = np.where(np.asarray(column.is_valid()), ranks, nothing_rank)[self.order]
        best_rank = rolling.rolling(frames, [ranks], [nothing_rank], combine)[0][wanted]
        return _take(column, row[best_rank[~empty]], empty)

    def _spread(self, kind: str, frames: Frames, column: pa.ChunkedArray, wanted: Ints) -> pa.ChunkedArray:
        ones = np.asarray(column.is_valid())[self.order].astype(float)
        values = self._floats(column, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            parts = [ones, values, values - values]  # NaN for NaN and infinity, as in Spark
            n, _, squares = (v[wanted] for v in rolling.rolling(frames, parts, [0.0, 0.0, 0.0], rolling.chan))
            sample = kind.endswith("samp")
            empty = (n == 0) | (sample & (n == 1))
            variance = squares / np.where(empty, 1.0, n - sample)
            return _numbers(np.sqrt(variance) if kind.startswith("stddev") else variance, empty)

    def _edge(
        self, call: FrameCall, frames: Frames, column: pa.ChunkedArray, valid: Mask, wanted: Ints
    ) -> pa.ChunkedArray:
        first, last, n = frames.first, frames.last, len(valid)
        empty = last < first
        here = np.arange(n)
        place = np.clip(first if call.kind == "first_value" else last, 0, max(0, n - 1))
        if call.params and call.params[0] == 1:
            if call.kind == "first_value":  # the next non-NULL from there on
                following = np.minimum.accumulate(np.where(valid, here, n)[::-1])[::-1]
                place = following[place]
            else:
                place = np.maximum.accumulate(np.where(valid, here, -1))[place]
            empty = empty | (place < first) | (place > last)
        empty = empty[wanted]
        return _take(column, self.order[place[wanted][~empty]], empty)

    def _lag(self, call: FrameCall, wanted: Ints) -> pa.ChunkedArray:
        column = self.table[call.columns[0]]
        outside = self.rank[wanted] < call.preceding
        found = _take(column, self.order[(wanted - call.preceding)[~outside]], outside)
        if len(call.columns) == 1:
            return found
        default = engine.gather(self.table[call.columns[1]], self.order[wanted])
        if not engine.is_nested(column.type):
            return pc.if_else(pa.array(outside), default.cast(column.type), found)
        both = pa.chunked_array([*found.chunks, *default.cast(column.type).chunks], column.type)
        return engine.gather(both, np.arange(len(wanted)) + np.where(outside, len(wanted), 0))

    def _collect(
        self, frames: Frames, column: pa.ChunkedArray, valid: Mask, count: Ints, wanted: Ints
    ) -> pa.ChunkedArray:
        kept = self.order[valid]
        before = np.concatenate([[0], np.cumsum(valid)])  # non-NULLs before each position
        start = before[np.clip(frames.first[wanted], 0, len(valid))]
        offsets = np.concatenate([[0], np.cumsum(count)])
        if offsets[-1] > np.iinfo(np.int32).max:
            raise UnsupportedQuery("the lists of one epoch hold more than 2**31 values", fix="use smaller epochs")
        places = np.repeat(start - offsets[:-1], count) + np.arange(offsets[-1])
        values = engine.whole(engine.gather(column, kept[places]))
        return pa.chunked_array([pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)])


def _numbers(values: Sequence[Any] | npt.NDArray[Any], null: Mask | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, mask=null)])


def _take(column: pa.ChunkedArray, rows: Ints, null: Mask) -> pa.ChunkedArray:
    """Values by row number, one for each place that is not NULL."""
    values = engine.gather(column, rows)
    if not null.any():
        return values
    return pa.chunked_array([engine.whole(values).take(pa.array(np.cumsum(~null) - 1, mask=null))])
