"""Manifest: the JSON that makes an epoch real. What no manifest names does not exist.

`ManifestLog` is the folder of manifests of one checkpoint, written by one driver at a time: an epoch's manifest is
written aside, fsynced and renamed, never over an existing one, so that a second query on the same checkpoint fails at
its first commit and not in its results. The newest manifest counts; if it is damaged that is an error, never a step
back to the one before, whose epoch Spark may already have left behind.

Garbage: a segment that the retained manifests no longer name. While running, it follows from the manifests that drop
out, without looking into the store. What crashed or retried attempts left behind is swept at the next start.

Limits: a manifest holds the whole list of segments (some 250 bytes each), not a change to the one before. What retried
tasks leave behind during a run stays until the next start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from anabranch.errors import CheckpointDamaged, CheckpointError
from anabranch.state.envelope import seal, unseal
from anabranch.state.segments import FOLDER as SEGMENTS
from anabranch.state.segments import Segment
from anabranch.state.store import Store

FORMAT = 2
FOLDER = "manifests"
_NAME = re.compile(rf"{FOLDER}/([0-9]{{12,}})\.json")
_FIX = (
    "restore the file from a copy of the checkpoint, or start again with a new, empty checkpoint folder; "
    "do not delete it to make an older one count: Spark's offsets may be past that one"
)


@dataclass(frozen=True)
class Manifest:
    epoch: int  # ours: closing epochs have no batch of Spark's
    batch: int  # the last batch of Spark's that is included; -1 before the first
    fingerprint: str
    sites: int
    assignment: dict[str, Any]  # routing.Layout.to_json: where cells are in the *next* epoch
    watermark: int | None = None  # microseconds: governs what is late, and what closes, in the *next* epoch
    released: dict[str, int | None] = field(default_factory=dict)  # per stage: results are out up to here
    behind: dict[str, dict[str, Any]] = field(default_factory=dict)  # per stage, cells that are not: [up to, since]
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)  # per stream: greatest event time, last active
    state: dict[str, list[dict[str, Any]]] = field(default_factory=dict)  # "operator/port" -> Segment.to_json
    extra: dict[str, Any] = field(default_factory=dict)

    def segments(self, port: str) -> list[Segment]:
        """The live segments of an "operator/port", none if it has no state."""
        return [Segment.from_json(data) for data in self.state.get(port, ())]

    def paths(self) -> frozenset[str]:
        """Every file the manifest needs."""
        return frozenset(Segment.from_json(data).path for datas in self.state.values() for data in datas)

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _CHECKS}  # not asdict: it copies every segment, slowly

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Manifest:
        """The inverse of `to_json`; ValueError for anything else."""
        if set(data) != set(_CHECKS):
            raise ValueError(f"its fields are {sorted(data)}")
        wrong = [name for name, kinds in _CHECKS.items() if type(data[name]) not in kinds]
        if wrong or not all(type(value) is list for value in data["state"].values()):
            raise ValueError(f"values of the wrong kind in {wrong or ['state']}")
        return Manifest(**data)


_NUMBER, _TEXT, _MAP, _MAYBE = (int,), (str,), (dict,), (int, type(None))
_CHECKS: dict[str, tuple[type, ...]] = dict(
    zip(
        (f.name for f in fields(Manifest)),
        (_NUMBER, _NUMBER, _TEXT, _NUMBER, _MAP, _MAYBE, _MAP, _MAP, _MAP, _MAP, _MAP),
        strict=True,
    )
)


class ManifestLog:
    """The manifests of one checkpoint. At a start: `latest`, `sweep`; then `commit` and `retain` each epoch."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._retained: dict[int, frozenset[str]] = {}  # epoch -> files it needs; ascending
        self._last = -1  # the newest epoch that this log knows of

    def epochs(self) -> list[int]:
        """The epochs that have a manifest, ascending."""
        names = (_NAME.fullmatch(path) for path in self._store.list(FOLDER))
        return sorted(int(match.group(1)) for match in names if match)

    def latest(self) -> Manifest | None:
        """The newest manifest, None in a new checkpoint. Damaged or unknown, it is an error and nothing else counts."""
        epochs = self.epochs()
        if not epochs:
            return None
        self._last = max(self._last, epochs[-1])
        return self.read(epochs[-1])

    def read(self, epoch: int) -> Manifest:
        path = _path(epoch)
        where = f"{path} in {self._store.uri}"
        try:
            raw = self._store.read(path)
        except FileNotFoundError:
            raise CheckpointDamaged("a manifest is missing", where=where, fix=_FIX) from None
        body = unseal("manifest", FORMAT, raw, where=where, fix=_FIX)
        try:
            manifest = Manifest.from_json(body)
            manifest.paths()  # every segment it describes makes sense
        except ValueError as error:
            raise CheckpointDamaged(f"the manifest makes no sense: {error}", where=where, fix=_FIX) from error
        if manifest.epoch != epoch:
            raise CheckpointDamaged(f"the manifest is of epoch {manifest.epoch}", where=where, fix=_FIX)
        return manifest

    def commit(self, manifest: Manifest) -> None:
        """Make an epoch real. When this returns it has happened, even if the machine stops now."""
        if manifest.epoch <= self._last:
            raise ValueError(f"epoch {manifest.epoch} cannot follow epoch {self._last}")
        body = manifest.to_json()
        files = Manifest.from_json(body).paths()  # what could not be read back must not be written
        try:
            self._store.write(_path(manifest.epoch), seal("manifest", FORMAT, body), durable=True, replace=False)
        except FileExistsError:
            raise CheckpointError(
                f"epoch {manifest.epoch} has been committed already, by another query on the same checkpoint",
                where=f"{_path(manifest.epoch)} in {self._store.uri}",
                fix="give each query a checkpoint folder of its own, and stop one of the two",
            ) from None
        self._retained[manifest.epoch] = files
        self._last = manifest.epoch

    def retain(self, n: int = 2) -> list[str]:
        """Delete all but the newest n manifests, and the segments that only those needed; the segments deleted.

        Knows of the manifests that this log has committed or swept, and looks at no others.
        """
        _check_retained(n)
        dropped = sorted(self._retained)[:-n]
        if not dropped:
            return []
        needed: frozenset[str] = frozenset().union(*(self._retained[e] for e in self._retained if e not in dropped))
        garbage = sorted(frozenset().union(*(self._retained[e] for e in dropped)) - needed)
        # Manifests first: a crash in between leaves garbage, and not a manifest that names missing files.
        self._store.delete(_path(epoch) for epoch in dropped)
        self._store.delete(garbage)
        for epoch in dropped:
            del self._retained[epoch]
        return garbage

    def sweep(self, n: int = 2) -> list[str]:
        """At a start, when no task of an earlier run can be at work any more: delete all files that none of the newest
        n manifests names, and older manifests; the files deleted. Deletes nothing if a file is missing or damaged.
        """
        _check_retained(n)
        epochs = self.epochs()
        retained: dict[int, frozenset[str]] = {}
        present = self._store.list(SEGMENTS)
        for epoch in epochs[-n:]:
            if epoch == epochs[-1]:
                retained[epoch] = self.read(epoch).paths()
                missing = sorted(retained[epoch].difference(present))
                if missing:
                    raise CheckpointDamaged(
                        f"{len(missing)} segments of the state are missing",
                        where=f"{', '.join(missing[:3])} in {self._store.uri}",
                        fix=_FIX.partition(";")[0],
                    )
            else:
                retained[epoch] = self._paths_if_readable(epoch)
        needed: frozenset[str] = frozenset().union(*retained.values())
        garbage = [path for path in present if path not in needed]
        left = [path for path in self._store.list(FOLDER) if not _NAME.fullmatch(path)]
        self._store.delete([_path(epoch) for epoch in epochs[:-n]] + left)
        self._store.delete(garbage)
        self._retained = retained
        self._last = max(epochs, default=-1)
        return garbage

    def _paths_if_readable(self, epoch: int) -> frozenset[str]:
        """An older manifest only serves a person who looks back: damage there must not stop a query that is whole."""
        try:
            return self.read(epoch).paths()
        except CheckpointError:
            return frozenset()


def _path(epoch: int) -> str:
    return f"{FOLDER}/{epoch:012d}.json"


def _check_retained(n: int) -> None:
    if n < 1:
        raise ValueError(f"at least one manifest must be retained, not {n}")
