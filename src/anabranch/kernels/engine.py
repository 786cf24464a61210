"""The DuckDB connection of this process, and the door between Arrow types and DuckDB's.

DuckDB matches, groups and sums; it never carries payload. A kernel gives it a few narrow columns and row numbers,
and gathers everything else with Arrow afterwards. Columns that do go in are first *encoded*: viewed as a type of the
same equality and order that DuckDB takes without changing it (timestamps, times and durations as integers, strings as
bytes, dictionaries decoded). Structs and lists are turned into integer codes, equal exactly where Spark calls the
values equal; codes have no order.

Known limits: decimal256 and maps are refused; one connection per process, so kernels are not to be called from
several threads at once (a site task is one thread).
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.errors import QueryFailed, UnsupportedQuery

Ints = npt.NDArray[np.int64]

# Switched off on purpose. The kernels write their joins in the order in which they are to run, the small input last
# (DuckDB builds the hash table on the right side); Arrow scans carry no statistics from which to guess better. Filter
# push-down into an Arrow scan would turn one-shot readers into pyarrow dataset scans.
DISABLED_OPTIMIZERS = (
    "join_order,build_side_probe_side,join_filter_pushdown,statistics_propagation,late_materialization"
)
MEMORY_LIMIT = "1GB"

_connection: tuple[int, duckdb.DuckDBPyConnection] | None = None
# A forked child must not close its parent's connection: that would wait for threads that only the parent has.
_inherited: list[duckdb.DuckDBPyConnection] = []


def connection() -> duckdb.DuckDBPyConnection:
    """This process's connection; a forked worker gets its own."""
    global _connection
    pid = os.getpid()
    if _connection is None or _connection[0] != pid:
        # Sites are Spark task slots: one core each. Kernels restore order by row number where they need it.
        con = duckdb.connect(
            ":memory:",
            config={
                "threads": "1",
                "memory_limit": MEMORY_LIMIT,
                "preserve_insertion_order": "true",
                # Made only when a query passes the limit; DuckDB's own choice would be the working directory.
                "temp_directory": os.path.join(tempfile.gettempdir(), f"anabranch-duckdb-{pid}"),
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
            },
        )
        con.execute(f"SET disabled_optimizers = '{DISABLED_OPTIMIZERS}'")
        if _connection is not None:
            _inherited.append(_connection[1])
        _connection = (pid, con)
    return _connection[1]


