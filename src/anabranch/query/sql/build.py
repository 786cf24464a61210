"""The clauses of a statement as `Relation` calls. All semantics is in the methods; here is only who calls what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import UnknownColumn, UnsupportedQuery
from .. import calls
from ..checks import check
from ..functions import is_aggregate
from ..items import expand
from ..joins import Lineup, Static
from ..relation import Relation
from ..scope import suggest
from . import syntax

_SIDES = {"right", "full", "left semi", "left anti", "semi", "anti", "right semi", "right anti", "left"}


def parse(
    sql: str,
    streams: Mapping[str, Relation],
    statics: Mapping[str, Sequence[str]] | None = None,
    output_names: Sequence[str] | None = None,
) -> Relation:
    """The relation of a statement. `output_names`, by position, are the names that Spark gives the columns."""
    names = {name.lower(): relation for name, relation in streams.items()}
    tables = {name.lower(): (name, tuple(columns)) for name, columns in (statics or {}).items()}
    both = sorted(set(names) & set(tables))
    if both:
        raise UnsupportedQuery(f"`{both[0]}` is a stream and a static table", fix="name them differently")
    return _query(syntax.read(sql), _Names(names, tables)).output(output_names)


class _Names:
    """What a name in FROM stands for; a CTE hides what it is called like."""

    def __init__(self, streams: Mapping[str, Relation], statics: Mapping[str, tuple[str, tuple[str, ...]]]) -> None:
        self.streams, self.statics = dict(streams), dict(statics)

    def with_cte(self, name: str, relation: Relation) -> _Names:
        streams = {**self.streams, name.lower(): relation}
        return _Names(streams, {k: v for k, v in self.statics.items() if k != name.lower()})


def _query(query: syntax.Query, names: _Names) -> Relation:
    for name, columns, inner in query.ctes:
        relation = _query(inner, names)
        names = names.with_cte(name, relation.output(columns) if columns else relation)
    first, *others = [
        _query(term, names) if isinstance(term, syntax.Query) else _select(term, names) for term in query.terms
    ]
    return first.union(*others) if others else first


def _select(select: syntax.Select, names: _Names) -> Relation:
    relation = _from(select, names)
    if select.group is not None:
        return relation.aggregate(select.group, select.items, select.having)
    for text in select.items:
        check(text, "SELECT", aggregates=True, over=True)
    aggregates = [
        call
        for text in (*select.items, *([select.having] if select.having else []))
        for call in calls.find(text)
        if call.over is None and is_aggregate(call.name)
    ]
    if select.having is not None or aggregates:
        part = "HAVING" if select.having is not None else f"the aggregate {aggregates[0].name}()"
        times = relation.scope.times
        raise UnsupportedQuery(
            f"{part} without GROUP BY: without a window it never has a result",
            where=aggregates[0].text if aggregates else select.having,
            fix=f"add GROUP BY window({times[0] if times else 'ts'}, '1 minute')",
        )
    return relation.select_items(expand(relation.scope, select.items), dict(select.windows))


def _from(select: syntax.Select, names: _Names) -> Relation:
    """FROM and WHERE: one relation, or one lineup with all conjuncts."""
    if len(select.sources) == 1 and not isinstance(_source(select.sources[0].source, names), Static):
        relation = _source(select.sources[0].source, names)
        assert isinstance(relation, Relation)
        return relation.where(select.where) if select.where is not None else relation
    lineup = Lineup()
    for joined in select.sources:
        source = _source(joined.source, names)
        on = [joined.on] if joined.on is not None else []
        if joined.how.startswith("natural"):
            raise UnsupportedQuery("NATURAL JOIN", where=joined.text, fix="name the columns with USING (…)")
        left = joined.how in _SIDES
        if left:
            _check_outer(joined, source)
        if isinstance(source, Static):
            lineup = lineup.static(source, on=on, using=joined.using, left=left)
        else:
            lineup = lineup.stream(source.operator, source.scope, on=on, using=joined.using)
    if select.where is not None:
        lineup = lineup.where(select.where)
    return Relation(*lineup.build(), joined=lineup)


def _check_outer(joined: syntax.Joined, source: Relation | Static) -> None:
    kind = joined.how.upper()
    if joined.how == "left" and isinstance(source, Static):
        if joined.on is None and not joined.using:
            raise UnsupportedQuery("LEFT JOIN needs ON or USING", where=joined.text, fix="add ON …")
        return
    table = isinstance(source, Static)
    fix = "stream LEFT JOIN static is supported, and [INNER] JOIN" if table else "use [INNER] JOIN with time bounds"
    if "anti" in joined.how and table:
        fix = "LEFT JOIN the static table, and WHERE its key IS NULL"
    elif "semi" in joined.how:
        fix = "use [INNER] JOIN, and select the left side's columns"
    elif joined.how == "right" and not table:
        fix = "use [INNER] JOIN; to keep every row of a stream, write stream LEFT JOIN static"
    with_what = "a static table" if table else "a stream"
    raise UnsupportedQuery(f"{kind} JOIN with {with_what} is not supported", where=joined.text, fix=fix)


def _source(source: syntax.Named | syntax.Derived, names: _Names) -> Relation | Static:
    if isinstance(source, syntax.Derived):
        relation = _query(source.query, names)
        if source.columns:
            relation = relation.output(source.columns)
        return relation.alias(source.alias)
    name = source.name.lower()
    if name in names.streams:
        return names.streams[name].alias(source.alias or source.name)
    if name in names.statics:
        table, columns = names.statics[name]
        return Static(table, columns, source.alias or source.name)
    known = [*names.streams, *names.statics]
    raise UnknownColumn(
        f"there is no stream, static table or subquery `{source.name}`",
        where=f"FROM {source.name}",
        fix=suggest(source.name, known, "the names are"),
    )
