"""The plan for people: subqueries, exchanges, where each expression runs, cells and sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anabranch.kernels.specs import AggregateSpec, FrameSpec, JoinSpec
from anabranch.plan.physical import Branch, Filter, Lookup, Plan, Port, Project, Stage, Step

if TYPE_CHECKING:
    from anabranch.routing.layout import Layout


def explain(plan: Plan, layout: Layout | None = None, extended: bool = False) -> str:
    """A text of one block per subquery."""
    lines = [f"flow over {', '.join(plan.streams)}  ({plan.strategy}, {exchanges(plan)} exchanges)"]
    for operator, assignment in (layout.operators if layout is not None else {}).items():
        counts = assignment.counts()
        lines.append(
            f"cells of {operator}: {assignment.cells} over {assignment.sites} sites ({min(counts)} to {max(counts)} "
            f"each), assignment version {assignment.version}"
        )
    for number, stage in enumerate(plan.stages, 1):
        lines += ["", *block(number, stage, extended)]
    lines += ["", f"output: {', '.join(f'{c.name} {c.type}' for c in plan.columns)}"]
    for branch in plan.output:
        lines += branch_lines(branch, "  ")
    return "\n".join(lines)


def exchanges(plan: Plan) -> int:
    return sum(not s.merged for s in plan.stages)


def block(number: int, stage: Stage, extended: bool) -> list[str]:
    lines = [
        f"subquery {number}: {stage.id}" + (f"  (no exchange: same keys as {stage.follows})" if stage.merged else "")
    ]
    for index, port in enumerate(stage.ports):
        lines.append(f"  input {index}:")
        for branch in port.branches:
            lines += branch_lines(branch, "    ")
        lines.append(f"    prepare [Spark]: {', '.join(f'{i.text} AS {i.column}' for i in port.items)}")
        if not stage.merged:
            lines.append(f"    exchange: {placement(port)}")
        lines.append(f"    event time: {port.event_time}" + (f", panes of {port.pane[0]} us" if port.pane else ""))
    lines += [f"  site [Arrow]: {line}" for line in kernel(stage)]
    if stage.combine:
        lines.append("  pre-aggregated [Spark] at the site when epochs are large")
    for step in stage.after:
        lines.append(f"  finish [Spark]: {describe(step)}")
    if extended:
        lines += [f"  note: {note}" for note in stage.notes]
    return lines


def placement(port: Port) -> str:
    if not port.hash:
        return "no key: one cell, one site"
    return f"cell = top bits of xxhash64({', '.join(port.hash)}), site = owner of the cell"


def kernel(stage: Stage) -> list[str]:
    spec = stage.spec
    if isinstance(spec, JoinSpec):
        keys = [" = ".join(k) for k in zip(*(i.keys for i in spec.inputs), strict=True)]
        bounds = [f"{b.low} <= t{b.j} - t{b.i} <= {b.high} us" for b in spec.bounds]
        compares = [f"{c.left} {c.op} {c.right}" for c in spec.compares]
        return [f"join of {len(spec.inputs)} inputs on {', '.join(keys) or 'no key'}", *(bounds + compares)]
    if isinstance(spec, AggregateSpec):
        w = spec.window
        calls = ", ".join(f"{c.kind}({', '.join(c.columns)}) AS {c.output}" for c in spec.calls)
        return [f"windows of {w.size} us every {w.slide} us by {', '.join(spec.keys) or 'no key'}: {calls}"]
    assert isinstance(spec, FrameSpec)
    calls = ", ".join(
        f"{c.kind}({', '.join(c.columns)}) rows -{c.preceding}..{c.following} AS {c.output}" for c in spec.calls
    )
    return [f"frames by {', '.join(spec.keys) or 'no key'}: {calls}"]


def branch_lines(branch: Branch, indent: str) -> list[str]:
    lines = [f"{indent}from {branch.stream or branch.stage}"]
    lines += [f"{indent}  {line} [Spark]" for line in steps(branch.steps)]
    return lines


def steps(given: Sequence[Step]) -> list[str]:
    return [describe(step) for step in given]


def describe(step: Step) -> str:
    if isinstance(step, Filter):
        return f"where {step.condition}"
    if isinstance(step, Lookup):
        return f"{step.how} join with static {step.static} on {step.condition or 'nothing'}"
    assert isinstance(step, Project)
    return f"select {', '.join(i.text if i.text == i.column else f'{i.text} AS {i.column}' for i in step.items)}"
