"""For every row the average of its key's last 100 rows: 10,000 rows a second, 1,000 keys. Spark refuses it on a stream.

`id` breaks ties of the event time, so that the answer is one. Rows are final once the watermark has passed them.
"""

from __future__ import annotations

from bench.workload import Quarters, Stream, Uniform, Workload

SPARK = """
SELECT k, ts, id, avg(v) OVER (PARTITION BY k ORDER BY ts, id ROWS BETWEEN 99 PRECEDING AND CURRENT ROW) AS mean
FROM s
"""

WORKLOADS = (
    Workload(
        name="last_100_average",
        family="last_100_average",
        about="average of the key's last 100 rows for every row, 1,000 keys, 100k-row epochs",
        streams=(Stream("s", 100_000, (("k", Uniform(1000)), ("id", Uniform(1 << 40)), ("v", Quarters()))),),
        epoch_seconds=10,
        epochs=60,
        quick_epochs=10,
        sql=SPARK,
        duckdb_sql=SPARK,
        output=(("k", "int"), ("ts", "time"), ("id", "int"), ("mean", "double")),
        decided="epoch_us(ts) <= {cut}",
        spark=False,
    ),
)
