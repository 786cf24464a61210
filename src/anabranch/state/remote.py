"""RemoteStore: a checkpoint on any file system that pyarrow.fs or fsspec opens, with a cache of copies on this host.

Files of a checkpoint that are mapped never change, so a copy is good for as long as it lasts. `HostCache` keeps copies
in a folder of this user, shared by all processes of the host and bounded in bytes; a worker that opens a segment which
another worker of the host opened before does not download it again.

Limits: the bound is enforced after a download, so it may be passed for a moment by the newest file. The rename that
makes a write atomic is the file system's own; S3 and GCS have none but show an object only once it is whole, so there
a write goes to its path directly. Durability is what the store gives.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from anabranch.errors import CheckpointError, SettingError
from anabranch.state.store import Store, aside, check_path, is_path, map_file, map_handle

CACHE_BYTES = 8 << 30
_CHUNK = 4 << 20
_WHOLE_OR_NOTHING = frozenset({"s3", "s3a", "s3n", "gs", "gcs"})


class RemoteStore(Store):
    """A folder of a pyarrow file system. `connect` finds the file system; tests bring their own."""

    local = False

    def __init__(self, uri: str, fs: Any, root: str, cache: HostCache | None = None) -> None:
        self.uri = uri
        self._fs = fs
        self._root = root.rstrip("/")
        self._cache = cache or HostCache()
        self._direct = uri.partition("://")[0].lower() in _WHOLE_OR_NOTHING
        self._folders: set[str] = set()
        self._ahead = threading.Lock()
        self._wanted: set[str] = set()  # being copied

    @staticmethod
    def connect(uri: str) -> RemoteStore:
        fs, root = _file_system(uri)
        return RemoteStore(uri, fs, root)

    def read(self, path: str) -> bytes:
        with self._fs.open_input_stream(self._full(path)) as stream:
            return bytes(stream.read())

    def write(self, path: str, data: Any, *, durable: bool = True, replace: bool = True) -> None:
        full = self._full(path)
        if not replace and self.exists(path):
            raise FileExistsError(f"{path} exists in {self.uri}")
        self._make_folder(full.rpartition("/")[0])
        target = full if self._direct else aside(full)
        try:
            with self._fs.open_output_stream(target) as stream:
                stream.write(data)
            if not self._direct:
                self._fs.move(target, full)
        except BaseException:
            if not self._direct:
                self._delete(target)
            raise

    def map(self, path: str) -> Any:
        return self._cache.map(self._key(path), lambda: self._fs.open_input_stream(self._full(path)))

    def prefetch(self, paths: Sequence[str]) -> bool:
        """Copied by one thread of this process, one file after the other. A copy that fails is tried again by `map`."""
        missing = [path for path in paths if not self._cache.has(self._key(path))]
        with self._ahead:
            fresh = [path for path in missing if path not in self._wanted]
            self._wanted.update(fresh)
        if fresh:
            threading.Thread(target=self._copy_ahead, args=(fresh,), name="anabranch-copy-ahead", daemon=True).start()
        return not missing

    def _copy_ahead(self, paths: Sequence[str]) -> None:
        for path in paths:
            try:
                self.map(path)
            except Exception:  # the state is opened again when it is needed, and a real fault shows then
                continue
            finally:
                with self._ahead:
                    self._wanted.discard(path)

    def refresh(self, path: str) -> bool:
        return self._cache.forget(self._key(path))

    def size(self, path: str) -> int:
        info = self._fs.get_file_info(self._full(path))
        if info.type != pafs.FileType.File:
            raise FileNotFoundError(f"there is no file {path} in {self.uri}")
        return int(info.size)

    def list(self, prefix: str = "") -> Sequence[str]:
        folder = self._full(prefix) if prefix else self._root
        infos = self._fs.get_file_info(pafs.FileSelector(folder, allow_not_found=True, recursive=True))
        names = (self._inside(info.path) for info in infos if info.type == pafs.FileType.File)
        return sorted(filter(is_path, names))

    def top(self, limit: int = 20) -> Sequence[str]:
        infos = self._fs.get_file_info(pafs.FileSelector(self._root, allow_not_found=True))
        return sorted(info.base_name for info in infos[:limit])

    def delete(self, paths: Iterable[str]) -> None:
        for full in [self._full(path) for path in paths]:
            self._delete(full)

    def _full(self, path: str) -> str:
        return f"{self._root}/{check_path(path)}"

    def _inside(self, full: str) -> str:
        # fsspec file systems differ in whether they give back a leading slash.
        return full.lstrip("/").removeprefix(self._root.lstrip("/")).lstrip("/")

    def _key(self, path: str) -> str:
        return f"{self.uri}/{check_path(path)}"

    def _make_folder(self, folder: str) -> None:
        if not self._direct and folder not in self._folders:
            self._fs.create_dir(folder, recursive=True)
            self._folders.add(folder)

    def _delete(self, full: str) -> None:
        try:
            self._fs.delete_file(full)
        except FileNotFoundError:
            pass
        except OSError:
            # Some file systems report a missing file as a plain I/O error.
            if self._fs.get_file_info(full).type != pafs.FileType.NotFound:
                raise


class HostCache:
    """Copies of remote files, named by a hash of where they come from. The oldest in use go first.

    Any number of processes may use the folder at once: a copy appears by rename, a copy that is deleted stays mapped
    where it is mapped, and whoever loses a race downloads again.
    """

    def __init__(self, folder: str | None = None, limit: int = CACHE_BYTES) -> None:
        self.folder = folder or os.path.join(tempfile.gettempdir(), f"anabranch-cache-{os.getuid()}")
        self.limit = limit

    def map(self, key: str, source: Any) -> Any:
        """The content for a key as a Buffer; ``source()`` opens the stream to copy it from if it is not here."""
        self._own_folder()
        full = self._path(key)
        try:
            buffer = map_file(full)
        except FileNotFoundError:
            with source() as stream:
                buffer = self._copy(stream, full)
            self._evict(keep=full)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.utime(full)  # the time of last use, as eviction reads it
        return buffer

    def has(self, key: str) -> bool:
        return os.path.exists(self._path(key))

    def forget(self, key: str) -> bool:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(key))
            return True
        return False

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, hashlib.sha256(key.encode()).hexdigest()[:40])

    def _own_folder(self) -> None:
        """The folder lies where others may write: it must be a real folder, ours, and closed to them."""
        with contextlib.suppress(FileExistsError):
            os.makedirs(self.folder, mode=0o700)
        info = os.lstat(self.folder)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o022:
            raise CheckpointError(
                f"the cache folder {self.folder} is not a folder that only this user can write",
                fix="delete it, or point TMPDIR of the workers elsewhere",
            )

    def _copy(self, stream: Any, full: str) -> Any:
        """Download aside, map, rename. Mapped by its handle: another process may evict the file at any time."""
        spare = aside(full)
        try:
            with open(spare, "xb+") as file:
                while chunk := stream.read(_CHUNK):
                    file.write(chunk)
                file.flush()
                buffer = map_handle(file.fileno())
            with contextlib.suppress(FileNotFoundError):  # evicted already: the mapping is all that is needed now
                os.rename(spare, full)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(spare)
            raise
        return buffer

    def _evict(self, keep: str) -> None:
        entries = []
        with os.scandir(self.folder) as found:
            for entry in found:
                try:
                    info = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                entries.append((info.st_mtime_ns, info.st_size, entry.path))
        surplus = sum(size for _, size, _ in entries) - self.limit
        for _, size, path in sorted(entries):
            if surplus <= 0:
                break
            if path != keep:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                surplus -= size


def _file_system(uri: str) -> tuple[Any, str]:
    """pyarrow's own file systems first: they need no further package and release the GIL."""
    try:
        fs, root = pafs.FileSystem.from_uri(uri)
        return fs, str(root)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error)
    try:
        import fsspec  # type: ignore[import-not-found,import-untyped,unused-ignore]  # an option of the user's
    except ImportError:
        raise SettingError(
            f"pyarrow cannot open {uri!r} ({reason})",
            where="option 'checkpointLocation'",
            fix="install fsspec and the package for this kind of store, on the workers too; or use a folder",
        ) from None
    try:
        fs, root = fsspec.core.url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise SettingError(
            f"neither pyarrow ({reason}) nor fsspec ({error}) can open {uri!r}",
            where="option 'checkpointLocation'",
            fix="install the package for this kind of store, on the workers too; or use a folder",
        ) from error
    return pafs.PyFileSystem(pafs.FSSpecHandler(fs)), str(root)
