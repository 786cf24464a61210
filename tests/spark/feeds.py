"""What the API tests read: small files of calls, reports and prices, and a run of a flow to its last row."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import anabranch as ab

START = 1_767_225_600_000_000  # 2026-01-01 00:00:00 UTC
SECOND = 1_000_000
CALLS = "phone INT, ts TIMESTAMP, duration INT, city STRING, info STRUCT<a: INT, b: ARRAY<INT>>, `my col` DOUBLE"
REPORTS = "phone INT, ts TIMESTAMP, level INT"
PRICES = [("a", 3, "north"), ("b", 5, "south"), ("d", 7, "north")]
_TIME = pa.timestamp("us", tz="UTC")
_INFO = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int32()))])


def call(n: int) -> dict[str, Any]:
    """Call n: every 7 s, with a little disorder, some NULLs, cities a to c."""
    return {
        "phone": n % 5 if n % 11 else None,
        "ts": START + (7 * n + (n % 3) * 4) * SECOND,
        "duration": (n * 37) % 101 - 3,
        "city": "abc"[n % 3] if n % 7 else None,
        "info": {"a": n, "b": [n, n % 4]},
        "my col": n / 4,
    }


def report(n: int) -> dict[str, Any]:
    return {"phone": n % 6, "ts": START + (11 * n + 2) * SECOND, "level": n % 4}


_CALLS = pa.schema(
    [("phone", pa.int32()), ("ts", _TIME), ("duration", pa.int32()), ("city", pa.string()), ("info", _INFO),
     ("my col", pa.float64())]
)  # fmt: skip
_REPORTS = pa.schema([("phone", pa.int32()), ("ts", _TIME), ("level", pa.int32())])
TABLES = {"calls": (call, _CALLS, CALLS), "reports": (report, _REPORTS, REPORTS)}


def write(folder: Path, name: str, first: int, last: int) -> None:
    """One more file with rows first to last - 1."""
    make, schema, _ = TABLES[name]
    (folder / name).mkdir(parents=True, exist_ok=True)
    aside = folder / name / f".{first:06d}"
    pq.write_table(pa.Table.from_pylist([make(n) for n in range(first, last)], schema), aside)
    os.utime(aside, (first, first))  # files are read in this order
    aside.rename(folder / name / f"{first:06d}.parquet")


def fill(folder: Path, calls: int = 60, reports: int = 40) -> Path:
    """Both streams, in two files each."""
    for name, rows in (("calls", calls), ("reports", reports)):
        write(folder, name, 0, rows // 2)
        write(folder, name, rows // 2, rows)
    return folder


def stream(spark: Any, folder: Path, name: str, **how: Any) -> Any:
    """The stream of that folder; event time `ts`, 10 s of delay."""
    files = how.pop("files", 1000)  # per epoch
    df = spark.readStream.schema(TABLES[name][2]).option("maxFilesPerTrigger", files).parquet(str(folder / name))
    return ab.stream(df, name, **{"event_time": "ts", "delay": "10 seconds", **how})


def prices(spark: Any) -> Any:
    return spark.createDataFrame(PRICES, "city STRING, price INT, region STRING")


def run(flow: Any, **options: Any) -> list[Any]:
    """Every row that the flow gives over what is there now, final windows included."""
    rows: list[Any] = []
    writer = flow.writeStream.foreachBatch(lambda df, epoch: rows.extend(df.collect()))
    query = writer.options(**{"flushAtEnd": True, "sites": 2, **options}).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows


def multiset(rows: list[Any]) -> Counter[str]:
    """Rows that can be compared whatever is in them."""
    return Counter(repr(tuple(row)) for row in rows)


def batch(spark: Any, folder: Path, name: str) -> Any:
    """The same rows as a batch DataFrame."""
    return spark.read.schema(TABLES[name][2]).parquet(str(folder / name))


def assert_equal(flow: Any, want: Any, **options: Any) -> list[Any]:
    """The flow gives the batch DataFrame's rows, columns and types; the rows."""
    assert flow.schema.simpleString() == want.schema.simpleString()
    rows = run(flow, **options)
    assert multiset(rows) == multiset(want.collect())
    return rows
