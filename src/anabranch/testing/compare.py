"""Comparison of answers as multisets, and differences that can be read.

Everything is compared exactly, down to the sign of a zero; NaN equals NaN and NULL only itself. Exceptions are named
column by column: `close` for doubles that depend on the order of their sum, `unordered` for arrays in no order.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

RELATIVE, ABSOLUTE = 1e-9, 1e-12
SHOWN = 12


def canonical(value: Any, unordered: bool = False) -> Any:
    """A hashable stand-in that is equal where the values are one."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, list):
        parts = [canonical(v) for v in value]
        return tuple(sorted(parts, key=repr)) if unordered else tuple(parts)
    if isinstance(value, dict):
        return tuple((k, canonical(v)) for k, v in value.items())
    return type(value).__name__, value


def near(a: Any, b: Any) -> bool:
    """Equal but for the order of a floating-point sum."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(near(x, y) for x, y in zip(a, b, strict=True))
    if not (isinstance(a, float) and isinstance(b, float)):
        return bool(canonical(a) == canonical(b))
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def difference(
    got: Iterable[Sequence[Any]],
    want: Iterable[Sequence[Any]],
    names: Sequence[str],
    close: Collection[str] = (),
    unordered: Collection[str] = (),
) -> str | None:
    """What is too many and what is missing, None when the multisets are equal."""
    loose = [i for i, name in enumerate(names) if name in close]
    strict = [(i, name in unordered) for i, name in enumerate(names) if name not in close]
    extra, missing = list(got), list(want)
    count = len(extra), len(missing)
    left: dict[Any, list[Sequence[Any]]] = defaultdict(list)
    for row in missing:
        left[tuple(canonical(row[i], free) for i, free in strict)].append(row)
    surplus = []
    for row in extra:
        known = left[tuple(canonical(row[i], free) for i, free in strict)]
        match = next((n for n, other in enumerate(known) if all(near(row[i], other[i]) for i in loose)), None)
        if match is None:
            surplus.append(row)
        else:
            known.pop(match)
    lacking = [row for rows in left.values() for row in rows]
    if not surplus and not lacking:
        return None
    lines = [f"{count[0]} rows, {count[1]} expected: {len(surplus)} too many, {len(lacking)} missing"]
    lines += [f"  columns   {', '.join(names)}"]
    lines += _shown("too many", surplus) + _shown("missing ", lacking)
    return "\n".join(lines)


def assert_same(
    got: Iterable[Sequence[Any]],
    want: Iterable[Sequence[Any]],
    names: Sequence[str],
    close: Collection[str] = (),
    unordered: Collection[str] = (),
) -> None:
    found = difference(got, want, names, close, unordered)
    if found is not None:
        raise AssertionError(found)


def _shown(label: str, rows: Sequence[Sequence[Any]]) -> list[str]:
    times = Counter(f"({', '.join(map(_text, row))})" for row in rows)
    lines = [f"  {label}  {text}{f'  x{n}' if n > 1 else ''}" for text, n in sorted(times.items())[:SHOWN]]
    return lines + ([f"  {label}  … {len(times) - SHOWN} more"] if len(times) > SHOWN else [])


def _text(value: Any) -> str:
    return value.isoformat(sep=" ") if hasattr(value, "isoformat") and hasattr(value, "hour") else repr(value)
