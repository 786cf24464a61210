"""GROUP BY: group items, a select list and HAVING become Aggregate, Where and Select.

Inside a select item or HAVING, an aggregate call, a group expression or `window(...)` is replaced, by its range in the
text, by the column that holds it; everything around it stays as written. Three kinds of group by are told apart:
1. `window(ts, …)` over an event time: the Aggregate's window makes the struct;
2. the `window` struct of an aggregate below: its start is the time, one group per window (size 1, no struct);
3. an event-time column: likewise, with the column as time.

Limits: a group expression is recognised where it stands alone, in brackets, or between commas and CASE words, not as
part of a longer arithmetic (`a + b` in `a + b * c` is not it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import MissingEventTime, QueryError, UnsupportedQuery
from . import calls, functions, windows
from .checks import check
from .items import Output, SelectItem, default_name, expand, extended, lateral, project
from .operators import Aggregate, Call, Field, Item, Operator, Where, Window
from .relation import Relation
from .scope import Scope, bare, written_as
from .tokens import NUMBER, conjoin, conjuncts, quote, substitute, tokenise, unique
from .windows import WindowSpec

_EDGES = {"(", ")", ",", "CASE", "WHEN", "THEN", "ELSE", "END", "[", "]", "AND", "OR"}
_WINDOW_FIX = "add window(<event time>, '<size>') to GROUP BY, or group by the event time itself"


@dataclass
class _Group:
    """What is grouped by, while it is being read."""

    texts: list[str] = field(default_factory=list)  # the key expressions as written
    window: WindowSpec | None = None
    window_text: str = ""


@dataclass
class _Build:
    """The Aggregate under construction: columns given out, and the calls found so far."""

    scope: Scope
    time: str
    spec: WindowSpec | None = None
    window_column: str | None = None
    keys: list[tuple[str, Item, Field | None]] = field(default_factory=list)  # (as written, item, plain field)
    calls: list[Call] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def name(self, wanted: str) -> str:
        column = unique(wanted, self.taken.__contains__)
        self.taken.add(column.lower())
        return column


def aggregate(
    relation: Relation, group: Sequence[str | WindowSpec], items: Sequence[str], having: str | None
) -> Relation:
    """SELECT items FROM relation GROUP BY group HAVING having."""
    expanded = _expand(relation.scope, items)
    for item in expanded:
        check(item.text, "SELECT", aggregates=True, over=True)
        _refuse_over(item.text)
    if having is not None:
        check(having, "HAVING", aggregates=True)
    groups = _read_groups(relation.scope, group, expanded)
    operator, scope = relation.operator, relation.scope
    operator, scope, time, marks, window = _time(operator, scope, groups)
    build = _Build(scope, time, groups.window)
    _name_keys(build, groups, expanded)
    if groups.window is not None:
        build.window_column = build.name("window")
        window = replace(window, column=build.window_column)
    texts, earlier = [], dict[str, str]()
    for item in expanded:
        text = _rewrite(build, item.text, item.name if item.aliased else None, last=lateral(earlier))
        texts.append(text)
        if item.aliased:
            earlier[item.name] = text
    condition = None
    if having is not None:
        parts = [_rewrite(build, part, None, first=lateral(earlier)) for part in conjuncts(having)]
        condition = conjoin(parts)
    aggregated, result_scope = _finish(operator, build, window, marks)
    result: Operator = aggregated
    if condition is not None:
        result = Where(result.fields, result, condition)
    outputs = [Output(text, item.name) for text, item in zip(texts, expanded, strict=True)]
    return Relation(*project(result, result_scope, outputs))


def _expand(scope: Scope, items: Sequence[str]) -> list[SelectItem]:
    for item in items:
        if tokenise(item)[-1:] and tokenise(item)[-1].key == "*" and len(tokenise(item)) in (1, 3):
            raise UnsupportedQuery("a star in a query with GROUP BY", where=item, fix="name the keys and aggregates")
    return expand(scope, items)


def _refuse_over(text: str) -> None:
    for call in calls.find(text):
        if call.over is not None:
            raise UnsupportedQuery(
                "OVER (…) and GROUP BY in one SELECT",
                where=call.text,
                fix="aggregate in a subquery in FROM, and use OVER on top",
            )


# -- the group list ---------------------------------------------------------------------------------------------------


def _read_groups(scope: Scope, group: Sequence[str | WindowSpec], items: Sequence[SelectItem]) -> _Group:
    result = _Group()
    todo: list[str | WindowSpec] = list(group)
    if len(group) == 1 and isinstance(group[0], str) and [t.key for t in tokenise(group[0])] == ["ALL"]:
        todo = [i.text for i in items if not any(functions.is_aggregate(c.name) for c in calls.find(i.text))]
    for entry in todo:
        spec, text = (entry, f"window({entry.time}, …)") if isinstance(entry, WindowSpec) else (None, entry)
        if spec is None:
            text = _expression(scope, text, items)
            check(text, "GROUP BY")
            call = calls.exactly(text)
            word = tokenise(text)[0].key
            if word == "GROUPING" or (call is not None and call.name in ("rollup", "cube")):
                raise UnsupportedQuery(
                    f"GROUP BY {word}", where=text, fix="one query per grouping, joined with UNION ALL"
                )
            spec = windows.parse(call) if call is not None and call.name == "window" else None
        if spec is None:
            result.texts.append(text)
        elif result.window is None:
            result.window, result.window_text = spec, text
        elif spec != result.window:
            raise UnsupportedQuery(
                "two windows in one GROUP BY", where=f"{result.window_text}, {text}", fix="one query per window"
            )
    return result


def _expression(scope: Scope, text: str, items: Sequence[SelectItem]) -> str:
    """The expression behind an ordinal or a select alias; a column wins over an alias of the same name."""
    tokens = tokenise(text)
    if len(tokens) != 1:
        return text
    if tokens[0].kind == NUMBER and tokens[0].text.isdigit():
        position = int(tokens[0].text)
        if not 1 <= position <= len(items):
            raise UnsupportedQuery(
                f"GROUP BY {position} names no item of the select list", where=text, fix=f"use 1 to {len(items)}"
            )
        return items[position - 1].text
    name = tokens[0].name.lower()
    if tokens[0].is_name and not any(f.name.lower() == name for f in scope.fields):
        for item in items:
            if item.aliased and item.name.lower() == name:
                return item.text
    return text


def _time(operator: Operator, scope: Scope, groups: _Group) -> tuple[Operator, Scope, str, tuple[int, int], Window]:
    """The physical event time, and the lags of a group's start and end. Adds a column where the time is derived."""
    if groups.window is not None:
        text, size = groups.window.time, groups.window.size
        lag, window = scope.time_of(text)
        if window is not None:  # window(window, …): Spark takes the inner window's time
            text, lag = f"window_time({text})", window[1]
        if lag is None:
            raise MissingEventTime(
                f"window() needs an event time, and `{text}` is none",
                where=groups.window_text,
                fix=_times_fix(scope),
            )
        slide, offset, struct = groups.window.slide, groups.window.offset, True
    else:
        text, lag, size = "", None, 1
        for key in groups.texts:
            lag, window = scope.time_of(key)
            if window is not None:
                text, lag = f"{key}.start", window[0]
            elif lag is not None:
                text = key
            if lag is not None:
                break
        if lag is None:
            shown = f"GROUP BY {', '.join(groups.texts)}" if groups.texts else "no GROUP BY"
            kind = UnsupportedQuery if scope.times else MissingEventTime
            raise kind(
                "an aggregate without a window never ends, so that it never has a result",
                where=shown,
                fix=_WINDOW_FIX.replace("<event time>", scope.times[0]) if scope.times else _times_fix(scope),
            )
        slide, offset, struct = 1, 0, False
    physical = scope.rewrite(text)
    plain = scope.physical.field_of(physical)
    if plain is None:
        column = unique("window_time", {f.column.lower() for f in scope.fields}.__contains__)
        operator, added = extended(operator, scope, physical, column)
        scope = Scope((*scope.fields, added), scope.hidden | {column}, scope.star)
        plain = added
    return operator, scope, plain.column, (lag + size, lag), Window(plain.column, size, slide, offset, struct)


