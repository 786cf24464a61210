"""Every row is in exactly one cell of exactly one segment, and a damaged file is an error before a row is used."""

from __future__ import annotations

import json
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import CheckpointDamaged, UnknownFormat
from anabranch.state import opened
from anabranch.state.segments import Segment, cells_in, directory_of, mask_of, open_segment, write_segment
from anabranch.state.store import Store
from tests.state.state_tools import CELLS, Row, few, multiset, remote_store, rows_of, store_of, table_of

ROWS: list[Row] = [(i * 5 % CELLS, i, "abc"[: i % 4]) for i in range(200)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def written(store: Store, rows: list[Row] = ROWS, **options: Any) -> Segment:
    segment = write_segment(store, "join/0", table_of(rows), label={"epoch": 3, "site": 1}, **options)
    assert segment is not None
    return segment


@few
@given(rows_of, st.integers(1, 3), st.booleans(), st.lists(st.integers(0, 2), min_size=CELLS, max_size=CELLS))
def test_every_row_is_opened_by_exactly_the_site_of_its_cell(
    rows: list[Row], chunks: int, compressed: bool, owner: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder)
        table = table_of(rows, chunks)
        segment = write_segment(store, "op/0", table, label={}, compressed=compressed)
        if segment is None:
            assert not rows
            return
        for site in range(3):
            cells = [cell for cell in range(CELLS) if owner[cell] == site]
            # Stable: the rows of a cell are in the order in which they came.
            expected = sorted((r for r in table.to_pylist() if r["_cell"] in cells), key=lambda r: (r["_cell"], r["n"]))
            for _ in range(2):
                assert open_segment(store, segment, cells).to_pylist() == expected
        assert multiset(open_segment(store, segment)) == multiset(table)
        assert open_segment(store, segment).schema.equals(table.schema, check_metadata=True)


@few
@given(rows_of.filter(bool))
def test_the_directory_and_the_segment_tell_the_truth(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder)
        segment = written(store, rows)
        directory = directory_of(store, segment)
        by_cell = {cell: [r for r in rows if r[0] == cell] for cell in sorted({r[0] for r in rows})}
        assert directory.cells.tolist() == list(by_cell) == list(cells_in(segment.mask))
        assert directory.rows.tolist() == [len(of) for of in by_cell.values()]
        assert directory.t_min.tolist() == [min(r[1] for r in of) for of in by_cell.values()]
        assert directory.t_max.tolist() == [max(r[1] for r in of) for of in by_cell.values()]
        # 4 + 8 + 8 bytes of fixed columns, 4 of offset, and the text itself
        texts = [sum(24 + len(r[2] or "") for r in of) for of in by_cell.values()]
        assert directory.nbytes.tolist() == texts
        assert directory.label == {"epoch": 3, "site": 1}
        assert (segment.rows, segment.nbytes, segment.bytes) == (len(rows), sum(texts), store.size(segment.path))
        assert (segment.t_min, segment.t_max) == (min(r[1] for r in rows), max(r[1] for r in rows))
        assert Segment.from_json(json.loads(json.dumps(segment.to_json()))) == segment


def test_opening_copies_nothing(store: Store) -> None:
    segment = written(store)
    before = pa.total_allocated_bytes()
    tables = [open_segment(store, segment, cells) for cells in (None, [1, 2, 3], [0, 2, 5])]
    assert [len(table) for table in tables] == [200, 75, 75]
    assert pa.total_allocated_bytes() == before
    assert tables[1].column("n").num_chunks == 1, "neighbouring cells are one slice"


def test_a_cell_that_moved_away_is_no_longer_live(store: Store) -> None:
    segment = written(store)
    ours, theirs = segment.without([1, 2]), segment.only([1, 2, 77])
    assert ours is not None
    assert theirs is not None
    assert (cells_in(theirs.mask), ours.mask & theirs.mask) == ((1, 2), 0)
    assert len(open_segment(store, theirs)) == 50
    assert len(open_segment(store, theirs, [2, 3])) == 25
    assert len(open_segment(store, theirs, [3])) == 0
    assert multiset(open_segment(store, ours)) + multiset(open_segment(store, theirs)) == multiset(
        open_segment(store, segment)
    )
    assert segment.only([77]) is None
    assert segment.without(range(CELLS)) is None


def test_a_retried_attempt_writes_a_file_of_its_own(store: Store) -> None:
    first, second = written(store), written(store, durable=True)
    assert first.path != second.path
    assert first.path.startswith("segments/join/0/epoch3-site1-")
    assert open_segment(store, first).equals(open_segment(store, second))


def test_a_label_cannot_lead_out_of_the_folder(store: Store) -> None:
    segment = write_segment(store, "op/0", table_of(ROWS), label={"../../x": "\0 é" * 100})
    assert segment is not None
    assert store.list() == [segment.path]
    assert store.list()[0].startswith("segments/op/0/")


@pytest.mark.parametrize("values", [[[1], [2, 3]] * 2, [{"a": 1, "b": "x"}, None] * 2, [True, None, False, True]])
def test_rows_of_any_type_survive(store: Store, values: list[Any]) -> None:
    column = pa.chunked_array([pa.array(values[:2]), pa.array(values[2:])])
    words = pa.chunked_array([pa.array(["x", "y"]).dictionary_encode(), pa.array(["z", "x"]).dictionary_encode()])
    cells = pa.chunked_array([pa.array([3, 1, 3, 0], pa.int32())])
    table = pa.table({"_cell": cells, "_t": pa.chunked_array([[4, 3, 2, 1]]), "v": column, "w": words})
    segment = write_segment(store, "op/0", table, label={})
    assert segment is not None
    assert open_segment(store, segment).select(["v", "w"]).to_pylist() == [
        {"v": values[i], "w": "xyzx"[i]} for i in (3, 1, 0, 2)
    ]
    assert open_segment(store, segment, [3]).column("w").to_pylist() == ["x", "z"]


@pytest.mark.parametrize(
    ("cells", "times"),
    [
        (pa.array([0], pa.int64()), pa.array([0])),
        (pa.array([None], pa.int32()), pa.array([0])),
        (pa.array([-1], pa.int32()), pa.array([0])),
        (pa.array([1 << 16], pa.int32()), pa.array([0])),
        (pa.array([0], pa.int32()), pa.array([None], pa.int64())),
    ],
)
def test_a_table_that_cannot_be_cut_by_cell_is_refused(store: Store, cells: Any, times: Any) -> None:
    with pytest.raises(ValueError, match=r"cell|_t"):
        write_segment(store, "op/0", pa.table({"_cell": cells, "_t": times}), label={})


@pytest.mark.parametrize("kind", ["local", "remote"])
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: None, "is missing"),
        (lambda data: b"", "has 0 bytes"),
        (lambda data: data[:-1], "bytes and should have"),
        (lambda data: data + b"\0", "bytes and should have"),
        (lambda data: bytes(len(data)), "checksum"),
    ],
    ids=["deleted", "emptied", "truncated", "longer", "zeroed"],
)
def test_a_damaged_segment_is_an_error_that_names_it(kind: str, damage: Any, says: str, tmp_path: Path) -> None:
    store = store_of(kind, tmp_path)
    segment = written(store)
    damaged = damage(store.read(segment.path))
    store.delete([segment.path])
    if damaged is not None:
        store.write(segment.path, damaged)
    for cells in (None, [1]):
        with pytest.raises(CheckpointDamaged, match=says) as caught:
            open_segment(store, segment, cells)
        assert segment.path in str(caught.value)
        assert "restore this file" in str(caught.value)


