"""Owner: one run at a time works on a checkpoint. Taken before anything is swept, checked in every epoch.

Two guards, since neither is enough alone:

1. On a folder of this host the file `owner.json` is locked (`flock`) for as long as the run lives. The system lets go
   of the lock when a process dies, however it dies, so a restart never waits for a dead run; a second run is refused
   before it touches anything, and told who has the checkpoint.
2. On any store the file says which run took the checkpoint last. A run that finds another one's name there has been
   replaced (somebody started a second one elsewhere, or took it for dead) and must write nothing more.

Limits: without `flock` (remote stores, some network file systems) the later of two runs wins, and the earlier learns of
it at its next check: what it does in between is undone by the manifest and by the sink's own log, which no two runs
can write for the same epoch.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from datetime import UTC, datetime
from typing import Any

from anabranch.errors import CheckpointError
from anabranch.state.store import LocalStore, Store

PATH = "owner.json"
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL})
_FIX = "give each query a checkpoint folder of its own, and stop one of the two"


class Owner:
    """A run's hold on a checkpoint."""

    def __init__(self, store: Store, run: str) -> None:
        self._store = store
        self._run = run
        self._handle: int | None = None
        self.held = False

    def take(self) -> None:
        """CheckpointError if a living run has it, as far as that can be known."""
        text = json.dumps(
            {
                "run": self._run,
                "host": socket.gethostname(),
                "process": os.getpid(),
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        ).encode()
        if isinstance(self._store, LocalStore):
            self._lock(f"{self._store.uri}/{PATH}", text)
        else:
            self._store.write(PATH, text)
        self.held = True

    def check(self) -> None:
        """CheckpointError if another run has taken the checkpoint since."""
        try:
            raw = self._store.read(PATH)
        except FileNotFoundError:
            raw = b""
        if _run_of(raw) != self._run:
            raise CheckpointError(
                f"another query has taken over this checkpoint: {_who(raw)}", where=self._store.uri, fix=_FIX
            )

    def release(self) -> None:
        """Let go; without effect if it was never taken."""
        self.held = False
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _lock(self, full: str, text: bytes) -> None:
        # Written in place and never renamed: the lock is on the file, not on its name.
        handle = os.open(full, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(handle)
            os.ftruncate(handle, 0)
            os.pwrite(handle, text, 0)
        except BlockingIOError:
            who = _who(os.pread(handle, 4096, 0))
            os.close(handle)
            raise CheckpointError(
                f"another query is using this checkpoint: {who}", where=self._store.uri, fix=_FIX
            ) from None
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle


def _lock(handle: int) -> None:
    """BlockingIOError if somebody holds it. A file system that knows no locks leaves us with the second guard."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def _run_of(raw: bytes) -> Any:
    return _content(raw).get("run")


def _who(raw: bytes) -> str:
    owner = _content(raw)
    if not owner:
        return "its owner is not known"
    return f"process {owner.get('process')} on {owner.get('host')}, since {owner.get('since')}"


def _content(raw: bytes) -> dict[str, Any]:
    try:
        owner = json.loads(raw)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}
