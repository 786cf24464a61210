"""The m-way inner join of an epoch: exactly the results that its new rows bring.

    new = sum over i of (S_1+D_1) x ... x (S_{i-1}+D_{i-1}) x D_i x S_{i+1} x ... x S_m

Each term starts from its delta, the smallest factor, and takes the other inputs in one at a time: what has been
matched so far is the build side of a hash join, the next input streams past it. DuckDB sees keys, times, compared
columns and row numbers; it returns tuples of row numbers, and the payloads are gathered once, at the end.

Three things keep the candidates few:
1. the time bounds are closed under addition (a-b and b-c bound a-c), so every pair of inputs has its tightest one;
2. rows of the state that no delta row can reach in time are cut off before DuckDB sees them;
3. where keys repeat a lot, or there are none, time buckets as wide as the bound join the equality. A row then meets
   its own bucket and the next one instead of every row of its key.

Known limits: comparisons by order of nested columns are refused (Spark and DuckDB order nested NULLs differently);
times must be far enough from the ends of int64 that adding a bound stays inside; a keyless join with neither a
two-sided bound nor an equality runs as DuckDB's inequality join or, with `!=` only, as a product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.errors import UnsupportedQuery
from anabranch.kernels import engine
from anabranch.kernels.engine import Ints
from anabranch.kernels.specs import TIME, JoinSpec

OPERATORS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

# Buckets double the build side, so they have to pay: expected candidates per row of both inputs.
CROWDED = 4.0
SAMPLE = 4096

Range = tuple[int | None, int | None]


def join(spec: JoinSpec, state: list[pa.Table], delta: list[pa.Table]) -> pa.Table:
    """The results that the epoch's rows `delta` add to those of `state`; columns as in `spec.output`."""
    bounds = close_bounds(spec)
    if bounds is None or all(len(d) == 0 for d in delta):
        return _gather(spec, delta, [])
    narrow = _narrow(spec, state, delta)
    whole = [_behind(s, d) for s, d in zip(state, delta, strict=True)]
    pieces = []
    for term in _terms(spec, narrow, [len(s) for s in state]):
        matched = _match(spec, bounds, term)
        if matched is not None and len(matched[0]):
            pieces.append(matched)
    return _gather(spec, whole, pieces)


def close_bounds(spec: JoinSpec) -> dict[tuple[int, int], Range] | None:
    """The tightest range of t[j] - t[i] for every pair, from all bounds together; None if no row can match."""
    m = len(spec.inputs)
    top: dict[tuple[int, int], int | None] = {(i, j): 0 if i == j else None for i in range(m) for j in range(m)}

    def tighten(i: int, j: int, value: int | None) -> None:
        old = top[i, j]
        if value is not None and (old is None or value < old):
            top[i, j] = value

    for b in spec.bounds:
        tighten(b.i, b.j, b.high)
        tighten(b.j, b.i, None if b.low is None else -b.low)
    for k in range(m):
        for i in range(m):
            for j in range(m):
                first, second = top[i, k], top[k, j]
                if first is not None and second is not None:
                    tighten(i, j, first + second)
    if any((top[i, i] or 0) < 0 for i in range(m)):
        return None

    def negative(value: int | None) -> int | None:
        return None if value is None else -value

    return {(i, j): (negative(top[j, i]), top[i, j]) for i in range(m) for j in range(m) if i != j}


# -- terms -------------------------------------------------------------------------------------------------------------


@dataclass
class Factor:
    """The matching columns (t, k0.., c0..) of one input's rows in one term, and their row numbers in state + delta."""

    columns: pa.Table
    small: bool  # whether it is the delta, from which the term starts


def _narrow(spec: JoinSpec, state: list[pa.Table], delta: list[pa.Table]) -> list[pa.Table]:
    """State and delta of each input, one behind the other, with what matching needs and in DuckDB's types."""
    whole = [_behind(s, d) for s, d in zip(state, delta, strict=True)]
    tables: list[dict[str, pa.ChunkedArray]] = []
    for w in whole:
        rows = pa.chunked_array([pa.array(np.arange(len(w), dtype=np.int64))])
        tables.append({"t": w[TIME], "r": rows})
    for n in range(len(spec.inputs[0].keys)):
        keys = [w[i.keys[n]] for i, w in zip(spec.inputs, whole, strict=True)]
        for table, column in zip(tables, engine.encode_together(keys), strict=True):
            table[f"k{n}"] = column
    for n, c in enumerate(spec.compares):
        sides = [whole[c.i][c.left], whole[c.j][c.right]]
        if any(engine.is_nested(s.type) for s in sides) and c.op not in ("=", "!="):
            raise UnsupportedQuery(f"nested columns cannot be compared with {c.op}: {c.left}, {c.right}")
        left, right = engine.encode_together(sides)
        tables[c.i][f"c{n}l"], tables[c.j][f"c{n}r"] = left, right
    return [pa.table(t) for t in tables]


