"""What no expression may contain, refused by name before anything is built.

Spark would refuse most of it on a stream too, but later and in its own words; the rest would make a replayed epoch
differ from the first try.
"""

from __future__ import annotations

from ..errors import UnsupportedQuery
from . import calls
from .functions import is_aggregate
from .tokens import STRING, after_dot, tokenise, words

_BEFORE = "do it before ab.stream(...), on the DataFrame itself"
_RANDOM = words(
    """rand random randn uuid shuffle randstr uniform monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length"""
)
_CLOCK = words("now current_timestamp current_date curdate current_time localtimestamp")
_GENERATORS = words(
    """explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple variant_explode
    variant_explode_outer"""
)
RANKING = {
    "row_number": "count(*) over the last n rows",
    "rank": "count(*) over the last n rows",
    "dense_rank": "count(*) over the last n rows",
    "percent_rank": "avg over the last n rows",
    "cume_dist": "avg over the last n rows",
    "ntile": "avg over the last n rows",
    "nth_value": "lag(x, n) or first_value(x)",
    "lead": "lag(x, n), which looks back",
}


def check(text: str, place: str, *, aggregates: bool = False, over: bool = False) -> None:
    """Refuse what does not belong into an expression of this place ('WHERE', 'ON', …)."""
    if not text.strip():
        raise UnsupportedQuery(f"{place} is empty", fix="write an expression")
    tokens = tokenise(text)
    for i, token in enumerate(tokens):
        if token.key == "SELECT" and i and tokens[i - 1].key == "(":
            before = tokens[i - 2].key if i > 1 else ""
            kind = {"IN": "IN (SELECT …)", "EXISTS": "EXISTS (SELECT …)"}.get(before, "a scalar subquery")
            raise UnsupportedQuery(
                f"{kind} is not supported in {place}", where=text, fix="write it as a join in FROM, with time bounds"
            )
        bare_clock = token.key in ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP", "CURRENT_TIME")
        if bare_clock and not after_dot(tokens, i) and not (i + 1 < len(tokens) and tokens[i + 1].kind == STRING):
            _clock(token.text, text)
        if token.key == "?" or (
            token.key == ":" and (i == 0 or (not tokens[i - 1].is_name and tokens[i - 1].key != "]"))
        ):
            raise UnsupportedQuery("parameter markers are not supported", where=text, fix="put the value into the text")
    for call in calls.find(text):
        if call.name in _RANDOM:
            raise UnsupportedQuery(
                f"{call.name}() gives another value each time, so that a repeated epoch would differ",
                where=text,
                fix="derive the value from the row's columns, e.g. xxhash64(...)",
            )
        if call.name in _CLOCK or (call.name == "unix_timestamp" and not call.args):
            _clock(call.name + "()", text)
        if call.name in _GENERATORS:
            raise UnsupportedQuery(f"{call.name}() makes several rows of one, in {place}", where=text, fix=_BEFORE)
        if call.name == "session_window":
            raise UnsupportedQuery(
                "session_window is not supported",
                where=text,
                fix="use window(ts, size[, slide]), or a frame with lag(ts)",
            )
        if call.over is not None and not over:
            raise UnsupportedQuery(
                f"OVER (…) is not supported in {place}",
                where=call.text,
                fix="compute it in a subquery in FROM and use its column",
            )
        if call.over is None and call.name in RANKING | {"lag": ""}:
            raise UnsupportedQuery(
                f"{call.name}() needs OVER (…)", where=call.text, fix="add OVER (PARTITION BY … ORDER BY ts)"
            )
        if call.over is None and is_aggregate(call.name) and not aggregates:
            raise UnsupportedQuery(
                f"the aggregate {call.name}() is not supported in {place}",
                where=call.text,
                fix="put it into a select list with GROUP BY … window(ts, …), or filter its result with HAVING",
            )


def _clock(word: str, text: str) -> None:
    raise UnsupportedQuery(
        f"{word} reads the clock, so that a repeated epoch would differ",
        where=text,
        fix="use the event time, or add the column in the sink",
    )
