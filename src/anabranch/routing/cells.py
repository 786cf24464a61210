"""Cells: the partition groups of a subquery, the unit of everything adaptive.

A cell is the *top* bits of the 64-bit hash of a row's key. Spark computes the hash and the cell, with the text that
`cell_expression` gives; nothing here ever sees a key. Top bits, not a remainder, because the number of cells is then
refined by splitting: cell c of P cells becomes cells 2c and 2c+1 of 2P, and every contiguous range stays contiguous.

The number of cells is a power of two and is fixed for the life of a checkpoint: segments are cut by it.

Limits: `MAX_CELLS` keeps a cell in 16 bits, which the state layer uses to sort rows by cell with a radix sort, and
keeps the per-cell directory of a segment small.
"""

from __future__ import annotations

from anabranch.errors import SettingError

HASH_BITS = 64
DEFAULT_CELLS = 256
MAX_CELLS = 1 << 16


def cell_bits(cells: int) -> int:
    """How many top bits of the hash name a cell: log2(cells). Refuses a number of cells that cannot be used."""
    if type(cells) is not int or cells < 1 or cells > MAX_CELLS or cells & (cells - 1):
        raise SettingError(
            f"the number of cells must be a power of two between 1 and {MAX_CELLS}, not {cells!r}",
            where="option 'cells'",
            fix=f"use {DEFAULT_CELLS}, or a power of two well above the largest number of sites you expect",
        )
    return cells.bit_length() - 1


def cell_of(key_hash: int, cells: int) -> int:
    """The cell of a 64-bit hash, signed (as Spark returns it) or unsigned: the reference for `cell_expression`."""
    return (key_hash & ((1 << HASH_BITS) - 1)) >> (HASH_BITS - cell_bits(cells))


def cell_expression(key_hash: str, cells: int) -> str:
    """Spark SQL text for the cell, given the SQL text of the hash (e.g. ``xxhash64(a, b)``).

    One cell is a case of its own: the JVM takes a shift distance modulo 64, so a shift by 64 bits would return the
    hash unchanged instead of 0.
    """
    bits = cell_bits(cells)
    if bits == 0:
        return "CAST(0 AS INT)"
    return f"CAST(shiftrightunsigned({key_hash}, {HASH_BITS - bits}) AS INT)"
