"""Aggregates: each call as partial columns that Catalyst prepares, and a kernel that merges them.

A raw row is a partial of one row. When every call can be merged, Spark may pre-aggregate partials per (key, pane) at
the site before they become Arrow (`combine`); results are the same either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import gcd

from anabranch.errors import MissingEventTime, UnsupportedQuery
from anabranch.kernels.specs import AggregateCall, AggregateSpec, WindowSpec
from anabranch.plan.pending import Pending, Placed, plain, written
from anabranch.plan.physical import Branch, Column, Port, Project, Stage
from anabranch.plan.typer import Typer
from anabranch.plan.types import check_key, decimal, from_micros, is_numeric, normalised, quoted
from anabranch.query.operators import Aggregate, Call, Item

MOMENTS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")


@dataclass
class Partials:
    """The partial columns of one aggregate; equal ones are shared."""

    types: dict[str, str]
    typer: Typer
    columns: dict[tuple[str, str | None], Column] = field(default_factory=dict)  # (text, combine) -> column
    items: list[Item] = field(default_factory=list)
    combine: list[Item] = field(default_factory=list)

    def add(self, text: str, type: str, combine: str | None) -> str:
        """A partial column; `combine` is how Spark merges it, with {} for its name and None if it cannot."""
        found = self.columns.get((text, combine))
        if found is None:
            found = Column(f"_p{len(self.items)}", type)
            self.columns[text, combine] = found
            self.items.append(Item(text, found.name))
            if combine is not None:
                self.combine.append(Item(combine.replace("{}", found.name), found.name))
        return found.name

    def type_of(self, text: str) -> str:
        return self.typer.types(self.types, [text])[0]

    # -- the calls ---------------------------------------------------------------------------------------------

    def call(self, c: Call) -> tuple[AggregateCall, str]:
        """The kernel's call and its result type."""
        args = [f"CASE WHEN ({c.where}) THEN ({a}) END" if c.where else f"({a})" for a in c.args]
        if c.function == "count":
            return self._count(c, args)
        x = args[0]
        if c.function == "sum":
            type = self.type_of(f"sum({x})")
            self._only_numbers(c, type)
            if c.distinct:
                return AggregateCall("sum_distinct", (self.add(f"CAST({x} AS {type})", type, None),), c.column), type
            return AggregateCall("sum", (self._total(x, type),), c.column), type
        if c.function == "avg":
            return self._avg(c, x)
        if c.function in ("min", "max"):
            type = self.type_of(x)
            self._only_ordered(c, type)
            return AggregateCall(c.function, (self.add(x, type, f"{c.function}({{}})"),), c.column), type
        if c.function in ("bool_and", "bool_or"):
            kind = "min" if c.function == "bool_and" else "max"
            return AggregateCall(kind, (self.add(x, "boolean", f"{kind}({{}})"),), c.column), "boolean"
        if c.function in MOMENTS:
            self._only_numbers(c, self.type_of(x))
            return self._moments(c, x), "double"
        if c.function in ("min_by", "max_by"):
            return self._by(c, x, args[1])
        if c.function in ("collect_list", "collect_set"):
            type = self.type_of(x)
            value = normalised(x, type) if c.function == "collect_set" else x
            return AggregateCall(c.function, (self.add(value, type, None),), c.column), f"array<{type}>"
        if c.function == "percentile":
            return self._percentile(c, x)
        raise UnsupportedQuery(f"the aggregate {c.function}", fix="see docs/functions.md for those there are")

    def _only_numbers(self, c: Call, type: str) -> None:
        if not is_numeric(type):
            raise UnsupportedQuery(f"{c.function} over {type}", where=", ".join(c.args), fix="cast it to a number")

    def _only_ordered(self, c: Call, type: str) -> None:
        if "<" in type or "collate" in type.lower() or type in ("variant", "interval"):
            raise UnsupportedQuery(
                f"{c.function} orders values of the type {type}", where=", ".join(c.args),
                fix="order by one of its fields, e.g. min_by(x, x.field), or by a hash or text of it",
            )  # fmt: skip

    def _count(self, c: Call, args: list[str]) -> tuple[AggregateCall, str]:
        if c.distinct:
            columns = []
            for a in args:
                type = self.type_of(a)
                check_key(a, type)
                columns.append(self.add(normalised(a, type), type, None))
            return AggregateCall("count_distinct", tuple(columns), c.column), "bigint"
        column = (
            self._present(args) if args else self._ones(f"CASE WHEN {c.where} THEN 1L ELSE 0L END" if c.where else "1L")
        )
        return AggregateCall("count", (column,), c.column), "bigint"

    def _present(self, args: list[str]) -> str:
        """1 where none of them is NULL."""
        return self._ones(f"CASE WHEN {' OR '.join(f'{a} IS NULL' for a in args)} THEN 0L ELSE 1L END")

    def _ones(self, text: str) -> str:
        return self.add(text, "bigint", "sum({})")

    def _total(self, x: str, type: str) -> str:
        """Sums of x; adding them up leaves these two types as they are."""
        return self.add(
            f"CAST({x} AS {type})", type, "sum({})" if type in ("bigint", "double") else f"CAST(sum({{}}) AS {type})"
        )

    def _avg(self, c: Call, x: str) -> tuple[AggregateCall, str]:
        type = self.type_of(f"avg({x})")
        n = self._present([x])
        if type == "double":
            return AggregateCall("avg", (self._total(x, "double"), n), c.column), type
        self._only_numbers(c, type)
        s = self._total(x, self.type_of(f"sum({x})"))
        return AggregateCall("avg_decimal", (s, n), c.column, tuple(map(float, decimal(type)))), type

    def _moments(self, c: Call, x: str) -> AggregateCall:
        n = self._present([x])
        value = f"CAST({x} AS double)"
        mean = self.add(value, "double", "avg({})")
        # A row's own deviation is 0, and NaN for NaN and infinity, as in Spark.
        m2 = self.add(f"{value} - {value}", "double", f"var_pop({mean}) * count({mean})")
        return AggregateCall(c.function, (n, mean, m2), c.column)

    def _by(self, c: Call, x: str, y: str) -> tuple[AggregateCall, str]:
        type, order = self.typer.types(self.types, [x, y])
        self._only_ordered(c, order)
        # The pair's columns are merged by the same comparison, so x is only shared with an equal call.
        b = self.add(y, order, f"{'min' if c.function == 'min_by' else 'max'}({{}})")
        a = self.add(x, type, f"{c.function}({{}}, {b})")
        return AggregateCall(c.function, (a, b), c.column), type

    def _percentile(self, c: Call, x: str) -> tuple[AggregateCall, str]:
        v = self.add(f"CAST({x} AS double)", "double", None)
        single = self.typer.number(c.args[1])
        if single is not None:
            fractions = [single]
        else:
            size = self.typer.number(f"size({c.args[1]})")
            found = [self.typer.number(f"element_at({c.args[1]}, {n + 1})") for n in range(int(size or 0))]
            fractions = [f for f in found if f is not None]
            if not fractions or len(fractions) != len(found):
                raise UnsupportedQuery("percentile needs constant fractions", where=c.args[1], fix="write 0.5")
        if any(not 0 <= f <= 1 for f in fractions):
            raise UnsupportedQuery("a percentile's fraction lies between 0 and 1", where=c.args[1], fix="write 0.95")
        if single is not None:
            return AggregateCall("percentile", (v,), c.column, tuple(fractions)), "double"
        return AggregateCall("percentiles", (v,), c.column, tuple(fractions)), "array<double>"


