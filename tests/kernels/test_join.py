from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import UnsupportedQuery
from anabranch.kernels import join as kernel
from anabranch.kernels import reference
from anabranch.kernels.join import close_bounds, join
from anabranch.kernels.specs import Compare, JoinInput, JoinSpec, TimeBound
from tests.kernels.kernel_tables import FLAT, NAN, NESTED, VALUES, assert_same, multiset, property_test, tables

TIMES = st.integers(-4, 4)
Tables = list[pa.Table]


def spec_of(m: int, keys: tuple[str, ...], bounds: Any, compares: Any, columns: tuple[str, ...]) -> JoinSpec:
    output = tuple((i, c, f"{c}{i}") for i in range(m) for c in (*columns, "_t"))
    return JoinSpec(tuple(JoinInput(keys, columns) for _ in range(m)), tuple(bounds), tuple(compares), output)


@st.composite
def cases(draw: st.DrawFn) -> tuple[JoinSpec, Tables, Tables]:
    m = draw(st.sampled_from([2, 2, 2, 3, 3, 4, 5]))
    most = {2: 8, 3: 5, 4: 3, 5: 2}[m]
    key_types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=0, max_size=2))
    compared = draw(st.sampled_from(FLAT))
    types = {f"k{n}": t for n, t in enumerate(key_types)} | {"c": compared, "p": pa.string()}
    pairs = [(i, j) for i in range(m) for j in range(i + 1, m)]
    limit = st.one_of(st.none(), st.integers(-3, 3))
    bounds = [TimeBound(*p, draw(limit), draw(limit)) for p in draw(st.lists(st.sampled_from(pairs), max_size=3))]
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    compares = [Compare(i, "c", draw(operators), j, "c") for i, j in draw(st.lists(st.sampled_from(pairs), max_size=2))]
    spec = spec_of(m, tuple(f"k{n}" for n in range(len(key_types))), bounds, compares, tuple(types))
    state = [draw(tables(types, TIMES, most)) for _ in range(m)]
    delta = [draw(tables(types, TIMES, most)) for _ in range(m)]
    return spec, state, delta


@property_test
@given(cases())
def test_the_new_results_are_those_of_the_oracle(case: tuple[JoinSpec, Tables, Tables]) -> None:
    spec, state, delta = case
    assert_same(join(spec, state, delta), reference.join(spec, state, delta))


@property_test
@given(cases(), st.integers(0, 100))
def test_bucketed_joins_are_those_of_the_oracle(case: tuple[JoinSpec, Tables, Tables], seed: int) -> None:
    spec, state, delta = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_crowded", lambda *_: True)
        assert_same(join(spec, state, delta), reference.join(spec, state, delta))


@property_test
@given(cases(), st.lists(st.integers(0, 16), min_size=1, max_size=4))
def test_epochs_add_up_to_the_whole_join_however_the_input_is_cut(
    case: tuple[JoinSpec, Tables, Tables], cuts: list[int]
) -> None:
    spec, state, delta = case
    whole = [pa.concat_tables([s, d]) for s, d in zip(state, delta, strict=True)]
    edges = [0, *sorted(cuts), 1000]
    pieces = []
    for start, end in pairwise(edges):
        # Inputs advance at different speeds.
        before = [w.slice(0, start // (i + 1)) for i, w in enumerate(whole)]
        new = [w.slice(start // (i + 1), end // (i + 1) - start // (i + 1)) for i, w in enumerate(whole)]
        pieces.extend(join(spec, before, new).to_pylist())
    empty = [w.slice(0, 0) for w in whole]
    assert multiset(pieces) == multiset(join(spec, empty, whole).to_pylist())


def pair(left: list[Any], right: list[Any], kind: pa.DataType) -> tuple[Tables, Tables]:
    made = [pa.table({"k": pa.array(v, kind), "_t": pa.array([0] * len(v), pa.int64())}) for v in (left, right)]
    return [t.slice(0, 0) for t in made], made


def matches(left: list[Any], right: list[Any], kind: pa.DataType) -> int:
    return len(join(spec_of(2, ("k",), [], [], ("k",)), *pair(left, right, kind)))


def test_null_keys_never_match_and_nan_keys_match_each_other() -> None:
    assert matches([None, 1.0, NAN], [None, NAN, NAN], pa.float64()) == 2


def test_null_fields_inside_nested_keys_match_but_null_structs_do_not() -> None:
    value = {"a": None, "b": [None, NAN]}
    assert matches([value, None], [value, None, {"a": None, "b": None}], NESTED) == 1


def test_duplicate_rows_count_as_often_as_they_come() -> None:
    assert matches([1, 1, 1], [1, 1], pa.int64()) == 6


def test_a_row_exactly_on_either_bound_matches() -> None:
    times = [9, 10, 15, 20, 21]
    left = pa.table({"k": [1], "_t": [10]})
    right = pa.table({"k": [1] * 5, "_t": times})
    spec = spec_of(2, ("k",), [TimeBound(0, 1, 0, 10)], [], ("k",))
    result = join(spec, [left.slice(0, 0), right], [left, right.slice(0, 0)])
    assert sorted(result["_t1"].to_pylist()) == [10, 15, 20]


def test_contradicting_bounds_give_no_rows_and_the_right_columns() -> None:
    spec = spec_of(2, ("k",), [TimeBound(0, 1, 5, None), TimeBound(0, 1, None, 4)], [], ("k",))
    result = join(spec, *pair([1], [1], pa.int64()))
    assert len(result) == 0
    assert result.schema.names == ["k0", "_t0", "k1", "_t1"]


def test_bounds_add_up_along_a_chain_of_inputs() -> None:
    spec = spec_of(3, (), [TimeBound(0, 1, 0, 5), TimeBound(1, 2, -1, 2)], [], ())
    bounds = close_bounds(spec)
    assert bounds is not None
    assert (bounds[0, 2], bounds[2, 0]) == ((-1, 7), (-7, 1))


def test_a_hot_key_is_joined_by_time_buckets_with_the_same_result() -> None:
    rows = 3000
    table = pa.table({"k": [1] * rows, "_t": list(range(0, rows * 10, 10))})
    spec = spec_of(2, ("k",), [TimeBound(0, 1, -10, 10)], [], ("k",))
    empty = table.slice(0, 0)
    assert len(join(spec, [table, empty], [empty, table])) == 3 * rows - 2


def test_nested_columns_are_not_compared_by_order() -> None:
    spec = spec_of(2, (), [], [Compare(0, "k", "<", 1, "k")], ("k",))
    with pytest.raises(UnsupportedQuery, match="nested"):
        join(spec, *pair([[1]], [[2]], pa.list_(pa.int64())))


def test_payload_of_any_type_comes_through_unaltered() -> None:
    kinds = [pa.dictionary(pa.int32(), pa.string()), pa.month_day_nano_interval(), pa.map_(pa.string(), pa.int64())]
    payload = [pa.array(["x", None], pa.string()).dictionary_encode(), pa.nulls(2, kinds[1]), pa.nulls(2, kinds[2])]
    names = ("d", "i", "m")
    left = pa.table({"k": [1, 2], "_t": [0, 0], **dict(zip(names, payload, strict=True))})
    spec = spec_of(2, ("k",), [], [], ("k", *names))
    result = join(spec, [left, left], [left.slice(1), left.slice(0, 0)])
    assert [result.schema.field(f"{n}0").type for n in names] == [p.type for p in payload]
