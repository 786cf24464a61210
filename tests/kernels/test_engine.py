from __future__ import annotations

import json
import multiprocessing
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import UnsupportedQuery
from anabranch.kernels import engine, reference, specs
from tests.kernels.kernel_tables import FLAT, VALUES, column, property_test


@property_test
@given(st.data())
def test_rows_have_the_same_code_exactly_when_their_values_are_the_same(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    size, skip = data.draw(st.integers(0, 12)), data.draw(st.integers(0, 3))
    columns = [pa.array(data.draw(column(k, size)), k) for k in kinds]
    cut = size // 2
    chunks = [pa.chunked_array([c.slice(skip, max(0, cut - skip)), c.slice(max(cut, skip))], c.type) for c in columns]
    codes, count = engine.factorize(chunks)
    rows = [reference.identity(list(row)) for row in zip(*(c.to_pylist() for c in chunks), strict=True)]
    assert len(set(codes.tolist())) == count == len(set(rows))
    assert len(set(zip(codes.tolist(), rows, strict=True))) == count


@property_test
@given(st.sampled_from(list(VALUES)), st.data())
def test_gathering_from_chunks_is_taking_from_the_whole(kind: pa.DataType, data: st.DataObject) -> None:
    values = pa.array(data.draw(column(kind, 30)), kind)
    chunks = pa.chunked_array([values.slice(0, 7), values.slice(7, 0), values.slice(7, 13), values.slice(20)])
    rows = np.array(data.draw(st.lists(st.integers(0, 29), max_size=40)), dtype=np.int64)
    assert str(engine.gather(chunks, rows).to_pylist()) == str(values.take(pa.array(rows)).to_pylist())


@pytest.mark.parametrize("kind", FLAT, ids=str)
def test_values_come_back_from_duckdb_as_they_went_in(kind: pa.DataType) -> None:
    values = pa.chunked_array([pa.array([*VALUES[kind], None], kind)])
    table = engine.run("SELECT v FROM t", {"t": pa.table({"v": engine.encode(values)})})
    back = engine.decode(table["v"], kind)
    assert back.type == kind
    assert str(back.to_pylist()) == str(values.to_pylist())


@pytest.mark.parametrize("kind", [pa.decimal256(40, 2), pa.map_(pa.int32(), pa.int32())], ids=str)
def test_types_without_a_safe_form_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedQuery, match="cannot be compared"):
        engine.storage(kind)


def _pid_of_connection(queue: Any) -> None:
    engine.run("SELECT 1", {})
    assert engine._connection is not None
    queue.put(engine._connection[0])


def test_a_forked_worker_opens_its_own_connection() -> None:
    engine.run("SELECT 1", {})
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    worker = context.Process(target=_pid_of_connection, args=(queue,))
    worker.start()
    try:
        assert queue.get(timeout=10) == worker.pid
    finally:
        worker.kill()
        worker.join()
        queue.close()


@pytest.mark.parametrize(
    "spec",
    [
        specs.JoinSpec(
            (specs.JoinInput(("k",), ("k", "v")), specs.JoinInput(("j",), ("j",))),
            (specs.TimeBound(0, 1, None, 5),),
            (specs.Compare(0, "v", "<", 1, "j"),),
            ((0, "_t", "t"), (1, "j", "j")),
        ),
        specs.AggregateSpec(
            ("k",), specs.WindowSpec(6, 4, 1, 2), (specs.AggregateCall("percentile", ("v",), "p", (0.5,)),)
        ),
        specs.FrameSpec(
            ("k",),
            (specs.SortKey("v", True),),
            ("k", "v"),
            (specs.FrameCall("avg_decimal", ("v",), 9, -1, "a", (38.0, 4.0)),),
            ("k", "_t"),
        ),
    ],
    ids=lambda s: s.kind,
)
def test_a_spec_survives_json(spec: specs.Spec) -> None:
    assert specs.from_json(json.loads(json.dumps(specs.to_json(spec)))) == spec
