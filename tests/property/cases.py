"""A case: streams, a script of epochs and crashes, a query and its options, all drawn from one number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from anabranch.testing import ABORT, RESTART, TICK, Abort, Hurry, Memory, Rescale, Restart, Shuffle, Static, Stream
from tests.property import operators, stateful, values
from tests.property.relations import Col, Rel, Text, rendered
from tests.property.values import BY_LETTER, KINDS, LONG, SECOND, Kind

Step = Any


@dataclass(frozen=True)
class Case:
    """Everything about one run; its repr is the test that repeats it."""

    streams: tuple[Stream, ...]
    statics: tuple[Static, ...]
    script: tuple[Step, ...]
    sql: str
    oracle: str
    close: tuple[str, ...] = ()
    unordered: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    cases: tuple[str, ...] = ()  # predicates of flow.case over the first stream, whose parts are p0, p1, …
    live: bool = False
    apart: bool = False
    features: frozenset[str] = frozenset()

    def shown(self) -> str:
        fields = [f"    {name}={getattr(self, name)!r}," for name in self.__dataclass_fields__ if name != "features"]
        return "\n".join(["Case(", *fields, ")"])


def draw(seed: int, live: bool = False) -> Case:
    rng = Random(seed)
    time = BY_LETTER["t"] if rng.random() < 0.85 else BY_LETTER["z"]
    q = Text(rng, replace(time, pool=()))
    letters = [_narrowed(rng, k) for k in rng.sample(KINDS, rng.choice([2, 3, 4, 5, 12]))]
    spaced = rng.random() < 0.5
    names = ["a", "b", "c", "d", "e"][: rng.choice([1, 1, 2, 2, 2, 3, 3, 4, 5])]
    columns = (("id", "bigint"), ("ts", time.type), *((f"c_{k.letter}", k.type) for k in letters))
    streams = tuple(Stream(n, columns, "ts", rng.choice([0, 0, 2, 10, 60]) * SECOND) for n in names)
    script = _script(rng, streams, letters, spaced, live)
    kinds = (Col("id", LONG), Col("ts", q.time), *(Col(f"c_{k.letter}", k) for k in letters))
    rels = [Rel(n, kinds, ("ts",), ("id",), spaced, True) for n in names]
    split = ()
    if rng.random() < 0.15:
        split = tuple(values.predicate(rng, c.name, c.kind) for c in rng.choices(kinds[2:], k=rng.randint(1, 2)))
        rels[0:1] = [replace(rels[0], name=f"p{i}") for i in range(len(split) + 1)]
        del rels[5:]
        q.features.add("case")
    table = (("sid", values.INT), *((f"s_{k.letter}", k) for k in rng.sample(letters, 1)))
    rows = tuple((i, *(values.value(rng, k) for _, k in table[1:])) for i in range(rng.randint(0, 4)))
    statics = [Static("st", tuple((n, k.type) for n, k in table), rows)]
    rel = _chain(q, rels, lambda r: operators.static(q, r, "st", table))
    sql, close, unordered = _final(q, rel)
    if " st ON" not in " ".join(text for _, text in q.steps):
        statics = []
    options = _options(rng)
    cells = dict(options)["cells"]  # no more sites than that
    script = tuple(Rescale(min(s.sites, cells)) if isinstance(s, Rescale) else s for s in script)
    which = f"CASE {' '.join(f'WHEN {p} THEN {j}' for j, p in enumerate(split))} ELSE {len(split)} END"
    parts = [f"p{i} AS (SELECT * FROM {names[0]} WHERE {which} = {i})" for i in range(len(split) + 1) if split]
    return Case(streams, tuple(statics), script, _with(q, sql, False, []), _with(q, sql, True, parts), close, unordered,
                options, split, live, live and rng.random() < 0.5, frozenset(q.features))  # fmt: skip


def _narrowed(rng: Random, kind: Kind) -> Kind:
    """Often only two values, so that many rows meet."""
    return replace(kind, pool=tuple(rng.sample(kind.pool, 2))) if rng.random() < 0.6 else kind


def _with(q: Text, last: str, oracle: bool, parts: list[str]) -> str:
    steps = [*parts, *(f"{name} AS ({rendered(text, oracle)})" for name, text in q.steps)]
    return (f"WITH {', '.join(steps)} " if steps else "") + rendered(last, oracle)


def _chain(q: Text, rels: list[Rel], static: Any) -> Rel:
    """Streams, then one to three operators with state, with those without between them."""
    rng = q.rng
    rels = [_stateless(q, r, static) for r in rels]
    ready: list[Rel] = []
    if len(rels) > 1 and rng.random() < 0.25:  # a union before
        rels = [operators.union(q, rels[:2]), *rels[2:]]
    for r in rels:  # chains that end in a join: aggregate→join, frame→join
        if len(rels) > 1 and rng.random() < 0.15:
            r = _stateful(q, r)
        ready.append(r)
    rel = ready[0]
    if len(ready) > 1:
        if len(ready) > 3 and rng.random() < 0.3:  # join → join on another key
            rel = operators.join(q, [operators.join(q, ready[:2]), *ready[2:]])
        elif rng.random() < 0.1:
            rel = operators.union(q, ready)
        else:
            rel = operators.join(q, ready)
    elif rng.random() < 0.3:  # with itself
        rel = operators.join(q, [rel, rel])
        q.features.add("self join")
    for _ in range(rng.choice([0, 1, 1, 1, 2]) if len(ready) > 1 else rng.choice([1, 1, 2, 2, 3])):
        rel = _stateful(q, _stateless(q, rel, static))
    return _stateless(q, rel, static)


def _stateful(q: Text, rel: Rel) -> Rel:
    if rel.unique and q.rng.random() < 0.4:
        return stateful.frame(q, rel)
    return stateful.aggregate(q, rel)


def _stateless(q: Text, rel: Rel, static: Any) -> Rel:
    roll = q.rng.random()
    if roll < 0.12:
        return operators.where(q, rel)
    if roll < 0.27:
        return operators.select(q, rel)
    return static(rel) if roll < 0.4 else rel


def _final(q: Text, rel: Rel) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Some of the columns, so that others are pruned."""
    cols = [c for c in rel.cols if q.rng.random() < 0.75]
    windows = [w for w in rel.windows if q.rng.random() < 0.7]
    if not cols and not windows:
        cols, windows = list(rel.cols[:1]), list(rel.windows[:1])
    items = [*(c.name for c in cols), *windows]
    close = tuple(c.name for c in cols if not c.exact)
    return f"SELECT {', '.join(items)} FROM {rel.name}", close, tuple(c.name for c in cols if c.unordered)


