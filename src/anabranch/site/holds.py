"""Notes on what a site held for want of time.

What an epoch gives out must not depend on how fast a machine is when the epoch comes again: a sink that has the epoch
skips it. So a site that runs out of time writes down which cells it held before it gives out anything, and whoever runs
the site again in that epoch, a retried task or a restarted query, follows the note. A site that held nothing writes
that down as well. Of two runs at the same time (speculative execution) the second to decide fails, and is tried again.
"""

from __future__ import annotations

from collections.abc import Collection

from anabranch.errors import CheckpointDamaged, QueryFailed
from anabranch.state.envelope import seal, unseal
from anabranch.state.segments import cells_in, mask_of
from anabranch.state.store import Store

FOLDER = "holds"
FORMAT = 1


def path_of(stage: str, epoch: int, site: int) -> str:
    return f"{FOLDER}/e{epoch}-{stage}-s{site}.json"


def noted(store: Store, stage: str, epoch: int, site: int) -> frozenset[int] | None:
    """The cells that were held in an earlier run of this site; None if it held none, or did not come so far."""
    path = path_of(stage, epoch, site)
    try:
        raw = store.read(path)
    except FileNotFoundError:
        return None
    body = unseal("note", FORMAT, raw, where=f"{path} in {store.uri}", fix="restore the checkpoint from a copy")
    try:
        return frozenset(cells_in(int(body["cells"], 16)))
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointDamaged("a note on held rows makes no sense", where=f"{path} in {store.uri}") from error


def note(store: Store, stage: str, epoch: int, site: int, cells: Collection[int]) -> frozenset[int]:
    """Write it down, for whoever runs the site again in this epoch; the cells that are held."""
    body = {"cells": f"{mask_of(cells):x}"}
    path = path_of(stage, epoch, site)
    try:
        store.write(path, seal("note", FORMAT, body), durable=True, replace=False)
    except FileExistsError:
        raise QueryFailed(
            "two runs of one site decided at the same time what to hold", where=f"{path} in {store.uri}",
            fix="Spark runs this one again; switch speculative execution off if it happens often",
        ) from None  # fmt: skip
    return frozenset(cells)