def _times_fix(scope: Scope) -> str:
    if scope.times:
        return f"the event times here are {', '.join(scope.times)}; an expression over one is an event time no longer"
    return "name the event time in ab.stream(..., event_time=...), and keep it as a plain column in subqueries"


def _name_keys(build: _Build, groups: _Group, items: Sequence[SelectItem]) -> None:
    for text in groups.texts:
        plain = build.scope.field_of(text)
        rewritten = build.scope.rewrite(text)
        if any(_key(build.scope, text) == _key(build.scope, other) for other, _, _ in build.keys):
            continue
        if plain is not None:
            wanted = plain.column
        else:
            named = [i.name for i in items if i.aliased and _key(build.scope, i.text) == _key(build.scope, text)]
            wanted = named[0] if named else _short(text) or f"key_{len(build.keys) + 1}"
        build.keys.append((text, Item(rewritten, build.name(wanted)), plain))


def _short(text: str) -> str | None:
    """The last part of a dotted name."""
    name = default_name(text)
    return None if name == text else name


def _key(scope: Scope, text: str) -> list[str] | None:
    """What two equal group expressions share; None for a text that refers to something else (an alias, `window`)."""
    try:
        return [piece for piece, _, _ in scope.canonical(text)]
    except QueryError:
        return None


# -- items and HAVING -------------------------------------------------------------------------------------------------


