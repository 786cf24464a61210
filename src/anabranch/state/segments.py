"""Segments: immutable Arrow IPC files of the rows of one operator input, cut by cell.

A segment's rows are sorted by cell (stable: within a cell they keep their order), so that the rows of some cells are
a few slices of the mapped file: a move, a restart and a rescale all open segments by cell and copy nothing. What a
segment holds per cell is in its own metadata (`state/directory.py`); what the manifest keeps is a `Segment`: the path,
what must be true of the file, and which of its cells are still *live*. After a cell has moved, two sites may share a
file; when one of them rewrites its part, the other keeps the rest (`Segment.without`).

Damage is an error before a row is used: the size and a CRC-32 of the whole file are checked when a process first opens
it (measured: zlib's CRC 3.7 GB/s, above every hash of hashlib; it finds accidents, not forgers). Opened segments are
kept (`state/opened.py`), since the same process opens the same ones every epoch.

Segments are not fsynced one by one unless ``durable``: the manifest's commit is the point of durability. When a
process is killed nothing is lost, the kernel has the bytes; when the machine loses power after a commit, a segment may
be short or wrong, which the checks above turn into `CheckpointDamaged`.

Limits: a file is built in memory before it is written (faster than streaming at the sizes of an epoch), so writing
needs about twice the rows' bytes; `compaction.plan` bounds what it merges for that reason.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.errors import CheckpointDamaged, UnknownFormat
from anabranch.routing.cells import MAX_CELLS
from anabranch.state import opened
from anabranch.state.directory import Directory
from anabranch.state.store import Store, check_path, is_path

CELL = "_cell"
TIME = "_t"
FOLDER = "segments"  # every segment of a checkpoint lies below it, and nothing else does
_SUFFIX = ".arrow"
_CHECKSUM = "crc32"


@dataclass(frozen=True)
class Segment:
    """What the manifest knows of a segment. All but `cells` describes the file, even if only a part of it is live."""

    path: str
    rows: int
    bytes: int  # of the file
    nbytes: int  # of the rows as Arrow data: what the segment takes in the hot tier
    t_min: int
    t_max: int
    cells: str  # live cells: a bitmap in hex, bit c for cell c
    checksum: str
    compressed: bool = False

    @property
    def mask(self) -> int:
        """The live cells as the bits of an int: a test for overlap is one `&`."""
        return int(self.cells, 16)

    def without(self, cells: Collection[int]) -> Segment | None:
        """The same file with these cells no longer live; None if that leaves none."""
        return self.minus(mask_of(cells))

    def minus(self, mask: int) -> Segment | None:
        """The same, with the cells as the bits of an int."""
        return self._with(self.mask & ~mask)

    def only(self, cells: Collection[int]) -> Segment | None:
        """The same file with no other cells live; None if that leaves none: this site need not open it."""
        return self._with(self.mask & mask_of(cells))

    def _with(self, mask: int) -> Segment | None:
        return replace(self, cells=f"{mask:x}") if mask else None

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _TYPES}

    @staticmethod
    def from_json(data: Any) -> Segment:
        """The inverse of `to_json`; what a manifest says of a segment is checked before any file is touched."""
        good = (
            isinstance(data, Mapping)
            and set(data) == set(_TYPES)
            and all(type(data[name]) is kind for name, kind in _TYPES.items())
            and is_path(data["path"])
            and data["path"].startswith(f"{FOLDER}/")
            and _CELLS_TEXT.fullmatch(data["cells"])
        )
        if not good:
            raise CheckpointDamaged("a manifest describes a segment in a way that makes no sense", where=repr(data))
        return Segment(**data)


_CELLS_TEXT = re.compile(rf"[0-9a-f]{{1,{MAX_CELLS // 4}}}")
_TYPES: dict[str, type] = dict(
    zip((f.name for f in fields(Segment)), (str, int, int, int, int, int, str, str, bool), strict=True)
)


def mask_of(cells: Iterable[int]) -> int:
    mask = 0
    for cell in cells:
        mask |= 1 << cell
    return mask


def cells_in(mask: int) -> tuple[int, ...]:
    return tuple(cell for cell in range(mask.bit_length()) if mask >> cell & 1)


def write_segment(
    store: Store,
    folder: str,
    table: Any,
    *,
    label: Mapping[str, Any],
    compressed: bool = False,
    durable: bool = False,
) -> Segment | None:
    """Write rows as a new segment below ``segments/<folder>``; None for no rows.

    `label` (e.g. epoch and site) goes into the metadata and names the file, for people. A random part makes the name
    unique, so that a retried task never writes over what another attempt wrote.
    """
    if table.num_rows == 0:
        return None
    table = table.combine_chunks()
    cells, times = _column(table, CELL, pa.int32()), _column(table, TIME, pa.int64())
    if int(cells.min()) < 0 or int(cells.max()) >= MAX_CELLS:
        raise ValueError(f"cells run from 0 to {MAX_CELLS - 1}, not {cells.min()} to {cells.max()}")
    if not bool((cells[1:] >= cells[:-1]).all()):
        # As 16-bit numbers, so that numpy's stable sort is a radix sort (measured: 25k rows in 90 us, not 1.4 ms).
        order = np.argsort(cells.astype(np.uint16), kind="stable")
        table, cells, times = table.take(pa.array(order)), cells[order], times[order]
    directory = Directory.of(table, cells, times)
    metadata = directory.to_metadata({str(k): v for k, v in label.items()})
    options = pa.ipc.IpcWriteOptions(compression="zstd" if compressed else None, unify_dictionaries=True)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema.with_metadata(metadata), options=options) as writer:
        writer.write_table(table)
    data = sink.getvalue()
    path = check_path(f"{FOLDER}/{folder}/{_stem(label)}-{os.urandom(8).hex()}{_SUFFIX}")
    store.write(path, data, durable=durable)
    return Segment(
        path=path,
        rows=table.num_rows,
        bytes=data.size,
        nbytes=int(directory.nbytes.sum()),
        t_min=int(directory.t_min.min()),
        t_max=int(directory.t_max.max()),
        cells=f"{mask_of(directory.cells.tolist()):x}",
        checksum=_checksum(data),
        compressed=compressed,
    )


def open_segment(store: Store, segment: Segment, cells: Collection[int] | None = None) -> Any:
    """The live rows of the requested cells (None: of all) as a pyarrow Table on the mapped file."""
    held = _opened(store, segment)
    mask = segment.mask
    if mask == held.mask and cells is None:
        return held.table
    key = (mask, None if cells is None else frozenset(cells))
    last = held.last
    if last is not None and last[0] == key:
        return last[1]
    wanted = (mask if cells is None else mask & mask_of(cells)) & held.mask
    table = held.table if wanted == held.mask else _slices(held, wanted)
    held.last = (key, table)
    return table


def directory_of(store: Store, segment: Segment) -> Directory:
    """Rows, bytes and time bounds per cell, as the file has them (cells that are no longer live included).

    Read from the metadata alone: the rows of a compressed segment stay compressed.
    """
    key = (store.uri, segment.path, segment.checksum)
    found = opened.directory(key)
    if found is None:
        found = _parsed(store, segment, lambda reader: reader.schema)[1]
        opened.put_directory(key, found)
    return found


def bytes_per_cell(store: Store, segment: Segment, cells: int) -> Any:
    """Bytes of the live rows of each of so many cells, as an int64 array."""
    held = directory_of(store, segment)
    sizes = np.zeros(cells, np.int64)
    sizes[held.cells] = held.nbytes
    if segment.mask != held.mask:
        bits = np.frombuffer(segment.mask.to_bytes((cells + 7) // 8, "little"), np.uint8)
        sizes[np.unpackbits(bits, bitorder="little", count=cells) == 0] = 0
    return sizes


def _opened(store: Store, segment: Segment) -> opened.Opened:
    key = (store.uri, segment.path, segment.checksum)
    held = opened.get(key)
    fresh = held is None
    if held is None:
        held = _load(store, segment)
    if held.table.num_rows != segment.rows or segment.mask & ~held.mask:
        raise _damaged(store, segment, "does not hold what the manifest says it holds")
    if fresh and not segment.compressed:  # a compressed one is decompressed into memory: nothing to keep for long
        opened.put(key, held)
    return held


def _load(store: Store, segment: Segment) -> opened.Opened:
    table, directory = _parsed(store, segment, lambda reader: reader.read_all())
    if directory.total != table.num_rows:
        raise _damaged(store, segment, "is not a segment (its directory does not fit its rows)")
    # Without our metadata: tables of several segments are concatenated, and their schemas must be equal.
    return opened.Opened(table.replace_schema_metadata(None), directory, mask_of(directory.cells.tolist()))


def _parsed(store: Store, segment: Segment, part: Callable[[Any], Any]) -> tuple[Any, Directory]:
    """A part of the file, its schema or its rows, and the directory; every check that the manifest allows."""
    try:
        data = store.map(segment.path)
        if not _intact(store, segment, data) and store.refresh(segment.path):
            data = store.map(segment.path)  # only the copy on this host was bad, perhaps
    except FileNotFoundError:
        raise _damaged(store, segment, "is missing") from None
    if data.size != segment.bytes:
        raise _damaged(store, segment, f"has {data.size} bytes and should have {segment.bytes}")
    if not _intact(store, segment, data):
        raise _damaged(store, segment, "was altered: its checksum does not match")
    try:
        with pa.ipc.open_file(data) as reader:
            return part(reader), Directory.from_metadata(reader.schema.metadata, segment.path)
    except UnknownFormat:
        raise
    except (pa.ArrowException, ValueError, KeyError, TypeError, OSError) as error:
        raise _damaged(store, segment, f"is not a segment ({error})") from error


def _intact(store: Store, segment: Segment, data: Any) -> bool:
    if data.size != segment.bytes:
        return False
    key = (store.uri, segment.path, segment.checksum)
    if opened.is_verified(key):
        return True
    if not segment.checksum.startswith(f"{_CHECKSUM}:"):
        raise UnknownFormat(
            f"the checksum {segment.checksum!r} is of a kind this version does not know",
            where=f"{segment.path} in {store.uri}",
            fix="open the checkpoint with the version of Anabranch that wrote it",
        )
    if _checksum(data) != segment.checksum:
        return False
    opened.set_verified(key)
    return True


def _slices(held: opened.Opened, wanted: int) -> Any:
    """Neighbouring cells are one slice; nothing is copied."""
    directory = held.directory
    take = np.fromiter(((wanted >> c) & 1 for c in directory.cells.tolist()), dtype=bool, count=len(directory.cells))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], take, [False]))))
    bounds = np.append(directory.first, directory.total)
    parts = [
        held.table.slice(int(bounds[start]), int(bounds[stop] - bounds[start]))
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    ]
    return pa.concat_tables(parts) if parts else held.table.slice(0, 0)


def _column(table: Any, name: str, kind: Any) -> Any:
    column = table.column(name)
    if column.type != kind or column.null_count:
        raise ValueError(f"column {name} of a segment must be {kind} without NULLs, not {column.type}")
    return column.to_numpy()


def _checksum(data: Any) -> str:
    return f"{_CHECKSUM}:{zlib.crc32(data):08x}"


def _stem(label: Mapping[str, Any]) -> str:
    text = "-".join(f"{key}{value}" for key, value in label.items())
    return re.sub(r"[^A-Za-z0-9_-]", "_", text).lstrip("-")[:80] or "segment"


def _damaged(store: Store, segment: Segment, how: str) -> CheckpointDamaged:
    return CheckpointDamaged(
        f"a segment of the state {how}",
        where=f"{segment.path} in {store.uri}",
        fix="restore this file from a copy of the checkpoint, or start again with a new, empty checkpoint folder",
    )