def run(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """The answer of `sql` over the named tables. Each table may be read once: it is streamed, not scanned.

    Overflows become a QueryFailed, as in Spark's ANSI mode, and never wrap.
    """
    con = connection()
    try:
        for name, table in tables.items():
            con.register(name, table.to_reader())
        return con.sql(sql).to_arrow_table()
    except (duckdb.OutOfRangeException, duckdb.ConversionException) as error:
        raise overflow(str(error)) from error
    finally:
        for name in tables:
            con.unregister(name)


def overflow(detail: str) -> QueryFailed:
    return QueryFailed(
        f"a sum left the range of its type ({detail.splitlines()[0]})",
        fix="cast the summed column to a wider type, e.g. decimal(38, s) or double",
    )


# -- encoding ----------------------------------------------------------------------------------------------------------


def is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def storage(kind: pa.DataType) -> pa.DataType:
    """The type as which a column of type `kind` enters DuckDB: same equality, same order."""
    types = pa.types
    if types.is_dictionary(kind):
        return storage(kind.value_type)
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_time64(kind) or types.is_date64(kind):
        return pa.int64()
    if types.is_date32(kind) or types.is_time32(kind):
        return pa.int32()
    if types.is_string(kind) or types.is_string_view(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_large_string(kind):
        return pa.large_binary()
    if types.is_fixed_size_binary(kind) and not types.is_decimal(kind):
        return pa.binary()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_null(kind):
        return pa.int8()
    if (types.is_decimal(kind) and kind.bit_width > 128) or types.is_map(kind) or types.is_interval(kind):
        return _refuse(kind)
    return kind


def _refuse(kind: pa.DataType) -> pa.DataType:
    raise UnsupportedQuery(
        f"a column of type {kind} cannot be compared or aggregated here", fix="cast it to a simpler type first"
    )


def encode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as DuckDB may have it (see the module). Views wherever Arrow can; nested types become codes."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return encode(pa.chunked_array([c.storage for c in column.chunks], kind.storage_type))
    if is_nested(kind):
        codes, _ = factorize([column])
        return pa.chunked_array([pa.array(codes, mask=np.asarray(column.is_null()))])
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    target = storage(kind)
    return column if target == column.type else column.cast(target)


def encode_together(columns: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Encodes columns of one type that will be compared with each other (nested types need common codes)."""
    if not any(is_nested(c.type) for c in columns):
        return [encode(c) for c in columns]
    together = encode(pa.chunked_array([chunk for c in columns for chunk in c.chunks], columns[0].type))
    starts = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    return [together.slice(int(a), int(b - a)) for a, b in itertools.pairwise(starts)]


def decode(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The inverse of `encode` for aggregates' results of flat types."""
    if column.type == kind:
        return column
    try:
        back = column.cast(storage(kind))  # e.g. decimal(38, s) back to the declared precision: checked
        return back if back.type == kind else back.cast(kind)
    except pa.ArrowInvalid as error:
        raise overflow(str(error)) from error


# -- groups ------------------------------------------------------------------------------------------------------------


def factorize(columns: Sequence[pa.ChunkedArray]) -> tuple[Ints, int]:
    """A number for each row, equal for rows with equal values in all columns (NULL equals NULL, NaN equals NaN).

    Returns the codes, from 0 up and without gaps, and how many there are. Any type but maps, at any depth.
    """
    codes: Ints | None = None
    count = 1
    for column in columns:
        right, right_count = _codes(column)
        if codes is None:
            codes, count = right, right_count
            continue
        # Two codes fit one int64 as long as their product does; they are made dense again after each column.
        encoded = pc.dictionary_encode(pa.array(codes * right_count + right))
        codes, count = _int64(encoded.indices), len(encoded.dictionary)
    if codes is None:
        raise ValueError("factorize needs a column; callers treat 'no keys' themselves")
    return codes, count


def _codes(column: pa.ChunkedArray) -> tuple[Ints, int]:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _codes(pa.chunked_array([c.storage for c in column.chunks], kind.storage_type))
    if pa.types.is_struct(kind):
        one = whole(column)
        # flatten() carries the struct's NULL into its fields; the validity tells NULL from a struct of NULLs.
        fields = [pa.chunked_array([f]) for f in one.flatten()]
        return factorize([pa.chunked_array([one.is_valid()]), *fields])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _codes(pa.chunked_array([_list_as_bytes(whole(column))]))
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if pa.types.is_null(kind) or len(column) == 0:
        return np.zeros(len(column), np.int64), min(1, len(column))
    storage(kind)  # refuses what has no equality
    encoded = pc.dictionary_encode(whole(column), null_encoding="encode")
    return _int64(encoded.indices), len(encoded.dictionary)


def _list_as_bytes(lists: pa.Array) -> pa.Array:
    """Lists as binary strings of their elements' codes: equal lists, equal bytes."""
    if not pa.types.is_large_list(lists.type):
        lists = lists.cast(pa.large_list(lists.type.value_type))
    offsets = np.asarray(lists.offsets)
    values = lists.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])) if len(lists) else lists.values
    codes = factorize([pa.chunked_array([values])])[0] if len(values) else np.zeros(0, np.int64)
    places = ((offsets - offsets[0]) * 8) if len(lists) else np.zeros(1, np.int64)
    raw = pa.Array.from_buffers(
        pa.large_binary(), len(lists), [None, pa.py_buffer(places.astype(np.int64)), pa.py_buffer(codes)]
    )
    return pc.if_else(lists.is_valid(), raw, pa.scalar(None, pa.large_binary()))


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A chunked column as one array; a copy only if there are several chunks."""
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _int64(indices: pa.Array) -> Ints:
    return np.asarray(indices).astype(np.int64)


# -- gathering ---------------------------------------------------------------------------------------------------------


def gather_rows(table: pa.Table, rows: npt.NDArray[Any]) -> pa.Table:
    """Rows of a chunked table by number; only the range that they lie in is looked at."""
    if table.num_columns and len(rows) and len(table) > 2 * (int(rows.max()) - int(rows.min()) + 1):
        first = int(rows.min())
        table, rows = table.slice(first, int(rows.max()) - first + 1), rows - first
    ascending = bool(np.all(rows[1:] >= rows[:-1]))
    return pa.table([gather(c, rows, ascending) for c in table.columns], schema=table.schema)


def gather(column: pa.ChunkedArray, rows: npt.NDArray[Any], ascending: bool | None = None) -> pa.ChunkedArray:
    """The values at `rows` of a chunked column.

    Arrow's own take joins the chunks first: it would read the whole state to fetch a few rows. Few rows are therefore
    fetched chunk by chunk, in the order of the chunks, and put back in order only if they were not in it.
    """
    if column.num_chunks <= 1 or len(rows) * 4 > len(column):
        return pa.chunked_array([whole(column).take(pa.array(rows))], column.type)
    if ascending is None:
        ascending = bool(np.all(rows[1:] >= rows[:-1]))
    order = None if ascending else np.argsort(rows, kind="stable")
    sorted_rows = rows if order is None else rows[order]
    starts = np.concatenate([[0], np.cumsum([len(c) for c in column.chunks])])
    cuts = np.searchsorted(sorted_rows, starts)
    parts = [
        chunk.take(pa.array(sorted_rows[a:b] - start))
        for chunk, start, a, b in zip(column.chunks, starts, cuts[:-1], cuts[1:], strict=False)
        if b > a
    ]
    if order is None:
        return pa.chunked_array(parts, column.type)
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.arange(len(order))
    return pa.chunked_array([whole(pa.chunked_array(parts, column.type)).take(pa.array(inverse))], column.type)
