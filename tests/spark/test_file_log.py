"""The log of an output folder: an epoch is in it once, whole, and readable by Spark; damage is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from anabranch.errors import SinkError
from anabranch.spark.sinks.filelog import FileLog
from anabranch.spark.sinks.files import FileSink


def log_of(folder: Path) -> FileLog:
    log = FileLog(pafs.LocalFileSystem(), str(folder), f"file://{folder}")
    log.open()
    return log


def filled(folder: Path, epochs: int) -> FileLog:
    folder.mkdir(exist_ok=True)
    log = log_of(folder)
    log.mark("c")
    for epoch in range(epochs):
        log.append(epoch, [(f"part-{epoch}-{i}", 10) for i in range(epoch % 3)])
    return log


@pytest.mark.parametrize("epochs", [0, 1, 9, 10, 11, 25])
def test_what_was_entered_is_read_back(tmp_path: Path, epochs: int) -> None:
    log, again = filled(tmp_path, epochs), log_of(tmp_path)
    assert (again.last, again.entries) == (epochs - 1, log.entries)
    assert again.names() == {f"part-{e}-{i}" for e in range(epochs) for i in range(e % 3)}
    assert again.owner() == "c"


def test_every_tenth_entry_repeats_all_before_it(tmp_path: Path) -> None:
    filled(tmp_path, 11)
    names = {p.name for p in (tmp_path / "_spark_metadata").iterdir()}
    assert names == {*map(str, range(9)), "9.compact", "10"}
    assert len((tmp_path / "_spark_metadata" / "9.compact").read_text().splitlines()) == 1 + 9


def test_of_two_runs_that_write_an_epoch_one_fails(tmp_path: Path) -> None:
    ours = filled(tmp_path, 3)
    theirs = log_of(tmp_path)
    ours.append(3, [("ours", 1)])
    with pytest.raises(SinkError, match="epoch 3 has been written already, by another query"):
        theirs.append(3, [("theirs", 1)])
    assert "ours" in log_of(tmp_path).names()
    assert not list((tmp_path / "_spark_metadata").glob(".*"))


def test_epochs_follow_each_other(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    for epoch in (2, 4):
        with pytest.raises(SinkError, match=f"epoch {epoch} cannot follow epoch 2"):
            log.append(epoch, [])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda p: p.unlink(), "lacks epoch 12"),
        (lambda p: p.write_text(""), "damaged at epoch 12"),
        (lambda p: p.write_text("v2"), "damaged at epoch 12"),
        (lambda p: p.write_text(p.read_text()[:-4]), "damaged at epoch 12"),
        (lambda p: p.write_text('v1\n{"size": 3}'), "damaged at epoch 12"),
        (lambda p: p.write_bytes(b"\xff"), "damaged at epoch 12"),
    ],
)
def test_a_damaged_log_is_an_error(tmp_path: Path, damage: Any, says: str) -> None:
    filled(tmp_path, 15)
    damage(tmp_path / "_spark_metadata" / "12")
    with pytest.raises(SinkError, match=says):
        log_of(tmp_path)


def test_a_path_is_percent_encoded_as_spark_reads_it(tmp_path: Path) -> None:
    log = filled(tmp_path, 0)
    log.append(0, [("day=a%3Ab c/part-0", 1)])
    assert json.loads(log.entries[0])["path"].endswith("/day=a%253Ab%20c/part-0")


def started(folder: Path, first_epoch: int, checkpoint: str) -> FileSink:
    sink = FileSink(str(folder))
    sink.start(None, None, first_epoch, checkpoint)  # type: ignore[arg-type]
    return sink


@pytest.mark.parametrize(
    ("epochs", "first_epoch", "checkpoint", "says"),
    [
        (1, 0, "other", "belongs to another checkpoint, which has written 1 epochs"),
        (5, 5, "other", "belongs to another checkpoint"),
        (5, 3, "c", "already holds 5 epochs, this query is about to write epoch 3"),
        (5, 7, "c", "lacks epochs 5 to 6"),
        (0, 2, "c", "lacks epochs 0 to 1"),
    ],
)
def test_a_folder_that_does_not_belong_to_the_checkpoint_is_refused(
    tmp_path: Path, epochs: int, first_epoch: int, checkpoint: str, says: str
) -> None:
    filled(tmp_path, epochs)
    before = sorted(p.name for p in tmp_path.rglob("*"))
    with pytest.raises(SinkError, match=says):
        started(tmp_path, first_epoch, checkpoint)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("first_epoch", [4, 5])
def test_an_epoch_may_be_ahead_of_its_manifest_by_one(tmp_path: Path, first_epoch: int) -> None:
    filled(tmp_path, 5)
    assert started(tmp_path, first_epoch, "c").log.last == 4


def test_a_folder_of_sparks_own_sink_or_with_other_files_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "a", 1)
    (tmp_path / "a" / "_anabranch.json").unlink()
    with pytest.raises(SinkError, match="written by a streaming query of Spark's own"):
        started(tmp_path / "a", 0, "c")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "part-00000-x.parquet").touch()
    with pytest.raises(SinkError, match=r"no query of Anabranch wrote, e\.g\. part-00000-x\.parquet"):
        started(tmp_path / "b", 0, "c")


def test_a_start_removes_what_a_crash_left_and_nothing_else(tmp_path: Path) -> None:
    log = filled(tmp_path, 1)
    log.append(1, [("part-000000001-0000-aaaaaaaa.parquet", 1), ("k=1/part-000000001-0001-aaaaaaaa.parquet", 1)])
    kept = ["part-000000001-0000-aaaaaaaa.parquet", "k=1/part-000000001-0001-aaaaaaaa.parquet", "notes.txt"]
    left = ["part-000000002-0000-bbbbbbbb.parquet", "k=1/part-000000001-0001-cccccccc.parquet"]
    left.append("_anabranch_staging/000000002-x/part-0")
    for name in (*kept, *left):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    started(tmp_path, 2, "c")
    assert [(tmp_path / n).exists() for n in (*kept, *left)] == [True] * len(kept) + [False] * len(left)


def test_a_folder_whose_first_owner_never_wrote_an_epoch_may_be_used(tmp_path: Path) -> None:
    filled(tmp_path, 0)
    started(tmp_path, 0, "d")
    assert log_of(tmp_path).owner() == "d"
