"""A restart goes on where the checkpoint stands, or says why it cannot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.errors import CheckpointDamaged, CheckpointError, CheckpointMismatch, SinkError, UnknownFormat
from tests.crash.queries import answer, make_input, output, started

pytestmark = pytest.mark.spark


def run(spark: Any, folder: Path, query: str, sink: str, **options: Any) -> Any:
    handle = started(spark, folder, query, sink, **options)
    handle.awaitTermination()
    return handle


def test_a_restart_on_other_numbers_of_sites_goes_on_exactly(spark: Any, tmp_path: Path) -> None:
    identities = set()
    for epoch, sites in enumerate((2, 5, 1)):
        make_input(tmp_path, 1, first=epoch)
        query = run(spark, tmp_path, "chain", "parquet", sites=sites, flushAtEnd=epoch == 2)
        identities.add(query.id)
        assert query.lastProgress["assignment"]["sites"] == sites
    assert len(identities) == 1
    assert output(spark, tmp_path, "chain", "parquet") == answer(spark, tmp_path, "chain")


def test_a_finished_query_that_starts_again_adds_nothing(spark: Any, tmp_path: Path) -> None:
    make_input(tmp_path, 2)
    for trigger in ({"once": True}, {"availableNow": True}, {"once": True}):
        run(spark, tmp_path, "window", "orc", trigger=trigger)
        assert output(spark, tmp_path, "window", "orc") == answer(spark, tmp_path, "window")


def test_state_may_lie_in_a_store_that_is_not_a_folder(spark: Any, tmp_path: Path) -> None:
    state = {"stateLocation": f"local://{tmp_path}/far"}  # pyarrow opens it: to us a remote store
    for epoch in range(2):
        make_input(tmp_path, 1, first=epoch)
        run(spark, tmp_path, "chain", "json", flushAtEnd=epoch == 1, **state)
    assert output(spark, tmp_path, "chain", "json") == answer(spark, tmp_path, "chain")
    assert (tmp_path / "far" / "meta.json").exists()
    assert not (tmp_path / "checkpoint" / "anabranch").exists()
    with pytest.raises(CheckpointDamaged, match="Spark is at batch 1, the state at batch -1"):
        run(spark, tmp_path, "chain", "json", stateLocation=f"local://{tmp_path}/elsewhere")


def test_another_query_or_cut_is_refused_with_the_difference(spark: Any, copied: Callable[[str], Path]) -> None:
    folder = copied("a")
    with pytest.raises(CheckpointMismatch, match="belongs to another query") as caught:
        started(spark, folder, "join", "noop")
    text = str(caught.value)
    assert any(line.startswith("-") for line in text.splitlines())
    assert any(line.startswith("+") for line in text.splitlines())
    assert "window" in text
    with pytest.raises(CheckpointMismatch, match="set the option 'cells' to 8"):
        started(spark, folder, "chain", "noop", cells=16)


def test_another_stream_under_the_same_name_is_refused(spark: Any, tmp_path: Path) -> None:
    make_input(tmp_path, 1)

    def start(schema: str, time: str) -> Any:
        df = spark.readStream.schema(schema).parquet(str(tmp_path / "l")).withColumn("at", ab_time(time))
        flow = ab.sql("SELECT k, count(*) AS n FROM l GROUP BY k, window(at, '1 minute')", l=ab.stream(df, "l", "at"))
        writer = flow.writeStream.format("noop").option("checkpointLocation", tmp_path / "checkpoint")
        return writer.trigger(availableNow=True).start()

    start("k INT, v INT, ts TIMESTAMP", "ts").awaitTermination()
    with pytest.raises(CheckpointMismatch, match=r"-.*int\b.*\n(.*\n)*\+.*bigint"):
        start("k BIGINT, v INT, ts TIMESTAMP", "ts")


def ab_time(name: str) -> Any:
    from pyspark.sql import functions as F

    return F.col(name)


def newest(folder: Path) -> Path:
    return max((folder / "checkpoint" / "anabranch" / "manifests").glob("*.json"))


def altered(path: Path, place: float) -> None:
    raw = bytearray(path.read_bytes())
    raw[int(place * (len(raw) - 2))] ^= 0x11
    path.write_bytes(raw)


@pytest.mark.parametrize("file", ["meta.json", "pending.json", "manifest"])
def test_a_damaged_file_of_the_checkpoint_is_an_error_at_the_start(
    spark: Any, copied: Callable[[str], Path], file: str
) -> None:
    folder = copied("a")
    path = newest(folder) if file == "manifest" else folder / "checkpoint" / "anabranch" / file
    whole = path.read_bytes()
    damages: list[Callable[[], Any]] = [lambda p=p: altered(path, p) for p in (0, 0.05, 0.5, 1)]  # type: ignore[misc]
    damages += [lambda n=n: path.write_bytes(whole[: n * len(whole) // 4]) for n in (0, 3)]  # type: ignore[misc]
    if file != "manifest":  # without its newest manifest the epoch before it is the last, and this one runs again
        damages.append(path.unlink)
    for damage in damages:
        damage()
        with pytest.raises((CheckpointDamaged, UnknownFormat)):
            started(spark, folder, "chain", "noop")
        path.write_bytes(whole)
    known = json.loads(whole)["format"]
    path.write_bytes(whole.replace(f'"format":{known}'.encode(), b'"format":77'))
    with pytest.raises(UnknownFormat, match=f"has format 77, and this version of Anabranch knows {known}"):
        started(spark, folder, "chain", "noop")
    path.write_bytes(whole)
    run(spark, folder, "chain", "noop")


def test_a_lost_segment_is_an_error_at_the_start(spark: Any, copied: Callable[[str], Path]) -> None:
    folder = copied("a")
    data = json.loads(newest(folder).read_text())["body"]["state"]
    path = next(s["path"] for segments in data.values() for s in segments)
    (folder / "checkpoint" / "anabranch" / path).unlink()
    with pytest.raises(CheckpointDamaged, match=f"1 segments of the state are missing\n.*{Path(path).name}"):
        started(spark, folder, "chain", "noop")


@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_a_damaged_segment_ends_the_query_as_what_it_is(spark: Any, copied: Callable[[str], Path], damage: str) -> None:
    folder = copied("a")
    for path in (folder / "checkpoint" / "anabranch" / "segments").rglob("*.arrow"):
        if damage == "flipped":
            altered(path, 0.5)
        else:
            path.write_bytes(path.read_bytes()[:-9])
    query = started(spark, folder, "chain", "noop", flushAtEnd=True)
    with pytest.raises(CheckpointDamaged, match=r"a segment of the state (was altered|has .* bytes)") as caught:
        query.awaitTermination()
    assert query.exception() is caught.value
    assert "restore this file" in str(caught.value)
    assert not query.isActive


def test_halves_that_do_not_belong_together_are_refused(
    spark: Any, two_epochs: Path, copied: Callable[[str], Path]
) -> None:
    def start(folder: Path, says: str) -> None:
        with pytest.raises(CheckpointDamaged, match=says):
            started(spark, folder, "chain", "noop")

    lost = copied("lost")
    shutil.rmtree(lost / "checkpoint" / "spark")
    start(lost, "batch 1 is missing from Spark's offsets")
    ours = copied("ours")
    shutil.rmtree(ours / "checkpoint" / "anabranch")
    start(ours, "Spark is at batch 1, the state at batch -1")
    planned = copied("planned")
    offsets = planned / "checkpoint" / "spark" / "offsets" / "1"
    offsets.write_text(offsets.read_text().replace('"logOffset":1', '"logOffset":7'))
    start(planned, "batch 1 is not the one that the state includes")
    older = copied("older")
    newest(older).unlink()
    newest(older).unlink()
    start(older, "Spark is at batch 1, the state at batch -1")


def test_a_checkpoint_or_output_that_is_somebody_elses_is_refused(
    spark: Any, tmp_path: Path, copied: Callable[[str], Path]
) -> None:
    make_input(tmp_path, 1)
    own = spark.readStream.schema("k INT, v INT, ts TIMESTAMP").parquet(str(tmp_path / "l")).writeStream
    own = own.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    own.format("parquet").start(str(tmp_path / "out")).awaitTermination()
    with pytest.raises(CheckpointMismatch, match="in use by a query of Spark's own: it holds commits, metadata"):
        started(spark, tmp_path, "join", "noop")
    with pytest.raises(CheckpointMismatch, match="it holds _spark_metadata"):
        started(spark, tmp_path, "join", "noop", checkpointLocation=tmp_path / "out")
    with pytest.raises(SinkError, match="written by a streaming query of Spark's own"):
        started(spark, tmp_path, "join", "parquet", checkpointLocation=tmp_path / "new")
    folder = copied("a")
    with pytest.raises(SinkError, match=r"lacks epochs 0 to \d"):
        started(spark, folder, "chain", "parquet")


def test_an_output_folder_of_another_checkpoint_is_refused(spark: Any, tmp_path: Path) -> None:
    make_input(tmp_path, 1)
    run(spark, tmp_path, "join", "json")
    before = output(spark, tmp_path, "join", "json")
    with pytest.raises(SinkError, match="belongs to another checkpoint, which has written 1 epochs"):
        started(spark, tmp_path, "join", "json", checkpointLocation=tmp_path / "new")
    assert output(spark, tmp_path, "join", "json") == before == answer(spark, tmp_path, "join")


def test_a_second_query_on_a_checkpoint_is_refused_and_harms_nothing(spark: Any, tmp_path: Path) -> None:
    make_input(tmp_path, 1)
    first = started(spark, tmp_path, "chain", "parquet", trigger={"processingTime": "100 milliseconds"})
    try:
        first.processAllAvailable()
        with pytest.raises(CheckpointError, match="another query is using this checkpoint: process"):
            started(spark, tmp_path, "chain", "parquet")
        make_input(tmp_path, 1, first=1)
        first.processAllAvailable()
    finally:
        first.stop()
    assert first.exception() is None
    run(spark, tmp_path, "chain", "parquet")
    assert output(spark, tmp_path, "chain", "parquet") == answer(spark, tmp_path, "chain")