def _behind(state: pa.Table, delta: pa.Table) -> pa.Table:
    """State and delta as one table, no copy; promotion only forgives a difference in nullability."""
    return pa.concat_tables([state, delta.select(state.column_names)], promote_options="default")


def _terms(spec: JoinSpec, narrow: list[pa.Table], cuts: list[int]) -> Iterator[list[Factor]]:
    """The telescoping sum: everything up to input i with its delta, i's delta alone, the rest without theirs."""
    for i in range(len(spec.inputs)):
        factors = []
        for j, (table, cut) in enumerate(zip(narrow, cuts, strict=True)):
            part = table if j < i else table.slice(cut) if j == i else table.slice(0, cut)
            factors.append(Factor(part, j == i))
        if all(len(f.columns) for f in factors):
            yield factors


# -- matching ----------------------------------------------------------------------------------------------------------


def _match(spec: JoinSpec, bounds: dict[tuple[int, int], Range], term: list[Factor]) -> list[Ints] | None:
    """Row numbers, one array per input, of the term's matches."""
    start = next(i for i, f in enumerate(term) if f.small)
    reach = _time_range(term[start].columns)
    tables = {}
    for j, factor in enumerate(term):
        table = factor.columns if j == start else _prune(factor.columns, reach, bounds[start, j])
        if len(table) == 0:
            return None
        tables[f"i{j}"] = table

    joined = [start]
    sql = f"SELECT r AS r{start}, {_prefixed(tables, start)} FROM i{start}"
    while len(joined) < len(term):
        following = _next(spec, bounds, joined, len(term))
        sql = _step(spec, bounds, tables, joined, following, sql)
        joined.append(following)
    rows = engine.run(f"SELECT {', '.join(f'r{j}' for j in range(len(term)))} FROM ({sql})", tables)
    return [np.asarray(rows[f"r{j}"]) for j in range(len(term))]


def _prefixed(tables: dict[str, pa.Table], i: int) -> str:
    return ", ".join(f"{c} AS i{i}_{c}" for c in tables[f"i{i}"].column_names if c != "r")


def _next(spec: JoinSpec, bounds: dict[tuple[int, int], Range], joined: list[int], m: int) -> int:
    """The input that the matched ones restrict the most: by an equality, a two-sided bound, anything, nothing."""

    def ties(j: int) -> tuple[int, int, int]:
        linked = [c for c in spec.compares if (c.i == j and c.j in joined) or (c.j == j and c.i in joined)]
        equal = len(spec.inputs[j].keys) + sum(c.op == "=" for c in linked)
        ranges = [bounds[a, j] for a in joined]
        closed = sum(low is not None and high is not None for low, high in ranges)
        return equal + closed, closed, len(linked)

    return max((j for j in range(m) if j not in joined), key=lambda j: (ties(j), -j))


