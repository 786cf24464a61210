"""Spark's own streaming: the workload's SQL over streaming views, drained with one file per stream and epoch.

All results go to the `noop` sink, which takes every row and keeps none. Anabranch's runs use the same session,
sources and sink from here.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anabranch.spark.compat import checkpoint_files
from bench.engines import engine
from bench.engines.job import Job, Outcome, from_progress
from bench.workload import Workload

CORES = 2


def run(job: Job) -> Outcome:
    spark = session(job)
    workload = job.load()
    for name, df in streams(spark, workload, job).items():
        df.withWatermark("ts", "0 seconds").createOrReplaceTempView(name)
    return drain(spark.sql(workload.spark_sql or workload.sql).writeStream, job, spark)


def session(job: Job) -> SparkSession:
    """The same for every engine on Spark: cores, memory, two shuffle partitions, the faster way to write offsets and
    commits, nothing on screen."""
    conf = {
        "spark.driver.memory": job.memory,
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.pyspark.python": sys.executable,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": job.scratch,
        "spark.sql.warehouse.dir": str(Path(job.scratch) / "warehouse"),
    }
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("bench")
    for key, value in (conf | dict(engine(job.engine).conf)).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for key, value in checkpoint_files(spark).items():
        spark.conf.set(key, value)
    return spark


def streams(spark: SparkSession, workload: Workload, job: Job) -> dict[str, DataFrame]:
    """One streaming DataFrame for each stream, one file an epoch."""
    out: dict[str, DataFrame] = {}
    for stream in workload.streams:
        folder = str(Path(job.data) / stream.name)
        schema = spark.read.parquet(folder).schema
        out[stream.name] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    return out


def drain(writer: Any, job: Job, spark: SparkSession) -> Outcome:
    """Run a query to the end of its files; `writer` is Spark's or Anabranch's, which look the same."""
    checkpoint = str(Path(job.scratch) / "checkpoint")
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer = writer.format("parquet").option("path", job.output) if job.output else writer.format("noop")
    began = time.perf_counter()
    query = writer.start()
    query.awaitTermination()
    total = time.perf_counter() - began
    epochs = from_progress([as_dict(p) for p in query.recentProgress])
    return Outcome(epochs, total, sum(e.rows for e in epochs), versions={"spark": spark.version})


def as_dict(progress: Any) -> dict[str, Any]:
    """A progress report as a plain dict, whichever of the two engines made it."""
    text = getattr(progress, "json", None)
    return dict(progress) if text is None else json.loads(text() if callable(text) else text)
