"""The types that are drawn, each with few values so that rows meet, the awkward ones among them.

Floating-point values that may be summed are dyadic and small, so that every order of summation gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

NAN = math.nan
SECOND = 1_000_000
BEGIN = 1_709_164_790 * SECOND  # ten seconds before a leap day begins


@dataclass(frozen=True)
class Kind:
    """A type and what can be done with its values."""

    letter: str  # begins the names of its columns
    type: str
    pool: tuple[Any, ...]
    adds: bool = False  # sums stay in range
    nested: bool = False  # no order for min, max and ORDER BY
    floats: bool = False


KINDS = tuple(
    Kind(*k)
    for k in (
        ("i", "int", (0, 1, -1, 2, 7), True),
        ("m", "int", (2**31 - 1, -(2**31), 0)),
        ("n", "bigint", (0, 1, -3, 40), True),
        ("x", "bigint", (2**63 - 1, -(2**63), 0, 1)),
        ("y", "tinyint", (-128, 127, 0), True),
        ("h", "smallint", (-32768, 5), True),
        ("s", "string", ("", "a", "b", "A", "ä", "a b", "ab", "it's", "\\")),
        ("e", "decimal(12,2)", tuple(map(Decimal, ("0.00", "1.05", "-9.99", "1234567890.12", "0.10"))), True),
        ("g", "decimal(38,0)", (Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), Decimal(1))),
        ("p", "decimal(38,18)", tuple(map(Decimal, ("12345678901234567890.123456789012345678", "0E-18")))),
        ("q", "decimal(5,3)", tuple(map(Decimal, ("0.001", "99.999", "-99.999"))), True),
        ("d", "double", (0.0, -0.0, 1.5, -2.25, 0.25, 100.0, NAN), True, False, True),
        ("v", "double", (0.5, 1.25, -3.0, 8.0, 1024.125), True, False, True),
        ("w", "double", (0.0, -0.0, NAN, math.inf, -math.inf, 1e300, 5e-324, 0.1), False, False, True),
        ("f", "float", (0.0, -0.0, 0.5, -1.25, NAN), True, False, True),
        ("b", "boolean", (True, False)),
        ("t", "timestamp", (0, 1, -1, BEGIN, BEGIN + 1)),
        ("z", "timestamp_ntz", (0, BEGIN, -SECOND)),
        ("a", "date", (0, -1, 19782, 19783)),
        ("c", "binary", (b"", b"\xff", b"a", b"\x00")),
        ("r", "struct<a:int,b:double>", ({"a": 1, "b": 0.0}, {"a": 1, "b": -0.0}, {"a": None, "b": NAN}), False,
         True, True),
        ("l", "array<double>", ([], [0.0], [-0.0], [NAN, None], [None], [1.5, 2.5]), False, True, True),
        ("k", "array<string>", ([], ["a"], ["a", "a"], [None], ["b", ""]), False, True),
        ("u", "struct<s:string,l:array<int>>", ({"s": "a", "l": [1]}, {"s": None, "l": []}, {"s": "a", "l": None}),
         False, True),
    )
)  # fmt: skip
BY_LETTER = {k.letter: k for k in KINDS}
LONG = Kind("n", "bigint", (), True)
DOUBLE = Kind("v", "double", (), True, False, True)
INT, TEXT, TRUTH = BY_LETTER["i"], BY_LETTER["s"], BY_LETTER["b"]


def value(rng: Random, kind: Kind) -> Any:
    return None if rng.random() < 0.15 else rng.choice(kind.pool)


def literal(rng: Random, kind: Kind) -> str:
    """A value of the kind in SQL, for comparisons."""
    return {
        "int": "1", "bigint": "1L", "tinyint": "0", "smallint": "5", "string": rng.choice(["'a'", "'b'", "''"]),
        "double": rng.choice(["0.0D", "1.5D", "double('NaN')"]), "float": "float('0.5')", "boolean": "true",
        "timestamp": "timestamp'2024-02-29 00:00:00'", "date": "date'2024-02-29'", "binary": "X'FF'",
        "timestamp_ntz": "timestamp_ntz'1970-01-01 00:00:00'",
    }.get(kind.type, "0")  # fmt: skip


def predicate(rng: Random, column: str, kind: Kind) -> str:
    """A condition over one column that is sometimes true."""
    choices = [f"{column} IS NOT NULL"] * 3 + [f"({column} IS NULL OR true)", f"({column} IS NULL AND false)"]
    if not kind.nested:
        choices += [f"{column} {rng.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {literal(rng, kind)}"] * 2
        choices += [f"NOT ({column} = {literal(rng, kind)})", f"{column} IN ({literal(rng, kind)}, NULL)"]
    if kind.type == "string":
        choices += [f"{column} LIKE 'a%'", f"length({column}) > 1", f"substring({column}, -1, 1) = 'b'"]
    if kind.type == "boolean":
        choices += [column, f"NOT {column}"]
    if kind.type.startswith("array"):
        choices += [f"size({column}) > 0"]
    return rng.choice(choices)


def expressions(column: str, kind: Kind) -> list[tuple[str, Kind]]:
    """Expressions over one column, with what they are."""
    found = [(f"{column} IS NULL", TRUTH), (f"CAST(hash({column}) % 3 AS INT)", INT)]
    if kind.adds and kind.type in ("int", "bigint"):
        found += [(f"{column} * 2 + 1", kind), (f"{column} % 3", kind), (f"CAST({column} AS BIGINT)", LONG),
                  (f"{column} / 2", DOUBLE), (f"CASE WHEN {column} > 0 THEN {column} END", kind)]  # fmt: skip
    if kind.type == "string":
        found += [(f"upper({column})", TEXT), (f"length({column})", INT), (f"concat({column}, '!')", TEXT)]
    if kind.letter == "v":
        found += [(f"{column} * 2", DOUBLE), (f"coalesce({column}, 0.5D)", DOUBLE), (f"-{column}", DOUBLE)]
    if kind.type == "boolean":
        found += [(f"CAST({column} AS INT)", INT), (f"NOT {column}", TRUTH)]
    if kind.type.startswith("array"):
        found += [(f"size({column})", INT)]
    if kind.letter == "r":
        found += [(f"{column}.a", INT)]
    return found
