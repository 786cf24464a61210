"""The journal as it lies in a checkpoint: one file for each epoch in which something was decided or seen.

What an entry says is `control/journal.py`'s business; here it is a JSON object with an id. An entry may be written
twice, first when it is decided and again when its effect has been seen: the last word counts. Each file also tells the
next free id, so that a restart gives no id a second time.

The journal is a record, and nothing depends on it: it is not fsynced, and the oldest files are deleted.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any

from anabranch.errors import CheckpointDamaged
from anabranch.state.envelope import seal, unseal
from anabranch.state.store import Store

FOLDER = "journal"
FORMAT = 1
KEPT_FILES = 256
_NAME = re.compile(rf"{FOLDER}/([0-9]{{12}})\.json")
_FIX = "delete the file: it is only a record"


class JournalFiles:
    """The files of one checkpoint, written by one run at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._epochs = deque(epochs(store))

    def next_id(self) -> int:
        """The first id that no entry has had."""
        if not self._epochs:
            return 0
        found: int = _read(self._store, self._epochs[-1])["next"]
        return found

    def write(self, epoch: int, entries: Sequence[dict[str, Any]], next_id: int) -> None:
        """What is new since the last file, or has changed; an epoch that runs again replaces its file."""
        body = {"entries": list(entries), "next": next_id}
        self._store.write(_path(epoch), seal("journal", FORMAT, body), durable=False)
        if not self._epochs or self._epochs[-1] != epoch:
            self._epochs.append(epoch)
        gone = [self._epochs.popleft() for _ in range(len(self._epochs) - KEPT_FILES)]
        if gone:
            self._store.delete([_path(e) for e in gone])


def epochs(store: Store) -> list[int]:
    """The epochs that have a file, ascending."""
    return sorted(int(match.group(1)) for path in store.list(FOLDER) if (match := _NAME.fullmatch(path)))


def read_entries(store: Store) -> list[dict[str, Any]]:
    """Every entry that is still there, by id. The query may be running: a file that goes meanwhile is left out."""
    found: dict[int, dict[str, Any]] = {}
    for epoch in epochs(store):
        try:
            body = _read(store, epoch)
        except FileNotFoundError:
            continue
        for entry in body["entries"]:
            found[entry["id"]] = entry
    return [found[id] for id in sorted(found)]


def _read(store: Store, epoch: int) -> dict[str, Any]:
    path = _path(epoch)
    where = f"{path} in {store.uri}"
    body = unseal("journal", FORMAT, store.read(path), where=where, fix=_FIX)
    good = type(body.get("next")) is int and type(body.get("entries")) is list
    if not good or not all(type(e) is dict and type(e.get("id")) is int for e in body["entries"]):
        raise CheckpointDamaged("the journal makes no sense", where=where, fix=_FIX)
    return body


def _path(epoch: int) -> str:
    return f"{FOLDER}/{epoch:012d}.json"
