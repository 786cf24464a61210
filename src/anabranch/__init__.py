"""Anabranch: continuous queries on Apache Spark whose state moves while they run, with exactly Spark's batch answers.

    import anabranch as ab

    calls = ab.stream(spark.readStream..., "calls", event_time="ts", delay="10 seconds")
    flow = ab.sql("SELECT ... FROM calls ...", calls=calls)
    query = flow.writeStream.format("parquet").option("path", "out").option("checkpointLocation", "ckpt").start()

Importing this loads neither Spark nor DuckDB; each name does when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anabranch import errors
    from anabranch.spark.api import sql, stream, window
    from anabranch.spark.flow import Flow
    from anabranch.spark.query import ContinuousQuery
    from anabranch.spark.session import session

__version__ = "0.1.0"
__all__ = ["ContinuousQuery", "Flow", "errors", "session", "sql", "stream", "window"]

_WHERE = {
    "ContinuousQuery": "anabranch.spark.query",
    "Flow": "anabranch.spark.flow",
    "session": "anabranch.spark.session",
    "sql": "anabranch.spark.api",
    "stream": "anabranch.spark.api",
    "window": "anabranch.spark.api",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("anabranch.errors")
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'anabranch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
