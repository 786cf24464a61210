"""The kernels again, as plain loops over rows: slow, and obviously right. Tests compare the kernels with these.

Same signatures as the kernels, tables in and rows (dicts, in any order) out. Nothing is shared with the kernels but
the specs. Values are Python's: decimals as Decimal, NaN as float("nan"), nested values as dicts and lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import pyarrow as pa

from anabranch.kernels.specs import TIME, WINDOW, AggregateCall, AggregateSpec, FrameCall, FrameSpec, JoinSpec, SortKey

Row = dict[str, Any]
EXACT = Context(prec=120, rounding=ROUND_HALF_UP)


class Ranked:
    """A value in Spark's order: NaN equals itself and is the largest."""

    def __init__(self, value: Any) -> None:
        self.nan = isinstance(value, float) and math.isnan(value)
        self.value = 0 if self.nan else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranked) and (self.nan, self.value) == (other.nan, other.value)

    def __lt__(self, other: Ranked) -> bool:
        if self.nan or other.nan:
            return other.nan and not self.nan
        return bool(self.value < other.value)

    def __le__(self, other: Ranked) -> bool:
        return self == other or self < other

    def __gt__(self, other: Ranked) -> bool:
        return other < self

    def __ge__(self, other: Ranked) -> bool:
        return other <= self

    __hash__ = None  # type: ignore[assignment]


COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def identity(value: Any) -> Any:
    """A hashable stand-in: NULL is itself, NaN is itself, nested values by their parts, times without losing a µs."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None
    if isinstance(value, dict):
        return tuple((k, identity(v)) for k, v in value.items())
    if isinstance(value, list):
        return ("list", *(identity(v) for v in value))
    return value


# -- join --------------------------------------------------------------------------------------------------------------


def join(spec: JoinSpec, state: list[pa.Table], delta: list[pa.Table]) -> list[Row]:
    """All combinations in which at least one row is new."""
    inputs = [
        [(row, False) for row in s.to_pylist()] + [(row, True) for row in d.to_pylist()]
        for s, d in zip(state, delta, strict=True)
    ]
    out = []
    for combination in product(*inputs):
        rows = [row for row, _ in combination]
        if any(new for _, new in combination) and _matches(spec, rows):
            out.append({name: rows[i][column] for i, column, name in spec.output})
    return out


def _matches(spec: JoinSpec, rows: list[Row]) -> bool:
    keys = [[row[k] for k in i.keys] for i, row in zip(spec.inputs, rows, strict=True)]
    if any(value is None for key in keys for value in key):
        return False
    if any(identity(key) != identity(keys[0]) for key in keys):
        return False
    for b in spec.bounds:
        gap = rows[b.j][TIME] - rows[b.i][TIME]
        if (b.low is not None and gap < b.low) or (b.high is not None and gap > b.high):
            return False
    for c in spec.compares:
        left, right = rows[c.i][c.left], rows[c.j][c.right]
        if left is None or right is None or not COMPARE[c.op](Ranked(left), Ranked(right)):
            return False
    return True


# -- aggregate ---------------------------------------------------------------------------------------------------------


def close(spec: AggregateSpec, tables: list[pa.Table], after: int | None, until: int) -> list[Row]:
    w = spec.window
    groups: dict[Any, tuple[Row, list[Row]]] = {}
    for row in (row for table in tables for row in table.to_pylist()):
        start = (row[TIME] - w.offset) // w.slide * w.slide + w.offset
        while row[TIME] < start + w.size:
            if start + w.size <= until and (after is None or start + w.size > after):
                name = (*(identity(row[k]) for k in spec.keys), start)
                head = {**{k: row[k] for k in spec.keys}, WINDOW: start}
                groups.setdefault(name, (head, []))[1].append(row)
            start -= w.slide
    return [head | {c.output: aggregate(c, rows) for c in spec.calls} for head, rows in groups.values()]


def aggregate(call: AggregateCall, rows: list[Row]) -> Any:
    tuples = [tuple(row[c] for c in call.columns) for row in rows]
    kind = call.kind
    first = [t[0] for t in tuples if t[0] is not None]
    if kind == "count":
        return sum(first)
    if kind == "sum":
        return total(first)
    if kind in ("avg", "avg_decimal"):
        n = sum(t[1] for t in tuples if t[1] is not None)
        s = total(first)
        return mean(s, n, call.params if kind == "avg_decimal" else None)
    if kind in ("min", "max"):
        return (min if kind == "min" else max)(first, key=Ranked, default=None)
    if kind in ("min_by", "max_by"):
        seen = [t for t in tuples if t[1] is not None]
        return (min if kind == "min_by" else max)(seen, key=lambda t: Ranked(t[1]), default=(None, None))[0]
    if kind == "count_distinct":
        return len({identity(list(t)) for t in tuples if None not in t})
    if kind == "sum_distinct":
        return total({identity(v): v for v in first}.values())
    if kind == "collect_list":
        return first
    if kind == "collect_set":
        return list({identity(v): v for v in first}.values())
    if kind == "percentile":
        return percentile(first, call.params[0])
    if kind == "percentiles":
        return [percentile(first, p) for p in call.params] if first else None
    n = sum(t[0] for t in tuples if t[0])
    m = sum(t[0] * t[1] for t in tuples if t[0]) / n if n else 0.0
    m2 = sum(t[2] + t[0] * (t[1] - m) ** 2 for t in tuples if t[0])
    return spread(kind, n, m2)


def total(values: Iterable[Any]) -> Any:
    out: Any = None
    for value in values:
        out = value if out is None else EXACT.add(out, value) if isinstance(value, Decimal) else out + value
    return out


def mean(s: Any, n: int, decimal: tuple[float, ...] | None) -> Any:
    if s is None or not n:
        return None
    if decimal is None:
        return float(s) / n
    return EXACT.quantize(EXACT.divide(s, Decimal(n)), Decimal(1).scaleb(-int(decimal[1])))


def spread(kind: str, n: float, m2: float) -> float | None:
    if n == 0 or (kind.endswith("samp") and n == 1):
        return None
    variance = m2 / (n - 1 if kind.endswith("samp") else n)
    return math.sqrt(variance) if kind.startswith("stddev") else variance


def percentile(values: list[float], fraction: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values, key=Ranked)
    place = (len(ordered) - 1) * fraction
    low, high = math.floor(place), math.ceil(place)
    if low == high or identity(ordered[low]) == identity(ordered[high]):
        return ordered[low]
    return (high - place) * ordered[low] + (place - low) * ordered[high]


# -- frame -------------------------------------------------------------------------------------------------------------


class Reversed(Ranked):
    def __lt__(self, other: Ranked) -> bool:
        return Ranked.__lt__(other, self)


def sort_key(key: SortKey, value: Any) -> tuple[int, Any]:
    if value is None:
        return (1 if key.nulls_last else -1), Ranked(0)
    return 0, Reversed(value) if key.descending else Ranked(value)


def frame(spec: FrameSpec, context: pa.Table, released: pa.Table) -> list[Row]:
    groups: dict[Any, list[tuple[Row, bool]]] = {}
    for table, new in ((context, False), (released, True)):
        for row in table.to_pylist():
            groups.setdefault(identity([row[k] for k in spec.keys]), []).append((row, new))
    out = []
    for rows in groups.values():
        rows.sort(key=lambda r: (r[0][TIME], *(sort_key(o, r[0][o.column]) for o in spec.order)))
        for place, (row, new) in enumerate(rows):
            if new:
                calls = {c.output: over(c, [r for r, _ in rows], place) for c in spec.calls}
                out.append({c: row[c] for c in spec.output} | calls)
    return out


def trim(spec: FrameSpec, table: pa.Table) -> list[Row]:
    groups: dict[Any, list[Row]] = {}
    for row in table.to_pylist():
        groups.setdefault(identity([row[k] for k in spec.keys]), []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda r: (r[TIME], *(sort_key(o, r[o.column]) for o in spec.order)))
    return [row for rows in groups.values() for row in rows[max(0, len(rows) - spec.depth) :]]


def over(call: FrameCall, rows: list[Row], place: int) -> Any:
    kind = call.kind
    if kind == "lag":
        back = place - call.preceding
        default = rows[place][call.columns[1]] if len(call.columns) > 1 else None
        return rows[back][call.columns[0]] if back >= 0 else default
    inside = rows[max(0, place - call.preceding) : max(0, place + call.following + 1)]
    values = [row[call.columns[0]] for row in inside] if call.columns else [0] * len(inside)
    seen = [v for v in values if v is not None]
    if kind == "count":
        return len(seen)
    if kind == "sum":
        return total(seen)
    if kind in ("avg", "avg_decimal"):
        return mean(total(seen), len(seen), call.params if kind == "avg_decimal" else None)
    if kind in ("min", "max"):
        return (min if kind == "min" else max)(seen, key=Ranked, default=None)
    if kind in ("first_value", "last_value"):
        chosen = seen if call.params and call.params[0] == 1 else values
        return (chosen[0] if kind == "first_value" else chosen[-1]) if chosen else None
    if kind == "collect_list":
        return seen
    m = sum(seen) / len(seen) if seen else 0.0
    return spread(kind, len(seen), sum((float(v) - m) ** 2 for v in seen))
