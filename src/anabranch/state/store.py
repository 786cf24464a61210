"""Store: the checkpoint folder, wherever it is. The only code that touches files of the state.

A store is named by its URI and by nothing else: a worker reopens it from the URI, which costs nothing when the process
has done so before. `LocalStore` (here) is a folder of this host and memory-maps; `RemoteStore` (`state/remote.py`) is
whatever pyarrow.fs or fsspec opens, and maps a copy that it caches on the host.

Every write goes aside first and is renamed, so that a path that exists is complete. With ``durable`` it is fsynced as
well; without, it survives the death of the process but maybe not of the machine.

Paths inside a store are relative and made of plain characters. They come from manifests and operator names, that is
from data, and are never trusted: anything else is refused before a file is touched.

Limits: POSIX only. Symbolic links inside the folder are followed. On a file system without hard links, and on remote
stores, ``replace=False`` is a check before the write and not one atomic act.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from anabranch.errors import CheckpointError, SettingError

ASIDE = ".tmp"  # the ending of a file that is being written, or that its writer left behind when it died
_COMPONENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=,@+-]{0,199}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_CANNOT_LINK = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})

_stores: dict[tuple[int, str], Store] = {}
_stores_lock = threading.Lock()


def is_path(path: object) -> bool:
    """Whether this is a path inside a store: relative, plain characters, no '..', no hidden names."""
    return isinstance(path, str) and all(_COMPONENT.fullmatch(part) for part in path.split("/"))


def check_path(path: object) -> str:
    if not is_path(path):
        raise CheckpointError(
            f"{path!r} is not a path inside a checkpoint",
            fix="paths are relative, and made of letters, digits and _ . = , @ + - only",
        )
    return str(path)


def aside(path: str) -> str:
    """A name beside the path that no other attempt uses."""
    return f"{path}.{os.urandom(6).hex()}{ASIDE}"


def map_file(full: str) -> Any:
    """A file of this host as a pyarrow Buffer."""
    handle = os.open(full, os.O_RDONLY)
    try:
        return map_handle(handle)
    finally:
        os.close(handle)


def map_handle(handle: int) -> Any:
    """An open file as a pyarrow Buffer, which outlives the handle.

    Python's mmap rather than pa.memory_map: the same mapping at a third of the cost (measured: 12 us, not 36).
    """
    size = os.fstat(handle).st_size
    return pa.py_buffer(mmap.mmap(handle, size, prot=mmap.PROT_READ) if size else b"")


class Store(ABC):
    """A folder of immutable files. Cheap to open, safe to use from several threads and processes at once."""

    uri: str  # opens the same store in any process
    local: bool  # whether `map` maps the file itself

    @staticmethod
    def open(uri: str) -> Store:
        """The store at a path, a file:// URI, or any URI that pyarrow.fs or fsspec opens. Creates nothing."""
        name = uri if _is_remote(uri) else _local_root(uri)
        key = (os.getpid(), name)  # a forked child must not share its parent's connections
        with _stores_lock:
            store = _stores.get(key)
            if store is None:
                if _is_remote(name):
                    from anabranch.state.remote import RemoteStore  # only who needs it pays for pyarrow.fs

                    store = RemoteStore.connect(name)
                else:
                    store = LocalStore(name)
                _stores[key] = store
        return store

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The whole content. FileNotFoundError if it is not there, here and in `map` and `size`."""

    @abstractmethod
    def write(self, path: str, data: Any, *, durable: bool = True, replace: bool = True) -> None:
        """All of the bytes-like `data`, or nothing. ``replace=False``: FileExistsError if the path exists."""

    @abstractmethod
    def map(self, path: str) -> Any:
        """The content as a pyarrow Buffer without reading it. For files that never change: a copy may be served."""

    @abstractmethod
    def size(self, path: str) -> int: ...

    @abstractmethod
    def list(self, prefix: str = "") -> Sequence[str]:
        """All files below a folder, sorted, with those left aside; none if there is no such folder. Names that are not
        paths of a store are not ours and are left out."""

    @abstractmethod
    def top(self, limit: int = 20) -> Sequence[str]:
        """A few names directly in the folder, whatever they are: to tell whether it is empty, and what it is."""

    @abstractmethod
    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; one that is gone already is no error."""

    def exists(self, path: str) -> bool:
        try:
            self.size(path)
        except FileNotFoundError:
            return False
        return True

    def prefetch(self, paths: Sequence[str]) -> bool:
        """Whether all of these files are on this host; those that are not are being copied when this returns."""
        return True

    def refresh(self, path: str) -> bool:
        """Forget a copy that `map` may have served. Whether there was one, that is, whether a second look can help."""
        return False

    def __repr__(self) -> str:
        return f"Store.open({self.uri!r})"


