"""Count, sum and average per group over windows of 60 s every 10 s: 10,000 rows a second, 1,000 Zipf groups."""

from __future__ import annotations

from bench.workload import Quarters, Stream, Workload, Zipf

SPARK = """
SELECT k, window.start AS start, count(*) AS n, sum(v) AS total, avg(v) AS mean
FROM s
GROUP BY k, window(ts, '60 seconds', '10 seconds')
"""
# By hand what a good planner would do: one pass into panes of 10 s, then six windows for each pane.
DUCKDB = """
SELECT k, start, sum(n)::BIGINT AS n, sum(total) AS total, sum(total) / sum(n) AS mean
FROM (
    SELECT k, pane - i * INTERVAL 10 SECONDS AS start, n, total
    FROM (SELECT k, time_bucket(INTERVAL 10 SECONDS, ts) AS pane, count(*) AS n, sum(v) AS total FROM s GROUP BY ALL),
         range(6) AS steps(i)
)
GROUP BY k, start
"""

BASE = Workload(
    name="sliding_aggregate_100k",
    family="sliding_aggregate",
    about="60 s by 10 s, 1,000 Zipf groups, 100k-row epochs",
    streams=(Stream("s", 100_000, (("k", Zipf(1000, 1.0)), ("v", Quarters()))),),
    epoch_seconds=10,
    epochs=80,
    quick_epochs=12,
    warmup=25,
    sql=SPARK,
    duckdb_sql=DUCKDB,
    output=(("k", "int"), ("start", "time"), ("n", "int"), ("total", "double"), ("mean", "double")),
    check_epochs=9,
    decided="epoch_us(start) + 60000000 <= {cut}",
)

WORKLOADS = (
    BASE,
    BASE.resized(rows=1_000_000, epochs=32).named(
        "sliding_aggregate_1m", "the same stream in 1M-row epochs", quick_epochs=5, warmup=10, check_epochs=3
    ),
)
