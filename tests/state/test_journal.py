"""The journal's files: the last word on an entry counts, ids go on after a restart, old files go."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.errors import CheckpointDamaged
from anabranch.state import journal
from anabranch.state.journal import JournalFiles, epochs, read_entries
from anabranch.state.store import Store


def test_an_entry_that_is_written_twice_counts_once_as_it_was_written_last(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    files = JournalFiles(store)
    assert files.next_id() == 0
    assert read_entries(store) == []
    files.write(3, [{"id": 0, "observed": None}, {"id": 1, "observed": None}], 2)
    files.write(7, [{"id": 0, "observed": 5}, {"id": 2, "observed": None}], 3)
    assert read_entries(store) == [{"id": 0, "observed": 5}, {"id": 1, "observed": None}, {"id": 2, "observed": None}]


def test_a_restart_gives_no_id_twice_even_if_only_old_entries_were_written_last(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    files = JournalFiles(store)
    files.write(3, [{"id": 0}, {"id": 1}, {"id": 2}], 3)
    files.write(5, [{"id": 0}], 3)
    assert JournalFiles(store).next_id() == 3


def test_an_epoch_that_runs_again_replaces_its_file(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    JournalFiles(store).write(3, [{"id": 0}], 1)
    JournalFiles(store).write(3, [{"id": 1}], 2)
    assert read_entries(store) == [{"id": 1}]


def test_the_oldest_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "KEPT_FILES", 3)
    store = Store.open(str(tmp_path))
    files = JournalFiles(store)
    for n in range(6):
        files.write(n, [{"id": n}], n + 1)
    assert epochs(store) == [3, 4, 5]
    assert [e["id"] for e in read_entries(store)] == [3, 4, 5]


def test_an_altered_file_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    JournalFiles(store).write(3, [{"id": 0}], 1)
    path = tmp_path / "journal" / f"{3:012d}.json"
    path.write_text(path.read_text().replace('"id":0', '"id":1'))
    with pytest.raises(CheckpointDamaged, match="delete the file: it is only a record"):
        read_entries(store)
