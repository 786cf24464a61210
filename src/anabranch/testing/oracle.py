"""Spark batch on the same SQL: what every run is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from anabranch.spark import compat
from anabranch.testing import tables
from anabranch.testing.script import Row, Static, Stream


class BatchOracle:
    """Runs SQL over given rows in a session of its own; the views are the streams' and the static tables'."""

    def __init__(self, session: SparkSession) -> None:
        self.session = compat.plain_session(session)
        self.session.conf.set("spark.sql.adaptive.enabled", "false")  # tiny inputs: planning anew costs more

    def answer(
        self, sql: str, streams: Sequence[Stream], rows: Mapping[str, Sequence[Row]], statics: Sequence[Static] = ()
    ) -> tuple[pa.Table, StructType]:
        for stream in streams:
            self._view(stream.name, stream.ddl, rows.get(stream.name, ()))
        for static in statics:
            self._view(static.name, static.ddl, static.rows)
        frame = self.session.sql(sql)
        return frame.toArrow(), frame.schema

    def _view(self, name: str, ddl: str, rows: Sequence[Row]) -> None:
        tables.frame(self.session, ddl, rows).createOrReplaceTempView(name)