class LocalStore(Store):
    """A folder of this host."""

    local = True

    def __init__(self, root: str) -> None:
        self.uri = root

    def read(self, path: str) -> bytes:
        with open(self._full(path), "rb") as file:
            return file.read()

    def write(self, path: str, data: Any, *, durable: bool = True, replace: bool = True) -> None:
        full = self._full(path)
        spare = aside(full)
        try:
            try:
                _write(spare, data, durable)
            except FileNotFoundError:
                _make_folders(os.path.dirname(full), durable)
                _write(spare, data, durable)
            if replace:
                os.rename(spare, full)
            else:
                _rename_new(spare, full)
        except BaseException:
            _unlink(spare)
            raise
        if durable:
            _sync_folder(os.path.dirname(full))

    def map(self, path: str) -> Any:
        return map_file(self._full(path))

    def size(self, path: str) -> int:
        return os.stat(self._full(path)).st_size

    def list(self, prefix: str = "") -> Sequence[str]:
        found = []
        for folder, _, files in os.walk(self._full(prefix) if prefix else self.uri):
            inside = os.path.relpath(folder, self.uri)
            found += [name if inside == "." else f"{inside}/{name}" for name in files]
        return sorted(filter(is_path, found))

    def top(self, limit: int = 20) -> Sequence[str]:
        try:
            with os.scandir(self.uri) as entries:
                return sorted(entry.name for entry, _ in zip(entries, range(limit), strict=False))
        except FileNotFoundError:
            return []

    def delete(self, paths: Iterable[str]) -> None:
        for full in [self._full(path) for path in paths]:
            _unlink(full)

    def _full(self, path: str) -> str:
        return f"{self.uri}/{check_path(path)}"


def folder_of(uri: str) -> str | None:
    """The absolute path of a location that is a folder of this host; None if it lies elsewhere."""
    return None if _is_remote(uri) else _local_root(uri)


def _is_remote(uri: object) -> bool:
    match = _SCHEME.match(uri) if isinstance(uri, str) else None
    return match is not None and match.group(1).lower() != "file"


def _local_root(uri: object) -> str:
    """The absolute path of a local store: what a worker in another working directory opens, too."""
    if isinstance(uri, Path):
        uri = str(uri)
    if not isinstance(uri, str) or not uri.strip() or "\0" in uri:
        raise SettingError(
            f"{uri!r} is not a checkpoint location",
            where="option 'checkpointLocation'",
            fix="give a folder, a file:// URI, or a URI that pyarrow.fs or fsspec opens",
        )
    if uri.lower().startswith("file:"):
        path = uri[len("file:") :]
        if path.startswith("//"):
            host, slash, rest = path[2:].partition("/")
            if host not in ("", "localhost"):
                raise SettingError(
                    f"{uri!r} names the host {host!r}, and a file URI can only mean this host",
                    where="option 'checkpointLocation'",
                    fix=f"write file:///{host}/... if it is the first folder of the path",
                )
            path = slash + rest
        uri = unquote(path)
        if not uri.startswith("/"):
            raise SettingError(
                f"the file URI {uri!r} has no absolute path",
                where="option 'checkpointLocation'",
                fix="write file:///folder/... or a plain relative path",
            )
    root = os.path.abspath(uri)
    if root == "/":
        raise SettingError("the root folder cannot be a checkpoint", where="option 'checkpointLocation'")
    return root


def _write(full: str, data: Any, durable: bool) -> None:
    with open(full, "xb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _make_folders(folder: str, durable: bool) -> None:
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    if missing:
        os.makedirs(missing[0], exist_ok=True)
    if durable:  # a folder is durable once the folder that names it is
        for made in missing:
            _sync_folder(os.path.dirname(made))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _rename_new(spare: str, full: str) -> None:
    """Rename without replacing. A hard link is the one atomic way that Python's library offers."""
    try:
        os.link(spare, full)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        if os.path.lexists(full):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), full) from None
        os.rename(spare, full)
    else:
        _unlink(spare)


def _unlink(full: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(full)
