"""Pending: the note on the epoch that is under way, written before anything else of it.

An epoch's number stands for its content: a sink that has epoch n skips it when it comes again. So after a crash the
same epoch must run again, and not another one under its number. The note says which it was: a batch of Spark's, or one
of our own without new rows. It is sealed like a manifest: a wrong note would make a wrong answer.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from anabranch.errors import CheckpointDamaged
from anabranch.state.envelope import seal, unseal
from anabranch.state.manifest import Manifest
from anabranch.state.store import Store

FORMAT = 2
PATH = "pending.json"
KINDS = frozenset({"batch", "tick", "flush"})
_FIX = "restore the checkpoint as a whole from a copy, or start again with a new, empty checkpoint folder"


@dataclass(frozen=True)
class Pending:
    epoch: int
    kind: str
    batch: int  # Spark's: the one it is, or the last one before it
    memory: list[int | None] = field(default_factory=list)  # hot bytes per site: a replay has the same bounds
    patience_ms: float | None = None

    def write(self, store: Store) -> None:
        store.write(PATH, seal("pending", FORMAT, asdict(self)))


def interrupted(store: Store, last: Manifest) -> Pending | None:
    """The epoch that was under way when the last run ended, None if there was none. CheckpointDamaged if the note is
    missing, altered, or does not fit the newest manifest."""
    where = f"{PATH} in {store.uri}"
    try:
        raw = store.read(PATH)
    except FileNotFoundError:
        if last.epoch < 0:
            return None
        raise CheckpointDamaged("the note on the pending epoch is missing", where=where, fix=_FIX) from None
    body = unseal("pending", FORMAT, raw, where=where, fix=_FIX)
    try:
        found = Pending(**body)
        good = type(found.epoch) is int and type(found.batch) is int and found.kind in KINDS
        good = good and type(found.patience_ms) in (int, float, type(None)) and type(found.memory) is list
        good = good and all(type(m) in (int, type(None)) for m in found.memory)
    except TypeError:
        good = False
    if not good:
        raise CheckpointDamaged("the note on the pending epoch makes no sense", where=where, fix=_FIX)
    if found.epoch == last.epoch:
        return None
    batch = last.batch + 1 if found.kind == "batch" else last.batch
    if found.epoch != last.epoch + 1 or found.batch != batch:
        raise CheckpointDamaged(
            f"a manifest is missing: epoch {found.epoch} was under way, and the newest is of epoch {last.epoch}",
            where=f"manifests in {store.uri}",
            fix=_FIX,
        )
    return found
