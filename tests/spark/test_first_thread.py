"""The vertical thread: SQL in, epochs through Spark, state on disk, exact rows out."""

from __future__ import annotations

import pytest

import anabranch as ab

pytestmark = pytest.mark.spark


def test_a_join_gives_the_rows_of_spark_batch(spark, tmp_path):
    rows = [(i % 7, 1000.0 + i) for i in range(60)]
    for name in ("l", "r"):
        spark.createDataFrame(rows, "k INT, s DOUBLE").selectExpr("k", "timestamp_seconds(s) AS ts").write.parquet(
            str(tmp_path / name)
        )
    streams = {
        n: ab.stream(spark.readStream.schema("k INT, ts TIMESTAMP").parquet(str(tmp_path / n)), n, event_time="ts")
        for n in ("l", "r")
    }
    text = """SELECT l.k, l.ts AS a, r.ts AS b FROM l JOIN r
              ON l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 9 SECONDS AND l.ts"""
    query = (
        ab.sql(text, **streams)
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "ckpt"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    for n in ("l", "r"):
        spark.read.parquet(str(tmp_path / n)).createOrReplaceTempView(n)
    want = sorted(map(tuple, spark.sql(text).collect()))
    got = sorted(map(tuple, spark.read.parquet(str(tmp_path / "out")).collect()))
    assert len(want) > 60
    assert got == want
