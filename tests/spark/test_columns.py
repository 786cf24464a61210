"""A Column's text means the same to Spark's parser as the Column itself."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from anabranch.errors import UnsupportedQuery
from anabranch.spark.columns import text_of

pytestmark = pytest.mark.spark
MOMENT = datetime.datetime(2026, 1, 1, 12, 30, 1, 5)


def a() -> Any:
    return F.col("a")  # only once there is a session


def b() -> Any:
    return F.col("b")


def over() -> Any:
    return Window.partitionBy("k").orderBy("ts", F.desc("b")).rowsBetween(-9, 0)


TEXTS = [
    (lambda: F.col("calls.ts"), "calls.ts"),
    (lambda: F.col("a b"), "`a b`"),
    (lambda: F.col("end").alias("my end"), "`end` AS `my end`"),
    (lambda: F.col("*"), "*"),
    (lambda: F.col("c.*"), "c.*"),
    (lambda: F.count("*").alias("n"), "count(*) AS n"),
    (lambda: F.count_distinct("a", "b"), "count(DISTINCT a, b)"),
    (lambda: F.sum_distinct("a"), "sum(DISTINCT a)"),
    (lambda: F.avg(a() / 60).alias("minutes"), "avg(a / 60) AS minutes"),
    (lambda: F.percentile("a", 0.5), "percentile(a, 0.5D)"),
    (lambda: F.first("a", ignorenulls=True), "first(a, true)"),
    (lambda: F.expr("sum(a) FILTER (WHERE b > 1) AS s"), "sum(a) FILTER (WHERE b > 1) AS s"),
    (lambda: F.expr("a OR b") & (a() == 1), "(a OR b) AND a = 1"),
    (lambda: (a() == 1) & ((b() == 2) | ~(b() > 3)), "a = 1 AND (b = 2 OR NOT b > 3)"),
    (lambda: (a() + 1) * 2 - (b() - a()), "(a + 1) * 2 - (b - a)"),
    (lambda: -F.negative(a()), "-(-a)"),
    (lambda: a().between(1, 2), "a >= 1 AND a <= 2"),
    (lambda: a().isin("x", "y'z"), "a IN ('x', 'y\\'z')"),
    (lambda: a().isNull() | b().isNotNull(), "a IS NULL OR b IS NOT NULL"),
    (lambda: F.when(a() > 1, "x").otherwise(F.lit(None)), "CASE WHEN a > 1 THEN 'x' ELSE NULL END"),
    (lambda: a().cast("decimal(10,2)").alias("d"), "CAST(a AS DECIMAL(10,2)) AS d"),
    (lambda: a().try_cast("int"), "TRY_CAST(a AS INT)"),
    (lambda: F.col("w")["start"], "w.start"),
    (lambda: F.col("m")["k"], "m['k']"),
    (lambda: F.transform("l", lambda x: x + 1), "transform(l, x_1 -> x_1 + 1)"),
    (lambda: F.window("ts", "1 minute"), "window(ts, '1 minute', '1 minute', '0 second')"),
    (lambda: F.lit(MOMENT), "TIMESTAMP '2026-01-01 12:30:01.000005+00:00'"),
    (lambda: F.lit(datetime.timedelta(seconds=90)), "INTERVAL '0 00:01:30' DAY TO SECOND"),
    (lambda: F.lag("a", 2).over(Window.partitionBy("k").orderBy("ts")), "lag(a, 2) OVER (PARTITION BY k ORDER BY ts)"),
    (
        lambda: F.avg("a").over(over()).alias("m"),
        "avg(a) OVER (PARTITION BY k ORDER BY ts, b DESC ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS m",
    ),
]


@pytest.mark.parametrize(("make", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_a_column_has_this_text(spark: Any, make: Any, text: str) -> None:
    assert text_of(make()) == text


VALUES = [
    lambda: F.lit("quote ' backslash \\ line \n é 😀"), lambda: F.lit(1.5), lambda: F.lit(1e300), lambda: F.lit(-5),
    lambda: F.lit(float("nan")), lambda: F.lit(float("-inf")), lambda: F.lit(2**40), lambda: F.lit(True),
    lambda: F.lit(b"ab"), lambda: F.lit([1, 2]), lambda: F.lit(decimal.Decimal("1.50")), lambda: F.lit(MOMENT),
    lambda: F.lit(datetime.date(2026, 1, 2)), lambda: F.lit(datetime.timedelta(microseconds=-5)),
    lambda: F.lit(MOMENT).cast("timestamp_ntz"), lambda: a() % 3, lambda: a() ** 2, lambda: a().bitwiseAND(6),
    lambda: ~(a() > 1),
    lambda: a().eqNullSafe(None), lambda: F.lit("x%") == "x%", lambda: F.lit("abc").substr(2, 1),
    lambda: F.lit("abc").rlike(r"^\w+c$"), lambda: F.regexp_replace(F.lit("a1b"), r"\d", "-"),
    lambda: F.aggregate(F.array(a(), F.lit(2)), F.lit(0), lambda acc, x: acc + x), lambda: a().isin([]),
    lambda: F.filter(F.array(a(), F.lit(2)), lambda x: x > a()),
    lambda: F.struct(a().alias("x"), F.lit(1).alias("my y")),
    lambda: F.to_json(F.struct("a")), lambda: F.extract(F.lit("YEAR"), F.lit(MOMENT)), lambda: F.array(a(), a())[0],
    lambda: F.create_map(F.lit("k"), a())["k"], lambda: F.greatest(a(), F.lit(1)),
    lambda: F.date_trunc("hour", F.lit(MOMENT)),
    lambda: F.when(a() > 10, 1).when(a() > 1, 2).otherwise(3) + 1, lambda: a() - (a() - 1) - 1, lambda: a() / (a() / 2),
    lambda: -(a() - 1), lambda: (a() > 1) == (a() > 2), lambda: F.lit("ab").contains("b"), lambda: F.expr("a + 1") * 2,
]  # fmt: skip


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_text_and_column_have_one_value_whatever_the_time_zone(spark: Any, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        row = spark.range(1).selectExpr("3 AS a")
        columns = [make() for make in VALUES]
        want = row.select(*[c.alias(f"c{i}") for i, c in enumerate(columns)])
        got = row.selectExpr(*[f"{text_of(c)} AS c{i}" for i, c in enumerate(columns)])
        assert got.schema.simpleString() == want.schema.simpleString()
        assert repr(got.collect()) == repr(want.collect())
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_lambda_has_the_same_text_whenever_it_is_made(spark: Any) -> None:
    """Spark numbers the variables through the process; a checkpoint must not notice."""
    nested = [F.transform("l", lambda x: F.exists("m", lambda y: y > x)) for _ in range(2)]
    assert text_of(nested[0]) == text_of(nested[1]) == "transform(l, x_1 -> exists(m, x_2 -> x_2 > x_1))"


def test_a_column_of_a_dataframe_counts_by_its_name(spark: Any) -> None:
    df = spark.range(1)
    assert text_of(df.id + 1) == "id + 1"


@pytest.mark.parametrize("make", [lambda: F.udf(lambda x: x)("a"), lambda: F.col("s").withField("z", F.lit(1))])
def test_what_has_no_text_is_refused(spark: Any, make: Any) -> None:
    with pytest.raises(UnsupportedQuery, match="without a text in SQL"):
        text_of(make())
