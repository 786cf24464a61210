"""Somebody who reads the output while the query runs, crashes and starts again sees whole epochs, each once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from anabranch.testing import crash
from tests.crash.queries import answer, make_input, output, started

pytestmark = pytest.mark.spark


class Crash(Exception):
    """The process would be gone."""


def crash_now() -> None:
    raise Crash("here")


def test_a_reader_never_sees_half_an_epoch(spark: Any, tmp_path: Path) -> None:
    """Several files an epoch; crashed while they move in, and between their log entry and the manifest."""
    make_input(tmp_path, 5)
    seen: list[list[str]] = []
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            try:
                rows = output(spark, tmp_path, "join", "partitioned")
            except AnalysisException:
                continue  # there is no folder yet
            if not seen or rows != seen[-1]:
                seen.append(rows)

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for stage, nth in (("sink.moving", 3), ("sink.entered", 2), ("sink.moving", 8), ("", 0)):
            remove = crash.install(stage, nth, crash_now) if stage else lambda: None
            query = started(spark, tmp_path, "join", "partitioned")
            try:
                query.awaitTermination()
            except Exception as error:
                assert "Crash: here" in str(error)  # noqa: PT017
            else:
                assert not stage
            finally:
                remove()
    finally:
        done.set()
        reader.join()
    want = answer(spark, tmp_path, "join")
    assert output(spark, tmp_path, "join", "partitioned") == want
    whole = epochs(tmp_path, spark)
    assert len(whole) == 6
    assert whole[-1] == want
    assert len(seen) > 1
    assert [rows for rows in seen if rows not in whole] == []


def epochs(folder: Path, spark: Any) -> list[list[str]]:
    """What the folder held after each epoch: nothing, the first, the first two, ..."""
    import json

    from tests.crash.queries import flow_of, texts

    schema = flow_of(spark, folder, "join").schema
    sofar: list[str] = []
    found = [[]]
    for epoch in range(5):
        lines = (folder / "out" / "_spark_metadata" / str(epoch)).read_text().splitlines()[1:]
        files = [json.loads(line)["path"] for line in lines]
        if files:
            reader = spark.read.schema(schema).option("basePath", str(folder / "out"))
            sofar = sorted(sofar + texts(reader.parquet(*files).select(*schema.names)))
        found.append(sofar)
    return found
