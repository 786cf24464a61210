"""Sinks that hand the rows to somebody: a user's function, the terminal, nobody."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from anabranch.spark.sinks.base import Sink


class ForeachBatchSink(Sink):
    """`foreachBatch(f)`: f(rows, epoch). Exactly-once when f honours the epoch number, at-least-once otherwise."""

    name = "foreachBatch"
    reads_often = True

    def __init__(self, function: Callable[[DataFrame, int], object]) -> None:
        self.function = function

    def write(self, rows: DataFrame, epoch: int) -> None:
        self.function(rows, epoch)


class NoopSink(Sink):
    """Computes everything and keeps nothing."""

    name = "noop"

    def write(self, rows: DataFrame, epoch: int) -> None:
        rows.write.format("noop").mode("overwrite").save()


class ConsoleSink(Sink):
    """Prints the rows of every epoch that has some."""

    name = "console"
    reads_often = True

    def __init__(self, rows: int = 20, truncate: bool = True) -> None:
        self.rows = rows
        self.truncate = truncate

    def write(self, rows: DataFrame, epoch: int) -> None:
        if rows.isEmpty():
            return
        print(
            f"-------------------------------------------\nEpoch: {epoch}\n-------------------------------------------"
        )
        rows.show(self.rows, truncate=self.truncate)
