"""The engines, as a table: which adapter runs, and what it is configured with. Best Spark is whichever is fastest.

Every Spark session gets the same memory, cores and shuffle partitions (`spark.py`); only these lines differ.
Join state format 4 (and 3) needs RocksDB's column families, so the heap store has no such variant.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.workload import Workload

ROCKSDB = (
    (
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    ),
    # The cheaper commit: a change log for each epoch instead of a snapshot.
    ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true"),
)


@dataclass(frozen=True)
class Engine:
    """One column of the comparison."""

    name: str
    adapter: str  # module in bench.engines
    conf: tuple[tuple[str, str], ...] = ()
    joins_only: bool = False

    def runs(self, workload: Workload) -> bool:
        if workload.mode != "drain":
            return self.adapter == "anabranch"
        if self.adapter == "spark":
            return workload.spark and (workload.joins or not self.joins_only)
        return True


ENGINES = (
    Engine("spark-heap", "spark"),
    Engine("spark-rocksdb", "spark", (*ROCKSDB, ("spark.sql.streaming.join.stateFormatVersion", "2"))),
    Engine("spark-rocksdb-v4", "spark", (*ROCKSDB, ("spark.sql.streaming.join.stateFormatVersion", "4")), True),
    Engine("duckdb", "duck"),
    # Core settings that Anabranch asks for; Spark's own streaming does not use Python workers nor anchors.
    Engine("anabranch", "anabranch", (("spark.shuffle.reduceLocality.enabled", "false"),)),
)


def engine(name: str) -> Engine:
    """The engine of that name."""
    for known in ENGINES:
        if known.name == name:
            return known
    raise KeyError(name)