def _step(
    spec: JoinSpec,
    bounds: dict[tuple[int, int], Range],
    tables: dict[str, pa.Table],
    joined: list[int],
    j: int,
    matched: str,
) -> str:
    """SQL of `matched` joined with input j: j on the left (it streams), the matched rows on the right (hashed)."""
    anchor = joined[0]
    conditions = [f"p.k{n} = q.i{anchor}_k{n}" for n in range(len(spec.inputs[j].keys))]
    equalities = bool(conditions)
    for n, c in enumerate(spec.compares):
        if c.j == j and c.i in joined:
            conditions.append(f"p.c{n}r {OPERATORS[MIRRORED[c.op]]} q.i{c.i}_c{n}l")
        elif c.i == j and c.j in joined:
            conditions.append(f"p.c{n}l {OPERATORS[c.op]} q.i{c.j}_c{n}r")
        else:
            continue
        equalities = equalities or c.op == "="
    for a in joined:
        low, high = bounds[a, j]
        if low is not None:
            conditions.append(f"p.t >= q.i{a}_t + ({low})")
        if high is not None:
            conditions.append(f"p.t <= q.i{a}_t + ({high})")

    streamed, hashed = f"i{j}", f"({matched})"
    narrowest = min((w for a in joined if (w := _width(bounds[a, j]))), default=None, key=lambda w: w[1] - w[0])
    if narrowest and (not equalities or _crowded(spec, tables, joined, j, narrowest)):
        low, high = narrowest
        a = next(a for a in joined if bounds[a, j] == narrowest)
        width = high - low + 1
        # An interval as long as a bucket touches at most two. Truncating division merges the two buckets around 0,
        # which only makes that one wider.
        first, last = f"(i{a}_t + ({low})) // {width}", f"(i{a}_t + ({high})) // {width}"
        streamed = f"(SELECT *, t // {width} AS b FROM i{j})"
        hashed = f"(SELECT *, unnest(CASE WHEN {first} = {last} THEN [{first}] ELSE [{first}, {last}] END) AS b FROM "
        hashed += f"({matched}))"
        conditions.insert(0, "p.b = q.b")
    kept = [f"q.r{a}" for a in joined] + [f"q.i{a}_{c}" for a in joined for c in _kept(tables, a)]
    kept += [f"p.r AS r{j}"] + [f"p.{c} AS i{j}_{c}" for c in _kept(tables, j)]
    return f"SELECT {', '.join(kept)} FROM {streamed} p JOIN {hashed} q ON {' AND '.join(conditions) or 'true'}"


def _kept(tables: dict[str, pa.Table], i: int) -> list[str]:
    return [c for c in tables[f"i{i}"].column_names if c != "r"]


def _width(bound: Range) -> tuple[int, int] | None:
    low, high = bound
    return None if low is None or high is None else (low, high)


def _crowded(spec: JoinSpec, tables: dict[str, pa.Table], joined: list[int], j: int, bound: tuple[int, int]) -> bool:
    """Whether joining by equality alone would bring many times more candidates than rows.

    Judged by how often two rows of a sample of the delta have the same key: one hot key is enough.
    """
    small, large = tables[f"i{joined[0]}"], tables[f"i{j}"]
    keys = len(spec.inputs[j].keys)
    if not keys:
        return False
    low, high = _time_range(large)
    if high - low <= 2 * (bound[1] - bound[0]):
        return False  # everything is within the bound anyhow
    step = max(1, len(small) // SAMPLE)
    rows = np.arange(0, len(small), step)
    codes, _ = engine.factorize([engine.gather(small[f"k{n}"], rows, True) for n in range(keys)])
    counts = np.bincount(codes).astype(float)
    if len(rows) < 2:
        return False
    chance = float((counts * (counts - 1)).sum()) / (len(rows) * (len(rows) - 1))
    return chance * len(small) * len(large) > CROWDED * (len(small) + len(large))


# -- pruning -----------------------------------------------------------------------------------------------------------


def _time_range(table: pa.Table) -> tuple[int, int]:
    chunks = [np.asarray(c) for c in table["t"].chunks if len(c)]
    return min(int(c.min()) for c in chunks), max(int(c.max()) for c in chunks)


def _prune(table: pa.Table, reach: tuple[int, int], bound: Range) -> pa.Table:
    """The rows whose time lies within the bound of some time in `reach`; whole chunks first."""
    low = None if bound[0] is None else reach[0] + bound[0]
    high = None if bound[1] is None else reach[1] + bound[1]
    if low is None and high is None:
        return table
    parts = []
    for batch in table.to_batches():
        times = np.asarray(batch["t"])
        inside = np.ones(len(times), bool) if low is None else times >= low
        if high is not None:
            inside &= times <= high
        count = int(np.count_nonzero(inside))
        # Copying the kept rows costs about as much as streaming the others past the hash table.
        if count and count * 4 > len(times) * 3:
            parts.append(batch)
        elif count:
            parts.append(batch.take(pa.array(np.flatnonzero(inside))))
    return pa.Table.from_batches(parts, table.schema)


def _gather(spec: JoinSpec, whole: list[pa.Table], pieces: list[list[Ints]]) -> pa.Table:
    """The output columns of the matched row numbers."""
    found = []
    for i, table in enumerate(whole):
        wanted = table.select(list(dict.fromkeys(column for j, column, _ in spec.output if j == i)))
        found.append(pa.concat_tables([wanted.slice(0, 0), *(engine.gather_rows(wanted, p[i]) for p in pieces)]))
    return pa.table([found[i][column] for i, column, _ in spec.output], names=[name for _, _, name in spec.output])
