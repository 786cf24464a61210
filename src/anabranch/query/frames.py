"""Per-row frames: select items with OVER (…) become Frame operators with a Select on top.

Calls with the same PARTITION BY and ORDER BY share a Frame; others are chained, each Frame over the one before, which
works because a Frame keeps its input's columns and the event time that orders it.

Limits: ROWS frames that end at the current row or before it; ORDER BY starts with an event time, ascending.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import MissingEventTime, UnsupportedQuery
from . import calls, functions
from .calls import CallSite
from .checks import RANKING
from .items import Output, SelectItem, extended, lateral, project
from .operators import Frame, FrameCall, Operator, Order
from .relation import Relation
from .scope import Scope, bare, written_as
from .tokens import NUMBER, Token, quote, slice_of, split, substitute, tokenise, unique, words

_FUNCTIONS = words("""count count_if sum avg min max stddev_samp stddev_pop var_samp var_pop first last collect_list""")
_NAMES = {"first": "first_value", "last": "last_value"}
_ROWS_FIX = "write ROWS BETWEEN n PRECEDING AND CURRENT ROW"


@dataclass(frozen=True)
class _Over:
    """OVER (…), parsed; `rows` is (preceding, following)."""

    keys: tuple[str, ...]
    order: tuple[str, ...]
    rows: tuple[int, int] | None


@dataclass(frozen=True)
class _Placed:
    """A call that has its column."""

    call: FrameCall
    keys: tuple[str, ...]
    order: tuple[str, ...]


def select_with_frames(relation: Relation, items: Sequence[SelectItem], windows: Mapping[str, str]) -> Relation:
    """SELECT items of which some have OVER (…)."""
    scope = relation.scope
    taken = {f.column.lower() for f in relation.operator.fields}
    placed: list[_Placed] = []
    outputs: list[Output] = []
    earlier: dict[str, str] = {}
    for item in items:
        text = item.text
        if item.field is None:
            changes: list[tuple[int, int, str]] = []
            names = lateral(earlier)
            for call in calls.find(text):
                if call.over is None or any(start <= call.start < end for start, end, _ in changes):
                    continue
                wanted = (
                    item.name if item.aliased and call.end - call.start == len(text) else f"frame_{len(placed) + 1}"
                )
                column = _place(scope, call, windows, wanted, placed, taken)
                changes.append((call.start, call.end, quote(column)))
            for use in scope.uses(text, last=names, outside=tuple(changes)):
                written = text[use.start : use.end]
                new = written_as(written, use.field.column) if use.field else names[use.other or ""]
                changes.append((use.start, use.end, new))
            text = substitute(text, changes)
            if item.aliased:
                earlier[item.name] = text
        outputs.append(Output(text, item.name))
    operator, scope = _frames(relation.operator, scope, placed)
    return Relation(*project(operator, scope, outputs))


def _place(
    scope: Scope, call: CallSite, windows: Mapping[str, str], wanted: str, placed: list[_Placed], taken: set[str]
) -> str:
    over = _parse(call, windows)
    new = _Placed(
        _call(scope, call, over),
        tuple(scope.rewrite(k) for k in over.keys),
        tuple(over.order),
    )
    for known in placed:
        if replace(known, call=replace(known.call, column="")) == new:
            return known.call.column
    column = unique(wanted, taken.__contains__)
    taken.add(column.lower())
    placed.append(replace(new, call=replace(new.call, column=column)))
    return column


# -- OVER (…) ---------------------------------------------------------------------------------------------------------


def _parse(call: CallSite, windows: Mapping[str, str]) -> _Over:
    body = call.over or ""
    tokens = tokenise(body)
    if len(tokens) == 1 and tokens[0].is_name:
        if tokens[0].name.lower() not in windows:
            raise UnsupportedQuery(
                f"there is no window `{tokens[0].name}`",
                where=call.text,
                fix="define it with WINDOW … AS (…), or write OVER (…)",
            )
        body = windows[tokens[0].name.lower()]
        tokens = tokenise(body)
    keys: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    rows = None
    i = 0
    while i < len(tokens):
        key = tokens[i].key
        if (
            key in ("PARTITION", "ORDER", "DISTRIBUTE", "SORT", "CLUSTER")
            and i + 1 < len(tokens)
            and tokens[i + 1].key == "BY"
        ):
            stop = next(
                (
                    j
                    for j in range(i + 2, len(tokens))
                    if tokens[j].key in ("ORDER", "SORT", "ROWS", "RANGE")
                    and j + 1 < len(tokens)
                    and _starts(tokens, j)
                ),
                len(tokens),
            )
            texts = tuple(slice_of(body, part) for part in split(tokens[i + 2 : stop]))
            if key in ("PARTITION", "DISTRIBUTE"):
                keys = texts
            elif key == "CLUSTER":
                raise UnsupportedQuery(
                    "CLUSTER BY in OVER (…)", where=call.text, fix="write PARTITION BY … ORDER BY ts"
                )
            else:
                order = texts
            i = stop
        elif key in ("ROWS", "RANGE"):
            rows = _rows(call, tokens[i:])
            i = len(tokens)
        else:
            raise UnsupportedQuery(
                f"cannot read OVER (…) at `{tokens[i].text}`",
                where=call.text,
                fix="write OVER (PARTITION BY … ORDER BY ts ROWS …)",
            )
    return _Over(keys, order, rows)


def _starts(tokens: Sequence[Token], j: int) -> bool:
    """Whether the word at j begins the next part: a column may be called `rows`."""
    following = tokens[j + 1]
    if tokens[j].key in ("ORDER", "SORT"):
        return following.key == "BY"
    return following.kind == NUMBER or following.key in ("BETWEEN", "UNBOUNDED", "CURRENT", "INTERVAL", "-")


def _rows(call: CallSite, tokens: Sequence[Token]) -> tuple[int, int]:
    """(preceding, following) of ROWS …; following is 0 or negative."""
    words = [t.key or t.text for t in tokens]
    shown = " ".join(words)
    if words[0] == "RANGE":
        raise UnsupportedQuery("RANGE frames are not supported", where=call.text, fix=_ROWS_FIX)
    if "UNBOUNDED" in words:
        raise UnsupportedQuery("an UNBOUNDED frame would keep every row for ever", where=call.text, fix=_ROWS_FIX)
    if "FOLLOWING" in words:
        raise UnsupportedQuery(
            "a frame with FOLLOWING rows would wait for the future",
            where=call.text,
            fix=f"{_ROWS_FIX}, or AND m PRECEDING",
        )
    words = [t.text if t.kind == NUMBER else t.key for t in tokens[1:]]
    ends = [words, ["CURRENT", "ROW"]]
    if words[:1] == ["BETWEEN"]:
        at = words.index("AND") if "AND" in words else len(words)
        ends = [words[1:at], words[at + 1 :]]
    counts = []
    for end in ends:
        if end == ["CURRENT", "ROW"]:
            counts.append(0)
        elif len(end) == 2 and end[1] == "PRECEDING" and end[0].isdigit():
            counts.append(int(end[0]))
        else:
            raise UnsupportedQuery(f"cannot read the frame `{shown}`", where=call.text, fix=_ROWS_FIX)
    if counts[0] < counts[1]:
        raise UnsupportedQuery("the frame ends before it starts", where=call.text, fix=_ROWS_FIX)
    return counts[0], -counts[1]


def _call(scope: Scope, call: CallSite, over: _Over) -> FrameCall:
    """The call without its column."""
    if call.name == "lag":
        return _lag(scope, call, over)
    if call.name in RANKING:
        raise UnsupportedQuery(
            f"{call.name}() OVER is not supported", where=call.text, fix=f"nearest: {RANKING[call.name]}"
        )
    if not functions.is_aggregate(call.name):
        raise UnsupportedQuery(
            f"{call.name}() cannot take OVER (…)", where=call.text, fix="use an aggregate function, or lag"
        )
    name = functions.canonical(call)
    if name not in _FUNCTIONS:
        raise UnsupportedQuery(
            f"{call.name} is not supported over rows",
            where=call.text,
            fix=f"use one of {', '.join(sorted(_FUNCTIONS))}",
        )
    if call.distinct:
        raise UnsupportedQuery("DISTINCT over rows is not supported", where=call.text, fix="leave DISTINCT out")
    if over.rows is None:
        raise UnsupportedQuery("a frame without ROWS would keep every row for ever", where=call.text, fix=_ROWS_FIX)
    if name in _NAMES:
        lowered = functions.lower(replace(call, ignore_nulls=False), scope.rewrite, "", "")
        ignore = call.ignore_nulls or (lowered.where is not None and call.where is None)
        where = scope.rewrite(call.where) if call.where is not None else None
        return FrameCall(_NAMES[name], lowered.args[:1], *over.rows, "", ignore_nulls=ignore, where=where)
    lowered = functions.lower(call, scope.rewrite, "", "")
    return FrameCall(lowered.function, lowered.args, *over.rows, "", where=lowered.where)


def _lag(scope: Scope, call: CallSite, over: _Over) -> FrameCall:
    if not 1 <= len(call.args) <= 3 or call.ignore_nulls or call.where or call.distinct:
        raise UnsupportedQuery("lag takes (x[, n[, default]])", where=call.text, fix="leave the rest out")
    if over.rows is not None:
        raise UnsupportedQuery("lag takes no ROWS", where=call.text, fix="leave ROWS … out")
    count = call.args[1] if len(call.args) > 1 else "1"
    if not count.isdigit():
        raise UnsupportedQuery("lag looks back a fixed number of rows", where=call.text, fix="write lag(x, 1)")
    args = tuple(scope.rewrite(a) for a in (call.args[0], *call.args[2:]))
    return FrameCall("lag", args, int(count), -int(count), "")


# -- operators --------------------------------------------------------------------------------------------------------


def _frames(operator: Operator, scope: Scope, placed: Sequence[_Placed]) -> tuple[Operator, Scope]:
    """One Frame per (keys, order), in order of appearance."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[FrameCall]] = {}
    for one in placed:
        groups.setdefault((one.keys, one.order), []).append(one.call)
    for (keys, order), found in groups.items():
        operator, scope, time = _time(operator, scope, order)
        rest = tuple(_order(scope, text) for text in order[1:])
        fields = []
        for f in scope.fields:
            starts = f.window is not None and _source_text(operator, time) == f"{quote(f.column)}.start".lower()
            if f.column == time or starts:
                fields.append(f)
            else:  # rows wait for the time that orders them, so others say nothing about rows to come
                fields.append(replace(f, lag=None, window=None))
        by_column = {f.column: f for f in fields}
        new = [replace(fields[0], column=c.column, name=c.column, qualifiers=(), lag=None, window=None) for c in found]
        inner = tuple(by_column[f.column] for f in operator.fields)
        operator = Frame(bare((*inner, *new)), operator, keys, time, rest, tuple(found))
        scope = Scope((*fields, *new), scope.hidden | {f.column for f in new}, scope.star)
    return operator, scope


