"""An epoch is real once its manifest is there, whole; and the folder holds what the manifests name, and no more."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.errors import CheckpointDamaged, CheckpointError, CheckpointMismatch, UnknownFormat
from anabranch.routing.assignment import Assignment
from anabranch.state.envelope import seal
from anabranch.state.manifest import Manifest, ManifestLog
from anabranch.state.meta import open_or_create
from anabranch.state.segments import open_segment, write_segment
from anabranch.state.store import Store
from tests.state.state_tools import few, remote_store, segment_of, store_of, table_of


def manifest(epoch: int, *paths: str, **changes: Any) -> Manifest:
    segments = [segment_of(path).to_json() for path in paths]
    base = Manifest(
        epoch=epoch,
        batch=epoch - 1,
        fingerprint="f",
        sites=2,
        assignment=Assignment.initial(4, 2).to_json(),
        watermark=1_700_000_000_000_000,
        streams={"calls": {"max_event_time": 5, "last_active": None}},
        state={"join/0": segments},
        extra={"text": "ünï", "number": 0.1},
    )
    return replace(base, **changes)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_the_latest_manifest_is_the_last_one_committed(kind: str, tmp_path: Path) -> None:
    store = store_of(kind, tmp_path)
    log = ManifestLog(store)
    assert log.latest() is None
    for epoch in (0, 1, 9, 10, 999_999_999_999, 1_000_000_000_000):
        log.commit(manifest(epoch, "a"))
        assert ManifestLog(store).latest() == log.latest() == manifest(epoch, "a")
    latest = log.latest()
    assert latest is not None
    assert latest.segments("join/0") == [segment_of("a")]
    assert latest.segments("join/1") == []
    assert Assignment.from_json(latest.assignment) == Assignment.initial(4, 2)


def test_a_second_query_on_the_same_checkpoint_fails_at_its_first_commit(store: Store) -> None:
    ours, theirs = ManifestLog(store), ManifestLog(store)
    ours.commit(manifest(0))
    ours.commit(manifest(1, "a"))
    with pytest.raises(CheckpointError, match="another query"):
        theirs.commit(manifest(1, "b"))
    assert ManifestLog(store).latest() == manifest(1, "a")


def test_epochs_only_go_forward(store: Store) -> None:
    log = ManifestLog(store)
    log.commit(manifest(3))
    restarted = ManifestLog(store)
    restarted.latest()
    for stale in (log, restarted):
        for epoch in (2, 3):
            with pytest.raises(ValueError, match="cannot follow"):
                stale.commit(manifest(epoch))
    with pytest.raises(ValueError, match="cannot follow"):
        ManifestLog(store).commit(manifest(-1))


@pytest.mark.parametrize(
    "bad", [{"batch": "3"}, {"sites": True}, {"state": {"a/0": {}}}, {"extra": {"x": float("nan")}}]
)
def test_what_could_not_be_read_back_is_not_written(store: Store, bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"wrong kind|JSON"):
        ManifestLog(store).commit(manifest(0, **bad))
    with pytest.raises(CheckpointDamaged):
        ManifestLog(store).commit(manifest(0, state={"a/0": [{"path": "../x"}]}))
    assert store.list() == []


epochs_of_paths = st.lists(st.sets(st.sampled_from("abcdefgh")), min_size=1, max_size=12)


@few
@given(epochs_of_paths, st.integers(1, 4), st.sets(st.integers(0, 11)))
def test_the_folder_holds_what_the_retained_manifests_need(epochs: list[set[str]], n: int, restarts: set[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder)
        log = ManifestLog(store)
        for epoch, names in enumerate(epochs):
            # A path is used only once in the life of a checkpoint: what is gone never comes back.
            names = {name for name in names if epoch == 0 or name in epochs[epoch - 1]} | {f"new{epoch}"}
            epochs[epoch] = names
            for name in names:
                store.write(f"segments/{name}", b"", durable=False)
            if epoch in restarts:
                store.write("segments/orphan", b"", durable=False)
                store.write(f"segments/new{epoch}.123.tmp", b"", durable=False)
                store.write("manifests/000000000007.json.12.tmp", b"", durable=False)
                store.write("elsewhere/file", b"", durable=False)
                log = ManifestLog(store)
                log.sweep(n)
                for name in names:  # this epoch is computed again
                    store.write(f"segments/{name}", b"", durable=False)
            log.commit(manifest(epoch, *names))
            log.retain(n)
            kept = range(max(0, epoch - n + 1), epoch + 1)
            needed = {f"segments/{name}" for e in kept for name in epochs[e]}
            assert set(store.list("segments")) == needed
            assert log.epochs() == list(kept)


def test_retaining_looks_at_no_folder(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    log = ManifestLog(store)
    for epoch in range(5):
        log.commit(manifest(epoch, f"s{epoch}"))
        monkeypatch.setattr(Store, "list", None)
        monkeypatch.setattr(type(store), "list", None)
        assert log.retain() == ([f"segments/s{epoch - 2}"] if epoch > 1 else [])


def test_a_sweep_deletes_nothing_when_something_is_wrong(store: Store) -> None:
    log = ManifestLog(store)
    for name in ("a", "orphan"):
        store.write(f"segments/{name}", b"")
    log.commit(manifest(0, "a", "b"))
    with pytest.raises(CheckpointDamaged, match=r"1 segments of the state are missing\n.*segments/b in"):
        log.sweep()
    store.write("segments/b", b"")
    store.write("manifests/000000000001.json", b"{}")
    with pytest.raises(CheckpointDamaged, match="cannot be read"):
        log.sweep()
    assert store.exists("segments/orphan")


def test_a_damaged_older_manifest_does_not_stop_a_query_that_is_whole(store: Store) -> None:
    for epoch, name in enumerate("ab"):
        ManifestLog(store).commit(manifest(epoch, name))
        store.write(f"segments/{name}", b"")
    store.write("manifests/000000000000.json", b"{}")
    log = ManifestLog(store)
    assert log.sweep() == ["segments/a"]
    assert log.latest() == manifest(1, "b")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda raw: b"", "cannot be read"),
        (lambda raw: raw[:-3], "cannot be read"),
        (lambda raw: raw.replace(b'"batch":4', b'"batch":3'), "checksum"),
        (lambda raw: raw.replace(b"segments/a", b"segments/b"), "checksum"),
        (lambda raw: b"[1]", "cannot be read"),
        (lambda raw: b"\xff\xfe", "cannot be read"),
        (lambda raw: seal("checkpoint", 1, manifest(5).to_json()), "is not a manifest"),
        (lambda raw: seal("manifest", 2, {"epoch": 5}), "makes no sense"),
        (lambda raw: seal("manifest", 2, manifest(5).to_json() | {"sites": "2"}), "makes no sense"),
        (lambda raw: seal("manifest", 2, manifest(4).to_json()), "is of epoch 4"),
        (lambda raw: seal("manifest", 2, manifest(5, state={"a/0": [{}]}).to_json()), "makes no sense"),
    ],
)
def test_a_damaged_manifest_is_an_error_and_never_a_step_back(store: Store, damage: Any, says: str) -> None:
    log = ManifestLog(store)
    log.commit(manifest(4, "a"))
    log.commit(manifest(5, "a"))
    path = "manifests/000000000005.json"
    store.write(path, damage(store.read(path)))
    with pytest.raises(CheckpointDamaged, match=says) as caught:
        ManifestLog(store).latest()
    if says != "makes no sense":
        assert path in str(caught.value)
        assert "do not delete it" in str(caught.value)


def test_a_manifest_of_a_later_format_is_told_apart_from_damage(store: Store) -> None:
    store.write("manifests/000000000005.json", seal("manifest", 3, {"new": 1}))
    with pytest.raises(UnknownFormat, match=r"format 3, and this version of Anabranch knows 2"):
        ManifestLog(store).latest()


def test_a_manifest_that_a_person_reindented_is_still_good(store: Store) -> None:
    ManifestLog(store).commit(manifest(0, "a"))
    path = "manifests/000000000000.json"
    store.write(path, json.dumps(json.loads(store.read(path)), indent=2, ensure_ascii=False).encode())
    assert ManifestLog(store).latest() == manifest(0, "a")


@few
@given(st.data())
def test_no_flipped_bit_of_a_manifest_changes_what_is_read(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder)
        ManifestLog(store).commit(manifest(0, "a"))
        content = bytearray(store.read("manifests/000000000000.json"))
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        store.write("manifests/000000000000.json", content)
        with contextlib.suppress(CheckpointDamaged, UnknownFormat):
            assert ManifestLog(store).latest() == manifest(0, "a")


_WRITER = """
import sys
import pyarrow as pa
from anabranch.state.manifest import Manifest, ManifestLog
from anabranch.state.segments import write_segment
from anabranch.state.store import Store
store = Store.open(sys.argv[1])
log = ManifestLog(store)
kept = []
for epoch in range(1_000_000):
    table = pa.table({"_cell": pa.array([epoch % 4] * 500, pa.int32()), "_t": pa.array([epoch] * 500, pa.int64())})
    kept = [*kept[-3:], write_segment(store, "op/0", table, label={"epoch": epoch}).to_json()]
    log.commit(Manifest(epoch, epoch, "f", 1, {}, state={"op/0": kept}))
    log.retain()
    print(epoch, flush=True)
