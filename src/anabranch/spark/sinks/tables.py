"""Tables by name: `toTable` in the catalog, `memory` as a temporary view of this session."""

from __future__ import annotations

import shutil
import tempfile

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.errors import SinkError
from anabranch.spark.sinks.base import Sink
from anabranch.spark.sinks.files import FORMATS, FileSink


class MemorySink(Sink):
    """`format("memory")`: a temporary view named after the query, for as long as the process lives."""

    name = "memory"

    def __init__(self, view: str) -> None:
        self.view = view
        self.folder = tempfile.mkdtemp(prefix="anabranch-memory-")
        self.files = FileSink(self.folder)
        self.session: SparkSession | None = None
        self.schema: StructType | None = None

    def start(self, session: SparkSession, schema: StructType, first_epoch: int, checkpoint: str) -> None:
        if first_epoch > 0:
            raise SinkError(
                "the memory sink cannot take up an old checkpoint: its rows are gone",
                fix="start with a new checkpointLocation, or write to files",
            )
        self.session, self.schema = session, schema
        self.files.start(session, schema, first_epoch, checkpoint)
        session.createDataFrame([], schema).createOrReplaceTempView(self.view)

    def write(self, rows: DataFrame, epoch: int) -> None:
        self.files.write(rows, epoch)
        assert self.session is not None
        assert self.schema is not None
        if self.files.count:
            self.session.read.schema(self.schema).parquet(self.folder).createOrReplaceTempView(self.view)

    def stop(self) -> None:
        self.files.stop()

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class DeltaSink(Sink):
    """A Delta table: exactly-once by its transaction identifiers, the checkpoint's and the epoch's."""

    name = "delta"

    def __init__(self, table: str, options: dict[str, str]) -> None:
        self.table = table
        self.options = options
        self.application = ""

    def start(self, session: SparkSession, schema: StructType, first_epoch: int, checkpoint: str) -> None:
        self.application = checkpoint

    def write(self, rows: DataFrame, epoch: int) -> None:
        writer = rows.write.format("delta").mode("append").options(**self.options)
        writer.option("txnAppId", self.application).option("txnVersion", str(epoch)).saveAsTable(self.table)


def table_sink(
    session: SparkSession, table: str, schema: StructType, format: str | None, options: dict[str, str],
    partition_by: tuple[str, ...],
) -> Sink:  # fmt: skip
    """The sink for a table, which is created (parquet unless told) when it is missing."""
    if not session.catalog.tableExists(table):
        session.catalog.createTable(table, source=format or "parquet", schema=schema)
    told = {row["col_name"]: row["data_type"] for row in session.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}
    provider = str(told.get("Provider", "")).lower()
    if provider == "delta":
        return DeltaSink(table, options)
    if provider not in FORMATS:
        raise SinkError(
            f"table {table} is stored as {provider or 'a view'}, which cannot be appended to exactly once",
            fix=f"use a table of {', '.join(FORMATS)} or delta, or foreachBatch with the epoch number",
        )
    return FileSink(str(told["Location"]), provider, options, partition_by)
