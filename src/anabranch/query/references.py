"""Which words of an expression can be references to columns. Needs no scope: `scope.py` decides what they refer to.

It errs on the side of too many: a word that might be a column is reported, and one that cannot be (a function's name,
a type after AS or `::`, the unit of an interval, a lambda's own variable) is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .tokens import NUMBER, STRING, SYNTAX, UNITS, WORD, Token, after_dot, closing, depths, tokenise, words

# Words of expression syntax, or functions without brackets, that may still be columns: known ones are, unknown ones
# are no error.
SOFT = UNITS | words(
    """CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME LOCALTIMESTAMP CURRENT_USER USER SESSION_USER CURRENT_CATALOG
    CURRENT_DATABASE CURRENT_SCHEMA CURRENT_TIMEZONE BOTH LEADING TRAILING FOR PLACING AT TIME ZONE COLLATE
    ANY SOME ALL IGNORE RESPECT NULLS ROWS RANGE PRECEDING CURRENT ROW UNBOUNDED FOLLOWING BY ASC DESC FIRST
    LAST PARTITION TO LOCAL OVER FILTER WITHIN UNKNOWN DOW DOY DAYOFWEEK DAYOFYEAR DAYOFMONTH EPOCH WEEKDAY
    TIMEZONE MOD DEFAULT"""
)
_TYPED = {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME", "X", "R"}
_UNIT_FIRST = {"TIMESTAMPADD", "TIMESTAMPDIFF", "DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF", "TIMEDIFF"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A dotted name, `parts[k]` standing at text[spans[k]]; `soft` when it may be syntax instead."""

    parts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    soft: bool

    @property
    def start(self) -> int:
        return self.spans[0][0]

    @property
    def end(self) -> int:
        return self.spans[-1][1]


def find(text: str) -> list[Reference]:
    """Every possible reference in the text, in order."""
    tokens = tokenise(text)
    skipped = _types(tokens)
    lambdas = _lambdas(tokens)
    case_ends = _case_ends(tokens)
    found = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        if not token.is_name or after_dot(tokens, i):
            i += 1
            continue
        last = i
        while last + 2 < len(tokens) and tokens[last + 1].key == "." and tokens[last + 2].is_name:
            last += 2
        following = tokens[last + 1] if last + 1 < len(tokens) else None
        name = token.name.lower()
        if (
            i in skipped
            or i in case_ends
            or (token.kind == WORD and token.key in SYNTAX and token.key != "END")
            or (following is not None and following.key in ("(", "=>"))
            or (following is not None and following.key == "->" and last == i)
            or any(name in names and start <= i < end for names, start, end in lambdas)
            or _is_literal_part(tokens, i)
        ):
            i = last + 1
            continue
        chain = tokens[i : last + 1 : 2]
        soft = token.kind == WORD and last == i and (token.key in SOFT or token.key == "END")
        found.append(Reference(tuple(t.name for t in chain), tuple((t.start, t.end) for t in chain), soft))
        i = last + 1
    return found


def references(text: str) -> frozenset[str]:
    """The lower-case identifiers that may be columns: the parts of every possible reference."""
    return frozenset(part.lower() for reference in find(text) for part in reference.parts)


def _is_literal_part(tokens: Sequence[Token], i: int) -> bool:
    """DATE '…', 5 SECONDS, EXTRACT(unit FROM …), TIMESTAMPADD(unit, …), COLLATE name, json:path."""
    token = tokens[i]
    if token.kind != WORD:
        return i > 0 and tokens[i - 1].key in ("COLLATE", ":")
    previous = tokens[i - 1] if i else None
    following = tokens[i + 1] if i + 1 < len(tokens) else None
    if following is not None and following.kind == STRING and token.key in _TYPED:
        return True
    if following is not None and following.key == "FROM" and previous is not None and previous.key == "(":
        return True
    if previous is None:
        return False
    if previous.key in ("COLLATE", ":"):
        return True
    if token.key in UNITS:
        in_interval = any(t.key == "INTERVAL" for t in tokens[max(0, i - 12) : i])
        if in_interval and (previous.kind in (NUMBER, STRING) or previous.key in (")", "TO")):
            return True
        return previous.key == "(" and i > 1 and tokens[i - 2].key in _UNIT_FIRST
    return False


def _types(tokens: Sequence[Token]) -> set[int]:
    """Indexes of tokens that name a type or an alias: after AS up to the bracket's end, after `::`."""
    result: set[int] = set()
    levels = depths(tokens)
    for i, token in enumerate(tokens):
        if token.key == "AS" and not after_dot(tokens, i):
            j = i + 1
            while j < len(tokens) and levels[j] >= levels[i] and not (levels[j] == levels[i] and tokens[j].key == ","):
                result.add(j)
                j += 1
        elif token.key == "::" and i + 1 < len(tokens):
            result.add(i + 1)
            if i + 2 < len(tokens) and tokens[i + 2].key == "<":
                depth, j = 0, i + 2
                while j < len(tokens):
                    result.add(j)
                    depth += {"<": 1, ">": -1, ">>": -2}.get(tokens[j].key, 0)
                    if depth <= 0:
                        break
                    j += 1
    return result


def _case_ends(tokens: Sequence[Token]) -> set[int]:
    """The ENDs that close a CASE; any other `end` is a name."""
    ends, opened = set(), 0
    for i, token in enumerate(tokens):
        if after_dot(tokens, i):
            continue
        if token.key == "CASE":
            opened += 1
        elif token.key == "END" and opened:
            opened -= 1
            ends.add(i)
    return ends


def _lambdas(tokens: Sequence[Token]) -> list[tuple[frozenset[str], int, int]]:
    """(variables, first token, token after the last) of every lambda."""
    result = []
    levels = depths(tokens)
    for i, token in enumerate(tokens):
        if token.key != "->" or i == 0:
            continue
        begin = i - 1
        if tokens[begin].key == ")":
            begin = max(
                (j for j in range(i - 1) if tokens[j].key == "(" and closing(tokens, j) == i - 1), default=i - 1
            )
        end = i + 1
        while (
            end < len(tokens) and levels[end] >= levels[i] and not (levels[end] == levels[i] and tokens[end].key == ",")
        ):
            end += 1
        names = frozenset(t.name.lower() for t in tokens[begin:i] if t.is_name)
        result.append((names, begin, end))
    return result
