"""PySpark Columns as Spark SQL text, so that they can stand wherever strings do.

Spark has a text of its own for a Column, but for people: it drops DISTINCT, leaves dates unquoted and writes operators
as functions. This walks the same tree and writes what Spark's parser reads back as the same expression; whatever has no
such text (a Python function, `withField`) is refused by name.

Limits: classic sessions only, as `compat.column_node` says. A column of a DataFrame (`df.x`) counts by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from anabranch.errors import UnsupportedQuery
from anabranch.query.tokens import quote
from anabranch.spark import compat

# Spark's name -> (what it is in SQL, how tightly it binds).
INFIX = {
    "or": ("OR", 1), "and": ("AND", 2),
    "=": ("=", 4), "<=>": ("<=>", 4), ">": (">", 4), "<": ("<", 4), ">=": (">=", 4), "<=": ("<=", 4),
    "like": ("LIKE", 4), "ilike": ("ILIKE", 4), "rlike": ("RLIKE", 4),
    "|": ("|", 5), "^": ("^", 6), "&": ("&", 7), "+": ("+", 8), "-": ("-", 8),
    "*": ("*", 9), "/": ("/", 9), "%": ("%", 9), "div": ("DIV", 9),
}  # fmt: skip
PREFIX = {"!": ("NOT ", 3), "not": ("NOT ", 3), "~": ("~", 10), "negative": ("-", 10), "positive": ("+", 10)}
SUFFIX = {"isnull": "IS NULL", "isnotnull": "IS NOT NULL"}
ATOM, NOTHING = 11, 0
ADVICE = "write the expression as a string, or compute the column on the DataFrame before ab.stream(...)"


def text_of(column: Any) -> str:
    """The SQL text of a Column, alias included. The same expression gives the same text in every process."""
    return Writer().write(compat.column_node(column))


def each(found: Any) -> Iterator[Any]:
    """A Scala sequence."""
    for i in range(found.size()):
        yield found.apply(i)


def kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def refused(what: str, node: Any) -> UnsupportedQuery:
    return UnsupportedQuery(what, where=str(node.sql()), fix=ADVICE)


class Writer:
    """Writes one Column. Every method gives (text, how tightly its outermost operator binds)."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # Spark numbers the variables of lambdas through the whole process
        self.writers: dict[str, Callable[[Any], tuple[str, int]]] = {
            "UnresolvedAttribute": lambda n: (".".join(quote(str(p)) for p in each(n.nameParts())), ATOM),
            "UnresolvedStar": self.star,
            "UnresolvedFunction": self.function,
            "UnresolvedExtractValue": self.extract_value,
            "UnresolvedNamedLambdaVariable": lambda n: (quote(self.variable(str(n.name()))), ATOM),
            "LambdaFunction": self.lambda_function,
            "Alias": self.alias,
            "Cast": self.cast,
            "Literal": self.literal,
            "SqlExpression": lambda n: (str(n.expression()), NOTHING),
            "CaseWhenOtherwise": self.case,
            "SortOrder": self.order,
            "Window": self.over,
            "ExpressionColumnNode": self.resolved,
        }

    def write(self, node: Any, above: int = -1) -> str:
        """A node's text, in brackets where the operator above it binds as tightly."""
        writer = self.writers.get(kind(node))
        if writer is None:
            raise refused("a column without a text in SQL", node)
        text, binds = writer(node)
        return f"({text})" if binds <= above else text

    # -- operators and functions -------------------------------------------------------------------------------

    def function(self, node: Any) -> tuple[str, int]:
        name = str(node.functionName()).lower()
        nodes = list(each(node.arguments()))
        if name in INFIX and len(nodes) == 2:
            word, binds = INFIX[name]
            left = binds - 1 if self.is_call(nodes[0], name) else binds  # a AND b AND c
            return f"{self.write(nodes[0], left)} {word} {self.write(nodes[1], binds)}", binds
        if name in PREFIX and len(nodes) == 1:
            word, binds = PREFIX[name]
            return f"{word}{self.write(nodes[0], binds)}", binds
        if name in SUFFIX:
            return f"{self.write(nodes[0], 4)} {SUFFIX[name]}", 4
        if name == "in":
            if len(nodes) == 1:
                return "false", ATOM
            return f"{self.write(nodes[0], 4)} IN ({', '.join(map(self.write, nodes[1:]))})", 4
        return self.call(name, node.isDistinct(), [self.write(n) for n in nodes]), ATOM

    def is_call(self, node: Any, name: str) -> bool:
        return kind(node) == "UnresolvedFunction" and str(node.functionName()).lower() == name

    def call(self, name: str, distinct: bool, args: list[str]) -> str:
        suffix = ""
        if name == "extract":  # EXTRACT(field FROM source) in SQL
            name = "date_part"
        elif name == "percentile" and args[2:] == ["1"]:
            args = args[:2]
        elif name in ("lag", "lead") and len(args) == 4:
            suffix = " IGNORE NULLS" if args.pop() == "true" else ""
            args = args[:2] if args[2] == "NULL" else args
        return f"{name}({'DISTINCT ' if distinct else ''}{', '.join(args)}){suffix}"

    def case(self, node: Any) -> tuple[str, int]:
        parts = [f"WHEN {self.write(b._1())} THEN {self.write(b._2())}" for b in each(node.branches())]
        if node.otherwise().isDefined():
            parts.append(f"ELSE {self.write(node.otherwise().get())}")
        return f"CASE {' '.join(parts)} END", ATOM

    def cast(self, node: Any) -> tuple[str, int]:
        mode = node.evalMode()
        word = "TRY_CAST" if mode.isDefined() and "Try" in str(mode.get()) else "CAST"
        return f"{word}({self.write(node.child())} AS {node.dataType().sql()})", ATOM

    def lambda_function(self, node: Any) -> tuple[str, int]:
        names = [quote(self.variable(str(a.name()))) for a in each(node.arguments())]
        head = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"{head} -> {self.write(node.function())}", NOTHING

    def variable(self, name: str) -> str:
        return self.names.setdefault(name, f"{name.rpartition('_')[0] or name}_{len(self.names) + 1}")

    # -- names and values --------------------------------------------------------------------------------------

    def star(self, node: Any) -> tuple[str, int]:
        target = node.unparsedTarget()
        name = str(target.get()).removesuffix(".*") if target.isDefined() else ""
        return f"{quote(name)}.*" if name else "*", ATOM

    def alias(self, node: Any) -> tuple[str, int]:
        names = [str(n) for n in each(node.name())]
        if len(names) != 1:
            raise refused("one item cannot become several columns", node)
        return f"{self.write(node.child())} AS {quote(names[0])}", NOTHING

    def extract_value(self, node: Any) -> tuple[str, int]:
        field, child = self.write(node.extraction()), self.write(node.child(), 10)
        if field in ("'start'", "'end'"):  # the parts of a window are known by this form
            return f"{child}.{quote(field[1:-1])}", ATOM
        return f"{child}[{field}]", ATOM

    def literal(self, node: Any) -> tuple[str, int]:
        type, value, text = compat.literal(node)
        if type in ("timestamp", "timestamp_ntz"):  # as a moment: the session's time zone must not matter
            try:
                moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(value))
            except OverflowError:
                raise refused("a timestamp outside the years 1 to 9999", node) from None
            moment = moment if type == "timestamp" else moment.replace(tzinfo=None)
            text = f"{type.upper()} '{moment.isoformat(' ', 'microseconds')}'"
        return text, 10 if text.startswith("-") else ATOM

    def resolved(self, node: Any) -> tuple[str, int]:
        """A column of a DataFrame; nothing else that Spark has resolved already has a text."""
        expression = node.expression()
        if kind(expression) == "AttributeReference":
            return quote(str(expression.name())), ATOM
        raise UnsupportedQuery(
            "a Python function, or another column without a text in SQL", where=str(expression.prettyName()), fix=ADVICE
        )

    # -- windows over rows -------------------------------------------------------------------------------------

    def order(self, node: Any) -> tuple[str, int]:
        descending = "Descending" in str(node.sortDirection())
        last = "Last" in str(node.nullOrdering())
        nulls = "" if descending == last else f" NULLS {'LAST' if last else 'FIRST'}"
        return f"{self.write(node.child())}{' DESC' if descending else ''}{nulls}", NOTHING

    def over(self, node: Any) -> tuple[str, int]:
        spec = node.windowSpec()
        keys = [self.write(k) for k in each(spec.partitionColumns())]
        sort = [self.write(s) for s in each(spec.sortColumns())]
        parts = [f"PARTITION BY {', '.join(keys)}"] if keys else []
        parts += [f"ORDER BY {', '.join(sort)}"] if sort else []
        if spec.frame().isDefined():
            frame = spec.frame().get()
            word = "ROWS" if "Row" in str(frame.frameType()) else "RANGE"
            parts.append(f"{word} BETWEEN {self.boundary(frame.lower())} AND {self.boundary(frame.upper())}")
        return f"{self.write(node.windowFunction())} OVER ({' '.join(parts)})", ATOM

    def boundary(self, bound: Any) -> str:
        named = {"CurrentRow": "CURRENT ROW", "UnboundedPreceding": "UNBOUNDED PRECEDING"}
        if kind(bound).rstrip("$") != "Value":
            return named.get(kind(bound).rstrip("$"), "UNBOUNDED FOLLOWING")
        rows = self.write(bound.value()).removesuffix("L")
        return f"{rows[1:]} PRECEDING" if rows.startswith("-") else f"{rows} FOLLOWING"
