"""The builder gives the rows of the same query in SQL, with strings and with Columns."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import functions as F

import anabranch as ab
from anabranch.errors import UnboundedJoin
from tests.spark import feeds

pytestmark = pytest.mark.spark
Tables = dict[str, Any]


def test_the_query_of_the_readme_built_with_strings_and_with_columns(spark: Any, tables: Tables) -> None:
    calls, reports = tables["calls"], tables["reports"]
    text = """SELECT calls.phone, window(calls.ts, '60 seconds', '10 seconds') AS window, count(*) AS calls,
          avg(duration / 60) AS minutes
        FROM calls JOIN reports ON calls.phone = reports.phone
          AND reports.ts BETWEEN calls.ts - INTERVAL 60 SECONDS AND calls.ts
        GROUP BY calls.phone, window(calls.ts, '60 seconds', '10 seconds')"""
    strings = (
        calls.join(reports, on="phone", within=("60 seconds", "0 seconds"))
        .groupBy("phone", ab.window("calls.ts", "60 seconds", "10 seconds"))
        .agg("count(*) AS calls", "avg(duration / 60) AS minutes")
    )
    bounds = F.col("reports.ts").between(F.col("calls.ts") - F.expr("INTERVAL 60 SECONDS"), F.col("calls.ts"))
    columns = (
        calls.join(reports, on=F.col("calls.phone") == F.col("reports.phone"), condition=bounds)
        .groupBy([F.col("calls.phone"), ab.window(F.col("calls.ts"), "60 seconds", "10 seconds")])
        .agg(F.count("*").alias("calls"), F.avg(F.col("duration") / 60).alias("minutes"))
    )
    want = spark.sql(text)
    feeds.assert_equal(strings, want)
    feeds.assert_equal(columns, want)


def test_rows_are_selected_filtered_and_given_columns_as_in_spark(spark: Any, feed: Any, tables: Tables) -> None:
    def steps(df: Any) -> Any:
        kept = df.where((F.col("duration") > 3) & F.col("city").isNotNull()).filter("phone <> 4")
        kept = kept.withColumn("duration", F.col("duration") * 2).withColumn("hour", F.hour("ts").alias("ignored"))
        kept = kept.drop("info", F.col("my col"), "no such column").withColumn(
            "late", F.col("ts") > F.lit("2026-01-01 00:02")
        )
        return kept.select("*", F.upper("city").alias("Upper City"), F.lit("it's").alias("lit"))

    feeds.assert_equal(steps(tables["calls"]), steps(feeds.batch(spark, feed, "calls")))


def test_a_static_dataframe_is_joined_before_and_after(spark: Any, tables: Tables) -> None:
    prices = tables["prices"]
    counted = (
        tables["calls"]
        .join(prices, on="city", how="left")
        .groupBy("city", "region", ab.window("ts", "1 minute"))
        .agg(F.sum("duration").alias("s"))
        .join(prices, on="city", name="p2")
        .select("city", "s", "p2.price", "window.start AS minute")
    )
    text = """SELECT city, s, p.price, window.start AS minute FROM
        (SELECT c.city, region, window, sum(duration) s FROM (SELECT *, window(ts, '1 minute') FROM calls) c
         LEFT JOIN prices USING (city) GROUP BY c.city, region, window) JOIN prices p USING (city)"""
    feeds.assert_equal(counted, spark.sql(text))


def test_a_stream_joins_itself(spark: Any, tables: Tables) -> None:
    calls = tables["calls"]
    pairs = (
        calls.alias("a")
        .join(
            calls.alias("b"),
            [F.col("a.phone") == F.col("b.phone"), "b.ts > a.ts", "b.ts <= a.ts + INTERVAL 40 SECONDS"],
        )
        .select("a.phone", "a.ts AS first", "b.ts AS second")
    )
    text = """SELECT a.phone, a.ts AS first, b.ts AS second FROM calls a
        JOIN calls b ON a.phone = b.phone AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 40 SECONDS"""
    feeds.assert_equal(pairs, spark.sql(text))


def test_cases_and_their_union_keep_every_row_once(spark: Any, tables: Tables) -> None:
    calls = tables["calls"].select("phone", "ts", "duration")
    long, odd, rest = calls.case(F.col("duration") > 50, "phone % 2 = 1")
    tagged = [flow.withColumn("tag", F.lit(tag)) for flow, tag in ((long, "long"), (odd, "odd"), (rest, "rest"))]
    text = """SELECT phone, ts, duration,
        CASE WHEN duration > 50 THEN 'long' WHEN phone % 2 = 1 THEN 'odd' ELSE 'rest' END AS tag FROM calls"""
    feeds.assert_equal(tagged[0].union(tagged[1], tagged[2]), spark.sql(text))


def test_frames_look_back_in_event_time(spark: Any, tables: Tables) -> None:
    frame = tables["calls"].frame(
        F.avg("duration").alias("recent"), F.lag("duration", 1).alias("before"), "max(duration) AS most",
        partitionBy=F.col("phone"), orderBy=["ts", F.desc("duration")], rows=3,
    ).select("phone", "ts", "recent", "before", "most")  # fmt: skip
    text = """SELECT phone, ts, avg(duration) OVER w AS recent, max(duration) OVER w AS most,
          lag(duration, 1) OVER (PARTITION BY phone ORDER BY ts, duration DESC) AS before FROM calls
        WINDOW w AS (PARTITION BY phone ORDER BY ts, duration DESC ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)"""
    feeds.assert_equal(frame, spark.sql(text).select("phone", "ts", "recent", "before", "most"))


def test_a_join_may_get_its_time_bounds_and_names_later(tables: Tables) -> None:
    joined = tables["calls"].join(tables["reports"], on="phone")
    assert joined.columns.count("ts") == 2
    with pytest.raises(UnboundedJoin):
        joined.select("phone", "level")
    bounded = joined.where("reports.ts BETWEEN calls.ts AND calls.ts + INTERVAL 9 SECONDS").select("phone", "level")
    assert bounded.schema.simpleString() == "struct<phone:int,level:int>"


def test_the_builder_names_and_types_its_columns_as_spark_does(feed: Any, spark: Any, tables: Tables) -> None:
    counted = tables["calls"].groupBy("city", F.window("ts", "1 minute").alias("w")).agg(F.max("duration").alias("m"))
    want = feeds.batch(spark, feed, "calls").groupBy("city", F.window("ts", "1 minute").alias("w")).agg(
        F.max("duration").alias("m")
    )  # fmt: skip
    assert counted.columns == ["city", "w", "m"]
    assert counted.schema.simpleString() == want.schema.simpleString()
    assert tables["calls"].groupBy(ab.window("ts", "1 minute")).count().columns == ["window", "count"]
