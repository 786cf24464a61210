"""The doors a user comes in by: `ab.stream`, `ab.sql` and `ab.window`.

Everything is checked by Catalyst when the flow is built, nothing runs before `start()`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from anabranch.errors import MissingEventTime, SettingError, UnknownColumn, UnsupportedQuery
from anabranch.plan.types import TIMES
from anabranch.query import windows
from anabranch.query.relation import Relation
from anabranch.query.scope import suggest
from anabranch.query.windows import WindowSpec
from anabranch.settings import duration_us
from anabranch.spark import compat
from anabranch.spark.flow import Flow, Text, check_static, text_of, together
from anabranch.spark.taps import StreamInput
from anabranch.spark.typer import in_our_words

__all__ = ["Flow", "sql", "stream", "window"]

RESERVED = ("_t", "_cell", "_port", "_keep", "_site", "_w", "_found", "_anchor")


def stream(df: DataFrame, name: str, event_time: str | None = None, delay: str = "0 seconds") -> Flow:
    """A stream: any streaming DataFrame, under a name.

    `event_time` is its timestamp column; rows may come up to `delay` later than newer ones and still count.
    """
    if not isinstance(df, DataFrame):
        raise UnsupportedQuery(
            f"stream {name} is made of a {type(df).__name__}, not of a DataFrame", fix="read it with spark.readStream"
        )
    if not df.isStreaming:
        raise UnsupportedQuery(
            f"{name} is not a streaming DataFrame",
            where=f"ab.stream(..., {name!r})",
            fix="read it with spark.readStream; a static one goes into a join as it is",
        )
    relation = Relation.source(name, df.columns)
    types = {f.name: f.dataType.simpleString() for f in df.schema.fields}
    for column in types:
        if column in RESERVED or (column[:2] in ("_k", "_p", "_o", "_c", "_d") and column[2:].isdigit()):
            raise UnsupportedQuery(
                f"stream {name} has a column {column}, a name we use ourselves", fix="rename it before"
            )
    kind = "timestamp"
    if event_time is not None:
        found = next((c for c in types if c.lower() == event_time.lower()), None)
        if found is None:
            raise UnknownColumn(
                f"stream {name} has no column `{event_time}` for its event time",
                fix=suggest(event_time, types, "its columns are"),
            )
        event_time, kind = found, types[found]
        if kind not in TIMES:
            raise MissingEventTime(
                f"the event time {event_time} of {name} is of type {kind}, not a timestamp",
                fix=f"convert it before, e.g. df.withColumn('{event_time}', F.timestamp_seconds('{event_time}'))",
            )
    source = StreamInput(name, df, event_time, kind, duration_us(delay, "delay"))
    if source.delay_us < 0:
        raise SettingError(f"the delay of {name} is negative", where=f"delay={delay!r}", fix="use '0 seconds' or more")
    if event_time is not None:
        relation = Relation.source(name, df.columns, event_time)
    return Flow(relation, {name: source}, {}, df.sparkSession)


def sql(text: str, **relations: Flow | DataFrame) -> Flow:
    """A flow from Spark SQL. Keyword arguments are the tables: streams, other flows, static DataFrames."""
    from anabranch.query.sql import parse

    flows = {n: r for n, r in relations.items() if isinstance(r, Flow)}
    statics = {n: r for n, r in relations.items() if not isinstance(r, Flow)}
    if not flows:
        raise UnsupportedQuery("the query has no stream", fix="pass the streams by name: ab.sql(text, calls=calls)")
    for name, df in statics.items():
        check_static(name, df)
    session = next(iter(flows.values())).session
    relation = parse(
        text, {n: f.relation.alias(n) for n, f in flows.items()}, {n: d.columns for n, d in statics.items()}
    )
    names = spark_names(session, text, flows, statics)
    if names is not None:
        relation = relation.output(names)
    flow = together(relation, *flows.values(), statics=statics)
    flow.plan()
    return flow


def spark_names(
    session: SparkSession, text: str, flows: Mapping[str, Flow], statics: Mapping[str, DataFrame]
) -> list[str] | None:
    """The output names that Spark itself gives; its analysis of the whole query is the first check there is."""
    from pyspark.errors import AnalysisException, ParseException

    own = compat.plain_session(session)
    for name, flow in flows.items():
        own.createDataFrame([], flow.schema).createOrReplaceTempView(name)
    for name, df in statics.items():
        own.createDataFrame([], df.schema).createOrReplaceTempView(name)
    try:
        return list(own.sql(text).columns)
    except (AnalysisException, ParseException) as error:
        columns = [c for flow in flows.values() for c in flow.columns]
        raise in_our_words(error, list(dict.fromkeys(columns))) from None


def window(
    timeColumn: Text, windowDuration: str, slideDuration: str | None = None, startTime: str | None = None
) -> WindowSpec:
    """A window of event time for `groupBy`, as `F.window` takes it: `ab.window("ts", "60 seconds", "10 seconds")`."""
    return windows.window(text_of(timeColumn), windowDuration, slideDuration, startTime)
