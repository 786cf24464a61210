"""Catalyst as the compiler's `Typer`: analyses expressions over empty DataFrames, executes nothing but constants."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch.errors import QueryError, UnknownColumn, UnsupportedQuery
from anabranch.plan.types import quoted
from anabranch.plan.window_time import evaluable


class CatalystTyper:
    def __init__(self, session: SparkSession, statics: Mapping[str, DataFrame]) -> None:
        self.session = session
        self.statics = dict(statics)
        self._known: dict[tuple[Any, ...], list[str]] = {}

    def empty(self, columns: Mapping[str, str]) -> DataFrame:
        ddl = ", ".join(f"{quoted(name)} {type}" for name, type in columns.items())
        return self.session.createDataFrame([], ddl)

    def types(self, columns: Mapping[str, str], texts: Sequence[str]) -> list[str]:
        key = (tuple(columns.items()), tuple(texts))
        if key not in self._known:
            named = [f"({evaluable(t)}) AS _{i}" for i, t in enumerate(texts)]
            with Translated(columns):
                schema = self.empty(columns).selectExpr(*named).schema
            self._known[key] = [f.dataType.simpleString() for f in schema.fields]
        return self._known[key]

    def lookup(
        self, columns: Mapping[str, str], static: str, how: str, condition: str, renames: Mapping[str, str]
    ) -> dict[str, str]:
        with Translated({**columns, **renames}):
            joined = look_up(self.empty(columns), self.statics[static], how, evaluable(condition), renames)
            return {f.name: f.dataType.simpleString() for f in joined.schema.fields}

    def static_columns(self, static: str) -> tuple[str, ...]:
        return tuple(self.statics[static].columns)

    def interval_us(self, text: str) -> int | None:
        try:
            frame = self.session.range(1).selectExpr(f"{text} AS i")
            if not frame.schema["i"].dataType.simpleString().startswith("interval") or "month" in str(frame.schema):
                return None
            base = "TIMESTAMP_NTZ'2000-01-01 00:00:00'"
            row = frame.selectExpr(f"timestampdiff(MICROSECOND, {base}, {base} + i) AS us").first()
            return int(row["us"]) if row is not None and row["us"] is not None else None
        except PySparkException:
            return None

    def number(self, text: str) -> float | None:
        try:
            row = self.session.range(1).selectExpr(f"CAST({text} AS DOUBLE) AS x").first()
            return float(row["x"]) if row is not None and row["x"] is not None else None
        except PySparkException:
            return None


def look_up(df: DataFrame, static: DataFrame, how: str, condition: str, renames: Mapping[str, str]) -> DataFrame:
    """Join with a static DataFrame whose columns get their physical names."""
    from pyspark.sql import functions as F

    side = static.select(*[F.expr(text).alias(column) for column, text in renames.items()])
    if not condition:
        return df.crossJoin(side)
    return df.join(side, F.expr(condition), how)


class Translated:
    """Spark's analysis errors in the user's words."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = columns

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (AnalysisException, ParseException)):
            raise in_our_words(error, list(self.columns)) from None


def in_our_words(error: PySparkException, columns: Sequence[str]) -> QueryError:
    text = str(error).split("\n\nJVM stacktrace")[0]
    text = re.split(r";\s*\n", text)[0]
    condition = (error.getCondition() or "") if hasattr(error, "getCondition") else ""
    unknown = re.search(r"name `?(.+?)`? cannot be resolved", text)
    if condition.startswith("UNRESOLVED_COLUMN") and unknown:
        name = unknown.group(1).replace("`", "")
        near = difflib.get_close_matches(name.split(".")[-1], columns, 3, 0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        return UnknownColumn(f"there is no column {name}", fix=f"{hint}columns here: {', '.join(columns)}")
    if condition.startswith("AMBIGUOUS_REFERENCE"):
        return UnknownColumn(text.splitlines()[0], fix="write it with the stream's name in front: stream.column")
    if isinstance(error, ParseException):
        return UnsupportedQuery("Spark cannot parse the query", where=text.strip(), fix="correct the SQL")
    return QueryError("Spark cannot analyse the query", where=text.strip(), fix="correct the expression")
