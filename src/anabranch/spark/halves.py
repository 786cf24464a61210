"""A checkpointLocation has two halves: `spark`, where Spark keeps its offsets, and ours, with state and manifests.

They must be of the same life. Spark numbers its batches without gaps, and what batch n holds is in its file
`offsets/n`; a manifest records the checksum of the one it includes. If the halves do not fit, then one was lost,
restored from an older copy or put together with another one's, and rows would be lost or counted twice: an error.

Limits: a checkpointLocation that is not a folder of this host is not looked into; there only the batches' numbers are
compared, as they come.
"""

from __future__ import annotations

import os
import re
import zlib

from anabranch.errors import CheckpointDamaged, CheckpointMismatch
from anabranch.state.manifest import Manifest
from anabranch.state.store import folder_of

INSIDE = "spark"
_SPARK = frozenset({"offsets", "commits", "metadata", "sources", "state", "_spark_metadata"})
_FIX = "restore the checkpoint as a whole from a copy, or start again with a new, empty checkpoint folder"


class SparkHalf:
    def __init__(self, location: str) -> None:
        self.location = location
        root = folder_of(location)
        self._folder = None if root is None else f"{root}/{INSIDE}"

    def refuse_foreign(self) -> None:
        """CheckpointMismatch if the location is a checkpoint, or an output folder, of Spark's own."""
        if self._folder is None:
            return
        try:
            found = sorted(_SPARK.intersection(os.listdir(os.path.dirname(self._folder))))
        except FileNotFoundError:
            return
        if found:
            raise CheckpointMismatch(
                f"the folder is in use by a query of Spark's own: it holds {', '.join(found)}",
                where=self.location,
                fix="give the query a checkpoint folder of its own",
            )

    def offsets(self, batch: int) -> str | None:
        """What Spark's batch holds, as a checksum; None if that cannot be known."""
        if self._folder is None:
            return None
        try:
            with open(f"{self._folder}/offsets/{batch}", "rb") as file:
                return f"crc32:{zlib.crc32(file.read()):08x}"
        except FileNotFoundError:
            return None

    def check(self, last: Manifest) -> None:
        """Before a start: Spark goes on where the newest manifest is, or with the batch after it."""
        if self._folder is None:
            return
        planned, committed, batch = self._newest("offsets"), self._newest("commits"), last.batch
        if committed > batch or planned > batch + 1:
            raise _apart(f"Spark is at batch {max(committed, planned)}, the state at batch {batch}", self.location)
        self.check_replayed(last)

    def check_replayed(self, last: Manifest) -> None:
        """A batch that the manifest includes must hold what it held then."""
        recorded = last.extra.get("offsets")
        found = self.offsets(last.batch) if recorded is not None else None
        if found != recorded:
            what = "is missing from Spark's offsets" if found is None else "is not the one that the state includes"
            raise _apart(f"batch {last.batch} {what}", self.location)

    def check_next(self, batch: int, last: Manifest) -> None:
        """The batch that comes is the next one, or the last one again."""
        if batch not in (last.batch, last.batch + 1):
            raise _apart(f"Spark comes with batch {batch}, the state is at batch {last.batch}", self.location)
        if batch == last.batch:
            self.check_replayed(last)

    def _newest(self, log: str) -> int:
        try:
            names = os.listdir(f"{self._folder}/{log}")
        except FileNotFoundError:
            return -1
        return max((int(name) for name in names if re.fullmatch(r"\d+", name)), default=-1)


def _apart(what: str, location: str) -> CheckpointDamaged:
    return CheckpointDamaged(
        f"the two halves of the checkpoint do not belong together: {what}", where=location, fix=_FIX
    )
