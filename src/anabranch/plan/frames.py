"""Per-row frames: keys, order and arguments prepared by Catalyst, rows released in event-time order."""

from __future__ import annotations

from collections.abc import Callable

from anabranch.errors import MissingEventTime, UnsupportedQuery
from anabranch.kernels.specs import TIME, FrameCall, FrameSpec, SortKey
from anabranch.plan.aggregates import MOMENTS, group_keys
from anabranch.plan.pending import Pending, Placed, plain, written
from anabranch.plan.physical import Branch, Column, Port, Project, Stage
from anabranch.plan.typer import Typer
from anabranch.plan.types import TIMES, check_key, decimal, is_numeric, normalised, quoted
from anabranch.query import operators as ops
from anabranch.query.operators import Item


def build(
    id: str, op: ops.Frame, child: Pending, needed: Callable[[str], bool], typer: Typer
) -> tuple[Stage, Pending, int]:
    time = plain(op.time) or op.time
    lag = next((v for k, v in child.times.items() if k.lower() == time.lower()), None)
    if lag is None:
        raise MissingEventTime(
            f"ORDER BY {op.time} is not an event time here, so the order would never be final",
            fix=f"order by {', '.join(child.times) or 'a column given as event_time to ab.stream'} first",
        )
    types = dict(child.types)
    prepared: dict[str, tuple[str, str]] = {}  # name -> (text, type)
    payload = {c: t for c, t in types.items() if needed(c)} or dict([next(iter(types.items()))])
    for column, type in payload.items():
        prepared[column] = (quoted(column), type)

    def prepare(text: str, type: str, prefix: str) -> str:
        own = plain(text)
        if own in types and types[own] == type:
            prepared.setdefault(own, (quoted(own), type))
            return own
        known = next((n for n, p in prepared.items() if p == (text, type)), None)
        name = known or f"{prefix}{len(prepared)}"
        prepared[name] = (text, type)
        return name

    key_types = typer.types(types, list(op.keys)) if op.keys else []
    for key, type in zip(op.keys, key_types, strict=True):
        check_key(key, type)
    hash, after = group_keys(list(op.keys), key_types, child.placed)
    keys = tuple(prepare(_bare(normalised(f"({k})", t), k), t, "_k") for k, t in zip(op.keys, key_types, strict=True))
    order_types = typer.types(types, [o.text for o in op.order]) if op.order else []
    order = tuple(
        SortKey(prepare(o.text, t, "_o"), o.descending, o.nulls_last)
        for o, t in zip(op.order, order_types, strict=True)
    )
    calls, outputs = [], []
    for c in op.calls:
        if needed(c.column):
            call, type = _call(c, types, typer, prepare)
            calls.append(call)
            outputs.append(Column(c.column, type))
    if not calls:
        call, type = _call(op.calls[0], types, typer, prepare)
        calls, outputs = [call], [Column(op.calls[0].column, type)]
    used = {*keys, *(o.column for o in order), *(c for call in calls for c in call.columns)}
    travels = {time: TIME} if time in payload and time not in used and payload[time] in TIMES else {}
    for column in travels:  # as _t already, to the microsecond
        del prepared[column]
    columns = tuple(Column(n, t) for n, (_, t) in prepared.items())
    given = tuple(travels.get(c, c) for c in payload)
    spec = FrameSpec(keys, order, tuple(c.name for c in columns), tuple(calls), given)
    port = Port(
        child.branches,
        written(time),
        typer.types(types, [written(time)])[0],
        None,
        hash,
        columns,
        tuple(Item(text, n) for n, (text, _) in prepared.items()),
        lag,
    )
    output = (*(Column(travels.get(c, c), t) for c, t in payload.items()), *outputs)
    result = {**payload, **{c.name: c.type for c in outputs}}
    back = Project(tuple(Item(quoted(c.name), name) for c, name in zip(output, result, strict=True)))
    stage = Stage(id, "frame", spec, (port,), output, (back,) if travels else (), lag, follows=after)
    times = {t: v for t, v in child.times.items() if t == time}
    for other in child.times:
        early = child.gaps.get((other, time))
        if other != time and early is not None:
            times[other] = lag + max(early, 0)
    placed = Placed(
        id,
        tuple(frozenset({p} if (p := plain(k)) is not None else ()) for k in op.keys) if after is None else
        (child.placed.keys if child.placed else ()),
        tuple(key_types) if after is None else (child.placed.types if child.placed else ()),
    )  # fmt: skip
    return stage, Pending((Branch((), stage=id),), result, times, dict(child.gaps), placed if op.keys else None), lag


def _bare(expression: str, text: str) -> str:
    return text if expression == f"({text})" else expression


def _call(
    c: ops.FrameCall, types: dict[str, str], typer: Typer, prepare: Callable[[str, str, str], str]
) -> tuple[FrameCall, str]:
    """One function over a frame; argument preparation and result types are those of the aggregate of that name."""
    args = [f"CASE WHEN ({c.where}) THEN ({a}) END" if c.where else a for a in c.args]
    span = (c.preceding, c.following)

    def made(kind: str, columns: tuple[str, ...], type: str, params: tuple[float, ...] = ()) -> tuple[FrameCall, str]:
        return FrameCall(kind, columns, *span, c.column, params), type

    if c.function == "count":
        if not args and c.where:
            args = [f"CASE WHEN ({c.where}) THEN 1 END"]
        columns = (
            tuple(prepare(a, t, "_p") for a, t in zip(args, typer.types(types, args), strict=True)) if args else ()
        )
        if len(columns) > 1:
            both = " AND ".join(f"({a}) IS NOT NULL" for a in args)
            columns = (prepare(f"CASE WHEN {both} THEN 1 END", "int", "_p"),)
        return made("count", columns, "bigint")
    x = args[0]
    if c.function in ("sum", "avg"):
        type = typer.types(types, [f"{c.function}({x})"])[0]
        if not is_numeric(type):
            raise UnsupportedQuery(f"{c.function} over {type} in a frame", where=x, fix="cast it to a number")
        total = typer.types(types, [f"sum({x})"])[0] if type.startswith("decimal") else type
        value = prepare(f"CAST(({x}) AS {total})", total, "_p")
        if c.function == "avg" and type != "double":
            return made("avg_decimal", (value,), type, tuple(map(float, decimal(type))))
        return made(c.function, (value,), type)
    if c.function in MOMENTS:
        return made(c.function, (prepare(f"CAST(({x}) AS DOUBLE)", "double", "_p"),), "double")
    type = typer.types(types, [x])[0]
    value = prepare(x, type, "_p")
    if c.function in ("min", "max"):
        return made(c.function, (value,), type)
    if c.function in ("first_value", "last_value"):
        return made(c.function, (value,), type, (1.0,) if c.ignore_nulls else ())
    if c.function == "collect_list":
        return made("collect_list", (value,), f"array<{type}>")
    if c.function == "lag":
        columns = (value,) if len(args) < 2 else (value, prepare(f"CAST(({args[1]}) AS {type})", type, "_p"))
        return made("lag", columns, type)
    raise UnsupportedQuery(f"{c.function} over a frame", fix="count, sum, avg, min, max, stddev, variance, lag, …")
