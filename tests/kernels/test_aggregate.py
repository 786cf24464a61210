from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import QueryFailed
from anabranch.kernels import reference
from anabranch.kernels.aggregate import close, horizon, merge
from anabranch.kernels.specs import AggregateCall, AggregateSpec, WindowSpec
from tests.kernels.kernel_tables import FLAT, NAN, NESTED, VALUES, assert_same, column, multiset, property_test, tables

SHAPES = [(4, 4, 4), (6, 2, 2), (5, 3, 1), (2, 6, 2), (6, 4, 2)]
CASE = tuple[AggregateSpec, list[pa.Table]]
ADDABLE = [pa.int64(), pa.int32(), pa.decimal128(12, 2), pa.decimal128(38, 3), pa.duration("us")]


def window(shape: tuple[int, int, int], offset: int = 0) -> WindowSpec:
    return WindowSpec(shape[0], shape[1], offset, shape[2])


def calm(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of which many can be added."""
    return st.sampled_from([v for v in VALUES[kind] if v not in (2**61, -(2**61))])


@st.composite
def cases(draw: st.DrawFn, raw: bool) -> CASE:
    key_types = draw(st.lists(st.sampled_from(list(VALUES)), max_size=2))
    keys = {f"k{n}": t for n, t in enumerate(key_types)}
    shape = draw(st.sampled_from(SHAPES))
    spec_window = window(shape, draw(st.integers(-3, 3)))
    added = draw(st.sampled_from([*ADDABLE, pa.float64()]))
    ordered, picked = draw(st.sampled_from(FLAT)), draw(st.sampled_from(list(VALUES)))
    schema = {
        **keys, "n": pa.int64(), "s": added, "c": pa.int64(), "f": pa.float64(), "d": pa.decimal128(12, 2),
        "lo": ordered, "hi": ordered, "x": picked, "y": ordered,
        "vn": pa.float64(), "mean": pa.float64(), "m2": pa.float64(),
    }  # fmt: skip
    calls = [
        AggregateCall("count", ("n",), "count"),
        AggregateCall("sum", ("s",), "sum"),
        AggregateCall("avg", ("f", "c"), "avg"),
        AggregateCall("avg_decimal", ("d", "c"), "avg_decimal", (16, 6)),
        AggregateCall("min", ("lo",), "min"),
        AggregateCall("max", ("hi",), "max"),
        *(AggregateCall(k, ("vn", "mean", "m2"), k) for k in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")),
    ]
    if raw:
        calls = [
            AggregateCall("count_distinct", ("x", "y"), "distinct"),
            AggregateCall("sum_distinct", ("s",), "sum_distinct"),
            AggregateCall("collect_list", ("x",), "list"),
            AggregateCall("collect_set", ("y",), "set"),
            AggregateCall("percentile", ("f",), "median", (0.5,)),
            AggregateCall("percentiles", ("f",), "percentiles", (0.0, 0.3, 1.0)),
            AggregateCall("max", ("lo",), "max"),
        ]
    made = []
    for _ in range(draw(st.integers(1, 2))):
        table = draw(tables(keys, st.integers(-12, 12), 8))
        size = len(table)
        for name, kind in schema.items():
            if name in keys:
                continue
            values = draw(column(kind, size))
            if name in ("n", "c", "vn"):
                values = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
            elif name in ("mean", "m2"):
                values = draw(st.lists(st.sampled_from([0.0, 1.5, 4.0]), min_size=size, max_size=size))
            elif name == "s":
                values = draw(st.lists(st.one_of(st.none(), calm(kind)), min_size=size, max_size=size))
            table = table.append_column(name, pa.array(values, kind))
        panes = [t // shape[2] * shape[2] + spec_window.offset for t in table["_t"].to_pylist()]
        made.append(table.set_column(table.schema.get_field_index("_t"), "_t", pa.array(panes, pa.int64())))
    return AggregateSpec(tuple(keys), spec_window, tuple(calls)), made


UNORDERED = ("list", "set")
LATE = 1000


@property_test
@given(cases(raw=False), st.one_of(st.none(), st.integers(-12, 12)), st.integers(-12, 20))
def test_windows_of_partials_close_as_the_oracle_says(case: CASE, after: int | None, until: int) -> None:
    spec, made = case
    assert_same(close(spec, made, after, until), reference.close(spec, made, after, until))


@property_test
@given(cases(raw=True), st.one_of(st.none(), st.integers(-12, 12)), st.integers(-12, 20))
def test_windows_of_raw_rows_close_as_the_oracle_says(case: CASE, after: int | None, until: int) -> None:
    spec, made = case
    assert_same(close(spec, made, after, until), reference.close(spec, made, after, until), UNORDERED)


@property_test
@given(cases(raw=False))
def test_merging_changes_no_result_and_leaves_one_partial_per_pane(case: CASE) -> None:
    spec, made = case
    merged = merge(spec, made)
    assert merged.schema == made[0].schema
    assert_same(close(spec, [merged], None, LATE), reference.close(spec, made, None, LATE))
    names = [str(reference.identity([row[k] for k in (*spec.keys, "_t")])) for row in merged.to_pylist()]
    assert len(names) == len(set(names))
    assert len(merge(spec, [merged])) == len(merged)


@property_test
@given(cases(raw=False), st.lists(st.integers(-12, 20), min_size=1, max_size=3))
def test_closing_step_by_step_and_forgetting_old_panes_gives_every_window_once(case: CASE, steps: list[int]) -> None:
    spec, made = case
    rows: list[dict[str, Any]] = []
    kept, after = made, None
    for until in [*sorted(steps), LATE]:
        rows.extend(close(spec, kept, after, until).to_pylist())
        least = horizon(spec, until)
        kept = [t.filter(pa.array([p >= least for p in t["_t"].to_pylist()], pa.bool_())) for t in kept]
        after = until
    assert multiset(rows) == multiset(reference.close(spec, made, None, LATE))


def one(calls: list[AggregateCall], columns: dict[str, Any], keys: tuple[str, ...] = ()) -> pa.Table:
    size = len(next(iter(columns.values())))
    table = pa.table({**columns, "_t": pa.array([0] * size, pa.int64())})
    return close(AggregateSpec(keys, window((4, 4, 4)), tuple(calls)), [table], None, 4)


@pytest.mark.parametrize("kind", [k for k in VALUES if k in FLAT], ids=str)
def test_min_by_and_max_by_pick_any_type_by_any_type(kind: pa.DataType) -> None:
    values = sorted(VALUES[kind], key=reference.Ranked)
    picked = [{"a": n, "b": None} for n in range(len(values))]
    columns = {"x": pa.array([*picked, None], NESTED), "y": pa.array([*values, None], kind)}
    calls = [AggregateCall(f"{side}_by", ("x", "y"), side) for side in ("min", "max")]
    result = one(calls, columns)
    assert result.to_pylist() == [{"_w": 0, "min": picked[0], "max": picked[-1]}]
    assert result.schema.field("min").type == NESTED


def test_a_partial_chosen_by_min_by_keeps_its_null() -> None:
    columns = {"x": pa.array([None, 1], pa.int64()), "y": pa.array([0.5, NAN])}
    result = one([AggregateCall("min_by", ("x", "y"), "a"), AggregateCall("max_by", ("x", "y"), "b")], columns)
    assert result.to_pylist() == [{"_w": 0, "a": None, "b": 1}]


def test_min_and_max_over_one_raw_column_do_not_spoil_each_other_in_a_merge() -> None:
    calls = (AggregateCall("min", ("v",), "lo"), AggregateCall("max", ("v",), "hi"))
    spec = AggregateSpec((), window((4, 2, 2)), calls)
    table = pa.table({"v": [3, 1, 2], "_t": [2, 2, 2]})
    assert [(r["_w"], r["lo"], r["hi"]) for r in close(spec, [merge(spec, [table])], None, 9).to_pylist()] == [
        (0, 1, 3),
        (2, 1, 3),
    ]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [2**62, 2**62 + 1]),
        (pa.duration("us"), [2**62, 2**62 + 1]),
        (pa.int32(), [2**30, 2**30 + 1]),
        (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal(1)]),
        (pa.decimal128(4, 2), [Decimal("99.99"), Decimal("0.01")]),
    ],
    ids=str,
)
def test_a_sum_out_of_range_is_an_error_and_does_not_wrap(kind: pa.DataType, values: list[Any]) -> None:
    for call in (AggregateCall("sum", ("s",), "total"), AggregateCall("sum_distinct", ("s",), "total")):
        with pytest.raises(QueryFailed, match="range"):
            one([call], {"s": pa.array(values, kind)})


def test_sums_may_pass_through_values_out_of_range_and_come_back() -> None:
    assert one([AggregateCall("sum", ("s",), "a")], {"s": [2**62, 2**62, -(2**62)]})["a"].to_pylist() == [2**62]


@pytest.mark.parametrize(
    ("total", "count", "answer"),
    [("0.05", 10, "0.01"), ("-0.05", 10, "-0.01"), ("0.04", 10, "0.00"), ("7" * 36, 7, "1" * 36)],
)
def test_decimal_averages_round_half_up(total: str, count: int, answer: str) -> None:
    columns = {"s": pa.array([Decimal(total)], pa.decimal128(38, 2)), "n": [count]}
    result = one([AggregateCall("avg_decimal", ("s", "n"), "a", (38, 2))], columns)
    assert result["a"].to_pylist() == [Decimal(answer)]


def test_keys_of_null_and_nan_are_one_group_each() -> None:
    result = one([AggregateCall("count", ("n",), "c")], {"k": [None, NAN, None, NAN, 1.0], "n": [1] * 5}, ("k",))
    assert sorted(result["c"].to_pylist()) == [1, 2, 2]


def test_distinct_values_are_told_apart_by_group() -> None:
    columns = {"k": [0, 1, 1, 2, 2, 2], "v": [1, 0, 1, 2, 1, 0]}
    calls = [AggregateCall("count_distinct", ("v",), "n"), AggregateCall("sum_distinct", ("v",), "s")]
    rows = one(calls, columns, ("k",)).sort_by("k").to_pylist()
    assert [(r["n"], r["s"]) for r in rows] == [(1, 1), (2, 1), (3, 3)]


def test_a_pane_exactly_on_the_end_of_a_window_is_not_in_it() -> None:
    spec = AggregateSpec((), window((4, 4, 4), offset=1), (AggregateCall("count", ("n",), "c"),))
    table = pa.table({"n": [1, 1, 1], "_t": [1, 5, -3]})
    rows = close(spec, [table], None, 9).to_pylist()
    assert sorted(r["_w"] for r in rows) == [-3, 1, 5]
    assert [r["_w"] for r in close(spec, [table], 5, 9).to_pylist()] == [5]
    assert close(spec, [table], 9, 12).to_pylist() == []


@pytest.mark.parametrize("shape", SHAPES)
def test_the_horizon_is_the_start_of_the_first_window_still_open(shape: tuple[int, int, int]) -> None:
    spec = AggregateSpec((), window(shape, 1), ())
    for until in range(-20, 20):
        starts = [1 + k * shape[1] for k in range(-50, 50)]
        assert horizon(spec, until) == min(w for w in starts if w + shape[0] > until)
