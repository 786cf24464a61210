"""How far each stage may go in an epoch: its watermark, held back by what the stages before it have not given out yet.

All watermarks here are the flow's: a stage's own is its `lag` behind.

1. A stage must not close a window while a stage before it may still give it rows of that window.
2. Within an epoch, stages run one behind the other, and a stage is told its watermark before those before it have run.
   So what counts is what they have promised: a cell that is not behind gives out everything up to its stage's watermark
   in this very epoch, even if its new rows have to wait; these cannot be older than the watermark.
3. A cell that is behind (cold, or with held rows) has promised nothing beyond what it has given out already. Where time
   is bounded, a stage whose giving out is as heavy as its rows promises nothing either: its cells may all be put off.
4. In an epoch without new rows nothing is put off, so everything is promised.
"""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.plan.physical import Plan

Mark = int | None  # None: nothing yet


def marks(
    plan: Plan, watermark: Mark, released: Mapping[str, Mark], behind: Mapping[str, Mapping[int, tuple[Mark, int]]],
    *, unhurried: bool, bounded: bool,
) -> dict[str, Mark]:  # fmt: skip
    """The watermark of each stage in the epoch to come."""
    found: dict[str, Mark] = {}
    promised: dict[str, Mark] = {}
    for stage in plan.stages:
        found[stage.id] = least([watermark, *(promised[u] for u in plan.upstream(stage.id))])
        held_back = [] if unhurried else [level for level, _ in behind.get(stage.id, {}).values()]
        if bounded and not unhurried and stage.kind == "frame":
            held_back.append(released.get(stage.id))
        promised[stage.id] = least([found[stage.id], *held_back])
    return found


def least(marks: list[Mark]) -> Mark:
    known = [m for m in marks if m is not None]
    return min(known) if len(known) == len(marks) else None
