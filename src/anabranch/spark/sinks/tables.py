"""`toTable`: a table of the catalog, of files in a folder or of Delta, created when it is missing."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.errors import SinkError
from anabranch.query.tokens import quote
from anabranch.spark.sinks.base import Sink
from anabranch.spark.sinks.files import FORMATS, FileSink, check_columns

PROVIDERS = (*FORMATS, "delta")


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


class TableSink(Sink):
    """Finds or makes the table, and writes as its provider demands."""

    name = "table"

    def __init__(self, table: str, format: str | None, options: dict[str, str], partition_by: tuple[str, ...]) -> None:
        self.table = table
        self.format = format
        self.options = options
        self.partition_by = partition_by
        self.session: SparkSession | None = None
        self.inner: Sink | None = None

    def describe(self) -> str:
        return f"table[{self.table}]"

    def check(self, session: SparkSession, schema: StructType) -> None:
        wanted = self.format or "parquet"
        if wanted not in PROVIDERS:
            raise SinkError(
                f"there is no table format {wanted!r}", where=self.describe(), fix=f"use one of {', '.join(PROVIDERS)}"
            )
        check_columns(schema, wanted, self.partition_by, self.describe())
        if session.catalog.tableExists(self.table):
            self._check_existing(session, schema)

    def _check_existing(self, session: SparkSession, schema: StructType) -> None:
        told, partitions = described(session, self.table)
        provider = str(told.get("Provider", "")).lower()
        if provider not in PROVIDERS:
            raise SinkError(
                f"table {self.table} is {f'stored as {provider}' if provider else 'a view'}, "
                "which cannot be appended to exactly once",
                where=self.describe(),
                fix=f"use a table of {', '.join(PROVIDERS)}, or foreachBatch with the epoch number",
            )
        if self.format is not None and self.format != provider:
            raise SinkError(
                f"table {self.table} is stored as {provider}, not as {self.format}",
                where=self.describe(),
                fix=f"leave .format(...) out, or use .format({provider!r})",
            )
        if self.partition_by and list(partitions) != [c.lower() for c in self.partition_by]:
            raise SinkError(
                f"table {self.table} is partitioned by {', '.join(partitions) or 'nothing'}, "
                f"not by {', '.join(self.partition_by)}",
                where=self.describe(),
                fix="leave .partitionBy(...) out",
            )
        has = {f.name.lower(): f.dataType.simpleString() for f in session.table(self.table).schema.fields}
        gives = {f.name.lower(): f.dataType.simpleString() for f in schema.fields}
        if has != gives:
            raise SinkError(
                f"table {self.table} has other columns than the output",
                where=f"the table: {columns(has)}; the output: {columns(gives)}",
                fix="select the table's columns under their names, with CAST where types differ",
            )

    def start(self, session: SparkSession, schema: StructType, first_epoch: int, checkpoint: str) -> None:
        if not session.catalog.tableExists(self.table):
            listed = ", ".join(f"{quote(f.name)} {f.dataType.simpleString()}" for f in schema.fields)
            by = f" PARTITIONED BY ({', '.join(map(quote, self.partition_by))})" if self.partition_by else ""
            session.sql(f"CREATE TABLE {self.table} ({listed}) USING {self.format or 'parquet'}{by}")
        told, partitions = described(session, self.table)
        provider = str(told["Provider"]).lower()
        self.session = session
        if provider == "delta":
            self.inner = DeltaSink(self.table, self.options)
        else:
            self.inner = FileSink(str(told["Location"]), provider, self.options, tuple(partitions))
        self.inner.start(session, schema, first_epoch, checkpoint)

    def write(self, rows: DataFrame, epoch: int) -> None:
        assert self.inner is not None
        assert self.session is not None
        self.inner.write(rows, epoch)
        self.session.catalog.refreshTable(self.table)  # or its readers go by the files that they knew

    def stop(self) -> None:
        if self.inner is not None:
            self.inner.stop()


def described(session: SparkSession, table: str) -> tuple[dict[str, Any], list[str]]:
    """Facts about a table, and its partition columns in order, lower case."""
    rows = [(r["col_name"], r["data_type"]) for r in session.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()]
    names = [name for name, _ in rows]
    partitions: list[str] = []
    if "# Partition Information" in names:
        for name in names[names.index("# Partition Information") + 2 :]:
            if not name or name.startswith("#"):
                break
            partitions.append(str(name).lower())
    return dict(rows), partitions


def columns(types: dict[str, str]) -> str:
    return ", ".join(f"{name} {type}" for name, type in types.items())