"""


def test_a_killed_process_leaves_every_epoch_that_it_committed(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    paths = os.pathsep.join(p for p in sys.path if p)
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    ) as writer:
        assert writer.stdout is not None
        for _ in range(12):
            told = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        told = max([told, *(int(line) for line in writer.stdout.read().split())])
    log = ManifestLog(store)
    latest = log.latest()
    assert latest is not None
    assert latest.epoch in (told, told + 1)
    log.sweep()
    segments = latest.segments("op/0")
    assert [open_segment(store, s).column("_t")[0].as_py() for s in segments] == list(
        range(latest.epoch - 3, latest.epoch + 1)
    )
    assert len(store.list("segments")) <= 5
    assert not [path for path in store.list() if path.endswith(".tmp")]


def test_a_segment_that_moved_to_a_remote_store_is_opened_there(tmp_path: Path) -> None:
    store = remote_store(tmp_path)
    segment = write_segment(store, "op/0", table_of([(1, 2, "x")]), label={})
    assert segment is not None
    log = ManifestLog(store)
    log.commit(replace(manifest(0), state={"op/0": [segment.to_json()]}))
    log.sweep()
    latest = log.latest()
    assert latest is not None
    assert open_segment(store, latest.segments("op/0")[0]).num_rows == 1


def test_a_checkpoint_is_created_once_and_then_compared(tmp_path: Path) -> None:
    for kind in ("local", "remote"):
        store = store_of(kind, tmp_path)
        meta = open_or_create(store, "f1", "join\n  on phone", 256)
        assert open_or_create(store, "f1", "join\n  on phone", 256) == meta
        with pytest.raises(CheckpointMismatch, match="another query") as caught:
            open_or_create(store, "f2", "join\n  on name", 256)
        assert "-  on phone\n+  on name" in str(caught.value)
        with pytest.raises(CheckpointMismatch, match="read the same"):
            open_or_create(store, "f2", "join\n  on phone", 256)
        with pytest.raises(CheckpointMismatch, match="set the option 'cells' to 256"):
            open_or_create(store, "f1", "join\n  on phone", 512)


@pytest.mark.parametrize(
    ("found", "error", "says"),
    [
        ("a file.txt", CheckpointMismatch, "not empty and no checkpoint of Anabranch: it holds a file.txt"),
        ("offsets", CheckpointMismatch, "a checkpoint of Spark's own"),
        ("manifests", CheckpointDamaged, "manifests but no meta.json"),
    ],
)
def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path, found: str, error: Any, says: str) -> None:
    (tmp_path / found).touch()
    with pytest.raises(error, match=says):
        open_or_create(Store.open(str(tmp_path)), "f", "plan", 4)
    assert os.listdir(tmp_path) == [found]


def test_a_creation_that_crashed_half_way_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "meta.json.0123456789ab.tmp").write_bytes(b"{")
    assert open_or_create(Store.open(str(tmp_path)), "f", "plan", 4).cells == 4


@pytest.mark.parametrize(
    ("damage", "error", "says"),
    [
        (lambda raw: raw[:20], CheckpointDamaged, "cannot be read"),
        (lambda raw: raw.replace(b'"cells":4', b'"cells":8'), CheckpointDamaged, "checksum"),
        (lambda raw: seal("checkpoint", 1, {"cells": 4}), CheckpointDamaged, "makes no sense"),
        (lambda raw: seal("checkpoint", 9, {}), UnknownFormat, "format 9"),
    ],
)
def test_a_damaged_meta_is_an_error(store: Store, damage: Any, error: Any, says: str) -> None:
    open_or_create(store, "f", "plan", 4)
    store.write("meta.json", damage(store.read("meta.json")))
    with pytest.raises(error, match=says):
        open_or_create(store, "f", "plan", 4)
