"""The segments this process has open, and those whose checksum it has verified: bounded, the least used go first.

Python workers are reused but nothing that matters may live in them: everything here can be forgotten at any time.

Limits: a segment that has been deleted stays mapped, and takes its disk space, until it falls out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from anabranch.state.directory import Directory

Key = tuple[str, str, str]  # store, path, checksum

MAX_OPEN = 512
MAX_DIRECTORIES = 8_192
MAX_VERIFIED = 65_536

_lock = threading.Lock()
_open: OrderedDict[Key, Opened] = OrderedDict()
_directories: OrderedDict[Key, Directory] = OrderedDict()
_verified: OrderedDict[Key, None] = OrderedDict()


@dataclass
class Opened:
    """An opened segment, and the slices of it that were asked for last: most often they are asked for again."""

    table: Any
    directory: Directory
    mask: int  # the cells in the file
    last: tuple[tuple[int, frozenset[int] | None], Any] | None = None


def get(key: Key) -> Opened | None:
    with _lock:
        held = _open.get(key)
        if held is not None:
            _open.move_to_end(key)
        return held


def put(key: Key, held: Opened) -> None:
    with _lock:
        _open[key] = held
        while len(_open) > MAX_OPEN:
            _open.popitem(last=False)


def directory(key: Key) -> Directory | None:
    """The directory of a segment that was looked into, open or not."""
    with _lock:
        return _directories.get(key)


def put_directory(key: Key, found: Directory) -> None:
    with _lock:
        _directories[key] = found
        while len(_directories) > MAX_DIRECTORIES:
            _directories.popitem(last=False)


def is_verified(key: Key) -> bool:
    with _lock:
        return key in _verified


def set_verified(key: Key) -> None:
    with _lock:
        _verified[key] = None
        while len(_verified) > MAX_VERIFIED:
            _verified.popitem(last=False)


def forget() -> None:
    """Close everything and verify anew: as a fresh process would."""
    with _lock:
        _open.clear()
        _directories.clear()
        _verified.clear()
