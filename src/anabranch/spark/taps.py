"""The streaming side: every stream's rows, prepared by Catalyst and unified into one streaming DataFrame.

A *tap* is one use of a stream: a branch of a stage's port, or of the output. All taps are one union with one schema,
so a query is one Spark query with one offset log and one atomic epoch over all sources. Columns of different taps share
*slots* by type, which keeps rows narrow and flat.

Wire schema: `_port` (the tap), `_t` (event time, microseconds, NULL if it has none), `_keep`, `_cell`, then the slots.

Every stream is counted at one of its taps, once per row. There a row that a filter has removed still travels as far as
the foreachBatch with `_keep` false, because the watermark counts every row of its stream; nothing of it but its time is
evaluated. Where every tap joins a static DataFrame, which may multiply rows, the stream has one more, to be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha1

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anabranch.plan.pending import plain
from anabranch.plan.physical import Branch, Column, Filter, Lookup, Plan, Port, Project, Step
from anabranch.plan.types import micros, quoted
from anabranch.query.operators import Item
from anabranch.routing.cells import cell_expression
from anabranch.spark import compat
from anabranch.spark.typer import look_up

TYPES = {"_port": "int", "_t": "bigint", "_keep": "boolean", "_cell": "int"}


@dataclass(frozen=True)
class StreamInput:
    """A stream as `ab.stream` made it."""

    name: str
    df: DataFrame
    event_time: str | None
    event_type: str
    delay_us: int


@dataclass(frozen=True)
class Tap:
    id: int
    branch: Branch
    port: Port | None  # None: straight to the output
    stage: str | None
    items: tuple[Item, ...]  # how the slots are computed
    slots: tuple[Column, ...]
    counts: bool = False  # whether its stream is counted here

    @property
    def stream(self) -> str | None:
        return self.branch.stream

    @property
    def output(self) -> bool:
        return self.stage is None and bool(self.slots)

    @property
    def multiplies(self) -> bool:
        """Whether a row of the stream may be several here."""
        return any(isinstance(step, Lookup) for step in self.branch.steps)


def slots_for(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Slot names: the n-th column of a type has the same slot everywhere."""
    seen: Counter[str] = Counter()
    slots = []
    for column in columns:
        slots.append(Column(f"s{sha1(column.type.encode()).hexdigest()[:6]}_{seen[column.type]}", column.type))
        seen[column.type] += 1
    return tuple(slots)


def taps_of(plan: Plan) -> tuple[Tap, ...]:
    """Every branch of the plan; those of streams come first, so that their ids do not depend on the rest."""
    uses: list[tuple[Branch, Port | None, str | None, tuple[Column, ...], tuple[Item, ...]]] = []
    for stage in plan.stages:
        for port in stage.ports:
            uses += [(b, port, stage.id, port.columns, port.items) for b in port.branches]
    direct = tuple(Item(quoted(c.name), c.name) for c in plan.columns)
    uses += [(b, None, None, plan.columns, direct) for b in plan.output]
    taps = [Tap(0, branch, port, stage, items, slots_for(columns)) for branch, port, stage, columns, items in uses]
    for name in plan.streams:
        fit = [n for n, t in enumerate(taps) if t.stream == name and not t.multiplies]
        if fit:
            best = min(fit, key=lambda n: taps[n].stage is None)
            taps[best] = replace(taps[best], counts=True)
        else:
            taps.append(Tap(0, Branch((), name), None, None, (), (), counts=True))
    taps.sort(key=lambda t: t.stream is None)
    return tuple(replace(t, id=i) for i, t in enumerate(taps))


def apply(
    df: DataFrame, steps: Sequence[Step], statics: Mapping[str, DataFrame], carried: Sequence[str] = ()
) -> DataFrame:
    """The stateless steps after a stage."""
    for step in collapsed(steps):
        if isinstance(step, Project):
            df = compat.select(df, [*carried, *[named(i.text, i.column) for i in step.items]])
        elif isinstance(step, Filter):
            df = df.where(step.condition)
        else:
            df = look_up(df, statics[step.static], step.how, step.condition, {i.column: i.text for i in step.renames})
    return df


