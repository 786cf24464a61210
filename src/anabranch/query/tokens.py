"""Spark SQL text cut into tokens with offsets, and the few cuts of text that need nothing but tokens.

Everything that reads the user's SQL stands on this module: `references` and `calls` find things in token lists,
`sql/` parses them, and what they hand on are slices of the text as the user wrote it. sqlglot gives the offsets of
Spark's lexical rules and nothing else: it never sees an expression, so it cannot change one.

Limits: double quotes delimit strings (Spark's default, not `spark.sql.ansi.doubleQuotedIdentifiers`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ..errors import UnsupportedQuery

WORD, QUOTED, STRING, NUMBER, SYMBOL, HINT = "word", "quoted", "string", "number", "symbol", "hint"

_OPEN, _CLOSE = {"(", "[", "{"}, {")", "]", "}"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_STRINGS = {"STRING", "RAW_STRING", "HEX_STRING", "BIT_STRING", "BYTE_STRING", "NATIONAL_STRING", "UNICODE_STRING"}


def words(text: str) -> frozenset[str]:
    """A set of words written as a text."""
    return frozenset(text.split())


UNITS = frozenset(
    f"{unit}{s}".upper()
    for unit in words("year quarter month week day hour minute second millisecond microsecond nanosecond")
    for s in ("", "s")
)

# Words that Spark reads as syntax inside an expression; a column of that name has to be back-quoted.
SYNTAX = words(
    """AND OR NOT BETWEEN IN LIKE RLIKE ILIKE REGEXP IS NULL TRUE FALSE CASE WHEN THEN ELSE END CAST TRY_CAST AS
    DISTINCT INTERVAL FROM SELECT WHERE EXISTS DIV ESCAPE GROUP ORDER HAVING UNION EXCEPT INTERSECT MINUS JOIN
    ON USING WITH LIMIT OFFSET QUALIFY LATERAL"""
)


@dataclass(frozen=True, slots=True)
class Token:
    """`text[start:end]` of the source. `key` is what syntax is compared with: the upper-case word or the symbol."""

    kind: str
    text: str
    start: int
    end: int
    key: str

    @property
    def is_name(self) -> bool:
        return self.kind in (WORD, QUOTED)

    @property
    def name(self) -> str:
        """The identifier without its back-quotes, in the case the user wrote."""
        return unquote(self.text)


@lru_cache(maxsize=4096)
def tokenise(text: str) -> tuple[Token, ...]:
    """The tokens of a text, without comments."""
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import TokenError

    try:
        # The parenthesis keeps a leading word such as `show` from being read as a whole command.
        raw = Spark().tokenize("(" + text)[1:]
    except TokenError as error:
        raise UnsupportedQuery(
            "a quote or comment is never closed", where=text, fix="close every quote and comment"
        ) from error
    tokens: list[Token] = []
    for token in raw:
        start, end = token.start - 1, token.end
        if tokens and start < tokens[-1].end:
            continue  # `10L` comes as a number, a cast and a type, all at the same place
        piece, kind = text[start:end], token.token_type.name
        if kind == "IDENTIFIER":
            tokens.append(Token(QUOTED, piece, start, end, ""))
        elif kind in _STRINGS:
            tokens.append(Token(STRING, piece, start, end, ""))
        elif kind == "NUMBER":
            tokens.append(Token(NUMBER, piece, start, end, ""))
        elif kind == "HINT":
            tokens.append(Token(HINT, piece, start, end, "/*+"))
        elif piece[:1].isalnum() or piece[:1] == "_":
            # `GROUP BY` is one token there and two words here
            for match in re.finditer(r"\S+", piece):
                word = match.group()
                tokens.append(Token(WORD, word, start + match.start(), start + match.end(), word.upper()))
        else:
            tokens.append(Token(SYMBOL, piece, start, end, piece))
    return tuple(tokens)


def quote(name: str) -> str:
    """A name as it must stand in an expression."""
    if _PLAIN.match(name) and name.upper() not in SYNTAX:
        return name
    return "`" + name.replace("`", "``") + "`"


def unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == "`":
        return text[1:-1].replace("``", "`")
    return text


def slice_of(text: str, tokens: Sequence[Token]) -> str:
    """The source between the first and the last of some neighbouring tokens."""
    return text[tokens[0].start : tokens[-1].end] if tokens else ""


def after_dot(tokens: Sequence[Token], i: int) -> bool:
    """Whether token i is the second part of a dotted name: such a word is never syntax."""
    return i > 0 and tokens[i - 1].key == "."


def closing(tokens: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(tokens)):
        if tokens[i].key in _OPEN:
            depth += 1
        elif tokens[i].key in _CLOSE:
            depth -= 1
            if depth == 0:
                return i
    where = " ".join(t.text for t in tokens[opening : opening + 12])
    raise UnsupportedQuery("a bracket is never closed", where=where, fix="close it")


def depths(tokens: Sequence[Token]) -> list[int]:
    """Nesting depth of each token; brackets and CASE … END count, the delimiters themselves are outside."""
    result: list[int] = []
    stack: list[str] = []
    for i, token in enumerate(tokens):
        closes = token.key in _CLOSE or (token.key == "END" and stack[-1:] == ["CASE"] and not after_dot(tokens, i))
        if closes and stack:
            stack.pop()
        result.append(len(stack))
        if token.key in _OPEN or (token.key == "CASE" and not after_dot(tokens, i)):
            stack.append(token.key)
    return result


def split(tokens: Sequence[Token], key: str = ",") -> list[Sequence[Token]]:
    """Cut at every `key` of depth 0; nothing gives no parts."""
    if not tokens:
        return []
    parts: list[Sequence[Token]] = []
    begin = 0
    for i, (token, depth) in enumerate(zip(tokens, depths(tokens), strict=True)):
        if depth == 0 and token.key == key:
            parts.append(tokens[begin:i])
            begin = i + 1
    parts.append(tokens[begin:])
    return parts


def split_text(text: str) -> list[str]:
    """The comma-separated parts of a text."""
    return [slice_of(text, part) for part in split(tokenise(text))]


def unwrap(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without brackets that enclose all of it."""
    while len(tokens) > 2 and tokens[0].key == "(" and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def conjuncts(text: str) -> list[str]:
    """The parts of a condition that must all hold. An OR at depth 0 leaves it whole, as do CASE and BETWEEN inside."""
    return [slice_of(text, part) for part in _conjuncts(tokenise(text))]


