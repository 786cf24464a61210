"""`flow.writeStream`: the names of PySpark's DataStreamWriter, as far as they make sense here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anabranch.errors import SettingError, SinkError, UnsupportedQuery
from anabranch.settings import parse
from anabranch.spark import sinks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from anabranch.spark.api import Flow
    from anabranch.spark.query import ContinuousQuery


class FlowWriter:
    """Built by `Flow.writeStream`; every setter returns the writer."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._format: str | None = None
        self._options: dict[str, str] = {}
        self._name: str | None = None
        self._trigger: dict[str, Any] = {}
        self._function: Callable[[DataFrame, int], object] | None = None
        self._partition_by: tuple[str, ...] = ()

    def format(self, source: str) -> FlowWriter:
        """'parquet', 'orc', 'json', 'csv', 'memory', 'console' or 'noop'."""
        self._format = source.lower()
        return self

    def option(self, key: str, value: Any) -> FlowWriter:
        """One option: of Anabranch (see docs/settings.md), else of the sink. Names are case-insensitive."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        self._options = {k: v for k, v in self._options.items() if k.lower() != key.lower()} | {key: text}
        return self

    def options(self, **options: Any) -> FlowWriter:
        for key, value in options.items():
            self.option(key, value)
        return self

    def outputMode(self, outputMode: str) -> FlowWriter:
        """Only 'append': every row is final when it is emitted."""
        if outputMode.lower() != "append":
            raise UnsupportedQuery(
                f"output mode {outputMode!r}", fix="use 'append': rows are emitted once, when they are final"
            )
        return self

    def queryName(self, queryName: str) -> FlowWriter:
        self._name = queryName
        return self

    def partitionBy(self, *cols: str) -> FlowWriter:
        """Sub-folders by these columns (file sinks)."""
        self._partition_by = cols
        return self

    def trigger(
        self, *, processingTime: str | None = None, availableNow: bool | None = None, once: bool | None = None
    ) -> FlowWriter:
        """As in Spark: every so often (default: at once), or what there is and then stop."""
        given = {"processingTime": processingTime, "availableNow": availableNow, "once": once}
        self._trigger = {k: v for k, v in given.items() if v}
        if len(self._trigger) != 1:
            raise SettingError("trigger takes exactly one of processingTime, availableNow and once")
        return self

    def foreachBatch(self, func: Callable[[DataFrame, int], object]) -> FlowWriter:
        """func(rows, epoch) for every epoch; a repeated epoch number means the same rows again."""
        self._function = func
        return self

    def start(self, path: str | None = None) -> ContinuousQuery:
        """Check everything, then start."""
        from anabranch.spark.query import ContinuousQuery

        settings, rest = parse(self._options, self._conf())
        location = self._take(rest, "checkpointLocation")
        format = "foreachBatch" if self._function else (self._format or "parquet")
        folder = path or self._take(rest, "path")
        sink: sinks.Sink
        if self._function:
            sink = sinks.ForeachBatchSink(self._function)
        elif format == "noop":
            sink = sinks.NoopSink()
        elif format == "console":
            sink = sinks.ConsoleSink(int(self._take(rest, "numRows") or 20), self._take(rest, "truncate") != "false")
        elif format == "memory":
            if not self._name:
                raise SinkError("the memory sink needs a name for its view", fix=".queryName('name')")
            sink = sinks.MemorySink(self._name)
        else:
            if not folder:
                raise SinkError(
                    f"format {format!r} needs a folder", fix=".option('path', 'folder') or .start('folder')"
                )
            sink = sinks.FileSink(folder, format, rest, self._partition_by)
        return ContinuousQuery.start(self._flow, sink, settings, location, self._name, self._trigger)

    def toTable(self, tableName: str) -> ContinuousQuery:
        """Append to a table of the catalog, which is created when it is missing."""
        from anabranch.spark.query import ContinuousQuery

        settings, rest = parse(self._options, self._conf())
        location = self._take(rest, "checkpointLocation")
        flow = self._flow
        sink = sinks.table_sink(flow.session, tableName, flow.schema, self._format, rest, self._partition_by)
        return ContinuousQuery.start(flow, sink, settings, location, self._name, self._trigger)

    def _conf(self) -> dict[str, str]:
        conf: Any = self._flow.session.conf.getAll
        return dict(conf)

    @staticmethod
    def _take(options: dict[str, str], name: str) -> str | None:
        for key in list(options):
            if key.lower() == name.lower():
                return options.pop(key)
        return None
