"""Two streams joined on a key within 60 seconds either way: 10,000 rows a second, 300,000 keys, 2 matches a row."""

from __future__ import annotations

from bench.workload import Kind, Quarters, Stream, Uniform, Workload

KEYS = 300_000
COLUMNS = (("k", Uniform(KEYS)), ("v", Quarters()))

SPARK = """
SELECT l.k AS k, l.ts AS lts, r.ts AS rts, l.v AS lv, r.v AS rv
FROM l JOIN r
  ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 60 SECONDS AND l.ts + INTERVAL 60 SECONDS
"""
DUCKDB = SPARK  # the same text means the same in both
OUTPUT: tuple[tuple[str, Kind], ...] = (
    ("k", "int"),
    ("lts", "time"),
    ("rts", "time"),
    ("lv", "double"),
    ("rv", "double"),
)

BASE = Workload(
    name="interval_join_100k",
    family="interval_join",
    about="join on 300k keys within 60 s either way, 100k-row epochs",
    streams=(Stream("l", 50_000, COLUMNS), Stream("r", 50_000, COLUMNS)),
    epoch_seconds=10,
    epochs=60,
    quick_epochs=10,
    warmup=20,  # state is full once 60 s and the epoch that moves the watermark have passed
    sql=SPARK,
    duckdb_sql=DUCKDB,
    output=OUTPUT,
)

WORKLOADS = (
    BASE,
    BASE.resized(rows=800_000, epochs=16).named(
        "interval_join_800k", "the same stream in 800k-row epochs", quick_epochs=4, warmup=5, check_epochs=3
    ),
)