def group_keys(texts: list[str], types: list[str], placed: Placed | None) -> tuple[tuple[str, ...], str | None]:
    """What to hash: the keys, or those by which the rows already lie at their sites (and after which stage)."""
    exprs = [normalised(f"({t})", k) for t, k in zip(texts, types, strict=True)]
    if placed is not None and placed.keys:
        chosen = []
        for columns, kind in zip(placed.keys, placed.types, strict=True):
            at = next((i for i, t in enumerate(texts) if plain(t) in columns and types[i] == kind), None)
            if at is None:
                return tuple(exprs), None
            chosen.append(exprs[at])
        return tuple(chosen), placed.stage
    return tuple(exprs), None


def build(
    id: str, op: Aggregate, child: Pending, needed: Callable[[str], bool], typer: Typer
) -> tuple[Stage, Pending, int]:
    """The stage, what it gives, and how far it reaches in time."""
    types = dict(child.types)
    time = plain(op.window.time) or op.window.time
    lag = next((v for k, v in child.times.items() if k.lower() == time.lower()), None)
    if lag is None:
        raise MissingEventTime(
            f"{op.window.time} is not an event time here, so its windows would never be known to be complete",
            fix=f"group by a window over {', '.join(child.times) or 'a column given as event_time to ab.stream'}",
        )
    size, slide = op.window.size, op.window.slide
    pane = gcd(size, slide)
    time_type = typer.types(types, [op.window.time])[0]
    key_types = typer.types(types, [k.text for k in op.keys]) if op.keys else []
    for key, type in zip(op.keys, key_types, strict=True):
        check_key(key.text, type)
    hash, after = group_keys([k.text for k in op.keys], key_types, child.placed)
    partials = Partials(types, typer)
    wanted = [c for c in op.calls if needed(c.column)]
    calls = [partials.call(c) for c in wanted]
    if not partials.items:
        partials.add("1L", "bigint", "sum({})")
    names = [f"_k{i}" for i in range(len(op.keys))]
    keys = [normalised(f"({k.text})", t) for k, t in zip(op.keys, key_types, strict=True)]
    window = WindowSpec(size, slide, op.window.offset % slide, pane)
    spec = AggregateSpec(tuple(names), window, tuple(c for c, _ in calls))
    columns = [Column(n, t) for n, t in zip(names, key_types, strict=True)]
    columns += sorted(partials.columns.values(), key=lambda c: int(c.name[2:]))
    items = [*(Item(k, n) for k, n in zip(keys, names, strict=True)), *partials.items]
    port = Port(
        child.branches,
        written(time),
        time_type,
        (pane, window.offset % pane),
        hash,
        tuple(columns),
        tuple(items),
        lag + size - 1,
    )
    output = [Column(n, t) for n, t in zip(names, key_types, strict=True)]
    output += [Column("_w", "bigint"), *(Column(c.output, t) for c, t in calls)]
    projection = [Item(n, k.column) for n, k in zip(names, op.keys, strict=True)]
    result = {k.column: t for k, t in zip(op.keys, key_types, strict=True)}
    if op.window.struct:
        start, end = from_micros("_w", time_type), from_micros(f"_w + {size}L", time_type)
        projection.append(Item(f"named_struct('start', {start}, 'end', {end})", op.window.column))
        result[op.window.column] = f"struct<start:{time_type},end:{time_type}>"
    projection += [Item(quoted(c.output), c.output) for c, _ in calls]
    result |= {c.output: t for c, t in calls}
    after_steps = (Project(tuple(projection)),)
    stage = Stage(
        id, "aggregate", spec, (port,), tuple(output), after_steps, lag,
        follows=after, combine=tuple(partials.combine) if spec.mergeable else (),
        notes=(f"partials in Spark: {', '.join(i.text for i in partials.items)}",),
    )  # fmt: skip
    times, gaps = result_times(op, child, lag, size)
    placed = Placed(id, tuple(frozenset({k.column}) for k in op.keys), tuple(key_types)) if after is None else (
        Placed(id, tuple(frozenset(k.column for k in op.keys if (plain(k.text) or "") in c) for c in child.placed.keys),
               child.placed.types) if child.placed else None
    )  # fmt: skip
    return stage, Pending((Branch((), stage=id),), result, times, gaps, placed), size + lag


def result_times(
    op: Aggregate, child: Pending, lag: int, size: int
) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Which expressions over the result are event times, and how far they are behind."""
    if op.window.struct:
        w = op.window.column
        start, end, last = f"{w}.start", f"{w}.end", f"window_time({w})"
        times = {end: lag, start: lag + size, last: lag}
        gaps = {(start, end): size, (end, start): -size, (start, last): size - 1, (last, start): 1 - size,
                (last, end): 1, (end, last): -1}  # fmt: skip
        return times, gaps
    times = {}
    time = plain(op.window.time) or op.window.time
    for key in op.keys:
        text = plain(key.text) or key.text
        if text == time or child.gaps.get((time, text)) == child.gaps.get((text, time)) == 0:  # or another name of it
            times[key.column] = lag
        for old, known in child.times.items():  # a window that is grouped by as a whole
            for form in ("{}.start", "{}.end", "window_time({})"):
                if old == form.format(text):
                    times[form.format(key.column)] = known
    return times, {}
