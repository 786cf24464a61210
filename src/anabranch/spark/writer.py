"""`flow.writeStream`: the names of PySpark's DataStreamWriter, as far as they make sense here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from anabranch.errors import SettingError, SinkError, UnsupportedQuery
from anabranch.settings import duration_us, nearest, parse, refuse_misspelt
from anabranch.spark import sinks
from anabranch.spark.sinks.files import FORMATS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from anabranch.spark.flow import Flow
    from anabranch.spark.query import ContinuousQuery

OTHERS = ("foreachBatch", "memory", "console", "noop")


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
                f"output mode {outputMode!r} is not supported", where=".outputMode(...)",
                fix="use 'append': rows are emitted once, when they are final",
            )  # fmt: skip
        return self

    def queryName(self, queryName: str) -> FlowWriter:
        self._name = queryName
        return self

    def partitionBy(self, *cols: str | Sequence[str]) -> FlowWriter:
        """Sub-folders by these columns (file sinks)."""
        self._partition_by = tuple(c for col in cols for c in ([col] if isinstance(col, str) else col))
        return self

    def trigger(
        self, *, processingTime: str | None = None, availableNow: bool | None = None, once: bool | None = None,
        continuous: str | None = None, realTime: str | None = None,
    ) -> FlowWriter:  # fmt: skip
        """As in Spark: every so often (default: at once), or what there is and then stop."""
        if continuous or realTime:
            raise UnsupportedQuery("only micro-batch triggers are supported", where=".trigger(...)",
                                   fix="use processingTime='1 second' or availableNow=True")  # fmt: skip
        given = {"processingTime": processingTime, "availableNow": availableNow, "once": once}
        self._trigger = {k: v for k, v in given.items() if v is not None and v is not False}
        if len(self._trigger) != 1:
            raise SettingError("trigger takes exactly one of processingTime, availableNow and once",
                               where=".trigger(...)", fix="e.g. .trigger(availableNow=True)")  # fmt: skip
        if processingTime is not None and duration_us(str(processingTime), "processingTime") < 0:
            raise SettingError("processingTime is negative", where=f"processingTime={processingTime!r}")
        return self

    def foreachBatch(self, func: Callable[[DataFrame, int], object]) -> FlowWriter:
        """func(rows, epoch) for every epoch; a repeated epoch number means the same rows again."""
        if not callable(func):
            raise SinkError(f"foreachBatch takes a function, not a {type(func).__name__}",
                            fix="def write(rows, epoch): ...")  # fmt: skip
        self._function = func
        return self

    def start(
        self, path: str | None = None, format: str | None = None, outputMode: str | None = None,
        partitionBy: str | Sequence[str] | None = None, queryName: str | None = None, **options: Any,
    ) -> ContinuousQuery:  # fmt: skip
        """Check everything, then start."""
        if outputMode is not None:
            self.outputMode(outputMode)
        if partitionBy is not None:
            self.partitionBy(*([partitionBy] if isinstance(partitionBy, str) else partitionBy))
        self._format = format.lower() if format is not None else self._format
        self._name = queryName if queryName is not None else self._name
        self.options(**options)
        return self._start(lambda rest: self._sink(rest, path))

    def toTable(self, tableName: str) -> ContinuousQuery:
        """Append to a table of the catalog, which is created when it is missing."""
        return self._start(lambda rest: sinks.TableSink(tableName, self._format, rest, self._partition_by))

    def _start(self, make: Callable[[dict[str, str]], sinks.Sink]) -> ContinuousQuery:
        from anabranch.spark.query import ContinuousQuery

        settings, rest = parse(self._options, self._conf())
        location = self._take(rest, "checkpointLocation")
        return ContinuousQuery.start(self._flow, make(rest), settings, location, self._name, self._trigger)

    def _sink(self, rest: dict[str, str], path: str | None) -> sinks.Sink:
        """The sink by its name; what is left of the options is its own."""
        folder = path or self._take(rest, "path")
        format = "foreachBatch" if self._function else (self._format or "parquet")
        if format in FORMATS:
            refuse_misspelt(rest, format, (), open_ended=True)
            if not folder:
                raise SinkError(
                    f"format {format!r} needs a folder", fix=".option('path', 'folder') or .start('folder')"
                )
            return sinks.FileSink(folder, format, rest, self._partition_by)
        if format not in OTHERS:
            known = ", ".join((*FORMATS, *OTHERS[1:]))
            near = nearest(format, (*FORMATS, *OTHERS), 0.6)
            hint = f"did you mean {near!r}? " if near else ""
            raise SinkError(
                f"there is no output format {format!r}", where=".format(...)",
                fix=f"{hint}use one of {known}; .toTable(...) for Delta; .foreachBatch(...) for anything else",
            )  # fmt: skip
        if self._partition_by:
            raise SinkError(f"partitionBy means nothing to {format}", where=".partitionBy(...)", fix="leave it out")
        refuse_misspelt(rest, format, ("numRows", "truncate") if format == "console" else (), open_ended=False)
        if self._function:
            return sinks.ForeachBatchSink(self._function)
        if format == "memory":
            if not self._name:
                raise SinkError("the memory sink needs a name for its view", fix=".queryName('name')")
            return sinks.MemorySink(self._name)
        if format == "console":
            rows = self._take(rest, "numRows") or "20"
            if not rows.isdigit():
                raise SettingError(f"option numRows has the value {rows!r}", fix="write it like numRows=20")
            return sinks.ConsoleSink(int(rows), self._take(rest, "truncate") != "false")
        return sinks.NoopSink()

    def _conf(self) -> dict[str, str]:
        conf: Any = self._flow.session.conf.getAll
        return dict(conf)

    @staticmethod
    def _take(options: dict[str, str], name: str) -> str | None:
        for key in list(options):
            if key.lower() == name.lower():
                return options.pop(key)
        return None
