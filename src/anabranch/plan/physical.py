"""The physical plan: stages behind exchanges, and the Catalyst steps between them. What `spark/` executes.

A *stage* is one stateful operator at the sites. Each of its *ports* is fed by *branches*: a base (a stream or an
earlier stage) and the stateless steps on the way. `Prepare` is the last thing Catalyst does before an exchange: typed
columns, event time in microseconds, and the key columns whose hash is the cell.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field

from anabranch.kernels.specs import Spec
from anabranch.query.operators import Item


@dataclass(frozen=True)
class Column:
    name: str
    type: str  # Spark's simple string


@dataclass(frozen=True)
class Project:
    items: tuple[Item, ...]
    step: str = "project"


@dataclass(frozen=True)
class Filter:
    condition: str
    step: str = "filter"


@dataclass(frozen=True)
class Lookup:
    """Join with a static DataFrame."""

    static: str
    how: str
    condition: str
    renames: tuple[Item, ...]
    step: str = "lookup"


Step = Project | Filter | Lookup


@dataclass(frozen=True)
class Branch:
    """Rows on their way: `stream` or `stage` is the base."""

    steps: tuple[Step, ...]
    stream: str | None = None
    stage: str | None = None

    def then(self, step: Step) -> Branch:
        return Branch((*self.steps, step), self.stream, self.stage)


@dataclass(frozen=True)
class Port:
    """One input of a stage."""

    branches: tuple[Branch, ...]
    event_time: str  # expression over the branches' columns that becomes _t, in microseconds
    time_type: str  # its type: timestamp or timestamp_ntz
    pane: tuple[int, int] | None  # (size, offset): _t is cut down to the start of its pane
    hash: tuple[str, ...]  # typed, normalised key expressions; their hash is the cell; empty: one cell
    columns: tuple[Column, ...]  # the prepared columns, in wire order
    items: tuple[Item, ...]  # how each of them is computed from the branches' columns
    horizon: int  # rows with _t < watermark - horizon are of no use any more


@dataclass(frozen=True)
class Stage:
    id: str
    kind: str  # join | aggregate | frame
    spec: Spec
    ports: tuple[Port, ...]
    output: tuple[Column, ...]  # what comes out of the site
    after: tuple[Step, ...]  # Catalyst steps that restore what the flow expects
    lag: int  # this stage's watermark is the flow's minus this
    follows: str | None = None  # the stage after whose sites its rows already lie, if they do
    merged: bool = False  # runs behind the stage before it without an exchange
    combine: tuple[Item, ...] = ()  # pre-aggregation of the partial columns, if they can be merged
    notes: tuple[str, ...] = ()  # for explain(): where each part is evaluated


@dataclass(frozen=True)
class Plan:
    stages: tuple[Stage, ...]
    output: tuple[Branch, ...]
    columns: tuple[Column, ...]  # of the output, with the user's names
    streams: tuple[str, ...]
    strategy: str = "subquery-cluster"
    extent: int = 0  # microseconds by which the end of a finite input must be passed for everything to be emitted
    notes: tuple[str, ...] = field(default=())

    def stage(self, id: str) -> Stage:
        return next(s for s in self.stages if s.id == id)

    def upstream(self, id: str) -> tuple[str, ...]:
        """The stages that a stage reads from."""
        return tuple({b.stage: None for p in self.stage(id).ports for b in p.branches if b.stage is not None})

    def leader(self, id: str) -> str:
        """The stage whose exchange brings the rows: itself, or the one before it that it runs behind."""
        stage = self.stage(id)
        return self.leader(self.upstream(id)[0]) if stage.merged else id

    @property
    def leaders(self) -> tuple[str, ...]:
        return tuple(s.id for s in self.stages if not s.merged)

    def canonical(self) -> str:
        """What must not change under a checkpoint. The strategy and notes may."""
        body = asdict(self)
        for key in ("strategy", "notes"):
            body.pop(key)
        for stage in body["stages"]:
            for key in ("follows", "merged", "combine", "notes"):
                stage.pop(key)
        return json.dumps(body, sort_keys=True)

    def fingerprint(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:32]