def _source_text(operator: Operator, column: str) -> str:
    """The text that a projection computes a column from."""
    items = getattr(operator, "items", ())
    return next((item.text.lower() for item in items if item.column == column), "")


def _time(operator: Operator, scope: Scope, order: Sequence[str]) -> tuple[Operator, Scope, str]:
    """The physical event time, added as a column where it is derived."""
    known = (
        f"the event times here are {', '.join(scope.times)}"
        if scope.times
        else "name it in ab.stream(..., event_time=)"
    )
    if not order:
        raise UnsupportedQuery("OVER (…) needs ORDER BY the event time", where="OVER (…)", fix=f"add ORDER BY; {known}")
    text, descending, nulls_last = _sort(order[0])
    lag, _ = scope.time_of(text)
    if lag is None:
        raise MissingEventTime(
            "a frame is ordered by an event time first", where=f"ORDER BY {', '.join(order)}", fix=known
        )
    if descending or nulls_last:
        raise UnsupportedQuery("a frame runs forward in time", where=f"ORDER BY {order[0]}", fix=f"ORDER BY {text}")
    physical = scope.rewrite(text)
    plain = scope.physical.field_of(physical)
    if plain is None:
        column = unique("frame_time", {f.column.lower() for f in scope.fields}.__contains__)
        operator, plain = extended(operator, scope, physical, column)
        scope = Scope((*scope.fields, plain), scope.hidden | {column}, scope.star)
    return operator, scope, plain.column


def _order(scope: Scope, text: str) -> Order:
    expression, descending, nulls_last = _sort(text)
    return Order(scope.rewrite(expression), descending, nulls_last)


def _sort(text: str) -> tuple[str, bool, bool]:
    """(expression, descending, nulls last) with Spark's defaults: NULLs first ascending, last descending."""
    tokens = list(tokenise(text))
    nulls = None
    if len(tokens) > 2 and tokens[-2].key == "NULLS" and tokens[-1].key in ("FIRST", "LAST"):
        nulls = tokens[-1].key == "LAST"
        tokens = tokens[:-2]
    descending = len(tokens) > 1 and tokens[-1].key == "DESC"
    if len(tokens) > 1 and tokens[-1].key in ("ASC", "DESC"):
        tokens = tokens[:-1]
    return slice_of(text, tokens), descending, descending if nulls is None else nulls
