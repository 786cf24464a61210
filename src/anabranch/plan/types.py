"""Spark type strings: what the compiler must know of them, and the SQL that normalises keys and times.

Only here do type names get parsed. Key normalisation follows Spark's own: NaNs are one value, -0.0 is 0.0, also inside
structs and arrays.
"""

from __future__ import annotations

from anabranch.errors import UnsupportedQuery

TIMES = ("timestamp", "timestamp_ntz")
INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def is_numeric(type: str) -> bool:
    return type in INTEGERS or type in FLOATS or type.startswith("decimal")


def decimal(type: str) -> tuple[int, int]:
    precision, scale = type[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def micros(text: str, type: str) -> str:
    """SQL: a timestamp as microseconds since the epoch (NTZ as if it were UTC)."""
    if type == "timestamp_ntz":
        return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {text})"
    return f"unix_micros({text})"


def from_micros(text: str, type: str) -> str:
    if type == "timestamp_ntz":
        return f"timestampadd(MICROSECOND, {text}, TIMESTAMP_NTZ'1970-01-01 00:00:00')"
    return f"timestamp_micros({text})"


def split_fields(body: str) -> list[str]:
    """'a:int,b:array<map<int,int>>' -> its parts, commas inside brackets left alone."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(body):
        if c in "<(":
            depth += 1
        elif c in ">)":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(body[start:i])
            start = i + 1
    return [*parts, body[start:]] if body else []


def normalised(text: str, type: str, depth: int = 0) -> str:
    """SQL: the key value with one NaN and no -0.0."""
    if type in FLOATS:
        one_nan, one_zero = f"isnan({text}) THEN CAST('NaN' AS {type})", f"{text} = 0 THEN CAST(0 AS {type})"
        return f"(CASE WHEN {one_nan} WHEN {one_zero} ELSE {text} END)"
    if "float" not in type and "double" not in type:
        return text
    if type.startswith("struct<"):
        fields = [f.split(":", 1) for f in split_fields(type[7:-1])]
        inside = ", ".join(
            f"'{name.strip('`')}', {normalised(f'{text}.{quoted(name.strip(chr(96)))}', kind, depth)}"
            for name, kind in fields
        )
        return f"(CASE WHEN {text} IS NULL THEN NULL ELSE named_struct({inside}) END)"
    if type.startswith("array<"):
        var = f"_x{depth}"
        return f"transform({text}, {var} -> {normalised(var, type[6:-1], depth + 1)})"
    return text


def check_key(text: str, type: str) -> None:
    if "collate" in type.lower():
        raise UnsupportedQuery(
            f"key {text} has a non-binary collation ({type})",
            fix="compare it with binary collation, e.g. CAST(x AS STRING), or normalise it with lower(x) before",
        )
    if "map<" in type or type == "variant" or "interval" in type:
        raise UnsupportedQuery(
            f"key {text} has the type {type}, which cannot be hashed as a key",
            fix="use a key of an atomic, struct or array type, e.g. map_entries(x) or a field of it",
        )


def common_key(text: str, types: list[str]) -> str | None:
    """The type in which keys of these types are compared, None when only a cast by the user would be clear."""
    kinds = set(types)
    if len(kinds) == 1:
        return types[0]
    if kinds <= set(TIMES[:1]) | {"date"}:
        return "timestamp"
    if all(is_numeric(t) for t in kinds):
        return ""  # let Catalyst widen
    return None
