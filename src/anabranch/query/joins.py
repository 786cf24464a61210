"""Joins: streams and static tables side by side, the conditions between them, and the operators they become.

A `Lineup` is the FROM clause, whoever wrote it. Conditions are kept as the user's text with resolved uses, so that a
join can be extended (`a.join(b).join(c)`, a WHERE on top) and built anew as one n-ary `Join`:
1. a conjunct over one stream is a Where below the join, on the stream's own columns;
2. names that two inputs share become `<alias>__<name>` by a Select on each; a USING column keeps its name at the first;
3. a static table joins the one stream its conditions mention, before the join, and several streams after it;
4. what is left are the Join's conditions. Keys, time bounds and cascades are the compiler's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..errors import MissingEventTime, UnknownColumn, UnsupportedQuery
from . import windows
from .checks import check
from .operators import Field, Item, Join, Operator, Select, StaticJoin, Where
from .scope import Scope, bare, suggest, written_as
from .tokens import conjoin, conjuncts, quote, substitute, unique

MOST_STREAMS = 5
_TOP = -1
Column = tuple[int, str]  # (input, its column)


@dataclass(frozen=True)
class Static:
    """A static DataFrame in a join."""

    name: str
    columns: tuple[str, ...]
    alias: str


@dataclass(frozen=True)
class Condition:
    """A conjunct; every use is (start, end, column)."""

    text: str
    uses: tuple[tuple[int, int, Column], ...]

    @property
    def owners(self) -> frozenset[int]:
        return frozenset(column[0] for _, _, column in self.uses)

    def render(self, name: Callable[[Column], str]) -> str:
        changes = [(start, end, written_as(self.text[start:end], name(column))) for start, end, column in self.uses]
        return substitute(self.text, changes)


@dataclass(frozen=True)
class Entry:
    """One input. `left` holds the ON of a LEFT JOIN, which only a static table can have."""

    source: Operator | Static
    fields: tuple[Field, ...]
    visible: tuple[str, ...]
    hidden: frozenset[str] = frozenset()
    left: tuple[Condition, ...] | None = None


@dataclass(frozen=True)
class Lineup:
    """Inputs in FROM order, all conjuncts so far, the columns that USING hid, and what `*` means."""

    entries: tuple[Entry, ...] = ()
    conditions: tuple[Condition, ...] = ()
    hidden: frozenset[Column] = frozenset()
    star: tuple[Column, ...] = ()

    # -- adding -------------------------------------------------------------------------------------------------

    def stream(self, operator: Operator, scope: Scope, *, on: Sequence[str] = (), using: Sequence[str] = ()) -> Lineup:
        visible = tuple(f.column for f in scope.visible)
        entry = Entry(operator, scope.fields, visible, frozenset(f.column for f in scope.fields) - frozenset(visible))
        return self._add(entry, on, using, left=False)

    def static(
        self, static: Static, *, on: Sequence[str] = (), using: Sequence[str] = (), left: bool = False
    ) -> Lineup:
        fields = tuple(Field(c, c, (static.alias.lower(),)) for c in static.columns)
        return self._add(Entry(static, fields, static.columns), on, using, left=left)

    def _add(self, entry: Entry, on: Sequence[str], using: Sequence[str], *, left: bool) -> Lineup:
        new = {q for f in entry.fields for q in f.qualifiers}
        twice = sorted(new & {q for e in self.entries for f in e.fields for q in f.qualifiers})
        if twice:
            raise UnsupportedQuery(
                f"`{twice[0]}` is used twice in one join",
                where=twice[0],
                fix="give each its own name with AS or alias(...)",
            )
        before, index = self, len(self.entries)
        columns = [(index, column) for column in entry.visible]
        lineup = replace(self, entries=(*self.entries, entry), star=(*self.star, *columns))
        equalities, merged = [], []
        for name in using:
            a, b = before._visible(name, "the left side"), lineup._visible(name, "the right side", index)
            text = f"{quote(name)} = {quote(name)}"
            width = len(quote(name))
            equalities.append(Condition(text, ((0, width, a), (len(text) - width, len(text), b))))
            merged.append((a, b))
        first = [a for a, _ in merged]
        gone = [b for _, b in merged]
        star = (*first, *(c for c in lineup.star if c not in first and c not in gone)) if merged else lineup.star
        hidden = lineup.hidden | frozenset(gone) | frozenset((index, c) for c in entry.hidden)
        lineup = replace(lineup, hidden=hidden, star=star)
        bound = [*equalities, *(c for text in on for c in lineup.bind(text, "ON"))]
        if not left:
            return replace(lineup, conditions=(*lineup.conditions, *bound))
        entries = (*lineup.entries[:-1], replace(entry, left=tuple(bound)))
        return replace(lineup, entries=entries)

    def _visible(self, name: str, side: str, entry: int | None = None) -> Column:
        """The one column that USING(name) means on one side."""
        names = {(i, f.column): f.name for i, e in enumerate(self.entries) for f in e.fields}
        columns = [c for c in self.star if entry is None or c[0] == entry]
        found = [c for c in columns if names[c].lower() == name.lower()]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownColumn(f"`{name}` is ambiguous on {side}", where=f"USING ({name})", fix="use ON with aliases")
        fix = suggest(name, [names[c] for c in columns], "the columns are")
        raise UnknownColumn(f"{side} has no column `{name}`", where=f"USING ({name})", fix=fix)

    def where(self, text: str) -> Lineup:
        return replace(self, conditions=(*self.conditions, *self.bind(text, "WHERE")))

    def within(self, first: int, other: int, before: str, after: str) -> Lineup:
        """other.time BETWEEN first.time - before AND first.time + after."""
        a, b = self._time(first), self._time(other)
        low, high = (windows.show(windows.micros(x)) for x in (before, after))
        left, right = quote(b[1]), quote(a[1])
        pieces = [left, " BETWEEN ", right, f" - INTERVAL '{low}' AND ", right, f" + INTERVAL '{high}'"]
        starts = [sum(map(len, pieces[:k])) for k in range(len(pieces))]
        uses = tuple((starts[k], starts[k] + len(pieces[k]), column) for k, column in ((0, b), (2, a), (4, a)))
        return replace(self, conditions=(*self.conditions, Condition("".join(pieces), uses)))

    def _time(self, index: int) -> Column:
        for field in self.entries[index].fields:
            if field.lag is not None:
                return (index, field.column)
        raise MissingEventTime(
            "within= needs an event time on both sides",
            where=self._alias(index),
            fix="name it in ab.stream(..., event_time=)",
        )

    # -- names --------------------------------------------------------------------------------------------------

    def scope(self) -> Scope:
        """The scope in which ON and WHERE are read; columns are tagged with their input."""
        fields = tuple(
            replace(f, column=_tag((i, f.column))) for i, entry in enumerate(self.entries) for f in entry.fields
        )
        return Scope(fields, frozenset(map(_tag, self.hidden)), tuple(map(_tag, self.star)))

    def bind(self, text: str, place: str) -> list[Condition]:
        check(text, place)
        scope = self.scope()
        return [
            Condition(part, tuple((u.start, u.end, _untag(u.field.column)) for u in scope.uses(part) if u.field))
            for part in conjuncts(text)
        ]

    def _alias(self, index: int) -> str:
        qualifiers = [q for f in self.entries[index].fields for q in f.qualifiers]
        return qualifiers[0] if qualifiers else f"in{index + 1}"

    def _names(self) -> dict[Column, str]:
        """The physical name of every column."""
        columns = [((i, f.column), f) for i, entry in enumerate(self.entries) for f in entry.fields]
        seen: dict[str, int] = {}
        for column, field in columns:
            seen[field.name.lower()] = seen.get(field.name.lower(), 0) + (column not in self.hidden)
        names = {c: f.name for c, f in columns if c not in self.hidden and seen[f.name.lower()] == 1}
        taken = {name.lower() for name in names.values()}
        for column, field in columns:
            if column not in names:
                alias = field.qualifiers[0] if field.qualifiers else self._alias(column[0])
                names[column] = unique(f"{alias}__{field.name}", taken.__contains__)
                taken.add(names[column].lower())
        return names

    # -- building -----------------------------------------------------------------------------------------------

    def build(self) -> tuple[Operator, Scope]:
        """The operators of the whole join."""
        streams = [i for i, e in enumerate(self.entries) if not isinstance(e.source, Static)]
        statics = [i for i in range(len(self.entries)) if i not in streams]
        self._check(streams)
        names = self._names()
        pushed = {i: [c for c in self.conditions if (c.owners or {streams[0]}) == {i}] for i in streams}
        rest = [c for c in self.conditions if c.owners and not any(c in cs for cs in pushed.values())]
        trees = {i: self._input(i, pushed[i], names) for i in streams}
        home = {i: i for i in streams}
        top: list[tuple[int, list[Condition]]] = []
        for i in statics:
            known = {*home, i}
            on = self.entries[i].left
            mine = [c for c in rest if i in c.owners and c.owners <= known] if on is None else list(on)
            homes = {home[o] for c in mine for o in c.owners - {i}}
            home[i] = homes.pop() if len(homes) == 1 else _TOP if homes else streams[0]
            if on is None:
                rest = [c for c in rest if c not in mine]
            if home[i] == _TOP:
                top.append((i, mine))
            else:
                trees[home[i]] = self._attach(trees[home[i]], i, mine, names)
        between = []
        for c in rest:
            homes = {home[o] for o in c.owners}
            if len(homes) == 1 and _TOP not in homes:
                (h,) = homes
                trees[h] = Where(trees[h].fields, trees[h], c.render(names.__getitem__))
            else:
                between.append((c, _TOP in homes))
        tree = trees[streams[0]]
        if len(streams) > 1:
            fields = tuple(f for i in streams for f in trees[i].fields)
            conditions = tuple(c.render(names.__getitem__) for c, above in between if not above)
            tree = Join(fields, tuple(trees[i] for i in streams), conditions)
        for i, on_top in top:
            tree = self._attach(tree, i, on_top, names)
        above = [c.render(names.__getitem__) for c, is_above in between if is_above]
        if above:
            tree = Where(tree.fields, tree, conjoin(above))
        scope_fields = tuple(
            replace(f, column=names[(i, f.column)]) for i, e in enumerate(self.entries) for f in e.fields
        )
        hidden = frozenset(names[c] for c in self.hidden)
        return tree, Scope(scope_fields, hidden, tuple(names[c] for c in self.star))

    def _check(self, streams: Sequence[int]) -> None:
        if not streams:
            raise UnsupportedQuery(
                "the query joins static tables only",
                where=self._alias(0),
                fix="join them with Spark first, and pass one DataFrame",
            )
        if len(streams) > MOST_STREAMS:
            raise UnsupportedQuery(
                f"a join of {len(streams)} streams; at most {MOST_STREAMS} are supported",
                where=", ".join(self._alias(i) for i in streams),
                fix="join some of them in a subquery first",
            )

    def _input(self, i: int, conditions: Sequence[Condition], names: dict[Column, str]) -> Operator:
        """One stream with its own conditions, under the names of the join."""
        entry = self.entries[i]
        assert isinstance(entry.source, Operator)
        tree = entry.source
        if conditions:
            tree = Where(tree.fields, tree, conjoin([c.render(lambda column: column[1]) for c in conditions]))
        if all(names[(i, f.column)] == f.column for f in tree.fields):
            return tree
        fields = tuple(replace(f, column=names[(i, f.column)], name=names[(i, f.column)]) for f in tree.fields)
        items = tuple(Item(quote(f.column), names[(i, f.column)]) for f in tree.fields)
        return Select(fields, tree, items)

    def _attach(self, tree: Operator, i: int, conditions: Sequence[Condition], names: dict[Column, str]) -> StaticJoin:
        entry = self.entries[i]
        assert isinstance(entry.source, Static)
        renames = tuple(Item(quote(f.column), names[(i, f.column)]) for f in entry.fields)
        fields = (
            *tree.fields,
            *(replace(f, column=r.column, name=r.column) for f, r in zip(entry.fields, renames, strict=True)),
        )
        condition = conjoin([c.render(names.__getitem__) for c in conditions]) if conditions else ""
        how = "inner" if entry.left is None else "left"
        return StaticJoin(bare(fields), tree, entry.source.name, how, condition, renames)


def _tag(column: Column) -> str:
    return f"{column[0]}:{column[1]}"


def _untag(tagged: str) -> Column:
    index, _, column = tagged.partition(":")
    return int(index), column
