"""From the logical plan to stages and rounds: StreamCloud's compiler as an ordered tuple of passes.

`compile` walks the operators once, children first; an operator that is used twice becomes one stage. The passes that
follow rewrite the physical plan and nothing else. Expressions are only moved, never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.errors import UnsupportedQuery
from anabranch.plan import aggregates, frames
from anabranch.plan.implied import bounds_between
from anabranch.plan.joins import JoinBuilder, first_to_meet, read
from anabranch.plan.passes import PASSES
from anabranch.plan.pending import Pending
from anabranch.plan.physical import Branch, Column, Filter, Lookup, Plan, Project, Stage
from anabranch.plan.typer import Typer
from anabranch.plan.types import quoted
from anabranch.query import operators as ops
from anabranch.query.operators import Item
from anabranch.query.references import references


@dataclass(frozen=True)
class StreamType:
    """What the compiler must know of a stream."""

    columns: Mapping[str, str]
    event_time: str | None


class Compiler:
    def __init__(self, streams: Mapping[str, StreamType], typer: Typer) -> None:
        self.streams = streams
        self.typer = typer
        self.needed: dict[ops.Operator, set[str]] = {}
        self.done: dict[ops.Operator, Pending] = {}
        self.stages: list[Stage] = []
        self.extent = 0

    def compile(self, root: ops.Operator, strategy: str = "subquery-cluster") -> Plan:
        self._need(root, {f.column.lower() for f in root.fields})
        pending = self._compile(root)
        columns = tuple(Column(f.column, pending.types[f.column]) for f in root.fields)
        plan = Plan(
            tuple(self.stages), pending.branches, columns, tuple(sorted(self._used(root))), strategy, self.extent
        )
        for rewrite in PASSES:
            plan = rewrite(plan)
        return plan

    def _used(self, op: ops.Operator) -> set[str]:
        if isinstance(op, ops.Source):
            return {op.stream}
        return {name for child in children(op) for name in self._used(child)}

    # -- which columns are needed --------------------------------------------------------------------------------

    def _need(self, op: ops.Operator, names: set[str]) -> None:
        known = self.needed.setdefault(op, set())
        if names <= known and known:
            return
        known |= names
        for child in children(op):
            self._need(child, self._below(op, known))

    def _below(self, op: ops.Operator, names: set[str]) -> set[str]:
        if isinstance(op, ops.Select):
            return refs(i.text for i in op.items if i.column.lower() in names) or refs(i.text for i in op.items[:1])
        if isinstance(op, ops.Where):
            return names | refs([op.condition])
        if isinstance(op, ops.StaticJoin):
            return names | refs([op.condition])
        if isinstance(op, ops.Join):  # its event times too, so that missing bounds are met as such
            times = {f.column.lower() for f in op.fields if f.lag is not None or f.window is not None}
            return names | refs(op.conditions) | times
        if isinstance(op, ops.Aggregate):
            calls = [c for c in op.calls if c.column.lower() in names]
            return refs(
                [op.window.time, *(k.text for k in op.keys), *(t for c in calls for t in (*c.args, c.where or ""))]
            )
        if isinstance(op, ops.Frame):
            texts = [t for c in op.calls for t in (*c.args, c.where or "")]
            return names | refs([op.time, *op.keys, *(o.text for o in op.order), *texts])
        return names

    # -- operators to stages ---------------------------------------------------------------------------------------

    def _compile(self, op: ops.Operator) -> Pending:
        if op not in self.done:
            self.done[op] = self._made(op)
        return self.done[op]

    def _made(self, op: ops.Operator) -> Pending:
        if isinstance(op, ops.Source):
            stream = self.streams[op.stream]
            times = {stream.event_time: 0} if stream.event_time else {}
            return Pending((Branch((), stream=op.stream),), dict(stream.columns), times)
        if isinstance(op, ops.Select):
            return self._select(op)
        if isinstance(op, ops.Where):
            child = self._compile(op.child)
            kind = self.typer.types(child.types, [op.condition])[0]
            if kind != "boolean":
                raise UnsupportedQuery(f"a condition must be true or false, not {kind}", where=op.condition)
            return child.then(Filter(op.condition))
        if isinstance(op, ops.Union):
            return self._union([self._compile(c) for c in op.children])
        if isinstance(op, ops.StaticJoin):
            child = self._compile(op.child)
            types = self.typer.lookup(
                child.types, op.static, op.how, op.condition, {i.column: i.text for i in op.renames}
            )
            return replace(child.then(Lookup(op.static, op.how, op.condition, op.renames)), types=types)
        if isinstance(op, ops.Join):
            return self._join(list(op.inputs), list(op.conditions), op)
        if isinstance(op, ops.Aggregate):
            child = self._compile(op.child)
            return self._keep(aggregates.build(self._id("aggregate"), op, child, self._wanted(op), self.typer))
        if isinstance(op, ops.Frame):
            child = self._compile(op.child)
            return self._keep(frames.build(self._id("frame"), op, child, self._wanted(op), self.typer))
        raise UnsupportedQuery(f"the operator {type(op).__name__}")

    def _select(self, op: ops.Select) -> Pending:
        child = self._compile(op.child)
        wanted = self._wanted(op)
        items = tuple(i for i in op.items if wanted(i.column)) or op.items[:1]
        types = self.typer.types(child.types, [i.text for i in items])
        return child.projected(items, types, Project(items))

    def _union(self, parts: Sequence[Pending]) -> Pending:
        """Branches side by side; types are widened as Spark does."""
        first = parts[0]
        names = list(first.types)
        common = dict(first.types)
        for part in parts[1:]:
            if list(part.types) != names:
                part = self._reordered(part, names)
            for name in names:
                if part.types[name] != common[name]:
                    pair = {"a": common[name], "b": part.types[name]}
                    common[name] = self.typer.types(pair, ["coalesce(a, b)"])[0]
        branches: list[Branch] = []
        times = dict(first.times)
        for part in parts:
            if dict(part.types) != common or list(part.types) != names:
                items = tuple(
                    Item(quoted(n) if part.types[n] == common[n] else f"CAST({quoted(n)} AS {common[n]})", n)
                    for n in names
                )
                part = part.projected(items, [common[n] for n in names], Project(items))
            branches += part.branches
            times = {t: max(lag, part.times[t]) for t, lag in times.items() if t in part.times}
        gaps = {pair: max(p.gaps[pair] for p in parts) for pair in first.gaps if all(pair in p.gaps for p in parts)}
        return Pending(tuple(branches), common, times, gaps)

    def _reordered(self, part: Pending, names: Sequence[str]) -> Pending:
        items = tuple(Item(quoted(n), n) for n in names)
        return part.projected(items, [part.types[n] for n in names], Project(items))

    def _join(self, inputs: list[ops.Operator], conditions: list[str], op: ops.Join) -> Pending:
        return self._joined(
            [self._compile(i) for i in inputs], conditions, [label(i) for i in inputs], self._wanted(op)
        )

    def _joined(self, inputs: list[Pending], conditions: list[str], names: list[str], wanted: object) -> Pending:
        found = read(inputs, conditions, self.typer)
        subset = first_to_meet(found, len(inputs))
        if subset is None:
            return self._keep(JoinBuilder(self._id("join"), inputs, conditions, names, self.typer).build(wanted))  # type: ignore[arg-type]
        columns = {c.lower() for i in subset for c in inputs[i].types}
        every = {c.lower() for p in inputs for c in p.types}
        inner = [c for c in conditions if refs([c]) & every <= columns]
        outer = [c for c in conditions if c not in inner]
        below = refs(outer)
        needs = lambda column: column.lower() in below or wanted(column)  # type: ignore[operator]  # noqa: E731
        inner += bounds_between(inputs, [b for b, _ in found.bounds], subset)
        first = self._joined([inputs[i] for i in subset], inner, [names[i] for i in subset], needs)
        rest = [i for i in range(len(inputs)) if i not in subset]
        label = " with ".join(names[i] for i in subset)
        return self._joined([first, *(inputs[i] for i in rest)], outer, [label, *(names[i] for i in rest)], wanted)

    def _wanted(self, op: ops.Operator):  # type: ignore[no-untyped-def]
        names = self.needed.get(op, set())
        return lambda column: column.lower() in names

    def _id(self, kind: str) -> str:
        return f"{kind}-{len(self.stages) + 1}"

    def _keep(self, built: tuple[Stage, Pending, int]) -> Pending:
        stage, pending, extent = built
        self.stages.append(stage)
        self.extent += extent
        return pending


def refs(texts) -> set[str]:  # type: ignore[no-untyped-def]
    return {r for text in texts if text for r in references(text)}


def children(op: ops.Operator) -> tuple[ops.Operator, ...]:
    if isinstance(op, (ops.Select, ops.Where, ops.StaticJoin, ops.Aggregate, ops.Frame)):
        return (op.child,)
    if isinstance(op, ops.Union):
        return op.children
    if isinstance(op, ops.Join):
        return op.inputs
    return ()


def label(op: ops.Operator) -> str:
    """What a message calls an input."""
    named = next((q for f in op.fields for q in f.qualifiers), None)
    while named is None and children(op):
        op = children(op)[0]
        named = next((q for f in op.fields for q in f.qualifiers), None)
    return named or (op.stream if isinstance(op, ops.Source) else "an input")
