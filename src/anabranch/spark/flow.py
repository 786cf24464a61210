"""What a user holds: flows and groups. A thin skin over `query.Relation` with DataFrames attached.

Strings are Spark SQL; PySpark Columns are accepted wherever strings are. Every step is checked when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.errors import QueryError, UnboundedJoin, UnsupportedQuery
from anabranch.plan.compiler import Compiler, StreamType
from anabranch.plan.explain import explain
from anabranch.plan.physical import Plan
from anabranch.query.operators import Operator
from anabranch.query.relation import Relation
from anabranch.query.tokens import quote, split_alias, tokenise, unquote
from anabranch.query.windows import WindowSpec
from anabranch.spark import columns
from anabranch.spark.epoch import ddl
from anabranch.spark.taps import StreamInput
from anabranch.spark.typer import CatalystTyper

if TYPE_CHECKING:
    from anabranch.spark.writer import FlowWriter

Text = str | Column


@dataclass(frozen=True)
class Flow:
    """A continuous query under construction; every method gives a new one."""

    relation: Relation
    inputs: Mapping[str, StreamInput]
    statics: Mapping[str, DataFrame]
    session: SparkSession
    # What has been compiled and asked of Catalyst, for this flow and for those made from it over the same inputs.
    _plans: dict[tuple[Operator, str], Plan] = field(default_factory=dict, repr=False, compare=False)
    _typers: list[CatalystTyper] = field(default_factory=list, repr=False, compare=False)

    # -- row by row --------------------------------------------------------------------------------------------

    def select(self, *cols: Text | Sequence[Text]) -> Flow:
        """Expressions, with AS for names; frames too: `avg(x) OVER (PARTITION BY k ORDER BY ts ROWS 9 PRECEDING)`."""
        return self._with(self.relation.select(texts(flat(cols))))

    selectExpr = select

    def where(self, condition: Text) -> Flow:
        return self._with(self.relation.where(text_of(condition)))

    filter = where

    def withColumn(self, colName: str, col: Text) -> Flow:
        """One column more, or another value for one, which keeps its place."""
        new = f"{split_alias(text_of(col))[0]} AS {quote(colName)}"
        here = [new if c.lower() == colName.lower() else quote(c) for c in self.columns]
        return self.select(*here, *([] if new in here else [new]))

    def drop(self, *cols: Text) -> Flow:
        """Without these columns; one that does not exist is no error, as in Spark."""
        gone = {unquote(c).lower() if isinstance(c, str) else unquote(text_of(c)).lower() for c in cols}
        return self.select(*[quote(c) for c in self.columns if c.lower() not in gone])

    def case(self, *predicates: Text) -> list[Flow]:
        """StreamCloud's filter: one flow per predicate, a row in the first that holds, and one for the rest."""
        return [self._with(r) for r in self.relation.case(texts(flat(predicates)))]

    def alias(self, name: str) -> Flow:
        """The same under another name, e.g. to join a stream with itself."""
        return replace(self, relation=self.relation.alias(name))

    # -- several inputs ----------------------------------------------------------------------------------------

    def union(self, *others: Flow) -> Flow:
        """UNION ALL by position."""
        relation = self.relation.union(*[o.relation for o in others])
        return together(relation, self, *others).checked()

    unionAll = union

    def join(
        self,
        other: Flow | DataFrame,
        on: Text | Sequence[Text] | None = None,
        within: tuple[str, str] | None = None,
        how: str = "inner",
        condition: Text | Sequence[Text] = (),
        name: str | None = None,
    ) -> Flow:
        """Join with a stream within time bounds, or with a static DataFrame.

        `on`: names of common columns, or conditions. `within=(before, after)`: other's event time lies between this
        one's minus `before` and plus `after`; bounds may also stand in a condition. `how`: inner (left for a static
        DataFrame).
        """
        given = [] if on is None else [on] if isinstance(on, (str, Column)) else list(on)
        using = [g for g in given if isinstance(g, str) and is_name(g)]
        conditions = [text_of(g) for g in given if not (isinstance(g, str) and is_name(g))]
        more = [condition] if isinstance(condition, (str, Column)) else list(condition)
        conditions += [text_of(c) for c in more if not (isinstance(c, str) and not c)]
        if isinstance(other, Flow):
            if how.lower() != "inner":
                raise UnsupportedQuery(
                    f"a {how} join of streams",
                    where=f"join with {', '.join(other.inputs)}",
                    fix="inner joins of streams are supported, and left joins with a static DataFrame",
                )
            return together(self.relation.join(other.relation, conditions, using, within), self, other).checked()
        called = name or f"static_{len(self.statics) + 1}"
        check_static(called, other)
        relation = self.relation.static_join(
            called, other.columns, called, how.lower(), " AND ".join(conditions), using
        )
        return together(relation, self, statics={called: other}).checked()

    def groupBy(self, *keys: Text | WindowSpec | Sequence[Text | WindowSpec]) -> GroupedFlow:
        """Keys and one `ab.window(...)`."""
        return GroupedFlow(self, tuple(k if isinstance(k, WindowSpec) else text_of(k) for k in flat(keys)))

    groupby = groupBy

    def frame(
        self, *calls: Text, partitionBy: Text | Sequence[Text] = (), orderBy: Text | Sequence[Text] = (), rows: int = 0
    ) -> Flow:
        """For every row, functions over it and the `rows` rows of its key before it, in event-time order."""
        relation = self.relation.frame(
            texts(calls), partition=texts(listed(partitionBy)), order=texts(listed(orderBy)), preceding=rows
        )
        return self._with(relation)

    # -- what it is --------------------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        return list(self.relation.columns)

    @property
    def schema(self) -> StructType:
        return ddl(self.plan().columns)

    def plan(self, strategy: str = "subquery-cluster") -> Plan:
        """The physical plan of the output; what cannot run is refused here."""
        return self._compiled(self.relation.output().operator, strategy)

    def _compiled(self, operator: Operator, strategy: str = "subquery-cluster") -> Plan:
        if (operator, strategy) not in self._plans:
            types = {
                name: StreamType({f.name: f.dataType.simpleString() for f in s.df.schema.fields}, s.event_time)
                for name, s in self.inputs.items()
            }
            if not self._typers:
                self._typers.append(CatalystTyper(self.session, self.statics))
            self._plans[operator, strategy] = Compiler(types, self._typers[0]).compile(operator, strategy)
        return self._plans[operator, strategy]

    def explain(self, extended: bool = False) -> None:
        """Subqueries, exchanges, and where each expression runs."""
        print(explain(self.plan(), extended=extended))

    @property
    def writeStream(self) -> FlowWriter:
        from anabranch.spark.writer import FlowWriter

        return FlowWriter(self)

    def checked(self) -> Flow:
        """Compile once, so that a mistake is met where it was made.

        What later steps can still mend is left to `start()`: equal names on both sides of a join, and time bounds that
        a `where` may add to it.
        """
        try:
            self._compiled(self.relation.operator)
        except UnboundedJoin:
            if self.relation.joined is None:
                raise
        return self

    def _with(self, relation: Relation) -> Flow:
        return replace(self, relation=relation).checked()


