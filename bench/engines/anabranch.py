"""Anabranch: the same SQL text, files, session, trigger and sink as Spark's own streaming.

Three ways to run: drain a workload; drain it while watching the checkpoint (steady); take turns with flows of more
and more subqueries and an empty `foreachBatch` (fixed cost).
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.engines import spark as native
from bench.engines.job import Epoch, Job, Outcome, from_progress

SITES = native.CORES
OF_SPARK = frozenset({"offsets", "commits", "sources", "metadata"})  # Spark's own part of a checkpoint


def run(job: Job) -> Outcome:
    spark = native.session(job)
    match job.load().mode:
        case "fixed_cost":
            return fixed_cost(spark, job)
        case "steady":
            return steady(spark, job)
        case _:
            return native.drain(writer(spark, job, job.load().sql), job, spark)


def writer(spark: SparkSession, job: Job, sql: str) -> Any:
    import anabranch as ab

    sources = native.streams(spark, job.load(), job)
    named = {name: ab.stream(df, name, event_time="ts", delay="0 seconds") for name, df in sources.items()}
    return ab.sql(sql, **named).writeStream.option("sites", SITES)


def steady(spark: SparkSession, job: Job) -> Outcome:
    """Drain, and count what lies in the checkpoint once a second: (seconds, files and bytes of ours, of Spark's)."""
    checkpoint = Path(job.scratch) / "checkpoint"
    done = threading.Event()
    samples: list[tuple[float, int, int, int]] = []

    def watch() -> None:
        began = time.perf_counter()
        while not done.wait(1.0):
            samples.append((time.perf_counter() - began, *census(checkpoint)))

    watcher = threading.Thread(target=watch, name="census")
    watcher.start()
    try:
        outcome = native.drain(writer(spark, job, job.load().sql), job, spark)
    finally:
        done.set()
        watcher.join()
    outcome.extra["checkpoint"] = samples
    return outcome


def census(checkpoint: Path) -> tuple[int, int, int]:
    """Files and bytes of Anabranch's, files of Spark's. A file may vanish under our eyes: it does not count then."""
    files = size = theirs = 0
    for path in checkpoint.rglob("*"):
        try:
            if not path.is_file():
                continue
            if path.relative_to(checkpoint).parts[0] in OF_SPARK:
                theirs += 1
            else:
                files += 1
                size += path.stat().st_size
        except FileNotFoundError:
            continue
    return files, size, theirs


def fixed_cost(spark: SparkSession, job: Job) -> Outcome:
    """Median epoch of each variant, over rounds in which they take turns; the first round only warms up."""
    workload = job.load()
    times: dict[str, list[float]] = {label: [] for label, _ in workload.variants}
    for turn in range(job.rounds + 1):
        for index, (label, sql) in enumerate(workload.variants):
            here = replace(job, scratch=str(Path(job.scratch) / f"{turn}-{index}"))
            epochs = native.drain(writer(spark, here, sql), here, spark).epochs if sql else empty(spark, here)
            if turn:
                times[label] += [e.ms for e in epochs[workload.dropped :]]
    medians = {label: median(ms) for label, ms in times.items()}
    return Outcome(extra={"median_ms": medians, "epoch_ms": times}, versions={"spark": spark.version})


def empty(spark: SparkSession, job: Job) -> list[Epoch]:
    """The floor: the same sources, united as one query must unite them, and a function that does nothing."""

    def nothing(df: DataFrame, epoch: int) -> None:
        pass

    first, *rest = native.streams(spark, job.load(), job).values()
    for other in rest:
        first = first.unionByName(other)
    checkpoint = str(Path(job.scratch) / "checkpoint")
    started = first.writeStream.foreachBatch(nothing).option("checkpointLocation", checkpoint)
    query = started.trigger(availableNow=True).start()
    query.awaitTermination()
    # A function that reads nothing makes Spark report no rows: count every batch that ran the function.
    progress = [native.as_dict(p) for p in query.recentProgress]
    return from_progress([p | {"numInputRows": 1} for p in progress if "addBatch" in p["durationMs"]])
