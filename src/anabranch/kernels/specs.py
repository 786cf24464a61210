"""What a kernel is asked to do: frozen, serialisable descriptions, produced by the compiler.

Tables. A kernel sees pyarrow Tables whose column names are given here. Besides those every input table has
`_t` (int64, event time in microseconds; for aggregates the start of the row's pane) and `_cell` (int32), which kernels
pass through state but never interpret. Key columns are already normalised (NaN, -0.0) and of the same type on all
inputs. A kernel never sees an expression of the user's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

CELL = "_cell"
TIME = "_t"
WINDOW = "_w"


@dataclass(frozen=True)
class TimeBound:
    """low <= t[j] - t[i] <= high in microseconds, i < j; None is open."""

    i: int
    j: int
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Compare:
    """A comparison of two prepared columns, SQL semantics (NULL never matches): op in = != < <= > >=."""

    i: int
    left: str
    op: str
    j: int
    right: str


@dataclass(frozen=True)
class JoinInput:
    keys: tuple[str, ...]  # aligned over the inputs; empty for a join without equality
    columns: tuple[str, ...]  # every column the state keeps besides _t and _cell (keys included)


@dataclass(frozen=True)
class JoinSpec:
    """Inner join of m inputs; NULL keys never match."""

    inputs: tuple[JoinInput, ...]
    bounds: tuple[TimeBound, ...]
    compares: tuple[Compare, ...]
    output: tuple[tuple[int, str, str], ...]  # (input, column (may be _t), name in the output)
    kind: str = "join"


@dataclass(frozen=True)
class WindowSpec:
    """Lengths in microseconds. pane = gcd(size, slide); windows start at offset + k * slide."""

    size: int
    slide: int
    offset: int
    pane: int


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate over *partial* columns. A raw row is a partial too (count 1).

    kind            columns        partial meaning
    count           n              int64, summed
    sum             s              summed, NULL if all NULL; the output has the type of s
    avg             s, n           double sum, int64 count -> s / n, NULL when n is 0
    avg_decimal     s, n           decimal sum, count -> decimal(params[0], params[1]), HALF_UP
    min max         v              (NaN is the largest value)
    var_pop var_samp stddev_pop stddev_samp
                    n, mean, m2    moments: n (double or int64), mean, sum of squared deviations; merged by Chan's
                                   formula; var_samp and stddev_samp of one row are NULL, all of no row are NULL
    min_by max_by   x, y           x of the row with the least (greatest) y; rows with y NULL ignored; x may be NULL
    count_distinct  v, ...         number of distinct tuples with no NULL in them (raw rows)
    sum_distinct    v              (raw rows) sum of distinct values
    collect_list    v              non-NULL values, any order (raw rows)
    collect_set     v              distinct non-NULL values (raw rows)
    percentile      v              v double; exact, linear interpolation at fraction params[0] (raw rows)
    percentiles     v              the same for every fraction of params -> list<double>

    Sums (sum, sum_distinct) have the type of their column: the compiler widens it first (bigint, double,
    decimal(p+10, s)). A sum out of that type's range is an error. min, max and y do not take nested types.
    Calls may share partial columns (sum and avg of one s); two calls that would merge one column differently (min and
    max of one raw v) are still answered right, but their partials are never merged.
    """

    kind: str
    columns: tuple[str, ...]
    output: str
    params: tuple[float, ...] = ()


@dataclass(frozen=True)
class AggregateSpec:
    keys: tuple[str, ...]
    window: WindowSpec
    calls: tuple[AggregateCall, ...]
    kind: str = "aggregate"

    @property
    def mergeable(self) -> bool:
        """Whether partials of one (key, pane) can be merged into one."""
        return not any(c.kind in RAW for c in self.calls)


RAW = frozenset({"count_distinct", "sum_distinct", "collect_list", "collect_set", "percentile", "percentiles"})


@dataclass(frozen=True)
class SortKey:
    column: str
    descending: bool = False
    nulls_last: bool = False


@dataclass(frozen=True)
class FrameCall:
    """One function over the rows [current - preceding, current + following] of its key, following <= 0.

    kinds: count (rows, or non-NULL v), sum, avg, avg_decimal (params precision, scale), min, max, var_pop, var_samp,
    stddev_pop, stddev_samp, first_value, last_value (params[0] == 1: ignore NULLs), collect_list,
    lag (columns v[, default]; preceding is the offset).

    sum has the type of its column, as in AggregateCall; avg takes any numeric column and is double. NULLs are skipped
    by all but first_value, last_value and lag; collect_list gives them in frame order.
    """

    kind: str
    columns: tuple[str, ...]
    preceding: int
    following: int
    output: str
    params: tuple[float, ...] = ()


@dataclass(frozen=True)
class FrameSpec:
    """Rows in order of (_t, order...) within their key (NULLs and NaNs are one key); ties as the rows come.

    The output is `output`, then the calls. A frame's rows are never before the context's.
    """

    keys: tuple[str, ...]
    order: tuple[SortKey, ...]
    columns: tuple[str, ...]  # everything kept (keys and order columns included)
    calls: tuple[FrameCall, ...]
    output: tuple[str, ...]  # columns to emit before the calls' outputs (may include _t)
    kind: str = "frame"

    @property
    def depth(self) -> int:
        """How many earlier rows of a key the next row can still see."""
        return max(c.preceding for c in self.calls)


Spec = JoinSpec | AggregateSpec | FrameSpec


def to_json(spec: Spec) -> dict[str, Any]:
    return asdict(spec)


def from_json(data: dict[str, Any]) -> Spec:
    """The inverse of `to_json` (lists back to tuples)."""
    kind = data["kind"]
    if kind == "join":
        return JoinSpec(
            tuple(JoinInput(tuple(i["keys"]), tuple(i["columns"])) for i in data["inputs"]),
            tuple(TimeBound(**b) for b in data["bounds"]),
            tuple(Compare(**c) for c in data["compares"]),
            tuple((int(o[0]), o[1], o[2]) for o in data["output"]),
        )
    if kind == "aggregate":
        return AggregateSpec(
            tuple(data["keys"]),
            WindowSpec(**data["window"]),
            tuple(
                AggregateCall(c["kind"], tuple(c["columns"]), c["output"], tuple(c["params"])) for c in data["calls"]
            ),
        )
    return FrameSpec(
        tuple(data["keys"]),
        tuple(SortKey(**o) for o in data["order"]),
        tuple(data["columns"]),
        tuple(
            FrameCall(c["kind"], tuple(c["columns"]), c["preceding"], c["following"], c["output"], tuple(c["params"]))
            for c in data["calls"]
        ),
        tuple(data["output"]),
    )
