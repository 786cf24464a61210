"""Windowed aggregation of partials: merging them, and the result rows of the windows that close.

Rows are numbered by group (keys, then pane or window) in Arrow and numpy; DuckDB sums and finds extremes over those
numbers, checked for overflow; sets, lists, moments and percentiles are numpy over the same numbers. Keys, and values
that are picked rather than computed (min, max, min_by, max_by of any type), are gathered from the input by row number
and so keep their exact type.

A sliding window re-reads its panes: a pane counts once for each window *that closes now*, which in a running query is
one or two windows, not size / slide.

Known limits: min, max and the order of min_by and max_by do not take nested types. Sums out of range are errors, as in
Spark's ANSI mode. A sum has the type of its column: the compiler widens it first (bigint, double, decimal(p+10, s)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import UnsupportedQuery
from anabranch.kernels import decimals, engine
from anabranch.kernels.engine import Ints
from anabranch.kernels.specs import CELL, RAW, TIME, WINDOW, AggregateCall, AggregateSpec

Floats = npt.NDArray[np.float64]
MOMENTS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})


def merge(spec: AggregateSpec, tables: list[pa.Table]) -> pa.Table:
    """The partials of one (keys, _t, _cell) made one; the same schema.

    Where that is not possible (raw rows, two calls that would merge one column differently) they are only concatenated.
    """
    table = pa.concat_tables(tables, promote_options="default")
    names = [*spec.keys, TIME, *([CELL] if CELL in table.column_names else [])]
    if len(table) == 0 or not spec.mergeable or not _consistent(spec.calls, names):
        return table
    codes, count = engine.factorize([table[n] for n in names])
    if count == len(table):
        return table
    groups = Groups(table, codes, np.arange(len(table)), count)
    columns = {n: engine.gather(table[n], groups.first()) for n in names}
    fresh = [c for n, c in enumerate(spec.calls) if not any(set(c.columns) <= set(o.columns) for o in spec.calls[:n])]
    answers = _computed(tuple(fresh), groups)  # calls may share partials
    for n, call in enumerate(fresh):
        columns.update(zip(call.columns, _merged(call, n, groups, answers), strict=True))
    for name in set(table.column_names) - set(columns):  # which no call reads
        columns[name] = engine.gather(table[name], groups.first())
    return pa.table([columns[n] for n in table.column_names], schema=table.schema)


def _consistent(calls: tuple[AggregateCall, ...], names: list[str]) -> bool:
    """Whether every partial column has one way to be merged: min(v) and max(v) over one raw column have two."""
    ways: dict[str, object] = dict.fromkeys(names, "group")
    for call in calls:
        if call.kind in MOMENTS:
            way: object = ("moments", call.columns)
        elif call.kind in ("min", "max", "min_by", "max_by"):
            way = (call.kind[:3], call.columns)
        else:
            way = "sum"
        if any(ways.setdefault(c, way) != way for c in call.columns):
            return False
    return True


def close(spec: AggregateSpec, tables: list[pa.Table], after: int | None, until: int) -> pa.Table:
    """The result rows of every window whose end is in (after, until]: keys, `_w`, the calls' outputs; the cell too,
    if the partials have it."""
    table = pa.concat_tables(tables, promote_options="default")
    first, count = _windows(spec, np.asarray(table[TIME]), after, until)
    used = count > 0
    if not used.all():
        rows = np.flatnonzero(used)
        table = pa.table({n: engine.gather(table[n], rows, True) for n in table.column_names})
        first, count = first[rows], count[rows]
    if spec.mergeable and len(table) and count.max() > 1:
        # A partial that several windows read is worth merging first.
        table = merge(spec, [table])
        first, count = _windows(spec, np.asarray(table[TIME]), after, until)

    rows = np.repeat(np.arange(len(table)), count)
    steps = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    windows = first[rows] + steps
    by = [_chunked(pa.array(windows))]
    if spec.keys and len(table):
        keys, _ = engine.factorize([table[k] for k in spec.keys])
        by.append(_chunked(pa.array(keys[rows])))
    codes, groups_count = engine.factorize(by)
    groups = Groups(table, codes, rows, groups_count)
    columns = {k: engine.gather(table[k], groups.first()) for k in spec.keys}
    columns[WINDOW] = _chunked(pa.array(windows[groups.first_place()] * spec.window.slide + spec.window.offset))
    for call, column in zip(spec.calls, _closed(spec.calls, groups), strict=True):
        columns[call.output] = column
    if CELL in table.column_names:
        columns[CELL] = engine.gather(table[CELL], groups.first())
    return pa.table(columns)


def horizon(spec: AggregateSpec, until: int) -> int:
    """Panes before this are needed no more once every window that ends at or before `until` is closed."""
    w = spec.window
    return ((until - w.size - w.offset) // w.slide + 1) * w.slide + w.offset


def _windows(spec: AggregateSpec, panes: Ints, after: int | None, until: int) -> tuple[Ints, Ints]:
    """For each pane, the number of its first window to close and how many follow it (window k: offset + k * slide)."""
    w = spec.window
    first = (panes - w.offset - w.size) // w.slide + 1
    last = np.minimum((panes - w.offset) // w.slide, (until - w.size - w.offset) // w.slide)
    if after is not None:
        first = np.maximum(first, (after - w.size - w.offset) // w.slide + 1)
    return first, np.maximum(last - first + 1, 0)


# -- groups ------------------------------------------------------------------------------------------------------------


class Groups:
    """Rows of a table with the number of the group each belongs to; a row may be in several groups."""

    def __init__(self, table: pa.Table, codes: Ints, rows: Ints, count: int) -> None:
        self.table = table
        self.codes = codes
        self.rows = rows
        self.count = count
        self._every_row_once = len(rows) == len(table)

    def first_place(self) -> Ints:
        """One member of each group."""
        places = np.empty(self.count, np.int64)
        places[self.codes[::-1]] = np.arange(len(self.codes) - 1, -1, -1)
        return places

    def first(self) -> Ints:
        out: Ints = self.rows[self.first_place()]
        return out

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of the table, one value per member."""
        return self.table[name] if self._every_row_once else engine.gather(self.table[name], self.rows, True)

    def floats(self, name: str) -> Floats:
        return np.asarray(pc.fill_null(self.column(name).cast(pa.float64()), 0.0))

    def sum(self, weights: Floats) -> Floats:
        return np.bincount(self.codes, weights=weights, minlength=self.count).astype(np.float64)

    def compute(self, expressions: dict[str, str], columns: dict[str, pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
        """DuckDB aggregates per group, in the order of the groups; `i` is the row's number."""
        if not expressions:
            return {}
        table = pa.table({"g": self.codes, "i": self.rows, **columns})
        wanted = ", ".join(f"{e} AS {n}" for n, e in expressions.items())
        result = engine.run(f"SELECT g, {wanted} FROM members GROUP BY g", {"members": table})
        order = np.empty(self.count, np.int64)
        order[np.asarray(result["g"])] = np.arange(self.count)
        return {n: result[n].take(pa.array(order)) for n in expressions}


def _sum(kind: pa.DataType, name: str) -> str:
    storage = engine.storage(kind)
    if pa.types.is_integer(storage):
        return f"sum({name})::{'BIGINT' if storage.bit_width == 64 else 'INTEGER'}"
    return f"sum({name})"


def _plan(call: AggregateCall, n: int, groups: Groups) -> tuple[dict[str, str], dict[str, pa.ChunkedArray]]:
    """What DuckDB computes for a call, as expressions named after it, and the columns that they read."""
    expressions: dict[str, str] = {}
    columns: dict[str, pa.ChunkedArray] = {}
    kind = call.kind
    if kind in ("count", "sum", "avg", "avg_decimal"):
        for place, name in enumerate(call.columns):
            column = groups.column(name)
            columns[f"v{n}_{place}"] = engine.encode(column)
            expressions[f"a{n}_{place}"] = _sum(column.type, f"v{n}_{place}")
    elif kind in ("min", "max", "min_by", "max_by"):
        ordered = groups.column(call.columns[-1])
        if engine.is_nested(ordered.type):
            raise UnsupportedQuery(f"{kind} cannot order values of type {ordered.type}")
        columns[f"v{n}_0"] = engine.encode(ordered)
        expressions[f"a{n}_0"] = f"arg_{kind[:3]}(i, v{n}_0)"
    return expressions, columns


def _computed(calls: tuple[AggregateCall, ...], groups: Groups) -> dict[str, pa.ChunkedArray]:
    expressions: dict[str, str] = {}
    columns: dict[str, pa.ChunkedArray] = {}
    for n, call in enumerate(calls):
        wanted, needed = _plan(call, n, groups)
        expressions |= wanted
        columns |= needed
    return groups.compute(expressions, columns)


def _merged(call: AggregateCall, n: int, groups: Groups, answers: dict[str, pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """A call's partial columns, one row per group."""
    table = groups.table
    if call.kind in MOMENTS:
        return [_as(v, table[c].type) for v, c in zip(_moments(call, groups), call.columns, strict=True)]
    if call.kind in ("min", "max", "min_by", "max_by"):
        return [_pick(table[c], answers[f"a{n}_0"]) for c in call.columns]
    return [engine.decode(answers[f"a{n}_{place}"], table[c].type) for place, c in enumerate(call.columns)]


def _closed(calls: tuple[AggregateCall, ...], groups: Groups) -> list[pa.ChunkedArray]:
    """The calls' outputs, one row per group."""
    answers = _computed(calls, groups)
    out = []
    for n, call in enumerate(calls):
        column = groups.table[call.columns[0]]
        if call.kind in MOMENTS:
            out.append(_spread(call, groups))
        elif call.kind in RAW:
            out.append(_RAW_KINDS[call.kind](call, groups))
        elif call.kind in ("min", "max", "min_by", "max_by"):
            out.append(_pick(column, answers[f"a{n}_0"]))
        elif call.kind == "count":
            out.append(pc.fill_null(answers[f"a{n}_0"].cast(pa.int64()), 0))
        elif call.kind == "sum":
            out.append(engine.decode(answers[f"a{n}_0"], column.type))
        elif call.kind == "avg":
            total = np.asarray(pc.fill_null(answers[f"a{n}_0"].cast(pa.float64()), 0.0))
            count = np.asarray(pc.fill_null(answers[f"a{n}_1"], 0))
            empty = (count == 0) | np.asarray(answers[f"a{n}_0"].is_null())
            out.append(_chunked(pa.array(total / np.where(count == 0, 1, count), mask=empty)))
        elif call.kind == "avg_decimal":
            total_column = engine.decode(answers[f"a{n}_0"], column.type)
            count = np.asarray(pc.fill_null(answers[f"a{n}_1"], 0))
            out.append(_chunked(decimals.average(total_column, count, int(call.params[0]), int(call.params[1]))))
        else:
            raise UnsupportedQuery(f"unknown aggregate {call.kind}")
    return out


def _pick(column: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values at row numbers, NULL where there is none."""
    found = np.asarray(rows.is_valid())
    places = np.asarray(pc.fill_null(rows, 0))
    if found.all():
        return engine.gather(column, places)
    values = engine.whole(engine.gather(column, places[found]))
    return _chunked(values.take(pa.array(np.cumsum(found) - 1, mask=~found)))


# -- moments -----------------------------------------------------------------------------------------------------------


def _moments(call: AggregateCall, groups: Groups) -> tuple[Floats, Floats, Floats]:
    """Count, mean and sum of squared deviations per group: Chan's formula for many parts at once, mean first."""
    n, mean, m2 = (groups.floats(c) for c in call.columns)
    count = groups.sum(n)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # Parts of no row carry a mean of no meaning.
        centre = groups.sum(np.where(n > 0, n * mean, 0.0)) / np.where(count > 0, count, 1.0)
        return count, centre, groups.sum(np.where(n > 0, m2 + n * (mean - centre[groups.codes]) ** 2, 0.0))


def _spread(call: AggregateCall, groups: Groups) -> pa.ChunkedArray:
    count, _, m2 = _moments(call, groups)
    sample = call.kind.endswith("samp")
    empty = (count == 0) | (sample & (count == 1))
    variance = m2 / np.where(empty, 1.0, count - sample)
    with np.errstate(invalid="ignore"):
        return _chunked(pa.array(np.sqrt(variance) if call.kind.startswith("stddev") else variance, mask=empty))


# -- raw rows ----------------------------------------------------------------------------------------------------------


def _distinct(groups: Groups, names: tuple[str, ...]) -> tuple[Ints, Ints]:
    """One member per group and distinct tuple without NULL: their places and groups."""
    columns = [groups.column(n) for n in names]
    places = np.arange(len(groups.codes))
    for column in columns:
        if column.null_count:
            places = places[np.asarray(column.is_valid())[places]]
    if not len(places):
        return places, places
    codes, count = engine.factorize([engine.gather(c, places, True) for c in columns])
    _, firsts = np.unique(groups.codes[places] * count + codes, return_index=True)
    places = places[np.sort(firsts)]
    return places, groups.codes[places]


def _count_distinct(call: AggregateCall, groups: Groups) -> pa.ChunkedArray:
    _, codes = _distinct(groups, call.columns)
    return _chunked(pa.array(np.bincount(codes, minlength=groups.count).astype(np.int64)))


def _sum_distinct(call: AggregateCall, groups: Groups) -> pa.ChunkedArray:
    places, codes = _distinct(groups, call.columns)
    kind = groups.table[call.columns[0]].type
    present = np.unique(codes)
    compact = Groups(groups.table, np.searchsorted(present, codes), groups.rows[places], len(present))
    values = engine.gather(groups.table[call.columns[0]], compact.rows)
    answer = compact.compute({"s": _sum(kind, "v")}, {"v": engine.encode(values)})["s"]
    rows = np.full(groups.count, -1)
    rows[present] = np.arange(len(present))
    return engine.decode(answer.take(pa.array(rows, mask=rows < 0)), kind)


def _list(call: AggregateCall, groups: Groups, places: Ints) -> pa.ChunkedArray:
    codes = groups.codes[places]
    order = places[np.argsort(codes, kind="stable")]
    sizes = np.bincount(codes, minlength=groups.count)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    values = engine.gather(groups.table[call.columns[0]], groups.rows[order])
    return _chunked(pa.ListArray.from_arrays(pa.array(offsets), engine.whole(values)))


def _collect_list(call: AggregateCall, groups: Groups) -> pa.ChunkedArray:
    return _list(call, groups, np.flatnonzero(np.asarray(groups.column(call.columns[0]).is_valid())))


def _collect_set(call: AggregateCall, groups: Groups) -> pa.ChunkedArray:
    return _list(call, groups, _distinct(groups, call.columns)[0])


def _percentiles(call: AggregateCall, groups: Groups) -> pa.ChunkedArray:
    column = groups.column(call.columns[0])
    present = np.asarray(column.is_valid())
    values = groups.floats(call.columns[0])[present]
    codes = groups.codes[present]
    values = values[np.lexsort((values, codes))]  # numpy, too, puts NaN last
    sizes = np.bincount(codes, minlength=groups.count)
    starts = np.cumsum(sizes) - sizes
    empty = sizes == 0
    values = np.append(values, 0.0)  # so that empty groups have something to point at
    answers = []
    for fraction in call.params:
        place = np.maximum(sizes - 1, 0) * fraction
        low, high = np.floor(place), np.ceil(place)
        below, above = values[starts + low.astype(np.int64)], values[starts + high.astype(np.int64)]
        with np.errstate(invalid="ignore"):
            between = (high - place) * below + (place - low) * above
        answers.append(np.where(below == above, below, np.where(low == high, below, between)))
    if call.kind == "percentile":
        return _chunked(pa.array(answers[0], mask=empty))
    kept = np.stack(answers, axis=1)[~empty].ravel()
    offsets = np.concatenate([[0], np.cumsum(np.where(empty, 0, len(call.params)))]).astype(np.int32)
    return _chunked(pa.ListArray.from_arrays(pa.array(offsets), pa.array(kept), mask=pa.array(empty)))


_RAW_KINDS: dict[str, Callable[[AggregateCall, Groups], pa.ChunkedArray]] = {
    "count_distinct": _count_distinct,
    "sum_distinct": _sum_distinct,
    "collect_list": _collect_list,
    "collect_set": _collect_set,
    "percentile": _percentiles,
    "percentiles": _percentiles,
}


def _as(values: npt.NDArray[Any], kind: pa.DataType) -> pa.ChunkedArray:
    return _chunked(pa.array(values).cast(kind))


def _chunked(array: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([array])