def _rewrite(
    build: _Build,
    text: str,
    alias: str | None,
    *,
    first: Mapping[str, str] | None = None,
    last: Mapping[str, str] | None = None,
) -> str:
    """The text over the Aggregate's columns."""
    changes: list[tuple[int, int, str]] = []
    for call in calls.find(text):
        if any(start <= call.start < end for start, end, _ in changes):
            continue
        if functions.is_aggregate(call.name):
            for inner in calls.find(text[call.start : call.end])[1:]:
                if functions.is_aggregate(inner.name):
                    raise UnsupportedQuery(
                        "an aggregate inside an aggregate",
                        where=call.text,
                        fix="compute the inner one in a subquery in FROM",
                    )
            whole = len(text.strip()) == call.end - call.start
            changes.append((call.start, call.end, quote(_call(build, call, alias if whole else None))))
        elif call.name == "window" and len(call.args) > 1:
            if not _same_window(build, call):
                raise UnsupportedQuery(
                    "this window is not the one of GROUP BY", where=call.text, fix="repeat the window of GROUP BY"
                )
            changes.append((call.start, call.end, quote(build.window_column or "window")))
    changes += _key_expressions(build, text, changes)
    names = {"window": build.window_column} if build.window_column else {}
    every = {**(last or {}), **(first or {}), **names}
    for use in build.scope.uses(text, first={**(first or {}), **names}, last=last, outside=tuple(changes)):
        if use.other is not None:
            changes.append((use.start, use.end, every[use.other]))
            continue
        assert use.field is not None
        column = next((k.column for _, k, f in build.keys if f is not None and f.column == use.field.column), None)
        if column is None:
            raise UnsupportedQuery(
                f"`{text[use.start : use.end]}` is neither grouped by nor inside an aggregate",
                where=text,
                fix="add it to GROUP BY, or take first(…), min(…) or max(…) of it",
            )
        changes.append((use.start, use.end, written_as(text[use.start : use.end], column)))
    return substitute(text, changes)


def _same_window(build: _Build, call: calls.CallSite) -> bool:
    """The group's window, its time written another way (`ts` and `c.ts`)."""
    if build.spec is None:
        return False
    spec = windows.parse(call)
    times = [build.scope.rewrite(t) for t in (spec.time, build.spec.time)]
    return replace(spec, time="") == replace(build.spec, time="") and times[0].lower() == times[1].lower()


