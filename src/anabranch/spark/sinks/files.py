"""Folders of files (parquet, orc, json, csv), each epoch in them once and never half.

Spark writes an epoch into a hidden staging folder; the files then get names that carry the epoch and move into place;
and an entry in the folder's log (`filelog.py`) makes them part of the table. Spark's readers go by that log, so they
see an epoch whole or not at all. An epoch that has its entry is never written again.
Readers that ignore the log (a glob) may meet the files of an epoch a moment before its entry.
"""

from __future__ import annotations

import os
import re
import uuid
from typing import Any
from urllib.parse import quote

import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.errors import SinkError
from anabranch.spark.sinks.base import Sink
from anabranch.spark.sinks.filelog import FileLog

FORMATS = ("parquet", "orc", "json", "csv")
STAGING = "_anabranch_staging"
_OURS = re.compile(r"part-\d{9}-\d{4}-")


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
        self.fs, self.root, self.spark_path, uri = open_folder(path)
        self.log = FileLog(self.fs, self.root, uri)
        self.checkpoint = ""

    @property
    def count(self) -> int:
        """Files in the folder so far."""
        return len(self.log.entries)

    def describe(self) -> str:
        return f"{self.format}[{self.path}]"

    def check(self, session: SparkSession, schema: StructType) -> None:
        check_columns(schema, self.format, self.partition_by, self.describe())
        if self.fs.get_file_info(self.root).type == pafs.FileType.File:
            raise SinkError("the output path is a file", where=self.path, fix="give a folder")

    def start(self, session: SparkSession, schema: StructType, first_epoch: int, checkpoint: str) -> None:
        self.log.open()
        self._check(first_epoch, checkpoint)
        self.checkpoint = checkpoint
        self.fs.create_dir(self.root, recursive=True)
        if self.log.owner() != checkpoint:
            self.log.mark(checkpoint)
        self._sweep()

    def _check(self, first_epoch: int, checkpoint: str) -> None:
        """The folder is the one that this checkpoint wrote, and as far as the checkpoint thinks."""
        last, owner = self.log.last, self.log.owner()
        if last < 0 and first_epoch == 0:
            strangers = [f for f in self._files() if not _OURS.match(f.rpartition("/")[2])]
            if strangers:
                raise SinkError(
                    f"the output folder holds files that no query of Anabranch wrote, e.g. {strangers[0]}",
                    where=self.path,
                    fix="use an empty folder: readers will go by a log that does not know these files",
                )
        elif last >= 0 and owner != checkpoint:
            raise SinkError(
                f"the output folder belongs to another checkpoint, which has written {last + 1} epochs"
                if owner is not None
                else "the output folder was written by a streaming query of Spark's own",
                where=self.path,
                fix="use an empty folder for a new checkpoint, or the checkpoint that wrote this folder",
            )
        elif last > first_epoch:
            raise SinkError(
                f"the folder already holds {last + 1} epochs, this query is about to write epoch {first_epoch}",
                where=self.path,
                fix="restore the checkpoint that wrote this folder, or use an empty folder and a new checkpoint",
            )
        elif last < first_epoch - 1:
            raise SinkError(
                f"the folder lacks epochs {last + 1} to {first_epoch - 1}: it is not the one this checkpoint wrote",
                where=self.path,
                fix="use the folder the query had before, or start with a new checkpointLocation",
            )

    def write(self, rows: DataFrame, epoch: int) -> None:
        if epoch <= self.log.last:  # written before the crash; the rows are still computed, for the state
            rows.write.format("noop").mode("overwrite").save()
            return
        attempt = uuid.uuid4().hex[:8]
        staging = f"{STAGING}/{epoch:09d}-{attempt}"
        writer = rows.write.format(self.format).options(**self.options)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.save(f"{self.spark_path}/{staging}")
        files = self._move_in(staging, epoch, attempt)
        if self.log.owner() != self.checkpoint:
            raise SinkError(
                "the output folder has been taken over by another checkpoint", where=self.path,
                fix="give each query a folder of its own, and stop one of the two",
            )  # fmt: skip
        self.log.append(epoch, files)
        self.fs.delete_dir(f"{self.root}/{staging}")

    def _move_in(self, staging: str, epoch: int, attempt: str) -> list[tuple[str, int]]:
        """Rename the staged files into place; one with no rows is left behind (if that can be told cheaply)."""
        base = f"{self.root}/{staging}"
        moved: list[tuple[str, int]] = []
        infos = self.fs.get_file_info(pafs.FileSelector(base, recursive=True))
        files = sorted((f for f in infos if f.type == pafs.FileType.File), key=lambda f: str(f.path))
        for info in files:
            relative = str(info.path)[len(base) + 1 :]
            folder, _, name = relative.rpartition("/")
            if name.startswith(("_", ".")) or info.size == 0 or self._empty(str(info.path)):
                continue
            suffix = re.sub(r"^part-\d+-[0-9a-f-]+", "", name)
            target = f"{folder}/" if folder else ""
            target += f"part-{epoch:09d}-{len(moved):04d}-{attempt}{suffix}"
            if folder:
                self.fs.create_dir(f"{self.root}/{folder}", recursive=True)
            self.fs.move(str(info.path), f"{self.root}/{target}")
            moved.append((target, info.size))
        return moved

    def _empty(self, path: str) -> bool:
        if self.format == "parquet":
            import pyarrow.parquet as pq

            with self.fs.open_input_file(path) as file:
                return bool(pq.ParquetFile(file).metadata.num_rows == 0)
        return False

    def _files(self) -> list[str]:
        """What a reader without the log would take for data."""
        infos = self.fs.get_file_info(pafs.FileSelector(self.root, allow_not_found=True, recursive=True))
        names = [str(i.path)[len(self.root) + 1 :] for i in infos if i.type == pafs.FileType.File]
        return [n for n in names if not any(part.startswith(("_", ".")) for part in n.split("/"))]

    def _sweep(self) -> None:
        """Remove what a crash left: staged files, and files in place that have no entry."""
        self.stop()
        known = self.log.names()
        for file in self._files():
            name = file.rpartition("/")[2]
            if _OURS.match(name) and quote(name) not in known:
                self.fs.delete_file(f"{self.root}/{file}")

    def stop(self) -> None:
        staging = f"{self.root}/{STAGING}"
        if self.fs.get_file_info(staging).type != pafs.FileType.NotFound:
            self.fs.delete_dir(staging)