@dataclass(frozen=True)
class GroupedFlow:
    """A flow with its groups, waiting for the aggregates."""

    flow: Flow
    keys: tuple[str | WindowSpec, ...]

    def agg(self, *exprs: Text) -> Flow:
        """Columns: the keys, `window`, and the aggregates under their aliases."""
        return self.flow._with(self.flow.relation.group(*self.keys).agg(*texts(exprs)))

    def count(self) -> Flow:
        return self.agg("count(*) AS count")


def text_of(value: Text) -> str:
    return value if isinstance(value, str) else columns.text_of(value)


def texts(values: Sequence[Text]) -> list[str]:
    return [text_of(v) for v in values]


def flat(values: Sequence[Any]) -> list[Any]:
    """One list given for all arguments, as PySpark allows."""
    return [v for value in values for v in (value if isinstance(value, (list, tuple)) else [value])]


def listed(value: Text | Sequence[Text]) -> Sequence[Text]:
    return [value] if isinstance(value, (str, Column)) else value


def is_name(text: str) -> bool:
    """Whether it is one plain column name rather than a condition."""
    tokens = tokenise(text)
    return len(tokens) == 1 and tokens[0].is_name


def together(relation: Relation, *flows: Flow, statics: Mapping[str, DataFrame] | None = None) -> Flow:
    """One flow over the streams and statics of several."""
    inputs: dict[str, StreamInput] = {}
    known: dict[str, DataFrame] = {}
    for flow in flows:
        for name, source in flow.inputs.items():
            if name in inputs and inputs[name].df is not source.df:
                raise QueryError(f"two different streams are called {name}", fix="give each its own name in ab.stream")
            inputs[name] = source
        known.update(flow.statics)
    return Flow(relation, inputs, {**known, **(statics or {})}, flows[0].session)


def check_static(name: str, df: Any) -> None:
    if not isinstance(df, DataFrame):
        raise UnsupportedQuery(f"{name} is a {type(df).__name__}", fix="pass flows made by ab.stream or DataFrames")
    if df.isStreaming:
        raise UnsupportedQuery(
            f"{name} is a streaming DataFrame", fix=f"make it a stream first: ab.stream(df, '{name}', event_time=...)"
        )
