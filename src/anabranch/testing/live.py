"""The same scripts as a real streaming query: files, offsets, checkpoints, foreachBatch.

The cut into epochs is exact: one file per stream and epoch, one file per trigger, and a file without rows where a
stream has nothing new. With `apart`, every epoch is a start of its own on the same checkpoint, and a stream with
nothing new has no file. That Spark cut as asked is checked from the query's progress.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.errors import AnabranchError
from anabranch.spark.api import Flow
from anabranch.testing import tables
from anabranch.testing.drive import nothing
from anabranch.testing.script import Abort, Epoch, Restart, Script, Stream, Tick
from anabranch.testing.sink import Kept


def live(
    flow: Flow,
    streams: Sequence[Stream],
    script: Script,
    folder: Path,
    options: Mapping[str, Any] | None = None,
    kept: Kept | None = None,
    apart: bool = False,
) -> pa.Table:
    """All rows that the flow gives for the script, flushed at its end. `folder` is the one given to `opened`."""
    runner = _Runner(flow, streams, folder, dict(options or {}), kept or Kept(), apart)
    for step in script:
        if isinstance(step, (Restart, Tick)):  # the end of a run releases what the watermark allows
            runner.run()
            if isinstance(step, Restart) and step.sites is not None:
                runner.options["sites"] = step.sites
        elif isinstance(step, Abort):
            runner.run()
            runner.abort = step
        elif isinstance(step, Mapping):
            runner.epoch(step)  # what moves and what runs short is drawn for driven epochs only
    runner.run(last=True)
    found = runner.kept.table()
    return found if found is not None else nothing(flow)


class _Runner:
    def __init__(
        self, flow: Flow, streams: Sequence[Stream], folder: Path, options: dict[str, Any], kept: Kept, apart: bool
    ) -> None:
        self.flow = flow
        self.streams = streams
        self.folder = folder
        self.options = options
        self.kept = kept
        self.apart = apart
        self.abort: Abort | None = None
        self.waiting: list[dict[str, int]] = []  # rows per stream, of the epochs that have files but no run yet
        self.written = 0

    def epoch(self, epoch: Epoch) -> None:
        present = {s.name: len(epoch.get(s.name, ())) for s in self.streams}
        if self.apart and not any(present.values()):
            return  # Spark runs no epoch without new files
        self.written += 1
        for stream in self.streams:
            if self.apart and not present[stream.name]:
                continue
            path = self.folder / stream.name / f"{self.written:05d}.parquet"
            aside = path.with_name(f".{path.name}")
            pq.write_table(tables.table(stream.ddl, epoch.get(stream.name, ())), aside)
            os.utime(aside, (1_700_000_000 + self.written, 1_700_000_000 + self.written))  # files go in this order
            aside.rename(path)
        self.waiting.append(present)
        if self.apart or self.abort is not None:
            self.run()

    def run(self, last: bool = False) -> None:
        """Everything that is there, in one start, or two where the first one dies."""
        if not self.waiting and not last:
            return
        if self.abort is not None and self.waiting and self.abort.at != "offsets":
            self.kept.abort = self.abort
            try:
                self._start(False)
            except AnabranchError as error:
                if "is written" not in str(error):
                    raise
            else:
                raise AssertionError("the abort did not happen")
        asked, self.waiting = self.waiting, []
        aborted, self.abort = self.abort, None
        happened = self._start(last)
        if aborted is None or aborted.at == "offsets":
            self._check(asked, happened)

    def _start(self, last: bool) -> list[dict[str, int]]:
        writer = self.flow.writeStream.foreachBatch(self.kept.put)
        writer = writer.options(**self.options).option("flushAtEnd", last)
        query = writer.option("checkpointLocation", str(self.folder / "checkpoint")).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return [
            {s["description"]: s["numInputRows"] for s in p["sources"]}
            for p in query.recentProgress
            if p["kind"] == "batch"
        ]

    def _check(self, asked: list[dict[str, int]], happened: list[dict[str, int]]) -> None:
        known = [{name: n for name, n in epoch.items() if name in self.flow.inputs} for epoch in asked]
        assert len(happened) == len(known), f"{len(known)} epochs were asked for, Spark made {len(happened)}"
        assert happened == known, f"asked for {known}, Spark made {happened}"
