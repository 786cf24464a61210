"""Where an epoch's rows go. A sink runs the epoch's one action and honours the epoch's number."""

from anabranch.spark.sinks.base import Sink
from anabranch.spark.sinks.calls import ConsoleSink, ForeachBatchSink, NoopSink
from anabranch.spark.sinks.files import FileSink
from anabranch.spark.sinks.memory import MemorySink
from anabranch.spark.sinks.tables import TableSink

__all__ = ["ConsoleSink", "FileSink", "ForeachBatchSink", "MemorySink", "NoopSink", "Sink", "TableSink"]
