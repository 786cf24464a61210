"""SQL of every supported shape gives the rows, names and types of Spark batch on the same text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import functions as F

import anabranch as ab
from tests.spark import feeds

pytestmark = pytest.mark.spark
Tables = dict[str, Any]
LONG = pytest.mark.skipif(os.environ.get("ANABRANCH_LONG") != "1", reason="set ANABRANCH_LONG=1")

SHORT = {
    "expressions row by row": """
        SELECT upper(coalesce(city, 'none')) AS c, transform(info.b, x -> x + 1) AS t, info.b[1] e, `my col`,
          struct(phone, named_struct('d', duration)) AS s, CAST(duration AS DECIMAL(10, 2)) / 3 AS q,
          date_format(ts, 'yyyy-MM-dd HH:mm') AS f, phone IN (1, 2) AS i, city LIKE 'a%' l, 'it''s' AS apostrophe,
          EXTRACT(MINUTE FROM ts) AS m, duration DIV 7 AS dv, - duration AS neg, INTERVAL 1 HOUR + ts AS later
        FROM calls WHERE NOT (city IS NULL) AND ts IS NOT DISTINCT FROM ts -- a comment
        """,
    "a cte with column names, joined by time": """
        WITH long AS (SELECT phone AS p, ts, duration AS d FROM calls WHERE duration > 10),
             r (ph, at, lv) AS (SELECT * FROM reports) /* another comment */
        SELECT l.p, l.d, r.lv FROM long l
        JOIN r ON l.p = r.ph AND r.at BETWEEN l.ts - INTERVAL '1' MINUTE AND l.ts + INTERVAL 5 SECONDS
        """,
    "lateral aliases over a subquery": """
        SELECT x.phone, x.n + 1 AS n1, n1 * 2 AS n2
        FROM (SELECT phone, count(*) AS n FROM calls GROUP BY phone, window(ts, '1 minute')) x WHERE x.n > 1
        """,
    "having, ordinals and the parts of a window": """
        SELECT phone, window.start, window.end, sum(duration) s, sum(duration) / count(*) AS r FROM calls
        GROUP BY 1, window(ts, '1 minute', '30 seconds') HAVING s > 20 AND count(*) > 1
        """,
    "named windows over rows": """
        SELECT phone, duration, avg(duration) OVER w AS m, count(*) OVER w n,
          lag(duration, 1, -1) OVER (PARTITION BY phone ORDER BY ts, duration) AS l FROM calls
        WINDOW w AS (PARTITION BY phone ORDER BY ts, duration ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)
        """,
    "comma joins with a static table": """
        SELECT c.phone, r.level, p.price FROM calls c, reports r, prices p
        WHERE c.phone = r.phone AND p.city = c.city AND abs(unix_micros(c.ts) - unix_micros(r.ts)) < 15000000
          AND r.ts BETWEEN c.ts - INTERVAL 20 SECONDS AND c.ts + INTERVAL 20 SECONDS
        """,
    "windows of two aggregates, joined": """
        SELECT a.w.start, a.n, b.m
        FROM (SELECT window AS w, count(*) n FROM calls GROUP BY window(ts, '30 seconds')) a
        JOIN (SELECT window AS w, max(level) m FROM reports GROUP BY window(ts, '30 seconds')) b ON a.w = b.w
        """,
    "the rows of a window, joined with it": """
        SELECT a.w.start s, a.n, c.phone
        FROM (SELECT window AS w, count(*) n FROM calls GROUP BY window(ts, '30 seconds')) a
        JOIN calls c ON c.ts >= a.w.start AND c.ts < a.w.end
        """,
    "a union of two aggregates and rows": """
        SELECT window_time(window) AS t, n
          FROM (SELECT window, sum(duration) n FROM calls GROUP BY window(ts, '1 minute'))
        UNION ALL SELECT window_time(window), n
          FROM (SELECT window, count(*) n FROM reports GROUP BY window(ts, '1 minute'))
        UNION ALL (SELECT ts, level FROM reports WHERE level > 1)
        """,
    "many aggregates at once": """
        SELECT window.start AS w, count(DISTINCT phone) d, max_by(city, unix_micros(ts) + duration) mb,
          median(duration) md,
          sort_array(collect_set(city)) cs, sum(DISTINCT duration) AS sd, bool_or(duration > 90) bo,
          count_if(duration < 5),
          min(duration) FILTER (WHERE duration > 9) AS mf, percentile(duration, 0.9) FROM calls
        GROUP BY window(ts, '1 minute')
        """,
}
MORE = {
    "group by all": "SELECT city, window(ts, '1 minute') AS w, max(duration) FROM calls GROUP BY ALL",
    "quoted names and a computed key": """
        SELECT phone AS `a key`, avg(`my col`) AS `the avg`, info.a % 2 odd
        FROM calls GROUP BY phone, window(ts, '2 minutes'), info.a % 2
        """,
    "left join using, and case in where": """
        SELECT c.city, p.region, price * duration AS cost FROM calls c LEFT JOIN prices p USING (city)
        WHERE CASE WHEN duration > 50 THEN true WHEN duration IS NULL THEN false ELSE region = 'north' END
        """,
    "using between streams": """
        SELECT phone, level, duration FROM calls c JOIN reports r USING (phone)
        WHERE r.ts >= c.ts - INTERVAL 20 SECONDS AND r.ts <= c.ts AND duration > level
        """,
    "an aggregate of an aggregate": """
        SELECT window.end AS e, max(n) m, sum(n) FROM
        (SELECT phone, window, count(*) n FROM calls GROUP BY phone, window(ts, '30 seconds')) GROUP BY window
        """,
    "windows of windows": """
        SELECT window(window, '2 minutes').start AS s, sum(n) FROM
        (SELECT phone, window, count(*) n FROM calls GROUP BY phone, window(ts, '30 seconds'))
        GROUP BY window(window, '2 minutes')
        """,
    "a stream joined with itself": """
        SELECT a.phone, a.ts AS t1, b.ts AS t2 FROM calls a
        JOIN calls b ON a.phone = b.phone AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 40 SECONDS
        """,
    "a join without an equality": """
        SELECT c.city, c.duration, r.level FROM calls c
        JOIN reports r ON r.ts BETWEEN c.ts - INTERVAL 3 SECONDS AND c.ts AND c.duration > r.level * 10
        """,
    "group by an alias": "SELECT lower(city) lc, count(*) AS n FROM calls GROUP BY lc, window(ts, '1 minute')",
    "group by a case": """
        SELECT CASE WHEN duration > 50 THEN 'long' ELSE 'short' END AS len, count(*) FROM calls
        GROUP BY CASE WHEN duration > 50 THEN 'long' ELSE 'short' END, window(ts, '1 minute')
        """,
    "a star": "SELECT * FROM calls",
    "a star without some": "SELECT * EXCEPT (info, `my col`) FROM calls",
    "unions in brackets": """
        (SELECT phone FROM calls WHERE duration > 50) UNION ALL (SELECT level FROM reports)
        UNION ALL SELECT duration FROM calls WHERE duration < 0
        """,
    "group by the event time": "SELECT ts, count(*) n FROM calls GROUP BY ts",
    "a frame over an aggregate": """
        SELECT w.start, m FROM (SELECT window w, max(n) OVER (ORDER BY window.start ROWS 2 PRECEDING) m FROM
        (SELECT window, count(*) n FROM calls GROUP BY window(ts, '30 seconds')))
        """,
    "an aggregate joined with a static table": """
        SELECT p.region, x.n FROM (SELECT city, count(*) n FROM calls GROUP BY city, window(ts, '1 minute')) x
        LEFT JOIN prices p ON x.city = p.city AND p.price > 3
        """,
    "an aggregate over a join": """
        SELECT c.phone p, count(*) n, avg(c.duration) FROM calls c
        JOIN reports r ON c.phone = r.phone AND r.ts BETWEEN c.ts - INTERVAL 60 SECONDS AND c.ts
        GROUP BY c.phone, window(c.ts, '60 seconds', '20 seconds')
        """,
}
CASES = [pytest.param(text, id=name) for name, text in SHORT.items()]
CASES += [pytest.param(text, id=name, marks=[pytest.mark.long, LONG]) for name, text in MORE.items()]


@contextmanager
def conf(spark: Any, **settings: str) -> Iterator[None]:
    """The session with other settings for a while."""
    named = {f"spark.sql.{key.replace('__', '.')}": value for key, value in settings.items()}
    before = {key: spark.conf.get(key) for key in named}
    for key, value in named.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


@pytest.mark.parametrize("text", CASES)
def test_sql_gives_what_spark_batch_gives(spark: Any, tables: Tables, text: str) -> None:
    used = {name: table for name, table in tables.items() if name in text}
    rows = feeds.assert_equal(ab.sql(text, **used), spark.sql(text))
    assert len(rows) > 3


ZONED = """
    SELECT c.phone, window(c.ts, '1 hour').start s, count(*) n, min(r.ts) m, max(hour(c.ts)) h, max(date(c.ts)) AS d,
      date_format(max(c.ts), 'yyyy-MM-dd HH:mm') f
    FROM calls c JOIN reports r ON c.phone = r.phone AND r.ts BETWEEN c.ts - INTERVAL 60 SECONDS AND c.ts
    WHERE c.ts > TIMESTAMP '2025-12-31 19:00:30' GROUP BY c.phone, window(c.ts, '1 hour'), date(c.ts)
    """


def test_the_sessions_time_zone_is_used_as_in_batch(spark: Any, tables: Tables) -> None:
    with conf(spark, session__timeZone="America/New_York"):
        flow = ab.sql(ZONED, calls=tables["calls"], reports=tables["reports"])
        rows = feeds.assert_equal(flow, spark.sql(ZONED))
    assert {row["h"] for row in rows} == {19}


def test_event_times_without_a_time_zone_work_as_in_batch(spark: Any, feed: Any, tables: Tables) -> None:
    streams = {}
    for name in ("calls", "reports"):
        plain = F.col("ts").cast("timestamp_ntz")
        streams[name] = ab.stream(tables[name].inputs[name].df.withColumn("ts", plain), name, event_time="ts")
        feeds.batch(spark, feed, name).withColumn("ts", plain).createOrReplaceTempView(name)
    text = ZONED.replace("TIMESTAMP '2025-12-31 19:00:30'", "TIMESTAMP_NTZ '2026-01-01 00:00:30'")
    feeds.assert_equal(ab.sql(text, **streams), spark.sql(text))


def test_ansi_mode_off_means_null_and_not_an_error(spark: Any, tables: Tables) -> None:
    text = "SELECT phone, duration / 0 AS z, CAST('7x' AS INT) AS t, info.b[9] AS o FROM calls WHERE duration > 0"
    with conf(spark, ansi__enabled="false"):
        rows = feeds.assert_equal(ab.sql(text, calls=tables["calls"]), spark.sql(text))
    assert {row[1:] for row in rows} == {(None, None, None)}


def test_flows_can_be_tables_of_sql(spark: Any, tables: Tables) -> None:
    long = tables["calls"].where("duration > 20").select("phone", "ts", "duration AS d")
    rows = feeds.run(ab.sql("SELECT phone, max(d) AS m FROM long GROUP BY phone, window(ts, '2 minutes')", long=long))
    want = spark.sql(
        "SELECT phone, max(duration) FROM calls WHERE duration > 20 GROUP BY phone, window(ts, '2 minutes')"
    )
    assert feeds.multiset(rows) == feeds.multiset(want.collect())
