"""The handle of a running query: PySpark's names, an identity that lasts, several queries at once."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.errors import CheckpointMismatch, QueryFailed, SettingError
from tests.spark import feeds

pytestmark = pytest.mark.spark


@pytest.fixture
def calls(spark: Any, tmp_path: Path) -> Any:
    feeds.write(tmp_path, "calls", 0, 20)
    return feeds.stream(spark, tmp_path, "calls")


def writer(flow: Any, folder: Path, name: str = "checkpoint") -> Any:
    return flow.writeStream.format("noop").option("checkpointLocation", str(folder / name)).option("sites", 2)


def test_a_continuous_query_is_followed_and_stopped_through_its_handle(
    spark: Any, calls: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = calls.groupBy("phone", ab.window("ts", "30 seconds")).count()
    query = writer(flow, tmp_path).queryName("follow").trigger(processingTime="0 seconds").start()
    try:
        assert query.isActive
        assert query.name == "follow"
        assert query.awaitTermination(0.05) is False
        query.processAllAvailable()
        assert sum(p["numInputRows"] for p in query.recentProgress) == 20
        assert sum(p["sink"]["numOutputRows"] for p in query.recentProgress) > 0
        feeds.write(tmp_path, "calls", 20, 25)
        query.processAllAvailable()
        assert query.lastProgress["epoch"] == query.recentProgress[-1]["epoch"]
        assert sum(p["numInputRows"] for p in query.recentProgress) == 25
        assert set(query.status) == {"message", "isDataAvailable", "isTriggerActive"}
        with pytest.raises(SettingError, match="named follow is running already"):
            writer(calls.select("phone"), tmp_path, "other").queryName("follow").start()
        assert not (tmp_path / "other").exists()
        query.explain()
        assert "subquery 1: aggregate-1" in capsys.readouterr().out
    finally:
        query.stop()
    assert not query.isActive
    assert query.status["message"] == "Stopped"
    assert query.exception() is None
    assert query.awaitTermination() is None
    assert query.awaitTermination(1) is True
    query.stop()  # once more does no harm


def test_the_id_is_the_checkpoints_and_the_run_id_is_not(calls: Any, tmp_path: Path) -> None:
    runs = []
    for name in ("one", "one", "two"):
        query = writer(calls.select("phone"), tmp_path, name).trigger(once=True).start()
        query.awaitTermination()
        runs.append(query)
        assert str(uuid.UUID(query.id)) == query.id
    assert runs[0].id == runs[1].id != runs[2].id
    assert len({query.runId for query in runs}) == 3
    assert runs[0].lastProgress["id"] == runs[0].id


def test_another_query_is_refused_the_checkpoint(calls: Any, tmp_path: Path) -> None:
    writer(calls.select("phone"), tmp_path).trigger(availableNow=True).start().awaitTermination()
    with pytest.raises(CheckpointMismatch, match="belongs to another query"):
        writer(calls.select("city"), tmp_path).start()
    with pytest.raises(CheckpointMismatch, match="256 cells, and the query asks for 64"):
        writer(calls.select("phone"), tmp_path).option("cells", 64).start()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear diary")
    with pytest.raises(ab.errors.CheckpointError):
        writer(calls.select("phone"), tmp_path).option("stateLocation", str(tmp_path / "mine")).start()
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["diary.txt"]


def test_flows_over_the_same_streams_run_side_by_side(spark: Any, calls: Any) -> None:
    flows = [calls.where(f"phone = {n}").groupBy("phone", ab.window("ts", "1 minute")).count() for n in range(3)]
    seen: dict[int, list[Any]] = {n: [] for n in range(3)}
    queries = []
    for n, flow in enumerate(flows):
        keep = flow.writeStream.foreachBatch(lambda rows, epoch, n=n: seen[n].extend(rows.collect()))
        queries.append(keep.options(flushAtEnd=True, sites=1).trigger(availableNow=True).start())
    for query in queries:
        query.awaitTermination()
    for n in range(3):
        rows = [feeds.call(i) for i in range(20) if feeds.call(i)["phone"] == n]
        assert sum(row["count"] for row in seen[n]) == len(rows)
        assert {row["phone"] for row in seen[n]} == {n}


def test_settings_come_from_options_and_from_the_configuration(spark: Any, calls: Any, tmp_path: Path) -> None:
    spark.conf.set("spark.anabranch.SITES", "3")
    try:
        for options, sites in (({}, 3), ({"Sites": 1}, 1)):
            flow = calls.groupBy(ab.window("ts", "1 minute")).count()
            query = flow.writeStream.format("noop").options(**options).trigger(availableNow=True).start()
            query.awaitTermination()
            assert query.lastProgress["assignment"]["sites"] == sites
    finally:
        spark.conf.unset("spark.anabranch.SITES")


@pytest.mark.parametrize(
    ("expression", "condition"),
    [("duration / (duration - duration)", "DIVIDE_BY_ZERO"), ("CAST(city AS INT)", "CAST_INVALID_INPUT")],
)
def test_an_error_in_an_expression_is_one_clear_message(
    calls: Any, tmp_path: Path, expression: str, condition: str
) -> None:
    flow = calls.groupBy("phone", ab.window("ts", "1 minute")).agg(f"max({expression}) AS m")
    query = writer(flow, tmp_path).trigger(availableNow=True).start()
    with pytest.raises(QueryFailed) as caught:
        query.awaitTermination()
    lines = str(caught.value).splitlines()
    assert f"[{condition}]" in lines[1]
    assert len(lines) == 3
    assert len(str(caught.value)) < 600
    assert query.exception() is caught.value
    assert not query.isActive
