"""`format("memory")`: the rows so far as a temporary view, for looking at a query by hand and in tests.

The rows are kept in this process, as Spark's sink of that name does: no folder is left behind.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.errors import SinkError
from anabranch.query.tokens import tokenise
from anabranch.spark.sinks.base import Sink


class MemorySink(Sink):
    """A view named after the query, replaced after every epoch that has rows."""

    name = "memory"

    def __init__(self, view: str) -> None:
        self.view = view
        self.tables: dict[int, pa.Table] = {}  # epoch -> its rows
        self.session: SparkSession | None = None
        self.schema: StructType | None = None

    def describe(self) -> str:
        return f"memory[{self.view}]"

    def check(self, session: SparkSession, schema: StructType) -> None:
        tokens = tokenise(self.view)
        if len(tokens) != 1 or not tokens[0].is_name:
            raise SinkError(
                f"the memory sink's view cannot be called {self.view!r}",
                where=".queryName(...)",
                fix="use one plain word, such as 'results'",
            )

    def start(self, session: SparkSession, schema: StructType, first_epoch: int, checkpoint: str) -> None:
        if first_epoch > 0:
            raise SinkError(
                "the memory sink cannot take up an old checkpoint: its rows are gone",
                where=self.describe(),
                fix="start with a new checkpointLocation, or write to files",
            )
        self.session, self.schema = session, schema
        session.createDataFrame([], schema).createOrReplaceTempView(self.view)

    def write(self, rows: DataFrame, epoch: int) -> None:
        found = rows.toArrow()
        assert self.session is not None
        assert self.schema is not None
        if found.num_rows:
            self.tables[epoch] = found
            whole = self.session.createDataFrame(pa.concat_tables(self.tables.values()), self.schema)
            whole.createOrReplaceTempView(self.view)
