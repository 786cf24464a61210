"""Directory: what a segment holds of each cell, kept in the custom metadata of the segment's own schema.

Cells ascend and the rows of each are contiguous, so the first row of a cell is the sum of the counts before it and is
not stored. The form is five little-endian int64 arrays, one after the other: cells, rows, bytes, least and greatest
time; deflated, since Arrow writes the schema twice and small segments would be half directory (measured: 256 cells in
3.8 kB instead of 10), and in base 64, because metadata is text to some readers of Arrow.

Limits: bytes per cell are exact for fixed-width and string columns, and shared out by rows for nested ones.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.errors import UnknownFormat

FORMAT = 1
_HEAD = b"anabranch.segment"
_CELLS = b"anabranch.cells"


@dataclass(frozen=True)
class Directory:
    """Aligned int64 arrays, one entry per cell that has rows; cells ascend."""

    cells: Any
    rows: Any
    nbytes: Any
    t_min: Any
    t_max: Any
    label: Mapping[str, Any]

    @cached_property
    def mask(self) -> int:
        """The cells as the bits of an int."""
        bits = 0
        for cell in self.cells.tolist():
            bits |= 1 << cell
        return bits

    @property
    def first(self) -> Any:
        return np.cumsum(self.rows) - self.rows

    @property
    def total(self) -> int:
        return int(self.rows.sum())

    @staticmethod
    def of(table: Any, cells: Any, times: Any) -> Directory:
        """The directory of a table that is sorted by cell and not empty."""
        first = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
        bounds = np.append(first, len(cells))
        rows = np.diff(bounds)
        nbytes = np.zeros(len(first), dtype=np.int64)
        for column in table.columns:
            nbytes += _bytes_of(column, bounds, rows)
        return Directory(
            cells[first].astype(np.int64),
            rows.astype(np.int64),
            nbytes,
            np.minimum.reduceat(times, first),
            np.maximum.reduceat(times, first),
            {},
        )

    def to_metadata(self, label: Mapping[str, Any]) -> dict[bytes, bytes]:
        arrays = np.stack([self.cells, self.rows, self.nbytes, self.t_min, self.t_max]).astype("<i8")
        head = {"format": FORMAT, "cells": len(self.cells), "label": dict(label)}
        return {
            _HEAD: json.dumps(head, default=str).encode(),
            _CELLS: base64.b64encode(zlib.compress(arrays.tobytes(), 1)),
        }

    @staticmethod
    def from_metadata(metadata: Mapping[bytes, bytes] | None, where: str) -> Directory:
        """ValueError or KeyError if there is no directory here, UnknownFormat if it is of a later kind."""
        if not metadata or _HEAD not in metadata:
            raise ValueError("it has no directory of cells")
        head = json.loads(metadata[_HEAD])
        if head["format"] != FORMAT:
            raise UnknownFormat(
                f"a segment has format {head['format']}, and this version of Anabranch knows {FORMAT}",
                where=where,
                fix="open the checkpoint with the version of Anabranch that wrote it",
            )
        try:
            data = zlib.decompress(base64.b64decode(metadata[_CELLS]))
        except zlib.error as error:
            raise ValueError(f"its directory of cells cannot be read: {error}") from error
        cells, rows, nbytes, t_min, t_max = np.frombuffer(data, dtype="<i8").reshape(5, head["cells"])
        return Directory(cells, rows, nbytes, t_min, t_max, head["label"])


def _bytes_of(column: Any, bounds: Any, rows: Any) -> Any:
    kind = column.type
    try:
        return rows * kind.bit_width // 8
    except ValueError:
        pass  # not of fixed width
    offset = _OFFSETS.get(kind)
    if offset is not None and column.num_chunks == 1:
        chunk = column.chunk(0)
        offsets = np.frombuffer(chunk.buffers()[1], dtype=offset)[chunk.offset :]
        return np.diff(offsets[bounds]).astype(np.int64) + rows * offset.itemsize
    return rows * column.nbytes // max(len(column), 1)


_OFFSETS: dict[Any, np.dtype[Any]] = {
    pa.string(): np.dtype("<i4"),
    pa.binary(): np.dtype("<i4"),
    pa.large_string(): np.dtype("<i8"),
    pa.large_binary(): np.dtype("<i8"),
}
