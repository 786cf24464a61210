"""A skewed stream joined with a ten times slower one, beside the uniform case.

The slow stream is uniform in both, so a fast row meets the same number of slow rows on average whatever its key:
the two workloads have the same expected output, and what differs is only where the load falls. The hot keys move.
"""

from __future__ import annotations

from dataclasses import replace

from bench.workload import Quarters, Stream, Uniform, Workload, Zipf

KEYS = 30_000
SLOW = Stream("slow", 10_000, (("k", Uniform(KEYS)), ("v", Quarters())))

SPARK = """
SELECT f.k AS k, f.ts AS fts, s.ts AS sts, f.v AS fv, s.v AS sv
FROM fast f JOIN slow s
  ON f.k = s.k AND s.ts BETWEEN f.ts - INTERVAL 60 SECONDS AND f.ts
"""

UNIFORM = Workload(
    name="uniform_join",
    family="zipf_join",
    about="uniform stream with a 10x slower one, 110k-row epochs",
    streams=(Stream("fast", 100_000, (("k", Uniform(KEYS)), ("v", Quarters()))), SLOW),
    epoch_seconds=10,
    epochs=60,
    quick_epochs=10,
    warmup=20,
    sql=SPARK,
    duckdb_sql=SPARK,
    output=(("k", "int"), ("fts", "time"), ("sts", "time"), ("fv", "double"), ("sv", "double")),
)
SKEWED = Stream("fast", 100_000, (("k", Zipf(KEYS, 1.1, drift=KEYS // 7)), ("v", Quarters())))

WORKLOADS = (
    UNIFORM,
    replace(UNIFORM, name="zipf_join", about="drifting Zipf(1.1) stream with a 10x slower one", streams=(SKEWED, SLOW)),
)