def collapsed(steps: Sequence[Step]) -> list[Step]:
    """The same steps, where a projection that only picks and renames is one with the projection before it."""
    found: list[Step] = []
    for step in steps:
        last = found[-1] if found else None
        if isinstance(step, Project) and isinstance(last, Project):
            known = {i.column: i.text for i in last.items}
            texts = [within(known, i.text) for i in step.items]
            if all(texts):
                found[-1] = Project(tuple(Item(t or "", i.column) for t, i in zip(texts, step.items, strict=True)))
                continue
        found.append(step)
    return found


def within(known: Mapping[str, str], text: str) -> str | None:
    """A column, or a field of a window, in terms of what is below the projection that made it."""
    name = plain(text)
    if name is None or name in known:
        return known.get(name or "")
    whole, dot, part = name.rpartition(".")
    return f"({known[whole]}).{part}" if dot and whole in known else None


def apply_keeping(df: DataFrame, steps: Sequence[Step]) -> DataFrame:
    """The same where a removed row stays as a tick (`_keep` false)."""
    for step in steps:
        if isinstance(step, Project):
            items = [named(f"CASE WHEN _keep THEN ({i.text}) END", i.column) for i in step.items]
            df = df.selectExpr("_t", "_keep", *items)
        else:
            assert isinstance(step, Filter)  # a stream is not counted behind a join
            kept = f"CASE WHEN _keep THEN coalesce(({step.condition}), false) ELSE false END"
            df = df.withColumn("_keep", F.expr(kept))
    return df


def named(text: str, column: str) -> str:
    """An expression under a name, as `selectExpr` takes it."""
    return f"({text}) AS {quoted(column)}"


def cell(hash: Sequence[str], cells: int) -> str:
    """The partition group of a row: the top bits of its key's hash."""
    return cell_expression(f"xxhash64({', '.join(hash)})", cells if hash else 1)


def prepared(tap: Tap, source: StreamInput, statics: Mapping[str, DataFrame], cells: int) -> DataFrame:
    """One tap in the wire schema, its own slots only."""
    df = source.df
    time = micros(quoted(source.event_time), source.event_type) if source.event_time else "NULL"
    df = df.selectExpr("*", f"CAST({time} AS BIGINT) AS _t", "true AS _keep")
    keeping = tap.counts and any(isinstance(step, Filter) for step in tap.branch.steps)
    if keeping:
        df = apply_keeping(df, tap.branch.steps)
    else:
        df = apply(df, tap.branch.steps, statics, ("_t", "_keep"))
    hash = tap.port.hash if tap.port else ()
    guard = "CASE WHEN _keep THEN ({}) END" if keeping else "{}"
    place = cell(hash, cells)
    if keeping and hash:
        place = f"CASE WHEN _keep THEN {place} ELSE 0 END"
    own = [named(guard.format(i.text), s.name) for i, s in zip(tap.items, tap.slots, strict=True)]
    return df.selectExpr(f"{tap.id} AS _port", "_t", "_keep", f"{place} AS _cell", *own)


def wire_slots(taps: Sequence[Tap]) -> tuple[Column, ...]:
    return tuple(sorted({s for t in taps for s in t.slots}, key=lambda s: s.name))


def filled(slots: Sequence[Column], have: Container[str], text: Callable[[str], str] = str) -> list[str]:
    """Every slot of the wire by what `text` says of its name, NULL where there is no such one."""
    return [text(s.name) if s.name in have else f"CAST(NULL AS {s.type}) AS {s.name}" for s in slots]


def unified(
    taps: Sequence[Tap], inputs: Mapping[str, StreamInput], statics: Mapping[str, DataFrame], cells: int
) -> DataFrame:
    """All taps of streams as one streaming DataFrame."""
    sources = [t for t in taps if t.stream is not None]
    slots = wire_slots(sources)
    parts = [
        prepared(t, inputs[t.stream or ""], statics, cells).selectExpr(
            *TYPES, *filled(slots, {s.name for s in t.slots})
        )
        for t in sources
    ]
    df = parts[0]
    for part in parts[1:]:
        df = df.unionAll(part)
    return df


def wire_schema(taps: Sequence[Tap]) -> dict[str, str]:
    return TYPES | {s.name: s.type for s in wire_slots([t for t in taps if t.stream is not None])}