def _call(build: _Build, call: calls.CallSite, alias: str | None) -> str:
    """The column of an aggregate call; the same call twice is one column."""
    lowered = functions.lower(call, build.scope.rewrite, quote(build.time), "")
    for known in build.calls:
        if replace(known, column="") == lowered:
            return known.column
    column = build.name(alias or f"agg_{len(build.calls) + 1}")
    build.calls.append(replace(lowered, column=column))
    return column


def _key_expressions(build: _Build, text: str, done: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Ranges of the text that are group expressions, the longest first."""
    expressions = [(_key(build.scope, t) or [], item.column) for t, item, plain in build.keys if plain is None]
    if not expressions:
        return []
    known = {f.name.lower() for f in build.scope.fields}
    pieces = [p for p in _pieces(build.scope, text, known) if not any(start <= p[1] < end for start, end, _ in done)]
    changes: list[tuple[int, int, str]] = []
    for wanted, column in sorted(expressions, key=lambda e: -len(e[0])):
        size = len(wanted)
        for i in range(len(pieces) - size + 1):
            run = pieces[i : i + size]
            taken = any(start <= run[0][1] < end for start, end, _ in changes)
            if taken or [p for p, _, _ in run] != wanted:
                continue
            before = pieces[i - 1][0].upper() if i else "("
            after = pieces[i + size][0].upper() if i + size < len(pieces) else ")"
            closed = _atomic(wanted) and before != "." and after != "("
            if closed or (before in _EDGES and after in _EDGES):
                changes.append((run[0][1], run[-1][2], quote(column)))
    return changes


def _pieces(scope: Scope, text: str, known: set[str]) -> list[tuple[str, int, int]]:
    """The canonical pieces of a text that may also name aliases and `window`."""
    unknown = {part for part in (r.name.lower() for r in tokenise(text) if r.is_name) if part not in known}
    return scope.canonical(text, last={name: name for name in unknown})


def _atomic(pieces: Sequence[str]) -> bool:
    """One operand: a call or a bracket that closes at the end."""
    if not pieces or all(piece == "." for piece in pieces[1::2]):
        return True  # a dotted name
    if pieces[-1] != ")":
        return False
    depth, opened = 0, pieces.index("(")
    for i, piece in enumerate(pieces):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if depth == 0 and opened < i < len(pieces) - 1:
            return False
    return opened <= 1


# -- the operator -----------------------------------------------------------------------------------------------------


def _finish(operator: Operator, build: _Build, window: Window, marks: tuple[int, int]) -> tuple[Aggregate, Scope]:
    fields = []
    for _, item, plain in build.keys:
        lag, struct = None, None
        if plain is not None:
            # The group's time is known to the watermark, and so are both ends of the window it is the start of.
            lag = marks[0] if plain.column == window.time else None
            if _source_text(operator, window.time) == f"{quote(plain.column)}.start".lower():
                struct = _struct_marks(plain, window, marks)
        elif not window.struct and item.text.lower() == _source_text(operator, window.time):
            lag = marks[0]
        name = plain.name if plain is not None else item.column
        qualifiers = plain.qualifiers if plain is not None else ()
        fields.append(Field(item.column, name, qualifiers, lag, struct))
    if window.struct:
        fields.append(Field(window.column, "window", (), None, marks))
    fields += [Field(call.column, call.column) for call in build.calls]
    keys = tuple(item for _, item, _ in build.keys)
    result = Aggregate(bare(fields), operator, keys, window, tuple(build.calls))
    return result, Scope(tuple(fields))


def _struct_marks(plain: Field, window: Window, marks: tuple[int, int]) -> tuple[int, int] | None:
    """A window struct that is grouped by: its start is the time, its end as far from it as before."""
    if plain.window is None or window.struct:
        return None
    return marks[0], marks[0] - (plain.window[0] - plain.window[1])


def _source_text(operator: Operator, column: str) -> str:
    """The text of a derived time column."""
    items = getattr(operator, "items", ())
    return next((item.text.lower() for item in items if item.column == column), "")