def _conjuncts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    tokens = unwrap(tokens)
    levels = depths(tokens)
    cuts: list[int] = []
    between = 0
    for i, token in enumerate(tokens):
        if levels[i] or after_dot(tokens, i):
            continue
        if token.key == "OR":
            return [tokens]
        if token.key == "BETWEEN":
            between += 1
        elif token.key == "AND":
            if between:
                between -= 1
            else:
                cuts.append(i)
    if not cuts:
        return [tokens]
    edges = [-1, *cuts, len(tokens)]
    return [part for a, b in pairwise(edges) for part in _conjuncts(tokens[a + 1 : b])]


def conjoin(parts: Sequence[str]) -> str:
    """The condition that holds when all parts do: what `conjuncts` takes apart, put together."""
    if len(parts) == 1:
        return parts[0]
    loose = [any(t.key == "OR" and d == 0 for t, d in zip(ts, depths(ts), strict=True)) for ts in map(tokenise, parts)]
    return " AND ".join(f"({part})" if brackets else part for part, brackets in zip(parts, loose, strict=True))


def substitute(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """The text with disjoint ranges replaced."""
    result, position = [], 0
    for start, end, new in sorted(changes):
        result += [text[position:start], new]
        position = end
    return "".join([*result, text[position:]])


def comparable(token: Token) -> str:
    """What two tokens must share to be the same: case and back-quotes do not matter, strings do."""
    return token.name.lower() if token.is_name else token.text


def same(left: str, right: str) -> bool:
    """Token-wise equality: case and space do not count."""
    return [comparable(t) for t in tokenise(left)] == [comparable(t) for t in tokenise(right)]


# Words after which, or as which, a trailing identifier is part of the expression and not an alias.
_NO_ALIAS_AFTER = SYNTAX - {"END", "NULL", "TRUE", "FALSE"} | {
    "COLLATE",
    "OVER",
    "ZONE",
    "TO",
    "NULLS",
    "IGNORE",
    "RESPECT",
}
_NO_ALIAS = SYNTAX | {"NULLS", "ZONE"}


def split_alias(text: str) -> tuple[str, str | None]:
    """An item of a select list as (expression, alias)."""
    tokens = tokenise(text)
    if len(tokens) < 2 or not tokens[-1].is_name:
        if len(tokens) > 3 and tokens[-1].key == ")" and any(_tuple_alias(tokens)):
            raise UnsupportedQuery(
                "one item cannot become several columns",
                where=text,
                fix="do it before ab.stream(...), on the DataFrame",
            )
        return slice_of(text, tokens), None
    last, previous = tokens[-1], tokens[-2]
    if previous.key == "AS" and not after_dot(tokens, len(tokens) - 2):
        return slice_of(text, tokens[:-2]), last.name
    operand = previous.kind != SYMBOL or previous.key in (")", "]")
    dotted = after_dot(tokens, len(tokens) - 2)
    if not operand or (previous.kind == WORD and previous.key in _NO_ALIAS_AFTER and not dotted):
        return slice_of(text, tokens), None
    if last.kind == WORD and (last.key in _NO_ALIAS or _is_unit(tokens)):
        return slice_of(text, tokens), None
    return slice_of(text, tokens[:-1]), last.name


def _tuple_alias(tokens: Sequence[Token]) -> Iterable[bool]:
    levels = depths(tokens)
    return (t.key == "AS" and levels[i] == 0 and tokens[i + 1].key == "(" for i, t in enumerate(tokens[:-1]))


def _is_unit(tokens: Sequence[Token]) -> bool:
    """Whether the last token is the unit of an INTERVAL literal."""
    if tokens[-1].key not in UNITS or tokens[-2].kind not in (NUMBER, STRING):
        return False
    return any(t.key == "INTERVAL" for t in tokens[-6:-2])


def unique(name: str, taken: Callable[[str], bool]) -> str:
    """The name, or the name with the first number that makes it new."""
    candidate, n = name, 1
    while taken(candidate.lower()):
        n += 1
        candidate = f"{name}_{n}"
    return candidate
