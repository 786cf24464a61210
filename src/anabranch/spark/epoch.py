"""One epoch as one Spark plan: taps -> exchange -> sites -> finish, round by round, up to the output.

Everything in here is lazy; the sink runs the single action. What comes back besides the rows: counts and event times of
the streams through `observe`, the sites' reports by `mail`.

Values that change from epoch to epoch (watermarks) enter expressions as arrays indexed by a column: Spark then passes
them by reference and the generated code stays the same, so that an epoch compiles nothing.

Expressions go to Spark as texts, many in one call: each Column object would be several calls to the JVM, and an epoch
of small rows spends most of its time on those.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, _parse_datatype_string

from anabranch.plan.physical import Branch, Column, Plan, Port, Project, Stage, Step
from anabranch.plan.types import micros, quoted
from anabranch.query.operators import Item
from anabranch.routing.layout import Layout
from anabranch.site.ticket import Behind, Bounds, PortTicket, Report, Ticket
from anabranch.spark import compat
from anabranch.spark.anchors import Anchors
from anabranch.spark.combining import Combining
from anabranch.spark.mail import Mail, Post
from anabranch.spark.taps import StreamInput, Tap, apply, cell, filled, named, taps_of, wire_slots
from anabranch.spark.worker import SiteTask
from anabranch.state.segments import Segment

NEVER = -(2**62)
PLACE = (Column("_cell", "int"), Column("_t", "bigint"))  # what every row brings to a site, before its slots
PORT = Column("_port", "int")  # and which tap it is of, where there are several ports


@dataclass(frozen=True)
class Inputs:
    """What decides an epoch besides its rows: the last manifest, and the bounds of this run."""

    epoch: int
    watermark: int | None  # rows before it are late
    marks: Mapping[str, int | None]  # per stage: how far it may go (`plan/watermarks.py`)
    released: Mapping[str, int | None]
    behind: Mapping[str, Mapping[int, Behind]]
    layout: Layout
    state: Mapping[str, tuple[Segment, ...]]  # "stage/port" -> live segments
    bounds: Mapping[str, Bounds]  # per stage
    coming: Mapping[str, Mapping[int, int]] = field(default_factory=dict)  # per stage: cells that will move

    @property
    def sites(self) -> int:
        return self.layout.sites

    def live(self, stage: str, port: int | str) -> tuple[Segment, ...]:
        return tuple(self.state.get(f"{stage}/{port}", ()))


@dataclass
class Built:
    """A lazy epoch and what will have been observed once it ran."""

    source: DataFrame  # the micro-batch
    epoch: int
    mail: Mail
    name: str  # of the mail that is ours
    rows: DataFrame = field(init=False)  # of the output
    streams: Observation = field(default_factory=Observation)
    output: Observation | None = None
    persisted: list[DataFrame] = field(default_factory=list)
    combined: set[str] = field(default_factory=set)

    @cached_property
    def seen(self) -> Mapping[str, Any]:
        """What was observed of the streams."""
        return self.streams.get

    def sent(self, stage: str | None) -> int:
        """How many rows the sites of a stage gave out."""
        return sum(r.rows_out for r in self.reports if r.stage == stage)

    @cached_property
    def reports(self) -> list[Report]:
        sent = [r for r in map(Report.from_text, self.mail.take(self.name)) if r.epoch == self.epoch]
        return list({(r.stage, r.site): r for r in sent}.values())  # a task run again reports again: any one will do

    def release(self) -> None:
        for df in self.persisted:
            df.unpersist()


@dataclass(frozen=True)
class Arrivals:
    """The rows that come to the sites of a stage: of which taps, and in which columns."""

    taps: tuple[Tap, ...]
    several: bool  # ports
    slots: tuple[Column, ...]
    names: Mapping[str, str]  # slot -> the column that carries it
    columns: tuple[Column, ...]  # all of them, in order
    carried: tuple[SparkColumn, ...]  # the same for Spark
    schema: bytes  # and for Arrow
    groups: tuple[SparkColumn, ...] = ()  # if Spark may merge partials first: what they are grouped by
    partials: tuple[SparkColumn, ...] = ()  # and what becomes of the rest

    def under(self, slot: str) -> str:
        name = self.names[slot]
        return slot if name == slot else named(slot, name)

    @staticmethod
    def of(stage: Stage, taps: Sequence[Tap]) -> Arrivals:
        slots = wire_slots(taps)
        names = {s.name: s.name for s in slots}
        groups: list[str] = []
        partials: list[str] = []
        several = len(stage.ports) > 1
        place = (PORT, *PLACE) if several else PLACE
        if stage.combine:  # one port; the aggregates are over its prepared columns
            (port,) = stage.ports
            names |= {s.name: c.name for s, c in zip(taps[0].slots, port.columns, strict=True)}
            merged = {i.column for i in stage.combine}
            slots = tuple(sorted(slots, key=lambda s: names[s.name] in merged))
            groups = ["_t", *(names[s.name] for s in slots if names[s.name] not in merged)]
            # The keys say which cell it is, and a maximum costs less than one column more to group by.
            partials = ["max(_cell) AS _cell", *(named(i.text, i.column) for i in stage.combine)]
        columns = (*place, *(Column(names[s.name], s.type) for s in slots))
        return Arrivals(
            tuple(taps), several, slots, names, columns, tuple(F.col(quoted(c.name)) for c in columns),
            bytes(compat.arrow_schema(ddl(columns)).serialize()),
            tuple(F.col(quoted(g)) for g in groups), tuple(map(F.expr, partials)),
        )  # fmt: skip


class EpochBuilder:
    """Built once per query; makes the plan of each epoch."""

    def __init__(
        self, plan: Plan, inputs: Mapping[str, StreamInput], statics: Mapping[str, DataFrame], cells: int, store: str,
        anchors: Anchors, combine: str = "auto",
    ) -> None:  # fmt: skip
        self.plan = plan
        self.inputs = inputs
        self.statics = statics
        self.cells = cells
        self.store = store
        self.anchors = anchors
        self.combining = Combining(combine)
        self.mail = Mail.of(anchors.session)
        self.post = Post(self.mail.box, uuid.uuid4().hex)
        self.python = compat.worker_python(anchors.session)
        self.taps = taps_of(plan)
        self.sources = tuple(t for t in self.taps if t.stream is not None)
        self.schemas = {s.id: ddl(s.output) for s in plan.stages}
        self.arrow = {id: bytes(compat.arrow_schema(schema).serialize()) for id, schema in self.schemas.items()}
        self.arrivals = {s.id: Arrivals.of(s, [t for t in self.taps if t.stage == s.id]) for s in plan.stages}
        self._owner: dict[str, tuple[tuple[int, ...], SparkColumn]] = {}
        self.counted = self.counts()
        self.uses = {s.id: sum(t.branch.stage == s.id for t in self.taps) for s in plan.stages}

    # -- the whole ---------------------------------------------------------------------------------------------

    def build(self, df: DataFrame, given: Inputs) -> Built:
        compat.ready(df, given.sites)
        built = Built(df, given.epoch, self.mail, self.post.name)
        df = df.observe(built.streams, *self.counted, *self.late(given))
        done: dict[str, DataFrame] = {}
        for stage in self.plan.stages:
            done[stage.id] = self.run_stage(df, done, stage, given, built)
        built.rows = self.finish(df, done)
        if not self.reported:
            built.output = Observation()
            built.rows = built.rows.observe(built.output, F.expr("count(*) AS rows"))
        return built

    def learn(self, built: Built) -> None:
        """What this epoch says of the next ones."""
        for stage in self.plan.stages:
            rows = 0
            for tap in (t for t in self.taps if t.stage == stage.id):
                came = built.seen.get(f"rows_{tap.stream}") if tap.stream else built.sent(tap.branch.stage)
                rows += came or 0
            arrived = sum(sum(r.rows_in) for r in built.reports if r.stage == stage.id)
            self.combining.learn(stage.id, rows, arrived, stage.id in built.combined)

    def counts(self) -> list[SparkColumn]:
        """Per stream: rows, newest event time."""
        found = []
        for tap in (t for t in self.sources if t.counts):
            mine = f"CASE WHEN {self.mine(tap)} THEN"
            found.append(F.expr(f"count({mine} 1 END) AS {quoted(f'rows_{tap.stream}')}"))
            found.append(F.expr(f"max({mine} _t END) AS {quoted(f'time_{tap.stream}')}"))
        return found

    def late(self, given: Inputs) -> list[SparkColumn]:
        """Per stream of which stages would drop rows: how many are late."""
        dropping = {t.stream for t in self.sources if t.stage is not None}
        late = f"_keep AND (_t IS NULL OR _t < {self.watermarks(given)})"
        return [
            F.expr(f"count(CASE WHEN {self.mine(t)} AND {late} THEN 1 END) AS {quoted(f'late_{t.stream}')}")
            for t in self.sources
            if t.counts and t.stream in dropping
        ]

    def mine(self, tap: Tap) -> str:
        return f"_port = {tap.id}" if len(self.sources) > 1 else "true"

    def watermarks(self, given: Inputs) -> str:
        value = NEVER if given.watermark is None else given.watermark
        return f"element_at(array({', '.join([f'{value}L'] * len(self.sources))}), _port + 1)"

    # -- one stage ---------------------------------------------------------------------------------------------

    def run_stage(
        self, df: DataFrame, done: Mapping[str, DataFrame], stage: Stage, given: Inputs, built: Built
    ) -> DataFrame:
        arrivals = self.arrivals[stage.id]
        rows = self.arriving(df, done, stage, arrivals, given)
        if not stage.merged:
            if arrivals.groups and self.combining.wanted(stage.id):
                alone = not any(t.branch.stage for t in arrivals.taps) and compat.partitions(built.source) == 1
                rows = self.combined(rows, arrivals, alone=alone)
                built.combined.add(stage.id)
            rows = self.exchange(rows, arrivals, stage, given)
        task = self.task(self.ticket(stage, arrivals, given), given.sites)
        with compat.our_python(self.anchors.session, self.python):
            rows = compat.map_in_arrow(rows, arrivals.carried, task, self.schemas[stage.id])
        if self.uses[stage.id] > 1:
            rows = apply(rows, stage.after, self.statics).persist()
            built.persisted.append(rows)
        return rows

    def steps(self, branch: Branch) -> tuple[Step, ...]:
        """From what `run_stage` gave to the end of a branch."""
        after = self.plan.stage(branch.stage).after if branch.stage and self.uses[branch.stage] == 1 else ()
        return (*after, *branch.steps)

    def arriving(
        self, df: DataFrame, done: Mapping[str, DataFrame], stage: Stage, arrivals: Arrivals, given: Inputs
    ) -> DataFrame:
        """All rows for a stage: from the streams (late ones dropped) and from earlier stages, which must come first."""
        direct: list[DataFrame] = []
        parts: list[DataFrame] = []
        port_of = [PORT.name] if arrivals.several else []
        sources = [t for t in arrivals.taps if t.stream is not None]
        if sources:
            mine = (
                f"_port IN ({', '.join(str(t.id) for t in sources)}) AND " if len(sources) < len(self.sources) else ""
            )
            time = cut_to_pane("_t", sources[0].port) if stage.kind == "aggregate" else "_t"
            have = {s.name for t in self.sources for s in t.slots}
            some = df.where(f"{mine}_keep AND _t >= {self.watermarks(given)}")
            found = [*port_of, "_cell", f"{time} AS _t", *filled(arrivals.slots, have, arrivals.under)]
            direct.append(compat.select(some, found))
        for tap in arrivals.taps:
            if tap.branch.stage is None or tap.port is None:
                continue
            port = tap.port
            part = apply(done[tap.branch.stage], self.steps(tap.branch), self.statics)
            time = cut_to_pane(f"CAST({micros(port.event_time, port.time_type)} AS BIGINT)", port)
            own = {s.name: named(i.text, arrivals.names[s.name]) for i, s in zip(tap.items, tap.slots, strict=True)}
            place = cell(port.hash, self.cells)
            port_is = [f"{tap.id} AS {name}" for name in port_of]
            found = [*port_is, f"{place} AS _cell", f"{time} AS _t", *filled(arrivals.slots, own, own.__getitem__)]
            parts.append(compat.select(part, found))
        return side_by_side(parts + direct)

    def task(self, ticket: Ticket, sites: int) -> SiteTask:
        return SiteTask(ticket, sites, self.post)

    def exchange(self, rows: DataFrame, arrivals: Arrivals, stage: Stage, given: Inputs) -> DataFrame:
        """Each row to the site that owns its cell."""
        owner = given.layout.owner(stage.id)
        known = self._owner.get(stage.id)
        if known is None or known[0] != owner:
            # One text that is folded to an array once: an item each would be analysed each, in every epoch.
            sites = f"CAST(split('{','.join(map(str, owner))}', ',') AS ARRAY<INT>)"
            # `_t & 0` is 0: without it the site of a constant cell would be a constant, and Catalyst clever about it.
            known = owner, F.expr(f"element_at({sites}, _cell + 1 + CAST(_t & 0L AS INT))")
            self._owner[stage.id] = known
        if not self.anchors.needed:
            return rows.repartitionById(given.sites, known[1])
        rows = rows.withColumn("_site", known[1]).repartitionById(given.sites, "_site")
        return compat.select(self.anchors.anchored(rows, given.sites), [quoted(c.name) for c in arrivals.columns])

    def combined(self, rows: DataFrame, arrivals: Arrivals, *, alone: bool) -> DataFrame:
        """Pre-aggregated by Spark before the exchange: a hot key is few rows by the time it reaches its site.

        Spark exchanges partials to merge them. Where one task reads all there is, they are merged where they are."""
        if alone:
            rows = rows.coalesce(1)
        return rows.groupBy(*arrivals.groups).agg(*arrivals.partials)

    def ticket(self, stage: Stage, arrivals: Arrivals, given: Inputs) -> Ticket:
        ports = []
        for index, port in enumerate(stage.ports):
            mine = [t for t in arrivals.taps if t.port is port]
            ids = tuple(t.id for t in mine)
            slots = tuple((arrivals.names[s.name], c.name) for s, c in zip(mine[0].slots, port.columns, strict=True))
            ports.append(
                PortTicket(ids, slots, port.horizon, given.live(stage.id, index), given.live(stage.id, f"held-{index}"))
            )
        if stage.kind == "frame":  # rows already released, which later ones still look back at
            ports.append(PortTicket((), (), None, given.live(stage.id, 1)))
        return Ticket(
            stage.id, given.epoch, stage.spec, self.store, given.layout.owner(self.plan.leader(stage.id)),
            tuple(ports), given.marks[stage.id], given.released.get(stage.id), stage.lag, arrivals.schema,
            self.arrow[stage.id], given.behind.get(stage.id, {}), given.coming.get(stage.id, {}),
            given.bounds[stage.id],
        )  # fmt: skip

    # -- the end -----------------------------------------------------------------------------------------------

    @cached_property
    def reported(self) -> bool:
        """Whether the rows of the output are those that sites gave out, so that their reports tell how many."""
        steps = [step for branch in self.plan.output for step in branch.steps]
        steps += [step for b in self.plan.output for s in self.plan.stages if s.id == b.stage for step in s.after]
        return all(b.stage for b in self.plan.output) and all(isinstance(step, Project) for step in steps)

    def rows_out(self, built: Built) -> int:
        if built.output is not None:
            return int(built.output.get["rows"])
        return sum(built.sent(branch.stage) for branch in self.plan.output)

    def finish(self, df: DataFrame, done: Mapping[str, DataFrame]) -> DataFrame:
        """The output rows under the user's names."""
        names = [c.name for c in self.plan.columns]
        parts = []
        for tap in sorted(self.taps, key=lambda t: t.stream is not None):
            if not tap.output:
                continue
            if tap.branch.stage is not None:
                plain = Project(tuple(Item(quoted(n), n) for n in names))
                part = apply(done[tap.branch.stage], (*self.steps(tap.branch), plain), self.statics)
            else:
                part = df
                if len(self.sources) > 1:
                    part = part.where(f"_port = {tap.id}")
                if tap.counts:
                    part = part.where("_keep")
                part = compat.select(part, [named(s.name, n) for s, n in zip(tap.slots, names, strict=True)])
            parts.append(part)
        return side_by_side(parts)


def side_by_side(parts: Sequence[DataFrame]) -> DataFrame:
    """A union. What comes out of sites stands first: a site knows itself by its task's number (see `worker.py`)."""
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionAll(part)
    return rows


def cut_to_pane(time: str, port: Port | None) -> str:
    if port is None or port.pane is None or port.pane[0] == 1:
        return time
    size, offset = port.pane
    return f"({time}) - pmod(({time}) - {offset}L, {size}L)"


def ddl(columns: Sequence[Column]) -> StructType:
    schema = _parse_datatype_string(", ".join(f"{quoted(c.name)} {c.type}" for c in columns))
    assert isinstance(schema, StructType)
    return schema
