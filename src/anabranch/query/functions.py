"""The aggregate functions we support, under their canonical names, and the ones we refuse, with the nearest that works.

`aggregate.py` and `frames.py` turn call sites into `Call`s and `FrameCall`s here. Argument texts go through the
caller's `rewrite` and are otherwise untouched. What a kernel does with a canonical name is in `kernels/specs.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import UnsupportedQuery
from .calls import CallSite
from .operators import Call
from .tokens import NUMBER, slice_of, split, tokenise

# Spark's name -> canonical name.
CANONICAL = {
    "count": "count",
    "count_if": "count_if",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "stddev_samp": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "variance": "var_samp",
    "var_samp": "var_samp",
    "var_pop": "var_pop",
    "min_by": "min_by",
    "max_by": "max_by",
    "first": "first",
    "first_value": "first",
    "any_value": "first",
    "last": "last",
    "last_value": "last",
    "collect_list": "collect_list",
    "array_agg": "collect_list",
    "collect_set": "collect_set",
    "median": "median",
    "percentile": "percentile",
    "percentile_cont": "percentile_cont",
    "bool_and": "bool_and",
    "every": "bool_and",
    "bool_or": "bool_or",
    "some": "bool_or",
    "any": "bool_or",
}

# Aggregates of Spark that we do not have -> what to write instead.
_REGRESSION = "avg, var_pop and sums of products, combined in a select on top"
REFUSED = {
    "approx_count_distinct": "count(DISTINCT x)",
    "approx_percentile": "percentile(x, p)",
    "percentile_approx": "percentile(x, p)",
    "percentile_disc": "percentile_cont(p) WITHIN GROUP (ORDER BY x)",
    "approx_top_k": "count(*) grouped by the value",
    "mode": "count(*) grouped by the value, then max_by(value, count) in a query on top",
    "histogram_numeric": "count(*) grouped by a bucket expression",
    "count_min_sketch": "count(*) grouped by the value",
    "hll_sketch_agg": "count(DISTINCT x)",
    "hll_union_agg": "count(DISTINCT x)",
    "bitmap_construct_agg": "collect_set(x)",
    "bitmap_or_agg": "collect_set(x)",
    "listagg": "array_join(collect_list(x), ',')",
    "string_agg": "array_join(collect_list(x), ',')",
    "try_sum": "sum(x)",
    "try_avg": "avg(x)",
    "product": "exp(sum(ln(x)))",
    "skewness": "avg of powers of x, combined in a select on top",
    "kurtosis": "avg of powers of x, combined in a select on top",
    "bit_and": "collect_set(x), then aggregate(...) over the array",
    "bit_or": "collect_set(x), then aggregate(...) over the array",
    "bit_xor": "collect_list(x), then aggregate(...) over the array",
    "schema_of_json_agg": "collect_set(schema_of_json(x))",
    "grouping": "one query per grouping, joined with UNION ALL",
    "grouping_id": "one query per grouping, joined with UNION ALL",
    **dict.fromkeys(("corr", "covar_pop", "covar_samp"), _REGRESSION),
    **{
        f"regr_{kind}": _REGRESSION
        for kind in ("avgx", "avgy", "count", "intercept", "r2", "slope", "sxx", "sxy", "syy")
    },
}

_DISTINCT_IS_NOTHING = frozenset(("min", "max", "collect_set", "bool_and", "bool_or"))
_SUPPORTED = "count, sum, avg, min, max, stddev, variance, min_by, max_by, first, last, collect_list, percentile"
Rewrite = Callable[[str], str]


def is_aggregate(name: str) -> bool:
    """Whether Spark knows it as an aggregate, supported or not."""
    return name in CANONICAL or name in REFUSED


def canonical(call: CallSite) -> str:
    """The canonical name, or the refusal."""
    if call.name in REFUSED:
        raise UnsupportedQuery(
            f"the aggregate {call.name} is not supported", where=call.text, fix=f"use {REFUSED[call.name]}"
        )
    return CANONICAL[call.name]


@dataclass(frozen=True)
class _Parts:
    name: str
    args: tuple[str, ...]
    distinct: bool
    where: str | None


def lower(call: CallSite, rewrite: Rewrite, time: str, column: str) -> Call:
    """The call in canonical form. `time` is the physical event time that orders first and last."""
    name = canonical(call)
    where = rewrite(call.where) if call.where is not None else None
    arguments = () if call.args == ("*",) else call.args
    if call.ignore_nulls and name not in ("first", "last"):
        raise UnsupportedQuery(
            "IGNORE NULLS belongs to first and last only", where=call.text, fix="use FILTER (WHERE …)"
        )
    if call.within is not None and name != "percentile_cont":
        raise UnsupportedQuery("WITHIN GROUP belongs to percentile_cont only", where=call.text, fix="leave it out")
    _check_count(call, name, arguments)
    args = tuple(rewrite(a) for a in arguments)
    parts = _Parts(name, args, call.distinct, where)
    if call.distinct:
        parts = _distinct(call, parts)
    name, where = parts.name, parts.where
    args = parts.args
    if name == "count" and not parts.distinct and len(args) == 1 and _is_number(args[0]):
        args = ()
    elif name == "count_if":
        name, where = "count", _both(where, args[0])
        args = ()
    elif name in ("first", "last"):
        ignore = call.ignore_nulls or (len(args) == 2 and args[1].strip().lower() == "true")
        where = _both(where, f"({args[0]}) IS NOT NULL") if ignore else where
        name, args = ("min_by" if name == "first" else "max_by"), (args[0], time)
    elif name == "median":
        name, args = "percentile", (*args, "0.5")
    elif name == "percentile_cont":
        name, args = "percentile", (rewrite(_sort_of(call)), args[0])
    return Call(name, args, column, distinct=parts.distinct, where=where)


def _check_count(call: CallSite, name: str, args: tuple[str, ...]) -> None:
    """The number of arguments."""
    low, high = {
        "count": (0 if call.args == ("*",) else 1, 99),
        "min_by": (2, 2),
        "max_by": (2, 2),
        "first": (1, 2),
        "last": (1, 2),
        "percentile": (2, 2),
    }.get(name, (1, 1))
    if not low <= len(args) <= high:
        raise UnsupportedQuery(
            f"{call.name} takes {low if low == high else f'{low} to {high}'} argument{'s' if high > 1 else ''}",
            where=call.text,
            fix="frequencies of percentile are not supported" if name == "percentile" else None,
        )
    if any(a.endswith("*") and a != "*" for a in args):
        raise UnsupportedQuery("`.*` inside an aggregate is not supported", where=call.text, fix="name the columns")


def _distinct(call: CallSite, parts: _Parts) -> _Parts:
    """count and sum keep DISTINCT; for some functions it changes nothing; the rest cannot."""
    if parts.name in ("count", "sum") and parts.args:
        return parts
    if parts.name in _DISTINCT_IS_NOTHING:
        return _Parts(parts.name, parts.args, False, parts.where)
    if parts.name == "collect_list":
        return _Parts("collect_set", parts.args, False, parts.where)
    raise UnsupportedQuery(
        f"{call.name}(DISTINCT …) is not supported",
        where=call.text,
        fix="count(DISTINCT x), sum(DISTINCT x) and collect_set(x) are; combine those",
    )


def _sort_of(call: CallSite) -> str:
    """The expression of WITHIN GROUP (ORDER BY x [ASC])."""
    if call.within is None:
        raise UnsupportedQuery(
            "percentile_cont needs WITHIN GROUP",
            where=call.text,
            fix="write percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        )
    parts = split(tokenise(call.within))
    if len(parts) != 1 or parts[0][-1].key in ("DESC", "LAST", "FIRST"):
        raise UnsupportedQuery(
            "WITHIN GROUP takes one ascending sort key", where=call.text, fix="for DESC, write 1 - p instead of p"
        )
    tokens = parts[0][:-1] if parts[0][-1].key == "ASC" else parts[0]
    return slice_of(call.within, tokens)


def _both(left: str | None, right: str) -> str:
    return right if left is None else f"({left}) AND ({right})"


def _is_number(text: str) -> bool:
    tokens = tokenise(text)
    return len(tokens) == 1 and tokens[0].kind == NUMBER
