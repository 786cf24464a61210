"""Catalyst as the compiler's `Typer`: analyses expressions over empty DataFrames, executes nothing but constants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from anabranch.errors import QueryError, UnknownColumn, UnsupportedQuery
from anabranch.plan.types import quoted
from anabranch.plan.window_time import evaluable
from anabranch.query.scope import suggest


class CatalystTyper:
    def __init__(self, session: SparkSession, statics: Mapping[str, DataFrame]) -> None:
        self.session = session
        self.statics = dict(statics)
        self._known: dict[tuple[Any, ...], list[str]] = {}
        self._constants: dict[str, Any] = {}

    def empty(self, columns: Mapping[str, str]) -> DataFrame:
        ddl = ", ".join(f"{quoted(name)} {type}" for name, type in columns.items())
        return self.session.createDataFrame([], ddl)

    def types(self, columns: Mapping[str, str], texts: Sequence[str]) -> list[str]:
        key = (tuple(columns.items()), tuple(texts))
        if key not in self._known:
            named = [f"({evaluable(t)}) AS _{i}" for i, t in enumerate(texts)]
            try:
                schema = self.empty(columns).selectExpr(*named).schema
            except (AnalysisException, ParseException) as error:
                raise self._explained(error, columns, texts) from None
            self._known[key] = [f.dataType.simpleString() for f in schema.fields]
        return self._known[key]

    def _explained(self, error: PySparkException, columns: Mapping[str, str], texts: Sequence[str]) -> QueryError:
        """Which of the texts it was."""
        for text in texts:
            try:
                _ = self.empty(columns).selectExpr(evaluable(text)).schema
            except (AnalysisException, ParseException) as own:
                return in_our_words(own, list(columns), text)
        return in_our_words(error, list(columns))

    def lookup(
        self, columns: Mapping[str, str], static: str, how: str, condition: str, renames: Mapping[str, str]
    ) -> dict[str, str]:
        try:
            joined = look_up(self.empty(columns), self.statics[static], how, evaluable(condition), renames)
            return {f.name: f.dataType.simpleString() for f in joined.schema.fields}
        except (AnalysisException, ParseException) as error:
            raise in_our_words(error, [*columns, *renames], condition) from None

    def static_columns(self, static: str) -> tuple[str, ...]:
        return tuple(self.statics[static].columns)

    def interval_us(self, text: str) -> int | None:
        base = "TIMESTAMP_NTZ'2000-01-01 00:00:00'"
        value = self._constant(text, "interval", f"timestampdiff(MICROSECOND, {base}, {base} + x)")
        return None if value is None else int(value)

    def number(self, text: str) -> float | None:
        value = self._constant(f"CAST({text} AS DOUBLE)", "double", "x")
        return None if value is None else float(value)

    def _constant(self, text: str, type: str, wanted: str) -> Any:
        """What Spark makes of a text without columns; None if it is no constant of that type."""
        if text not in self._constants:
            try:
                # Over a table of literals, which the optimiser works out: no job runs.
                frame = self.session.sql("SELECT * FROM VALUES (0) AS _nothing(_none)").selectExpr(f"{text} AS x")
                found = frame.schema["x"].dataType.simpleString()
                fit = found.startswith(type) and "month" not in found and "year" not in found
                row = frame.selectExpr(f"{wanted} AS y").first() if fit else None
                self._constants[text] = None if row is None else row["y"]
            except PySparkException:
                self._constants[text] = None
        return self._constants[text]


def look_up(df: DataFrame, static: DataFrame, how: str, condition: str, renames: Mapping[str, str]) -> DataFrame:
    """Join with a static DataFrame whose columns get their physical names."""
    from pyspark.sql import functions as F

    side = static.select(*[F.expr(text).alias(column) for column, text in renames.items()])
    if not condition:
        return df.crossJoin(side)
    return df.join(side, F.expr(condition), how)


def in_our_words(error: PySparkException, columns: Sequence[str], where: str | None = None) -> QueryError:
    """`where`: the text that Spark was given, if it is short and the user's own."""
    condition = (error.getCondition() or "") if hasattr(error, "getCondition") else ""
    text = re.split(r";\s*\n|;\s*line \d+ pos|\n", str(error).strip())[0]
    text = re.sub(r"\s*SQLSTATE: \w+( \(line \d+, pos \d+\))?", "", text)
    unknown = re.search(r"name `?(.+?)`? cannot be resolved", text)
    if condition.startswith("UNRESOLVED_COLUMN") and unknown:
        name = unknown.group(1).replace("`", "")
        return UnknownColumn(f"there is no column `{name}`", where=where, fix=suggest(name, columns, "the columns are"))
    if condition.startswith("UNRESOLVED_ROUTINE"):
        name = re.search(r"routine `(.+?)`", text)
        return UnsupportedQuery(
            f"there is no function {name.group(1) if name else ''}", where=where or text,
            fix="see Spark's SQL functions for the name; a function of your own is registered with spark.udf.register",
        )  # fmt: skip
    if condition.startswith("AMBIGUOUS_REFERENCE"):
        return UnknownColumn(text, where=where, fix="write it with the stream's name in front: stream.column")
    if isinstance(error, ParseException):
        return UnsupportedQuery(f"Spark cannot parse this: {text}", where=where, fix="correct the SQL")
    return QueryError(f"Spark cannot analyse this: {text}", where=where, fix="correct the expression")
