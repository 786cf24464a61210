from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import QueryFailed
from anabranch.kernels import reference
from anabranch.kernels.frame import advance, frame, relevant, trim
from anabranch.kernels.specs import FrameCall, FrameSpec, SortKey
from tests.kernels.kernel_tables import FLAT, NAN, VALUES, assert_same, property_test, tables

ADDABLE = [pa.int32(), pa.decimal128(12, 2), pa.decimal128(38, 3), pa.duration("us"), pa.float64()]
CASE = tuple[FrameSpec, pa.Table, pa.Table]


@st.composite
def cases(draw: st.DrawFn) -> CASE:
    key_types = draw(st.lists(st.sampled_from(list(VALUES)), max_size=2))
    keys = {f"k{n}": t for n, t in enumerate(key_types)}
    order_types = draw(st.lists(st.sampled_from(FLAT), max_size=2))
    order = {f"o{n}": t for n, t in enumerate(order_types)}
    added, ordered, picked = (draw(st.sampled_from(ts)) for ts in (ADDABLE, FLAT, list(VALUES)))
    columns = {
        **keys, **order, "s": added, "v": ordered, "x": picked, "x2": picked, "d": pa.decimal128(12, 2),
        "f": pa.int32(),
    }  # fmt: skip
    kinds = [("count", ()), ("count", ("x",)), ("sum", ("s",)), ("avg", ("f",)), ("avg_decimal", ("d",)),
             ("min", ("v",)), ("max", ("v",)), ("var_pop", ("f",)), ("var_samp", ("f",)), ("stddev_pop", ("f",)),
             ("stddev_samp", ("f",)), ("first_value", ("x",)), ("last_value", ("x",)), ("collect_list", ("x",)),
             ("lag", ("x",)), ("lag", ("x", "x2"))]  # fmt: skip
    calls = []
    for n, (kind, names) in enumerate(kinds):
        params: tuple[float, ...] = (16, 6) if kind == "avg_decimal" else ()
        if kind.endswith("_value"):
            params = draw(st.sampled_from([(), (0,), (1,)]))
        following = draw(st.sampled_from([0, 0, -1, -2]))
        calls.append(FrameCall(kind, names, draw(st.integers(0, 5)), following, f"r{n}_{kind}", params))
    sort = tuple(SortKey(o, draw(st.booleans()), draw(st.booleans())) for o in order)
    spec = FrameSpec(tuple(keys), sort, tuple(columns), tuple(calls), (*keys, "_t"))
    context = draw(tables(columns, st.integers(0, 4), 10))
    return spec, context, draw(tables(columns, st.integers(4, 8), 10))


@property_test
@given(cases())
def test_frames_are_those_of_the_oracle(case: CASE) -> None:
    spec, context, released = case
    assert_same(frame(spec, context, released), reference.frame(spec, context, released))


@property_test
@given(cases())
def test_trimming_keeps_the_last_rows_of_each_key(case: CASE) -> None:
    spec, context, _ = case
    assert_same(trim(spec, context), reference.trim(spec, context))


@property_test
@given(cases(), st.integers(0, 10))
def test_the_relevant_context_gives_the_same_results_as_all_of_it(case: CASE, cut: int) -> None:
    spec, context, released = case
    # Ties between context and release are told apart by row order only: let the release begin later.
    released = released.set_column(
        released.schema.get_field_index("_t"), "_t", pa.array([t + 1 for t in released["_t"].to_pylist()], pa.int64())
    )
    some = relevant(spec, [context.slice(0, cut), context.slice(cut)], released)
    assert len(some) <= len(context)
    assert_same(frame(spec, some, released), reference.frame(spec, context, released))


def single(call: FrameCall, values: list[Any], kind: pa.DataType) -> list[Any]:
    table = pa.table({"v": pa.array(values, kind), "_t": pa.array(range(len(values)), pa.int64())})
    spec = FrameSpec((), (), ("v",), (call,), ())
    return list(frame(spec, table.slice(0, 0), table)[call.output].to_pylist())


def test_a_huge_value_that_left_the_frame_leaves_no_trace() -> None:
    values = [1e300, 1.0, 2.0, float("inf"), NAN, 3.0, 4.0]
    assert single(FrameCall("sum", ("v",), 1, 0, "s"), values, pa.float64())[2] == 3.0
    assert single(FrameCall("avg", ("v",), 1, 0, "s"), values, pa.float64())[-1] == 3.5
    assert single(FrameCall("var_pop", ("v",), 1, 0, "s"), values, pa.float64())[-1] == 0.25


def test_integer_sums_are_exact_and_out_of_range_they_are_an_error() -> None:
    big = 2**62
    assert single(FrameCall("sum", ("v",), 2, 0, "s"), [big, big - 1, -big], pa.int64())[2] == big - 1
    with pytest.raises(QueryFailed, match="range"):
        single(FrameCall("sum", ("v",), 1, 0, "s"), [big, big], pa.int64())
    with pytest.raises(QueryFailed, match="range"):
        single(FrameCall("sum", ("v",), 1, 0, "s"), [Decimal("9.9"), Decimal("0.1")], pa.decimal128(2, 1))


def test_ties_are_resolved_by_row_order_context_first() -> None:
    context = pa.table({"v": [1, 2], "_t": [5, 5]})
    released = pa.table({"v": [3, 4], "_t": [5, 5]})
    spec = FrameSpec((), (), ("v",), (FrameCall("lag", ("v",), 1, 0, "before"),), ("v",))
    assert frame(spec, context, released)["before"].to_pylist() == [2, 3]


def test_a_frame_that_ends_before_it_begins_is_empty() -> None:
    assert single(FrameCall("count", (), 1, -2, "n"), [1, 2, 3, 4], pa.int64()) == [0, 0, 0, 0]
    assert single(FrameCall("sum", ("v",), 1, -2, "n"), [1, 2, 3, 4], pa.int64()) == [None] * 4


def test_a_long_frame_over_short_groups_costs_no_more_than_the_groups() -> None:
    assert single(FrameCall("max", ("v",), 10**9, 0, "m"), [3, 1, 2], pa.int64()) == [3, 3, 3]


def test_a_long_context_is_cut_down_to_the_keys_that_are_released() -> None:
    context = pa.table({"k": [1, None, 2, None, None, 1, 2, 2, 2], "_t": list(range(9))})
    released = pa.table({"k": pa.array([None, 3], pa.int64()), "_t": [9, 9]})
    spec = FrameSpec(("k",), (), ("k",), (FrameCall("count", (), 2, 0, "n"),), ("k",))
    some = relevant(spec, [context.slice(0, 2), context.slice(2)], released)
    assert [row["_t"] for row in some.to_pylist()] == [1, 3, 4]


def test_what_later_rows_can_see_is_the_end_of_each_released_key() -> None:
    context = pa.table({"k": [1, 1, 2], "_t": [0, 1, 2]})
    released = pa.table({"k": [2, 1, 2, 2], "_t": [5, 4, 7, 6]})
    spec = FrameSpec(("k",), (), ("k",), (FrameCall("count", (), 2, 0, "n"),), ("k",))
    rows, later = advance(spec, context, released)
    assert rows["n"].to_pylist() == [2, 3, 3, 3]
    assert later.to_pylist() == [{"k": 1, "_t": 4}, {"k": 2, "_t": 7}, {"k": 2, "_t": 6}]
