"""What a query tells of each epoch: the keys, that they are JSON, and that the numbers are right."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.spark.progress import ProgressLine
from tests.spark import feeds

pytestmark = pytest.mark.spark


def finished(flow: Any, **options: Any) -> list[dict[str, Any]]:
    query = flow.writeStream.format("noop").options(**{"sites": 2, **options}).trigger(availableNow=True).start()
    query.awaitTermination()
    return list(query.recentProgress)


def test_every_number_of_a_join_over_three_epochs(spark: Any, tmp_path: Path) -> None:
    for first in (0, 10, 20):
        feeds.write(tmp_path, "calls", first, first + 10)
        feeds.write(tmp_path, "reports", first, first + 10)
    calls, reports = (feeds.stream(spark, tmp_path, n, files=1, delay="1 second") for n in ("calls", "reports"))
    flow = calls.join(reports, on="phone", within=("20 seconds", "0 seconds")).select("phone", "level")
    told = finished(flow)
    assert json.loads(json.dumps(told)) == told
    assert [p["epoch"] for p in told] == [0, 1, 2]
    assert [p["numInputRows"] for p in told] == [20, 20, 20]
    for p in told:
        assert set(p) == {
            "id", "runId", "name", "timestamp", "batchId", "epoch", "kind", "numInputRows", "processedRowsPerSecond",
            "durationMs", "eventTime", "sources", "stateOperators", "sites", "assignment", "sink",
        }  # fmt: skip
        assert {s["description"]: s["numInputRows"] for s in p["sources"]} == {"calls": 10, "reports": 10}
        assert {"plan", "run", "commit", "triggerExecution"} <= set(p["durationMs"])
        parts = sum(p["durationMs"][phase] for phase in ("plan", "run", "commit"))
        assert 0 < parts <= p["durationMs"]["triggerExecution"] + 1
        (join,) = p["stateOperators"]
        assert join["operatorName"] == "join-1"
        assert join["numSegments"] > 0
        assert join["memoryUsedBytes"] > 0
        assert [s["site"] for s in p["sites"]] == [0, 1]
        assert sum(s["numInputRows"] for s in p["sites"]) == join["numInputRows"]
        assert sum(s["numOutputRows"] for s in p["sites"]) == join["numOutputRows"] == p["sink"]["numOutputRows"]
        assert all(s["busyMs"] >= 0 for s in p["sites"])
        assert p["assignment"] == {"version": 0, "sites": 2, "moves": 0, "policy": "balance"}
    newest = max(feeds.call(n)["ts"] for n in range(10)) - feeds.SECOND
    assert told[0]["eventTime"] == {"watermark": None, "nextWatermark": iso(min(newest, newest_report(10)))}
    assert told[1]["eventTime"]["watermark"] == told[0]["eventTime"]["nextWatermark"]


def newest_report(rows: int) -> int:
    return int(feeds.report(rows - 1)["ts"] - feeds.SECOND)


def iso(us: int) -> str:
    from anabranch.spark.progress import iso

    return str(iso(us))


def test_late_rows_are_counted_per_stream_and_state_shrinks_when_rows_expire(spark: Any, tmp_path: Path) -> None:
    feeds.write(tmp_path, "calls", 20, 60)
    for first in (61, 62, 0):  # the last file is late
        feeds.write(tmp_path, "calls", first, first + 1)
    order(tmp_path / "calls", [20, 61, 62, 0])
    calls = feeds.stream(spark, tmp_path, "calls", files=1, delay="0 seconds")
    told = finished(calls.groupBy(ab.window("ts", "10 seconds")).count())
    late = [s["numLateRows"] for p in told for s in p["sources"]]
    assert sum(late) == 1
    assert sum(p["numInputRows"] for p in told) == 43
    state = [p["stateOperators"][0]["numRowsTotal"] for p in told]
    assert state[0] > 20
    assert state[-1] <= 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT c.phone, p.price FROM calls c JOIN prices p ON p.price > 2 WHERE c.duration > 20",
        "SELECT count(*) AS n FROM calls c LEFT JOIN prices p ON p.price > 2 GROUP BY window(c.ts, '10 seconds')",
        "SELECT count(*) AS n FROM (SELECT * FROM calls WHERE city = 'a') GROUP BY window(ts, '10 seconds')",
        "SELECT phone FROM calls WHERE duration > 20",
        "SELECT phone FROM calls WHERE duration > 20 UNION ALL SELECT phone FROM calls WHERE city = 'b'",
    ],
)
def test_a_row_is_counted_once_whatever_becomes_of_it(spark: Any, tmp_path: Path, sql: str) -> None:
    feeds.write(tmp_path, "calls", 0, 30)
    statics = {"prices": feeds.prices(spark)} if "prices" in sql else {}
    told = finished(ab.sql(sql, calls=feeds.stream(spark, tmp_path, "calls"), **statics), flushAtEnd=True)
    assert [p["numInputRows"] for p in told if p["kind"] == "batch"] == [30]
    feeds.batch(spark, tmp_path, "calls").createOrReplaceTempView("calls")
    feeds.prices(spark).createOrReplaceTempView("prices")
    assert sum(p["sink"]["numOutputRows"] for p in told) == spark.sql(sql).count()


def order(folder: Path, firsts: list[int]) -> None:
    import os

    for place, first in enumerate(firsts):
        os.utime(folder / f"{first:06d}.parquet", (1000 + place, 1000 + place))


def test_final_windows_wait_for_the_next_run_unless_flushed(spark: Any, tmp_path: Path) -> None:
    feeds.write(tmp_path, "calls", 0, 20)
    flow = feeds.stream(spark, tmp_path, "calls").groupBy(ab.window("ts", "1 minute")).agg("count(*) AS n")
    counted = {}
    for flush in (False, True):
        rows = feeds.run(flow, flushAtEnd=flush)
        counted[flush] = sum(row["n"] for row in rows)
    assert counted[True] == 20
    assert 0 < counted[False] < 20


def wait_for(what: Any, seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return found


def idle(progress: dict[str, Any]) -> dict[str, bool]:
    return {s["description"]: s["idle"] for s in progress["sources"]}


def test_closed_windows_come_while_no_rows_arrive_and_a_silent_stream_stops_holding_them(
    spark: Any, tmp_path: Path
) -> None:
    feeds.write(tmp_path, "calls", 0, 20)
    feeds.write(tmp_path, "reports", 0, 1)  # holds the watermark until it is idle
    calls, reports = feeds.stream(spark, tmp_path, "calls"), feeds.stream(spark, tmp_path, "reports")
    flow = calls.select("ts").union(reports.select("ts")).groupBy(ab.window("ts", "10 seconds")).count()
    rows: list[Any] = []
    query = (
        flow.writeStream.foreachBatch(lambda df, epoch: rows.extend(df.collect()))
        .options(sites=2, heartbeat="200 milliseconds", idleAfter="1 second")
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    try:
        wait_for(lambda: query.recentProgress)
        time.sleep(1.2)
        assert rows == []
        feeds.write(tmp_path, "calls", 20, 25)
        wait_for(lambda: rows)
        wait_for(lambda: any(p["kind"] == "tick" and idle(p)["reports"] for p in query.recentProgress))
    finally:
        query.stop()
    assert query.exception() is None


def test_the_progress_line_tells_an_epoch_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = ProgressLine(True)
    line.show(
        {
            "epoch": 3, "numInputRows": 1000, "processedRowsPerSecond": 5000.0,
            "durationMs": {"triggerExecution": 200.0},
            "sources": [{"numLateRows": 2}], "stateOperators": [{"memoryUsedBytes": 1_500_000}],
            "sink": {"numOutputRows": 7}, "eventTime": {"nextWatermark": "2026-01-01T00:00:00.000Z"},
        }
    )  # fmt: skip
    line.close()
    told = capsys.readouterr().err
    assert told == (
        "epoch 3: 1,000 rows in 200 ms (5,000/s), 7 out, 1,000 in all, state 1.5 MB, "
        "watermark 2026-01-01T00:00:00.000Z, 2 late\n"
    )
    ProgressLine(False).show({})
    assert capsys.readouterr().err == ""
