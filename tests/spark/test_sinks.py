"""Every sink gets every row once, and what Spark reads from it is whole epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.errors import SinkError
from tests.spark import feeds

pytestmark = pytest.mark.spark
PLAIN = ("phone", "ts", "duration", "city")


def finish(writer: Any, checkpoint: Path) -> Any:
    """One availableNow run to its end."""
    query = writer.option("checkpointLocation", str(checkpoint)).option("sites", 2).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


@pytest.fixture
def growing(tmp_path: Path) -> Path:
    """A folder of calls to which files can be added."""
    feeds.write(tmp_path / "feed", "calls", 0, 20)
    return tmp_path / "feed"


@pytest.mark.parametrize(
    ("format", "options", "suffix"),
    [
        ("parquet", {"compression": "zstd"}, ".zstd.parquet"),
        ("orc", {"compression": "snappy"}, ".snappy.orc"),
        ("json", {"compression": "gzip"}, ".json.gz"),
        ("csv", {"header": True, "SEP": ";"}, ".csv"),
    ],
)
def test_a_folder_of_files_holds_every_row_once_over_two_runs(
    spark: Any, growing: Path, tmp_path: Path, format: str, options: dict[str, Any], suffix: str
) -> None:
    flow = feeds.stream(spark, growing, "calls").select(*PLAIN)
    out = tmp_path / "out"
    for first in (20, 30):
        writer = flow.writeStream.format(format).options(**options).partitionBy("CITY")
        finish(writer.option("Path", str(out)), tmp_path / "checkpoint")
        feeds.write(growing, "calls", first, first + 10)
    read = spark.read.schema(flow.schema).options(**options).format(format).load(str(out))
    names = [str(growing / "calls" / f"{first:06d}.parquet") for first in (0, 20)]
    want = spark.read.schema(feeds.CALLS).parquet(*names).select(*PLAIN)
    assert feeds.multiset(read.select(*PLAIN).collect()) == feeds.multiset(want.collect())
    files = list(out.rglob("part-*"))
    assert files
    assert all(p.name.endswith(suffix) for p in files)
    assert {p.parent.name.partition("=")[0].lower() for p in files} == {"city"}
    assert not (out / "_anabranch_staging").exists()


def test_a_function_gets_epochs_in_order_and_rows_it_may_read_twice(spark: Any, growing: Path, tmp_path: Path) -> None:
    feeds.write(growing, "calls", 20, 30)
    seen: list[tuple[int, int, int]] = []

    def write(rows: Any, epoch: int) -> None:
        seen.append((epoch, rows.count(), len(rows.collect())))

    flow = feeds.stream(spark, growing, "calls", files=1).select("phone")
    finish(flow.writeStream.foreachBatch(write), tmp_path / "checkpoint")
    assert seen == [(0, 20, 20), (1, 10, 10)]


def test_an_error_in_the_function_stops_the_query_and_is_the_cause(spark: Any, growing: Path, tmp_path: Path) -> None:
    def write(rows: Any, epoch: int) -> None:
        raise RuntimeError("the database is gone")

    flow = feeds.stream(spark, growing, "calls").select("phone")
    with pytest.raises(ab.errors.QueryFailed, match="the database is gone") as caught:
        finish(flow.writeStream.foreachBatch(write), tmp_path / "checkpoint")
    assert len(str(caught.value).splitlines()) < 6


def test_the_memory_sink_is_a_view_that_outlives_the_query(spark: Any, growing: Path) -> None:
    feeds.write(growing, "calls", 20, 30)
    flow = feeds.stream(spark, growing, "calls", files=1)
    query = flow.writeStream.format("memory").queryName("seen").trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.name == "seen"
    want = feeds.batch(spark, growing, "calls").collect()
    assert feeds.multiset(spark.table("seen").collect()) == feeds.multiset(want)
    assert spark.table("seen").schema.simpleString() == flow.schema.simpleString()
    spark.catalog.dropTempView("seen")


def test_the_console_shows_the_rows_of_each_epoch(
    spark: Any, growing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = feeds.stream(spark, growing, "calls").select("city", "phone").where("phone = 1")
    finish(flow.writeStream.format("console").option("numrows", 2).option("truncate", False), tmp_path / "checkpoint")
    text = capsys.readouterr().out
    assert "Epoch: 0" in text
    assert "only showing top 2 rows" in text
    assert "|city|phone|" in text


def test_nothing_is_written_by_noop(spark: Any, growing: Path, tmp_path: Path) -> None:
    query = finish(feeds.stream(spark, growing, "calls").writeStream.format("NoOp"), tmp_path / "checkpoint")
    assert query.lastProgress["sink"] == {"description": "noop", "numOutputRows": 20}


def test_a_table_is_created_appended_to_and_read(spark: Any, growing: Path, tmp_path: Path) -> None:
    flow = feeds.stream(spark, growing, "calls").select(*PLAIN)
    try:
        for first in (20, 30):
            writer = (
                flow.writeStream.format("orc").partitionBy("city").option("checkpointLocation", str(tmp_path / "c"))
            )
            query = writer.trigger(availableNow=True).toTable("results")
            query.awaitTermination()
            count = spark.table("results").count()
            assert count == first
            feeds.write(growing, "calls", first, first + 10)
        told = {r["col_name"]: r["data_type"] for r in spark.sql("DESCRIBE TABLE EXTENDED results").collect()}
        assert told["Provider"].lower() == "orc"
        assert "# Partition Information" in told
        with pytest.raises(SinkError, match="has other columns"):
            flow.select("phone").writeStream.toTable("results")
        with pytest.raises(SinkError, match="stored as orc, not as parquet"):
            flow.writeStream.format("parquet").toTable("results")
        with pytest.raises(SinkError, match="partitioned by city, not by phone"):
            flow.writeStream.partitionBy("phone").toTable("results")
    finally:
        spark.sql("DROP TABLE IF EXISTS results")


def test_an_existing_table_is_used_and_a_wrong_provider_refused(spark: Any, growing: Path, tmp_path: Path) -> None:
    flow = feeds.stream(spark, growing, "calls").select("phone", "city")
    spark.sql("CREATE TABLE kept (phone INT, city STRING) USING json")
    try:
        writer = flow.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        writer.toTable("kept").awaitTermination()
        assert spark.table("kept").count() == 20
    finally:
        spark.sql("DROP TABLE kept")


@pytest.mark.parametrize("format", ["parquet", "table"])
def test_an_output_of_another_checkpoint_is_refused_and_nothing_appears(
    spark: Any, growing: Path, tmp_path: Path, format: str
) -> None:
    flow = feeds.stream(spark, growing, "calls").select("phone")
    out = str(tmp_path / "out")
    finish(flow.writeStream.format("parquet").option("path", out), tmp_path / "one")
    with pytest.raises(SinkError, match="belongs to another checkpoint"):
        finish(flow.writeStream.format("parquet").option("path", out), tmp_path / "two")
    assert not (tmp_path / "two").exists()
