"""The logical plan: immutable operators over streams. WHAT is asked, never how it runs.

SQL text and the builder both end here; `plan/` compiles it. Expressions are kept as the user's own Spark SQL
text (`str`); only references to columns are resolved, so that Catalyst evaluates what the user wrote.

Columns. Every operator's output is a tuple of `Field`s. `Field.column` is the physical name: unique within one
operator's output and the only name that expression texts above it use (back-quoted where necessary). A user's
unqualified name is its own physical name when it is unique in scope; a name that two inputs share becomes
`<qualifier>__<name>`, so qualified references (`c.phone`) are rewritten to the physical name and unqualified
text stays exactly as written.

Time. `Field.lag` says whether a field is an event time: None means no; a number of microseconds means that every row
the operator will still emit has `field >= watermark - lag`. Event-time-ness survives a plain column reference,
nothing else.
A window's struct is not an event time itself but its parts are: `Field.window` holds the lags of `.start` and `.end`.
The lags here are those of an operator's inputs taken over as they are: a Join's time bounds, which only the compiler
knows, make some of them larger, and it corrects them.

Qualifiers are the front-end's: it keeps them in a `scope.Scope` beside the operator, and the fields *of operators* have
none, so that one stream under two aliases is one Source.

Equality of operators is structural; an operator that is used twice is compiled once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """One output column of an operator."""

    column: str  # physical name
    name: str  # the name the user knows
    qualifiers: tuple[str, ...] = ()  # aliases under which `qualifier.name` finds it, lower case
    lag: int | None = None  # microseconds behind the watermark, None when not an event time
    window: tuple[int, int] | None = None  # of a window's struct: the lags of its `start` and its `end`


@dataclass(frozen=True)
class Item:
    """An expression and the physical column it becomes."""

    text: str
    column: str


@dataclass(frozen=True)
class Operator:
    """Base of all operators."""

    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Source(Operator):
    """A stream; `fields` are its columns, one of them possibly the event time."""

    stream: str


@dataclass(frozen=True)
class Select(Operator):
    """Projection; one item per field, in order."""

    child: Operator
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Where(Operator):
    """Filter; fields are the child's."""

    child: Operator
    condition: str


@dataclass(frozen=True)
class Union(Operator):
    """UNION ALL by position; every child has the same physical columns (a Select renames where needed)."""

    children: tuple[Operator, ...]


@dataclass(frozen=True)
class StaticJoin(Operator):
    """A join with a static DataFrame: `how` is 'inner' or 'left'. `renames` maps its columns to physical names."""

    child: Operator
    static: str
    how: str
    condition: str  # over the child's physical columns and the renamed static ones; '' means a cross join
    renames: tuple[Item, ...]  # text: a column of the static DataFrame, quoted; column: physical name here


@dataclass(frozen=True)
class Join(Operator):
    """Inner join of two to five inputs. The inputs' physical columns are disjoint; fields are all of theirs in order.

    `conditions` are conjuncts over those physical columns. The compiler sorts them into keys, time bounds,
    comparisons and rest.
    """

    inputs: tuple[Operator, ...]
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Window:
    """An event-time window: the physical column of the time, and lengths in microseconds (slide == size: tumbling).

    `size == 1` and `struct == False` is a group by the event time itself (an aggregate over an aggregate's windows).
    """

    time: str
    size: int
    slide: int
    offset: int = 0
    struct: bool = True  # whether a column named `column`, struct<start, end>, is produced
    column: str = "window"


@dataclass(frozen=True)
class Call:
    """One aggregate call: canonical lower-case function name, argument texts, and the physical column of its result."""

    function: str
    args: tuple[str, ...]  # none for count(*)
    column: str
    distinct: bool = False
    where: str | None = None  # FILTER (WHERE ...)
    ignore_nulls: bool = False


@dataclass(frozen=True)
class Aggregate(Operator):
    """Aggregates per (keys, window). Fields: the keys, the window struct if any, then the calls."""

    child: Operator
    keys: tuple[Item, ...]
    window: Window
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Order:
    """A sort key of a frame."""

    text: str
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class FrameCall:
    """`function(args) OVER (... ROWS BETWEEN preceding PRECEDING AND -following)`; following <= 0, 0 is CURRENT ROW.

    `preceding` counts rows; `lag(x, n)` is function 'lag' with preceding=n, following=-n and its default in args[1:].
    """

    function: str
    args: tuple[str, ...]
    preceding: int
    following: int
    column: str
    ignore_nulls: bool = False
    where: str | None = None


@dataclass(frozen=True)
class Frame(Operator):
    """Per-row frames over PARTITION BY keys ORDER BY event time, …. Fields: the child's, then the calls."""

    child: Operator
    keys: tuple[str, ...]
    time: str  # physical column of the event time, ascending
    order: tuple[Order, ...]  # the sort keys after the event time
    calls: tuple[FrameCall, ...]
