"""Tables for hypothesis, and the comparison of kernels with the oracle."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

property_test = settings(
    max_examples=int(os.environ.get("ANABRANCH_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

NAN = float("nan")
NESTED = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.float64()))])
LOCAL = datetime(2024, 3, 31, 1, 30, tzinfo=UTC)

# Few values each, so that they collide; the awkward ones of each type among them.
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 7, 2**61, -(2**61)],
    pa.int32(): [0, 1, -5],
    pa.bool_(): [True, False],
    pa.float64(): [0.0, 1.5, -2.25, NAN, math.inf, 1e300],
    pa.float32(): [0.0, 0.5, NAN, -math.inf],
    pa.string(): ["", "a", "b", "B", "ä", "a\0", "z" * 20],
    pa.binary(): [b"", b"\xff", b"a"],
    pa.date32(): [date(1969, 12, 31), date(2024, 2, 29), date(2024, 3, 1)],
    pa.timestamp("us", "UTC"): [LOCAL, LOCAL + timedelta(microseconds=1), LOCAL - timedelta(days=36500)],
    pa.timestamp("us"): [datetime(2024, 1, 1), datetime(1900, 1, 1, 0, 0, 0, 1)],
    pa.duration("us"): [timedelta(0), timedelta(microseconds=-1), timedelta(days=3)],
    pa.decimal128(12, 2): [Decimal("0.00"), Decimal("1.05"), Decimal("-9.99"), Decimal("1234567890.12")],
    pa.decimal128(38, 3): [Decimal(0).scaleb(-3), Decimal("99999999999999999999999.999"), Decimal("-0.001")],
    NESTED: [{"a": None, "b": None}, {"a": 1, "b": [NAN, None]}, {"a": 1, "b": []}, {"a": 1, "b": None}],
    pa.list_(pa.string()): [[], [None], ["a"], ["a", "a"]],
}
FLAT = [t for t in VALUES if not pa.types.is_nested(t)]


def column(kind: pa.DataType, size: int, nulls: bool = True) -> st.SearchStrategy[list[Any]]:
    values = st.sampled_from(VALUES[kind])
    return st.lists(st.one_of(st.none(), values) if nulls else values, min_size=size, max_size=size)


def chunked(rows: dict[str, list[Any]], schema: pa.Schema, cuts: Sequence[int]) -> pa.Table:
    """A table of several chunks, some of them empty."""
    table = pa.table(rows, schema=schema)
    edges = [0, *sorted(c % (len(table) + 1) for c in cuts), len(table)]
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(edges)])


@st.composite
def tables(
    draw: st.DrawFn, types: dict[str, pa.DataType], times: st.SearchStrategy[int], most: int, nulls: bool = True
) -> pa.Table:
    size = draw(st.integers(0, most))
    rows = {name: draw(column(kind, size, nulls)) for name, kind in types.items()}
    rows["_t"] = draw(st.lists(times, min_size=size, max_size=size))
    schema = pa.schema([*types.items(), ("_t", pa.int64())])
    return chunked(rows, schema, draw(st.lists(st.integers(0, 10), max_size=2)))


def canonical(value: Any, unordered: bool = False) -> Any:
    """Hashable, doubles to 9 digits, lists as multisets if asked."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return "0" if value == 0 or abs(value) < 1e-290 else f"{value:.9g}"
    if isinstance(value, list):
        parts = [canonical(v) for v in value]
        return tuple(sorted(parts, key=repr)) if unordered else tuple(parts)
    if isinstance(value, dict):
        return tuple((k, canonical(v)) for k, v in value.items())
    return value


def multiset(rows: Iterable[dict[str, Any]], unordered: Iterable[str] = ()) -> Counter[Any]:
    loose = set(unordered)
    return Counter(tuple((k, canonical(v, k in loose)) for k, v in sorted(row.items())) for row in rows)


def assert_same(result: pa.Table, expected: list[dict[str, Any]], unordered: Iterable[str] = ()) -> None:
    result.validate(full=True)
    got, want = multiset(result.to_pylist(), unordered), multiset(expected, unordered)
    assert got == want, f"too many: {got - want}\nmissing: {want - got}"
