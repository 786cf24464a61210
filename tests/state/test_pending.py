"""The note on the epoch under way: read back as written, or an error; never another epoch under the same number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.errors import CheckpointDamaged, UnknownFormat
from anabranch.state.envelope import seal
from anabranch.state.manifest import Manifest
from anabranch.state.pending import PATH, Pending, interrupted
from anabranch.state.store import Store

LAST = Manifest(4, 2, "f", 1, {})
NEW = Manifest(-1, -1, "f", 1, {})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


@pytest.mark.parametrize("note", [Pending(5, "batch", 3), Pending(5, "tick", 2), Pending(5, "flush", 2)])
def test_an_interrupted_epoch_is_found_again(store: Store, note: Pending) -> None:
    note.write(store)
    assert interrupted(store, LAST) == note


def test_an_epoch_that_has_its_manifest_is_not_pending(store: Store) -> None:
    Pending(4, "batch", 2).write(store)
    assert interrupted(store, LAST) is None


def test_a_new_checkpoint_has_nothing_pending(store: Store) -> None:
    assert interrupted(store, NEW) is None
    Pending(0, "batch", 0).write(store)
    assert interrupted(store, NEW) == Pending(0, "batch", 0)


@pytest.mark.parametrize(
    "note", [Pending(6, "batch", 3), Pending(3, "batch", 2), Pending(5, "batch", 4), Pending(5, "tick", 3)]
)
def test_a_note_that_does_not_fit_the_newest_manifest_means_that_one_is_missing(store: Store, note: Pending) -> None:
    note.write(store)
    with pytest.raises(CheckpointDamaged, match="a manifest is missing"):
        interrupted(store, LAST)


def test_a_missing_note_is_an_error_once_there_is_a_manifest(store: Store) -> None:
    with pytest.raises(CheckpointDamaged, match="note on the pending epoch is missing"):
        interrupted(store, LAST)


def test_an_altered_note_is_an_error_wherever_it_was_altered(store: Store) -> None:
    note = Pending(5, "flush", 2)
    note.write(store)
    whole = store.read(PATH)
    for place in range(len(whole)):
        for bad in (whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :], whole[:place]):
            store.write(PATH, bad, durable=False)
            try:
                found = interrupted(store, LAST)
            except (CheckpointDamaged, UnknownFormat):
                continue
            assert found == note  # white space after the end


def test_a_note_that_makes_no_sense_is_an_error(store: Store) -> None:
    for body in ({"epoch": 5}, {"epoch": 5, "kind": "nap", "batch": 2}, {"epoch": "5", "kind": "tick", "batch": 2}):
        store.write(PATH, seal("pending", 2, body))
        with pytest.raises(CheckpointDamaged, match="makes no sense"):
            interrupted(store, LAST)
    store.write(PATH, seal("pending", 3, {}))
    with pytest.raises(UnknownFormat):
        interrupted(store, replace(LAST))
