"""What the tests of the state share. Not a conftest: another folder's tests import theirs by that name."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from hypothesis import settings
from hypothesis import strategies as st

from anabranch.state.remote import HostCache, RemoteStore
from anabranch.state.segments import Segment
from anabranch.state.store import Store

few = settings(max_examples=int(os.environ.get("ANABRANCH_EXAMPLES", "15")), deadline=None)

CELLS = 8
Row = tuple[int, int, str | None]
rows_of = st.lists(
    st.tuples(st.integers(0, CELLS - 1), st.integers(0, 100), st.sampled_from(["a", "bb", "", None])), max_size=40
)


def table_of(rows: list[Row], chunks: int = 1) -> Any:
    """Rows as (cell, time, text), and their position as a column that makes each of them unique."""
    cells, times, texts = zip(*rows, strict=True) if rows else ((), (), ())
    table = pa.table(
        {
            "_cell": pa.array(cells, pa.int32()),
            "_t": pa.array(times, pa.int64()),
            "text": pa.array(texts, pa.string()),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )
    size = max(1, -(-len(rows) // chunks))
    return pa.concat_tables([table.slice(i, size) for i in range(0, len(rows), size)]) if rows else table


def multiset(table: Any) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def segment_of(path: str, rows: int = 1, t_min: int = 0, t_max: int = 0, cells: str = "1") -> Segment:
    """A segment on paper, 100 bytes a row."""
    return Segment(f"segments/{path}", rows, rows * 100, rows * 100, t_min, t_max, cells, "crc32:00000000")


def remote_store(folder: Path, limit: int = 1 << 30) -> RemoteStore:
    """A remote store that is really a folder: what is not local about it is that it is mapped through a cache."""
    (folder / "far").mkdir(exist_ok=True)
    fs = pafs.SubTreeFileSystem(str(folder / "far"), pafs.LocalFileSystem())
    return RemoteStore(f"far://{folder}", fs, "ckpt", HostCache(str(folder / "cache"), limit))


def store_of(kind: str, folder: Path) -> Store:
    return Store.open(str(folder / "ckpt")) if kind == "local" else remote_store(folder)
