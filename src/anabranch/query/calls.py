"""Function calls in an expression, with everything SQL may hang behind the closing bracket.

`find` gives the calls in source order, outer before inner. What a function means is in `functions.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UnsupportedQuery
from .tokens import SYNTAX, WORD, Token, after_dot, closing, slice_of, split, tokenise

# Words that take a bracket without being functions.
_NOT_FUNCTIONS = SYNTAX - {"CAST", "TRY_CAST"} | {"OVER", "FILTER", "BY"}


@dataclass(frozen=True, slots=True)
class CallSite:
    """One call at text[start:end], suffixes included; every part is a slice of the source."""

    name: str  # lower case
    text: str
    start: int
    end: int
    args: tuple[str, ...]
    distinct: bool = False
    within: str | None = None  # WITHIN GROUP (ORDER BY …): what follows ORDER BY
    where: str | None = None  # FILTER (WHERE …)
    ignore_nulls: bool = False
    over: str | None = None  # the inside of OVER (…), or the name of a window


def find(text: str) -> list[CallSite]:
    """Every call in the text."""
    tokens = tokenise(text)
    return [
        _read(text, tokens, i)
        for i, token in enumerate(tokens[:-1])
        if tokens[i + 1].key == "("
        and token.is_name
        and not after_dot(tokens, i)
        and not (token.kind == WORD and token.key in _NOT_FUNCTIONS)
        and not (token.key in ("ANY", "SOME", "ALL") and i and tokens[i - 1].key in ("LIKE", "ILIKE", "RLIKE"))
    ]


def exactly(text: str) -> CallSite | None:
    """The call that is all of the text, if it is one."""
    tokens = tokenise(text)
    for call in find(text)[:1]:
        if call.start == tokens[0].start and call.end == tokens[-1].end:
            return call
    return None


def _read(text: str, tokens: Sequence[Token], i: int) -> CallSite:
    end = closing(tokens, i + 1)
    inside = tokens[i + 2 : end]
    distinct = bool(inside) and inside[0].key == "DISTINCT"
    if inside and inside[0].key in ("DISTINCT", "ALL") and len(inside) > 1:
        inside = inside[1:]
    within = where = over = None
    ignore_nulls = False

    def key(at: int) -> str:
        return tokens[at].key if at < len(tokens) else ""

    while True:
        if key(end + 1) == "WITHIN" and key(end + 2) == "GROUP" and key(end + 3) == "(":
            stop = closing(tokens, end + 3)
            if key(end + 4) != "ORDER" or key(end + 5) != "BY":
                raise UnsupportedQuery("WITHIN GROUP needs ORDER BY", where=slice_of(text, tokens[i : stop + 1]))
            within, end = slice_of(text, tokens[end + 6 : stop]), stop
        elif key(end + 1) == "FILTER" and key(end + 2) == "(" and key(end + 3) == "WHERE":
            stop = closing(tokens, end + 2)
            where, end = slice_of(text, tokens[end + 4 : stop]), stop
        elif key(end + 1) in ("IGNORE", "RESPECT") and key(end + 2) == "NULLS":
            ignore_nulls, end = key(end + 1) == "IGNORE", end + 2
        elif key(end + 1) == "OVER" and key(end + 2) == "(":
            stop = closing(tokens, end + 2)
            over, end = slice_of(text, tokens[end + 3 : stop]), stop
        elif key(end + 1) == "OVER" and end + 2 < len(tokens) and tokens[end + 2].is_name:
            over, end = tokens[end + 2].text, end + 2
        else:
            break
    span = tokens[i : end + 1]
    args = tuple(slice_of(text, part) for part in split(inside))
    whole = slice_of(text, span)
    return CallSite(
        tokens[i].name.lower(), whole, span[0].start, span[-1].end, args, distinct, within, where, ignore_nulls, over
    )