def check_columns(schema: StructType, format: str, partition_by: tuple[str, ...], where: str) -> None:
    """What Spark would find out when it writes the first rows."""
    names = [n.lower() for n in schema.names]
    missing = [c for c in partition_by if c.lower() not in names]
    if missing:
        raise SinkError(
            f"partitionBy names columns that the output lacks: {', '.join(missing)}", where=where,
            fix=f"the output columns are {', '.join(schema.names)}",
        )  # fmt: skip
    if len(names) == len(partition_by):
        raise SinkError("partitionBy names every column, so that no file would hold any", where=where,
                        fix="leave one out")  # fmt: skip
    for field in schema.fields:
        type = field.dataType.simpleString()
        nested = type.startswith(("struct<", "array<", "map<")) or type in ("variant", "binary")
        if type == "void" or (format == "csv" and nested):
            raise SinkError(
                f"column {field.name} has the type {type}, which {format} cannot hold", where=where,
                fix=f"convert it in the query, e.g. CAST({field.name} AS STRING) or to_json({field.name})",
            )  # fmt: skip
        if field.name.lower() in [c.lower() for c in partition_by] and nested:
            raise SinkError(f"partitionBy({field.name}): its type is {type}", where=where,
                            fix="partition by a number, text or date")  # fmt: skip


def open_folder(path: str) -> tuple[Any, str, str, str]:
    """A local path or any URI that pyarrow opens: the file system, the folder in it, the path for Spark, and the
    percent-encoded URI for the log."""
    if "://" in path or path.startswith("file:"):
        fs, root = pafs.FileSystem.from_uri(path)
        root = root.rstrip("/")
        if not isinstance(fs, pafs.LocalFileSystem):
            return fs, root, path.rstrip("/"), path.rstrip("/")
    else:
        fs, root = pafs.LocalFileSystem(), os.path.abspath(path)
    return fs, root, root, f"file://{quote(root)}"
