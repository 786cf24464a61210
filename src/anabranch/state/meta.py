"""Meta: what a checkpoint folder is for. Written once, when it is created, and compared whenever it is opened."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any
from uuid import uuid4

from anabranch.errors import CheckpointDamaged, CheckpointMismatch
from anabranch.routing.cells import cell_bits
from anabranch.state.envelope import seal, unseal
from anabranch.state.store import ASIDE, Store

FORMAT = 1
PATH = "meta.json"
_DIFF_LINES = 40
_FIX = "restore the file from a copy of the checkpoint, or start again with a new, empty checkpoint folder"
_SPARK = frozenset({"offsets", "commits", "metadata", "sources", "state"})
_TYPES = {"id": str, "fingerprint": str, "plan": str, "cells": int, "created": str}


@dataclass(frozen=True)
class Meta:
    id: str  # of this checkpoint alone: what sinks know it by
    fingerprint: str  # of the plan: what must be equal for the state to mean the same
    plan: str  # for people, and for the difference that a mismatch shows
    cells: int
    created: str


def open_or_create(store: Store, fingerprint: str, plan_text: str, cells: int) -> Meta:
    """The meta of this checkpoint, created if the folder is new or empty; an error if it is for something else."""
    cell_bits(cells)
    try:
        raw = store.read(PATH)
    except FileNotFoundError:
        _refuse_foreign(store)
        meta = Meta(str(uuid4()), fingerprint, plan_text, cells, datetime.now(UTC).isoformat(timespec="seconds"))
        try:
            store.write(PATH, seal("checkpoint", FORMAT, asdict(meta)), replace=False)
            return meta
        except FileExistsError:
            raw = store.read(PATH)  # another process was first: then it decides
    meta = _parse(store, raw)
    if meta.fingerprint != fingerprint:
        raise CheckpointMismatch(
            "the checkpoint belongs to another query:\n" + _difference(meta.plan, plan_text),
            where=store.uri,
            fix="run the query it was made for (first plan), or give this one a new checkpoint folder",
        )
    if meta.cells != cells:
        raise CheckpointMismatch(
            f"the checkpoint is cut into {meta.cells} cells, and the query asks for {cells}",
            where=store.uri,
            fix=f"set the option 'cells' to {meta.cells}, or give the query a new checkpoint folder",
        )
    return meta


def read(store: Store) -> Meta:
    """The meta of a checkpoint that exists; FileNotFoundError if there is none."""
    return _parse(store, store.read(PATH))


def _parse(store: Store, raw: bytes) -> Meta:
    where = f"{PATH} in {store.uri}"
    body: dict[str, Any] = unseal("checkpoint", FORMAT, raw, where=where, fix=_FIX)
    if set(body) != set(_TYPES) or any(type(body[name]) is not kind for name, kind in _TYPES.items()):
        raise CheckpointDamaged("the description of the checkpoint makes no sense", where=where, fix=_FIX)
    return Meta(**body)


def _refuse_foreign(store: Store) -> None:
    """Files that we did not put there: the folder is somebody's, or a checkpoint of ours that lost its meta."""
    names = [name for name in store.top() if not (name.startswith(f"{PATH}.") and name.endswith(ASIDE))]
    if not names:
        return
    if "manifests" in names:
        raise CheckpointDamaged(f"the checkpoint has manifests but no {PATH}", where=store.uri, fix=_FIX)
    what = "a checkpoint of Spark's own" if _SPARK & set(names) else "not empty and no checkpoint of Anabranch"
    raise CheckpointMismatch(
        f"the folder is {what}: it holds {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}",
        where=store.uri,
        fix="give the query a new or empty checkpoint folder",
    )


def _difference(theirs: str, ours: str) -> str:
    lines = difflib.unified_diff(
        theirs.splitlines(), ours.splitlines(), "the checkpoint's plan", "this query's plan", lineterm="", n=1
    )
    shown = list(islice(lines, _DIFF_LINES + 1))
    if len(shown) > _DIFF_LINES:
        shown[_DIFF_LINES:] = ["..."]
    return "\n".join(shown) or "the plans read the same, but their fingerprints differ (types or settings changed)"
