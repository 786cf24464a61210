"""Three streams joined on one key, each within 30 s of the first: 6,000 rows a second, 1.4 results a row of it."""

from __future__ import annotations

from bench.workload import Quarters, Stream, Uniform, Workload

COLUMNS = (("k", Uniform(100_000)), ("v", Quarters()))

SPARK = """
SELECT a.k AS k, a.ts AS ats, b.ts AS bts, c.ts AS cts, a.v AS av, b.v AS bv, c.v AS cv
FROM a
JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 30 SECONDS AND a.ts + INTERVAL 30 SECONDS
JOIN c ON a.k = c.k AND c.ts BETWEEN a.ts - INTERVAL 30 SECONDS AND a.ts + INTERVAL 30 SECONDS
"""
# Spark allows one event time per input of a stateful operator, and the first join would hand on two. An expression
# over the second is no event time to it, and costs nothing.
SPARK_OWN = """
SELECT ab.k AS k, ab.ats AS ats, ab.bts AS bts, c.ts AS cts, ab.av AS av, ab.bv AS bv, c.v AS cv
FROM (
    SELECT a.k AS k, a.ts AS ats, b.ts + INTERVAL 0 SECONDS AS bts, a.v AS av, b.v AS bv
    FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 30 SECONDS AND a.ts + INTERVAL 30 SECONDS
) ab
JOIN c ON ab.k = c.k AND c.ts BETWEEN ab.ats - INTERVAL 30 SECONDS AND ab.ats + INTERVAL 30 SECONDS
"""

WORKLOADS = (
    Workload(
        name="three_way_join",
        family="three_way_join",
        about="three streams on one key of 100k, within 30 s, 60k-row epochs",
        streams=tuple(Stream(name, 20_000, COLUMNS) for name in "abc"),
        epoch_seconds=10,
        epochs=60,
        quick_epochs=10,
        warmup=20,
        sql=SPARK,
        spark_sql=SPARK_OWN,
        duckdb_sql=SPARK,
        output=(
            ("k", "int"),
            ("ats", "time"),
            ("bts", "time"),
            ("cts", "time"),
            ("av", "double"),
            ("bv", "double"),
            ("cv", "double"),
        ),
    ),
)
