"""A sink that keeps every epoch's rows, and dies where a test says so."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from anabranch.spark.sinks import Sink
from anabranch.testing import tables
from anabranch.testing.compare import difference
from anabranch.testing.script import Abort


class Aborted(Exception):
    """The crash that a script asked for."""


class Kept:
    """The rows of every epoch so far; outlives restarts, as a folder would.

    An epoch that comes again must bring the same rows: that is what makes sinks exactly-once.
    """

    def __init__(self, close: tuple[str, ...] = (), unordered: tuple[str, ...] = ()) -> None:
        self.epochs: dict[int, pa.Table] = {}
        self.abort: Abort | None = None
        self.close = close
        self.unordered = unordered

    def put(self, rows: DataFrame, epoch: int) -> None:
        found = rows.toArrow()
        if self.abort is not None and self.abort.at == "write":
            self.abort = None
            raise Aborted(f"before epoch {epoch} is written")
        before = self.epochs.get(epoch)
        if before is not None:
            changed = difference(
                tables.rows_of(found), tables.rows_of(before), found.column_names, self.close, self.unordered
            )
            assert changed is None, f"epoch {epoch} came again with other rows: {changed}"
        self.epochs[epoch] = found
        if self.abort is not None and self.abort.at == "commit":
            self.abort = None
            raise Aborted(f"after epoch {epoch} is written")

    def table(self) -> pa.Table | None:
        parts = [self.epochs[e] for e in sorted(self.epochs)]
        return pa.concat_tables(parts) if parts else None


class KeepingSink(Sink):
    """The same as a sink of the runtime's, for epochs that are driven in-process."""

    name = "kept"

    def __init__(self, kept: Kept) -> None:
        self.kept = kept

    def write(self, rows: DataFrame, epoch: int) -> None:
        self.kept.put(rows, epoch)
