"""`Relation`: an operator and the scope of names over it. SQL and the builder are both written in its methods.

Every method takes the user's texts and gives a new Relation; nothing is evaluated. A join keeps its lineup, so that a
further join or a where on it makes one n-ary Join instead of a tower; any other step closes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import UnknownColumn, UnsupportedQuery
from .calls import exactly as find_exactly
from .calls import find as find_calls
from .checks import check
from .items import Output, SelectItem, expand, lateral, project
from .joins import Lineup, Static
from .operators import Field, Item, Operator, Select, Source, Union, Where
from .scope import Scope, bare, suggest
from .tokens import quote, split_alias
from .windows import WindowSpec


@dataclass(frozen=True)
class Relation:
    """`scope.fields` are `operator.fields` with qualifiers, in an order of their own."""

    operator: Operator
    scope: Scope
    joined: Lineup | None = None

    @staticmethod
    def source(stream: str, columns: Sequence[str], event_time: str | None = None) -> Relation:
        """A stream, under its own name."""
        lower = [c.lower() for c in columns]
        twice = [c for i, c in enumerate(columns) if c.lower() in lower[:i]]
        if twice:
            raise UnsupportedQuery(
                f"stream {stream} has two columns `{twice[0]}`", fix="rename one before ab.stream(...)"
            )
        if event_time is not None and event_time.lower() not in lower:
            fix = suggest(event_time, columns, "the columns are")
            raise UnknownColumn(f"stream {stream} has no column `{event_time}`", where="event_time", fix=fix)
        time = (event_time or "").lower()
        fields = tuple(Field(c, c, (stream.lower(),), 0 if time and c.lower() == time else None) for c in columns)
        return Relation(Source(bare(fields), stream), Scope(fields))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of `SELECT *`."""
        return tuple(f.name for f in self.scope.visible)

    # -- row by row ---------------------------------------------------------------------------------------------

    def select(self, items: Sequence[str]) -> Relation:
        """SELECT items, per-row frames (`… OVER (…)`) included."""
        return self.select_items(expand(self.scope, items), {})

    def select_items(self, items: Sequence[SelectItem], windows: dict[str, str]) -> Relation:
        """The same for expanded items; `windows` are the named ones of a WINDOW clause, lower case."""
        for item in items:
            if item.field is None:
                check(item.text, "SELECT", over=True)
        if any(call.over is not None for item in items if item.field is None for call in find_calls(item.text)):
            from .frames import select_with_frames

            return select_with_frames(self, items, windows)
        outputs: list[Output] = []
        earlier: dict[str, str] = {}
        for item in items:
            text = item.text if item.field else self.scope.rewrite(item.text, last=lateral(earlier))
            outputs.append(Output(text, item.name))
            if item.aliased:
                earlier[item.name.lower()] = text
        return Relation(*project(self.operator, self.scope, outputs))

    def where(self, text: str) -> Relation:
        """Keep the rows for which the condition is true. On a join, its conjuncts become the join's."""
        check(text, "WHERE")
        if self.joined is not None:
            return _joined(self.joined.where(text))
        condition = self.scope.rewrite(text)
        return replace(self, operator=Where(self.operator.fields, self.operator, condition))

    def case(self, predicates: Sequence[str]) -> list[Relation]:
        """One relation per predicate and one for the rest: a row goes to the first that holds (NULL does not)."""
        for predicate in predicates:
            check(predicate, "case(...)")
        # One CASE for all keeps first-match-wins to Spark's own lazy evaluation, so that p1 may guard p2.
        branches = " ".join(f"WHEN {self.scope.rewrite(p)} THEN {i}" for i, p in enumerate(predicates))
        last = len(predicates)
        if not predicates:
            return [self]
        condition = f"CASE {branches} ELSE {last} END"
        return [
            Relation(Where(self.operator.fields, self.operator, f"{condition} = {i}"), self.scope)
            for i in range(last + 1)
        ]

    def alias(self, name: str | None) -> Relation:
        """The same rows under one name (None: reachable by plain names only)."""
        flat = self.select(["*"]) if self.joined is not None or self.scope.hidden else self
        return Relation(flat.operator, flat.scope.aliased(name))

    def output(self, names: Sequence[str] | None = None) -> Relation:
        """The visible columns, renamed by position: what a sink sees."""
        flat = self.select(["*"])
        if names is None or list(names) == list(flat.columns):
            return flat
        if len(names) != len(flat.columns):
            raise UnsupportedQuery(f"{len(names)} names for {len(flat.columns)} columns", where=", ".join(names))
        child: Operator = flat.operator
        items = [Item(quote(c.column), c.column) for c in flat.operator.fields]
        if isinstance(child, Select):
            items = list(child.items)
            child = child.child
        by_name = {f.column: f for f in flat.scope.fields}
        fields = tuple(
            replace(by_name[f.column], column=n, name=n) for f, n in zip(flat.operator.fields, names, strict=True)
        )
        if len({n.lower() for n in names}) < len(names):
            raise UnsupportedQuery("two output columns have one name", where=", ".join(names), fix="rename one with AS")
        renamed = tuple(Item(item.text, n) for item, n in zip(items, names, strict=True))
        return Relation(Select(bare(fields), child, renamed), Scope(fields))

    # -- several inputs -----------------------------------------------------------------------------------------

    def union(self, *others: Relation) -> Relation:
        """UNION ALL by position, under the names of the first."""
        parts = [r.select(["*"]) for r in (self, *others)]
        names = parts[0].columns
        for part in parts[1:]:
            if len(part.columns) != len(names):
                raise UnsupportedQuery(
                    f"UNION ALL of {len(names)} and {len(part.columns)} columns",
                    where=f"({', '.join(names)}) and ({', '.join(part.columns)})",
                    fix="select the same number of columns on both sides",
                )
        parts = [part.output(names) for part in parts]
        fields = []
        for same in zip(*(part.operator.fields for part in parts), strict=True):
            lags = [f.lag for f in same if f.lag is not None]
            windows = [f.window for f in same if f.window is not None]
            lag = max(lags) if len(lags) == len(same) else None
            window = (max(w[0] for w in windows), max(w[1] for w in windows)) if len(windows) == len(same) else None
            fields.append(replace(same[0], lag=lag, window=window))
        children: list[Operator] = []
        for part in parts:
            children += part.operator.children if isinstance(part.operator, Union) else [part.operator]
        return Relation(Union(tuple(fields), tuple(children)), Scope(tuple(fields)))

    def join(
        self,
        others: Relation | Sequence[Relation],
        conditions: str | Sequence[str] = (),
        using: str | Sequence[str] = (),
        within: tuple[str, str] | None = None,
    ) -> Relation:
        """Inner join. `within=(before, after)`: other's time between this time - before and this time + after."""
        lineup = self._lineup()
        for other in [others] if isinstance(others, Relation) else others:
            lineup = lineup.stream(other.operator, other.scope, using=_listed(using))
            if within is not None:
                lineup = lineup.within(0, len(lineup.entries) - 1, *within)
        for condition in _listed(conditions):
            lineup = replace(lineup, conditions=(*lineup.conditions, *lineup.bind(condition, "ON")))
        return _joined(lineup)

    def static_join(
        self,
        name: str,
        columns: Sequence[str],
        alias: str | None = None,
        how: str = "inner",
        condition: str = "",
        using: str | Sequence[str] = (),
    ) -> Relation:
        """Join with a static table, 'inner' or 'left'; no condition and no using is a cross join."""
        if how not in ("inner", "left"):
            raise UnsupportedQuery(
                f"a {how} join with the static table {name}",
                where=alias or name,
                fix="how='inner' and how='left' are supported",
            )
        static = Static(name, tuple(columns), alias or name)
        on = [condition] if condition else []
        return _joined(self._lineup().static(static, on=on, using=_listed(using), left=how == "left"))

    def _lineup(self) -> Lineup:
        return self.joined or Lineup().stream(self.operator, self.scope)

    # -- aggregates and frames ----------------------------------------------------------------------------------

    def aggregate(self, group: Sequence[str | WindowSpec], items: Sequence[str], having: str | None = None) -> Relation:
        """SELECT items … GROUP BY group [HAVING having]."""
        from .aggregate import aggregate

        return aggregate(self, group, items, having)

    def group(self, *keys: str | WindowSpec) -> Grouped:
        """The builder's groupBy: keys and one window."""
        return Grouped(self, keys)

    def frame(
        self,
        calls: Sequence[str],
        *,
        partition: str | Sequence[str] = (),
        order: str | Sequence[str] = (),
        preceding: int = 0,
        following: int = 0,
    ) -> Relation:
        """All columns, and each call ('avg(x) AS recent') over the rows from `preceding` back to `following` (<= 0)."""
        keys, sort = ", ".join(_listed(partition)), ", ".join(_listed(order))
        end = "CURRENT ROW" if following == 0 else f"{-following} PRECEDING"
        rows = f"ROWS BETWEEN {preceding} PRECEDING AND {end}"
        items = ["*"]
        for text in _listed(calls):
            expression, alias = split_alias(text)
            site = find_exactly(expression)
            needs_rows = site is None or site.name != "lag"
            over = " ".join(
                p
                for p in (keys and f"PARTITION BY {keys}", sort and f"ORDER BY {sort}", rows if needs_rows else "")
                if p
            )
            items.append(f"{expression} OVER ({over})" + (f" AS {quote(alias)}" if alias else ""))
        return self.select(items)


@dataclass(frozen=True)
class Grouped:
    """A relation with its groups, waiting for the aggregates."""

    relation: Relation
    keys: tuple[str | WindowSpec, ...]

    def agg(self, *texts: str) -> Relation:
        """Columns: the keys, the window, and the aggregates under their aliases."""
        group = [key if isinstance(key, WindowSpec) else split_alias(key)[0] for key in self.keys]
        items = ["window" if isinstance(key, WindowSpec) else key for key in self.keys]
        return self.relation.aggregate(group, [*items, *texts])


def _joined(lineup: Lineup) -> Relation:
    return Relation(*lineup.build(), joined=lineup)


def _listed(texts: str | Sequence[str]) -> Sequence[str]:
    return [texts] if isinstance(texts, str) else texts
