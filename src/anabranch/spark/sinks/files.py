"""Folders of files (parquet, orc, json, csv), each epoch in them once and never half.

Spark writes an epoch into a hidden staging folder; the files then get names that carry the epoch and move into place;
and an entry in `_spark_metadata`, in the format of Spark's own file sink, makes them part of the table. Spark's
readers go by that log, so they see an epoch whole or not at all. An epoch that has its entry is never written again.
Readers that ignore the log (a glob) may meet the files of an epoch a moment before its entry.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from typing import Any

import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.errors import SinkError
from anabranch.spark.sinks.base import Sink

FORMATS = ("parquet", "orc", "json", "csv")
LOG = "_spark_metadata"
STAGING = "_anabranch_staging"
COMPACT_EVERY = 10  # what Spark's reader expects of the log: every tenth entry repeats all before it


class FileSink(Sink):
    name = "files"

    def __init__(
        self,
        path: str,
        format: str = "parquet",
        options: dict[str, str] | None = None,
        partition_by: tuple[str, ...] = (),
    ) -> None:
        if format not in FORMATS:
            raise SinkError(f"format {format!r} is not a file format", fix=f"use one of {', '.join(FORMATS)}")
        self.path = path
        self.format = format
        self.options = options or {}
        self.partition_by = partition_by
        self.fs, self.root = open_folder(path)
        self._entries: list[str] | None = None  # of all epochs so far, for the next compaction
        self._next = 0

    @property
    def count(self) -> int:
        """Files in the folder so far."""
        return len(self._entries or ())

    def describe(self) -> str:
        return f"{self.format}[{self.path}]"

    def start(self, session: SparkSession, schema: StructType, first_epoch: int) -> None:
        missing = [c for c in self.partition_by if c not in schema.names]
        if missing:
            raise SinkError(f"partitionBy names columns that the output lacks: {', '.join(missing)}",
                            where=self.describe(), fix=f"output columns: {', '.join(schema.names)}")  # fmt: skip
        if self.fs.get_file_info(self.root).type == pafs.FileType.File:
            raise SinkError(f"the output path {self.path} is a file", fix="give a folder")
        self.fs.create_dir(self.root, recursive=True)
        epochs = self._logged()
        if epochs and max(epochs) > first_epoch:
            raise SinkError(
                f"the folder already holds {max(epochs) + 1} epochs, this query is about to write epoch {first_epoch}",
                where=self.path,
                fix="use an empty folder for a new checkpoint, or the checkpoint that wrote this folder",
            )  # fmt: skip
        if (epochs and max(epochs) < first_epoch - 1) or (not epochs and first_epoch > 0):
            raise SinkError(
                f"the folder lacks epochs before {first_epoch}: it is not the one this checkpoint wrote",
                where=self.path,
                fix="use the folder the query had before, or start with a new checkpointLocation",
            )  # fmt: skip
        self._entries = self._read_entries(epochs)
        self._next = max(epochs) + 1 if epochs else 0
        self._sweep()

    def write(self, rows: DataFrame, epoch: int) -> None:
        if epoch < self._next:  # written before the crash; the rows are still computed, for the state
            rows.write.format("noop").mode("overwrite").save()
            return
        staging = f"{STAGING}/{epoch:09d}-{uuid.uuid4().hex[:8]}"
        writer = rows.write.format(self.format).options(**self.options)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(f"{self.path.rstrip('/')}/{staging}")
        entries = self._move_in(staging, epoch)
        self._log(epoch, entries)
        self.fs.delete_dir(f"{self.root}/{staging}")

    def _move_in(self, staging: str, epoch: int) -> list[str]:
        """Rename the staged files into place; one with no rows is left behind (parquet and orc know by their size)."""
        base = f"{self.root}/{staging}"
        entries: list[str] = []
        infos = self.fs.get_file_info(pafs.FileSelector(base, recursive=True))
        files = sorted((f for f in infos if f.type == pafs.FileType.File), key=lambda f: str(f.path))
        for info in files:
            relative = str(info.path)[len(base) + 1 :]
            folder, _, name = relative.rpartition("/")
            if name.startswith(("_", ".")) or info.size == 0 or self._empty(str(info.path)):
                continue
            suffix = re.sub(r"^part-\d+-[0-9a-f-]+", "", name)
            target = f"{folder}/" if folder else ""
            target += f"part-{epoch:09d}-{len(entries):04d}{suffix}"
            if folder:
                self.fs.create_dir(f"{self.root}/{folder}", recursive=True)
            self.fs.move(str(info.path), f"{self.root}/{target}")
            entries.append(self._entry(target, info.size))
        return entries

    def _empty(self, path: str) -> bool:
        if self.format == "parquet":
            import pyarrow.parquet as pq

            with self.fs.open_input_file(path) as file:
                return bool(pq.ParquetFile(file).metadata.num_rows == 0)
        return False

    def _entry(self, target: str, size: int) -> str:
        uri = self.path.rstrip("/") if "://" in self.path else f"file://{self.root}"
        status: dict[str, Any] = {
            "path": f"{uri}/{target}", "size": size, "isDir": False, "modificationTime": int(time.time() * 1000),
            "blockReplication": 1, "blockSize": 33554432, "action": "add",
        }  # fmt: skip
        return json.dumps(status, separators=(",", ":"))

    # -- the log -----------------------------------------------------------------------------------------------

    def _logged(self) -> list[int]:
        infos = self.fs.get_file_info(pafs.FileSelector(f"{self.root}/{LOG}", allow_not_found=True))
        found = [re.fullmatch(r"(\d+)(\.compact)?", str(i.base_name)) for i in infos]
        return sorted(int(m.group(1)) for m in found if m)

    def _read_entries(self, epochs: list[int]) -> list[str]:
        if not epochs:
            return []
        compacts = [e for e in epochs if (e + 1) % COMPACT_EVERY == 0]
        start = max(compacts) if compacts else 0
        entries: list[str] = []
        for epoch in range(start, max(epochs) + 1):
            with self.fs.open_input_stream(self._log_path(epoch)) as file:
                entries += file.read().decode().splitlines()[1:]
        return entries

    def _log_path(self, epoch: int) -> str:
        return f"{self.root}/{LOG}/{epoch}" + (".compact" if (epoch + 1) % COMPACT_EVERY == 0 else "")

    def _log(self, epoch: int, entries: list[str]) -> None:
        self._entries = [*(self._entries or []), *entries]
        compact = (epoch + 1) % COMPACT_EVERY == 0
        lines = ["v1", *(self._entries if compact else entries)]
        self.fs.create_dir(f"{self.root}/{LOG}", recursive=True)
        aside = f"{self.root}/{LOG}/.{epoch}.{uuid.uuid4().hex[:8]}.tmp"
        with self.fs.open_output_stream(aside) as file:
            file.write("\n".join(lines).encode())
        self.fs.move(aside, self._log_path(epoch))
        self._next = epoch + 1

    def _sweep(self) -> None:
        """Remove what a crash left: staged files, and files in place whose epoch has no entry."""
        staging = f"{self.root}/{STAGING}"
        if self.fs.get_file_info(staging).type != pafs.FileType.NotFound:
            self.fs.delete_dir(staging)
        for info in self.fs.get_file_info(pafs.FileSelector(self.root, recursive=True)):
            named = re.match(r"part-(\d{9})-\d{4}\b", str(info.base_name))
            if info.type == pafs.FileType.File and named and int(named.group(1)) >= self._next:
                self.fs.delete_file(info.path)

    def stop(self) -> None:
        staging = f"{self.root}/{STAGING}"
        if self.fs.get_file_info(staging).type != pafs.FileType.NotFound:
            self.fs.delete_dir(staging)


def open_folder(path: str) -> tuple[pafs.FileSystem, str]:
    """A local path or any URI that pyarrow opens."""
    import os

    if "://" in path or path.startswith("file:"):
        fs, root = pafs.FileSystem.from_uri(path)
        return fs, root.rstrip("/")
    return pafs.LocalFileSystem(), os.path.abspath(path)
