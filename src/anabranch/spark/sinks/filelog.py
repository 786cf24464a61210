"""The log of an output folder: which files of which epoch are part of it, in the format of Spark's own file sink.

`_spark_metadata/<epoch>` names the files of an epoch; every tenth entry is `<epoch>.compact` and repeats all before it.
Spark's readers go by this log alone. An entry is written aside and appears under its name whole, once, and never over
another: of two runs that write the same epoch, one fails here, before a reader has seen anything of it.

Beside it, `_anabranch.json` says which checkpoint the folder belongs to: epoch 3 of another one is another epoch.

Limits: on stores that are no local folder, "never over another" is a check before the write and not one atomic act.
Entries are not fsynced: after a power failure the newest may be missing, which the next start tells.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pyarrow.fs as pafs

from anabranch.errors import SinkError

LOG = "_spark_metadata"
MARK = "_anabranch.json"
COMPACT_EVERY = 10
_VERSION = "v1"
_FIX = "use the folder the query had before, or an empty folder with a new checkpointLocation"


class FileLog:
    def __init__(self, fs: Any, root: str, uri: str) -> None:
        """`uri` is what readers know the folder as, percent-encoded, without a slash at its end."""
        self.fs = fs
        self.root = root
        self.uri = uri
        self.entries: list[str] = []  # of all epochs so far
        self.last = -1  # the newest epoch that has its entry

    def open(self) -> None:
        """Read what is there; SinkError if it cannot be continued."""
        infos = self.fs.get_file_info(pafs.FileSelector(f"{self.root}/{LOG}", allow_not_found=True))
        found = [re.fullmatch(r"(\d+)(\.compact)?", str(i.base_name)) for i in infos]
        epochs = {int(m.group(1)) for m in found if m and is_compact(int(m.group(1))) == bool(m.group(2))}
        self.last = max(epochs, default=-1)
        compacts = [e for e in epochs if is_compact(e)]
        first = max(compacts, default=0)
        self.entries = [line for epoch in range(first, self.last + 1) for line in self._read(epoch)]

    def append(self, epoch: int, files: Sequence[tuple[str, int]]) -> None:
        """Make (relative path, size) the content of an epoch."""
        if epoch != self.last + 1:
            raise SinkError(f"epoch {epoch} cannot follow epoch {self.last}", where=self.uri, fix=_FIX)
        new = [self._entry(path, size) for path, size in files]
        self.entries += new
        lines = [_VERSION, *(self.entries if is_compact(epoch) else new)]
        aside = f"{self.root}/{LOG}/.{epoch}.{uuid.uuid4().hex[:8]}.tmp"
        with self.fs.open_output_stream(aside) as file:
            file.write("\n".join(lines).encode())
        try:
            self._move_new(aside, self._path(epoch))
        except FileExistsError:
            raise SinkError(
                f"epoch {epoch} has been written already, by another query with the same output folder",
                where=self.uri,
                fix="give each query a folder of its own, and stop one of the two",
            ) from None
        finally:
            self._remove(aside)
        self.last = epoch

    def names(self) -> set[str]:
        """The files of all epochs, by the last part of their path."""
        return {str(json.loads(line)["path"]).rpartition("/")[2] for line in self.entries}

    # -- whose folder it is ------------------------------------------------------------------------------------

    def owner(self) -> str | None:
        """The checkpoint that the folder belongs to, as far as it says."""
        try:
            with self.fs.open_input_stream(f"{self.root}/{MARK}") as file:
                return str(json.loads(file.read())["checkpoint"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            return ""  # somebody's, but not readable: nobody's that asks

    def mark(self, checkpoint: str) -> None:
        aside = f"{self.root}/.{MARK}.{uuid.uuid4().hex[:8]}.tmp"
        with self.fs.open_output_stream(aside) as file:
            file.write(json.dumps({"checkpoint": checkpoint}).encode())
        self.fs.move(aside, f"{self.root}/{MARK}")
        # From here on Spark's readers go by the log: without it they would list files that are just moving in.
        self.fs.create_dir(f"{self.root}/{LOG}", recursive=True)

    # -- files -------------------------------------------------------------------------------------------------

    def _entry(self, path: str, size: int) -> str:
        status: dict[str, Any] = {
            "path": f"{self.uri}/{quote(path, safe='/=')}", "size": size, "isDir": False,
            "modificationTime": int(time.time() * 1000), "blockReplication": 1, "blockSize": 33554432, "action": "add",
        }  # fmt: skip
        return json.dumps(status, separators=(",", ":"))

    def _read(self, epoch: int) -> list[str]:
        path = self._path(epoch)
        lines: list[str]
        try:
            with self.fs.open_input_stream(path) as file:
                version, *lines = file.read().decode().splitlines()
            if version != _VERSION or not all(isinstance(json.loads(line)["path"], str) for line in lines):
                raise ValueError("not a log entry")
        except FileNotFoundError:
            raise SinkError(f"the log of the output folder lacks epoch {epoch}", where=path, fix=_FIX) from None
        except (ValueError, KeyError, TypeError) as error:
            raise SinkError(
                f"the log of the output folder is damaged at epoch {epoch}: {error}", where=path, fix=_FIX
            ) from None
        return lines

    def _path(self, epoch: int) -> str:
        return f"{self.root}/{LOG}/{epoch}" + (".compact" if is_compact(epoch) else "")

    def _move_new(self, aside: str, path: str) -> None:
        if isinstance(self.fs, pafs.LocalFileSystem):
            try:
                os.link(aside, path)
                return
            except FileExistsError:
                raise
            except OSError:
                pass  # a file system without hard links
        if self.fs.get_file_info(path).type != pafs.FileType.NotFound:
            raise FileExistsError(path)
        self.fs.move(aside, path)

    def _remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError, OSError):
            self.fs.delete_file(path)


def is_compact(epoch: int) -> bool:
    return (epoch + 1) % COMPACT_EVERY == 0
