"""Passes over the physical plan, in order. Each is a pure function from plan to plan.

`merge_neighbours` is StreamCloud's S5: a subquery whose rows already lie at the right sites runs behind the one before
it without an exchange. Under `operator-cluster` and `query-cluster` nothing is merged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anabranch.plan.physical import Plan, Stage
from anabranch.plan.window_time import spell_out


def merge_neighbours(plan: Plan) -> Plan:
    if plan.strategy != "subquery-cluster":
        return plan
    return replace(plan, stages=tuple(replace(s, merged=_lies_right(plan, s)) for s in plan.stages))


def _lies_right(plan: Plan, stage: Stage) -> bool:
    """One input, from one stage used by nobody else, hashed by the same values."""
    if len(stage.ports) != 1 or len(stage.ports[0].branches) != 1:
        return False
    before = stage.ports[0].branches[0].stage
    if before is None or before != stage.follows:
        return False
    users = [b for s in plan.stages for p in s.ports for b in p.branches] + list(plan.output)
    return sum(b.stage == before for b in users) == 1


PASSES: tuple[Callable[[Plan], Plan], ...] = (spell_out, merge_neighbours)