def _moves(rng: Random) -> list[Step]:
    """What befalls the layout and the bounds between two epochs."""
    steps: list[Step] = []
    if rng.random() < 0.5:
        steps.append(Shuffle(rng.randrange(10**6), rng.choice([0.1, 0.5, 1.0])))
    if rng.random() < 0.2:
        steps.append(Rescale(rng.choice([1, 2, 3, 5])))
    if rng.random() < 0.15:
        steps.append(Memory(rng.choice([None, 0, 200, 2000]), rng.choice([None, 0, 1])))
    if rng.random() < 0.15:
        steps.append(Hurry(rng.choice([None, 1, 3])))
    return steps


def _script(rng: Random, streams: tuple[Stream, ...], kinds: list[Kind], spaced: bool, live: bool) -> tuple[Step, ...]:
    steps: list[Step] = []
    count = rng.choice([1, 2, 2, 3, 3, 4])
    moving = not live and rng.random() < 0.6
    if moving and rng.random() < 0.4:
        steps.append(Hurry(rng.choice([1, 2, 4, 8])))
    if moving and rng.random() < 0.4:
        steps.append(Memory(rng.choice([0, 100, 300, 1000, 4000])))
    most = {1: 20, 2: 14, 3: 9, 4: 7, 5: 6}[len(streams)]
    ids = {s.name: 0 for s in streams}
    stride, jitter = rng.choice([2, 4, 8, 30]), rng.choice([0, 3, 6, 20])
    for n in range(count):
        if moving:
            steps += _moves(rng)
        if n and rng.random() < 0.45:
            steps.append(
                rng.choice([RESTART, Restart(rng.randint(1, 4)), TICK, ABORT, Abort("write"), Abort("offsets")])
            )
        epoch: dict[str, list[tuple[Any, ...]]] = {}
        for stream in streams:
            if rng.random() < 0.15:
                continue
            rows: list[tuple[Any, ...]] = []
            for _ in range(rng.randint(most // 4, most)):
                if rows and rng.random() < 0.1:
                    rows.append(rng.choice(rows))
                    continue
                ids[stream.name] += 1
                rows.append((ids[stream.name], _time(rng, n, stride, jitter, spaced, ids[stream.name]),
                             *(values.value(rng, k) for k in kinds)))  # fmt: skip
            if rows or rng.random() < 0.5:
                epoch[stream.name] = rows
        steps.append(epoch)
    if rng.random() < 0.2:
        steps.append(RESTART)
    return tuple(steps)


def _time(rng: Random, n: int, stride: int, jitter: int, spaced: bool, id: int) -> int | None:
    """Whole seconds mostly, so that rows lie on bounds and edges."""
    if rng.random() < 0.03:
        return None
    seconds = n * stride + rng.randint(-jitter, stride)
    fraction = id if spaced else rng.choice([0, 0, 0, 0, 0, 1, 999_999, 500_000])
    return values.BEGIN + seconds * SECOND + fraction


def _options(rng: Random) -> tuple[tuple[str, Any], ...]:
    return (
        ("sites", rng.choice([1, 2, 2, 3, 4])),
        ("cells", rng.choice([4, 8, 8, 64])),
        ("strategy", rng.choice(["subquery-cluster", "subquery-cluster", "operator-cluster", "query-cluster"])),
        ("combine", rng.choice(["auto", "always", "always", "never"])),
    )