@few
@given(st.data())
def test_no_flipped_bit_goes_unnoticed(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder)
        segment = written(store)
        content = bytearray(store.read(segment.path))
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        store.write(segment.path, content)
        with pytest.raises(CheckpointDamaged, match="checksum"):
            open_segment(store, segment)


def forged(store: Store, segment: Segment, content: bytes, **changes: Any) -> Segment:
    """Content with the right size and checksum, as only a mistake of ours could write it."""
    store.write(segment.path, content)
    return replace(segment, bytes=len(content), checksum=f"crc32:{zlib.crc32(content):08x}", **changes)


def test_a_file_that_is_no_segment_is_an_error_even_if_its_checksum_is_right(store: Store) -> None:
    segment = written(store)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table_of(ROWS).schema) as writer:
        writer.write_table(table_of(ROWS))
    for content in (b"not arrow", sink.getvalue().to_pybytes()):
        with pytest.raises(CheckpointDamaged, match="is not a segment"):
            open_segment(store, forged(store, segment, content))


def test_a_segment_of_a_later_format_is_told_apart_from_damage(store: Store) -> None:
    segment = written(store)
    content = store.read(segment.path).replace(b'{"format": 1', b'{"format": 2')
    with pytest.raises(UnknownFormat, match="format 2"):
        open_segment(store, forged(store, segment, content))
    with pytest.raises(UnknownFormat, match="checksum"):
        open_segment(store, replace(segment, checksum="xxh3:00"))


@pytest.mark.parametrize("known", [False, True])
def test_a_segment_that_is_not_what_the_manifest_says_is_an_error(store: Store, known: bool) -> None:
    segment = written(store, ROWS[:3])
    if known:
        open_segment(store, segment)
    for wrong in (replace(segment, rows=4), replace(segment, cells="ff")):
        with pytest.raises(CheckpointDamaged, match="manifest says"):
            open_segment(store, wrong)


def test_a_bad_copy_on_the_host_is_replaced_by_the_remote_file(tmp_path: Path) -> None:
    store = remote_store(tmp_path)
    segment = written(store)
    store.map(segment.path)
    (copy,) = (tmp_path / "cache").iterdir()
    copy.write_bytes(bytes(segment.bytes))
    assert multiset(open_segment(store, segment, range(CELLS))) == multiset(table_of(ROWS))
    opened.forget()
    copy.write_bytes(b"short")
    assert len(open_segment(store, segment)) == 200


def test_open_segments_are_kept_and_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "MAX_OPEN", 2)
    monkeypatch.setattr(opened, "MAX_VERIFIED", 2)
    opened.forget()
    first, second, third = (written(store) for _ in range(3))
    open_segment(store, first)
    store.delete([first.path])
    assert len(open_segment(store, first)) == 200, "kept open"
    open_segment(store, second)
    open_segment(store, third)
    assert (len(opened._open), len(opened._verified)) == (2, 2)
    with pytest.raises(CheckpointDamaged, match="missing"):
        open_segment(store, first)
    cold = written(store, compressed=True)
    open_segment(store, cold)
    assert cold.path not in {path for _, path, _ in opened._open}, "decompressed rows are not kept in memory"


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../../etc/passwd"},
        {"path": "meta.json"},
        {"path": "segments/../meta.json"},
        {"rows": "3"},
        {"rows": True},
        {"cells": "0x1"},
        {"cells": "-1"},
        {"cells": ""},
        {"cells": "f" * 20_000},
        {"more": 1},
    ],
)
def test_what_a_manifest_says_of_a_segment_is_not_trusted(store: Store, change: dict[str, Any]) -> None:
    with pytest.raises(CheckpointDamaged, match="makes no sense"):
        Segment.from_json(written(store).to_json() | change)


@few
@given(st.sets(st.integers(0, 300)))
def test_a_mask_is_a_set_of_cells(cells: set[int]) -> None:
    assert cells_in(mask_of(cells)) == tuple(sorted(cells))
