"""What an epoch costs before its rows count: flows of one, two and three subqueries over an empty `foreachBatch`.

All of them read the same two streams of 500 rows an epoch. They take turns in one process, since the machine's own
noise between processes is larger than the difference that is measured.
"""

from __future__ import annotations

from bench.workload import Quarters, Stream, Uniform, Workload

COLUMNS = (("k", Uniform(1000)), ("g", Uniform(50)), ("v", Quarters()))

ONE = """
SELECT a.k AS k, a.g AS g, a.ts AS ts, a.v AS v
FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 10 SECONDS
"""
TWO = f"SELECT g, window, count(*) AS n, sum(v) AS total FROM ({ONE}) GROUP BY g, window(ts, '10 seconds')"
THREE = f"SELECT h, window, sum(n) AS n, max(total) AS most FROM (SELECT g % 7 AS h, window, n, total FROM ({TWO})) \
GROUP BY h, window"

WORKLOADS = (
    Workload(
        name="fixed_cost",
        family="fixed_cost",
        about="epoch time over an empty foreachBatch, 1k-row epochs",
        streams=(Stream("a", 500, COLUMNS), Stream("b", 500, COLUMNS)),
        epoch_seconds=10,
        epochs=20,
        quick_epochs=10,
        warmup=5,
        sql=ONE,
        duckdb_sql=ONE,
        output=(("k", "int"), ("g", "int"), ("ts", "time"), ("v", "double")),
        spark=False,
        mode="fixed_cost",
        variants=(("empty", ""), ("1 subquery", ONE), ("2 subqueries", TWO), ("3 subqueries", THREE)),
    ),
)
