"""Rows of a test as Arrow tables and DataFrames, with exactly the types that were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.spark import compat
from anabranch.testing.script import Row


def schema_of(ddl: str) -> StructType:
    schema = StructType.fromDDL(ddl)
    assert isinstance(schema, StructType)
    return schema


def table(ddl: str, rows: Sequence[Row]) -> pa.Table:
    """An Arrow table in Spark's types; timestamps may be given as microseconds."""
    schema = compat.arrow_schema(schema_of(ddl))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def frame(session: SparkSession, ddl: str, rows: Sequence[Row]) -> DataFrame:
    return session.createDataFrame(table(ddl, rows), schema_of(ddl))


def rows_of(arrow: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples of Python values."""
    return list(zip(*(c.to_pylist() for c in arrow.columns), strict=True)) if arrow.num_columns else []
