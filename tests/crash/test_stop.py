"""`stop()` lets the running epoch finish; one that is interrupted all the same is run again at the next start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash.queries import Keyed, answer, flow_of, make_input, output, started

pytestmark = pytest.mark.spark


class Slow(Keyed):
    """A function that tells when it is inside an epoch, and takes its time."""

    def __init__(self, folder: Path, seconds: float) -> None:
        super().__init__(folder)
        self.seconds = seconds
        self.inside = threading.Event()
        self.finished: list[int] = []

    def __call__(self, rows: Any, epoch: int) -> None:
        self.inside.set()
        time.sleep(self.seconds)
        super().__call__(rows, epoch)
        self.finished.append(epoch)


def start(spark: Any, folder: Path, function: Any, **trigger: Any) -> Any:
    writer = flow_of(spark, folder, "window").writeStream.foreachBatch(function)
    writer = writer.options(sites=2, cells=8, checkpointLocation=folder / "checkpoint", flushAtEnd=True)
    return writer.trigger(**(trigger or {"availableNow": True})).start()


@pytest.fixture
def told(spark: Any, request: pytest.FixtureRequest) -> Callable[[], str]:
    """What this process and its JVM have written since the last call. The JVM writes to where the standard error was
    when it started, which is pytest's capture of the whole run."""
    capture: Any = request.config.pluginmanager.getplugin("capturemanager")

    def read() -> str:
        found = capture.read_global_capture()
        return "" if found is None else found.out + found.err

    read()
    return read


def test_a_stop_in_the_middle_of_an_epoch_waits_for_its_end(
    spark: Any, tmp_path: Path, told: Callable[[], str]
) -> None:
    make_input(tmp_path, 4)
    for trigger in ({"processingTime": "10 milliseconds"}, {"availableNow": True}):
        slow = Slow(tmp_path / "out", 0.7)
        query = start(spark, tmp_path, slow, **trigger)
        assert slow.inside.wait(120)
        query.stop()
        assert not query.isActive
        assert query.exception() is None
        assert slow.finished
        assert query.recentProgress[-1]["epoch"] == slow.finished[-1]
    assert "Exception" not in told()
    start(spark, tmp_path, Keyed(tmp_path / "out")).awaitTermination()
    assert output(spark, tmp_path, "window", "function") == answer(spark, tmp_path, "window")


def test_a_query_may_be_stopped_at_any_time_without_a_word_from_spark(
    spark: Any, tmp_path: Path, told: Callable[[], str]
) -> None:
    make_input(tmp_path, 3)
    for pause in (0.0, 0.1, 0.25, 0.5, 1.0):
        query = started(spark, tmp_path, "chain", "parquet", trigger={"processingTime": "0 seconds"})
        time.sleep(pause)
        query.stop()
        assert query.exception() is None
    assert "Exception" not in told()
    started(spark, tmp_path, "chain", "parquet").awaitTermination()
    assert output(spark, tmp_path, "chain", "parquet") == answer(spark, tmp_path, "chain")


def test_an_epoch_that_outlasts_the_patience_of_a_stop_is_run_again(spark: Any, tmp_path: Path) -> None:
    make_input(tmp_path, 2)
    slow = Slow(tmp_path / "out", 3)
    query = start(spark, tmp_path, slow)
    assert slow.inside.wait(120)
    query.stop(timeout=0.2)
    query.awaitTermination(60)
    assert not query.isActive
    assert query.exception() is None
    start(spark, tmp_path, Keyed(tmp_path / "out")).awaitTermination()
    assert output(spark, tmp_path, "window", "function") == answer(spark, tmp_path, "window")


def test_a_query_may_be_stopped_from_inside_an_epoch(spark: Any, tmp_path: Path) -> None:
    make_input(tmp_path, 2)
    keyed = Keyed(tmp_path / "out")
    ready = threading.Event()

    def write_and_stop(rows: Any, epoch: int) -> None:
        keyed(rows, epoch)
        assert ready.wait(60)
        query.stop()

    query = start(spark, tmp_path, write_and_stop)
    ready.set()
    assert query.awaitTermination(60)
    assert query.exception() is None
    assert len(query.recentProgress) == 1
    start(spark, tmp_path, keyed).awaitTermination()
    assert output(spark, tmp_path, "window", "function") == answer(spark, tmp_path, "window")
