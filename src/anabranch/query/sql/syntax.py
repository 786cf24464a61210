"""A recursive-descent reader of the SELECT statement over tokens. It cuts clauses; expressions stay slices of the text.

What the supported shape does not have is refused here when it is a clause, and in `checks.py` when it is inside an
expression. Hints are read over: they say nothing about the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import UnsupportedQuery
from ..tokens import SYNTAX, WORD, Token, closing, slice_of, tokenise


@dataclass(frozen=True)
class Named:
    """A stream, static table or CTE in FROM."""

    name: str
    alias: str | None


@dataclass(frozen=True)
class Derived:
    """A subquery in FROM."""

    query: Query
    alias: str | None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Joined:
    """One more input of FROM: how is 'cross' (also a comma), 'inner', or an outer kind."""

    how: str
    source: Named | Derived
    on: str | None = None
    using: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Select:
    """One SELECT; the first of `sources` has how == 'from'."""

    items: tuple[str, ...]
    sources: tuple[Joined, ...]
    where: str | None
    group: tuple[str, ...] | None
    having: str | None
    windows: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True)
class Query:
    """WITH … and a UNION ALL of one or more terms."""

    ctes: tuple[tuple[str, tuple[str, ...], Query], ...]
    terms: tuple[Select | Query, ...]


# Word -> what is refused, where a clause may begin.
_BY = {"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"}
_JOIN_WORDS = {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"}
_ENDS = {"FROM", "WHERE", "HAVING", "LIMIT", "OFFSET", "QUALIFY", "UNION", "EXCEPT", "INTERSECT", "MINUS", "LATERAL"}
_TRAILING = {
    "ORDER": ("ORDER BY", "rows of a stream have no last one to sort: leave it out, or sort what reads the output"),
    "SORT": ("SORT BY", "leave it out, or sort what reads the output"),
    "CLUSTER": ("CLUSTER BY", "leave it out: rows are distributed by the flow's own plan"),
    "DISTRIBUTE": ("DISTRIBUTE BY", "leave it out: rows are distributed by the flow's own plan"),
    "LIMIT": ("LIMIT", "filter with WHERE, or limit what reads the output"),
    "OFFSET": ("OFFSET", "filter with WHERE, or limit what reads the output"),
    "QUALIFY": ("QUALIFY", "put the SELECT into a subquery in FROM, and filter its column with WHERE"),
    "EXCEPT": ("EXCEPT", "a LEFT JOIN with a static table and WHERE … IS NULL, or a WHERE condition"),
    "MINUS": ("MINUS", "a LEFT JOIN with a static table and WHERE … IS NULL, or a WHERE condition"),
    "INTERSECT": ("INTERSECT", "an inner join with time bounds"),
    "LATERAL": ("LATERAL VIEW", "explode on the DataFrame before ab.stream(...)"),
    "PIVOT": ("PIVOT", "sum(x) FILTER (WHERE k = …), once per value"),
    "UNPIVOT": ("UNPIVOT", "one SELECT per column, joined with UNION ALL"),
    "TABLESAMPLE": ("TABLESAMPLE", "filter with WHERE on a hash of the row, e.g. pmod(xxhash64(id), 10) = 0"),
}


def read(text: str) -> Query:
    """The statement as clauses."""
    reader = _Reader(text, [t for t in tokenise(text) if t.key != "/*+"])
    query = reader.query()
    reader.take(";")
    if reader.at < len(reader.tokens):
        reader.refuse_clause()
        raise reader.cannot()
    return query


class _Reader:
    """A position in the tokens of one statement."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0

    # -- looking ------------------------------------------------------------------------------------------------

    def key(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return self.tokens[i].key if 0 <= i < len(self.tokens) else ""

    def take(self, *keys: str) -> bool:
        """Step over the words if they come next."""
        if all(self.key(i) == key for i, key in enumerate(keys)):
            self.at += len(keys)
            return True
        return False

    def expect(self, key: str) -> None:
        if not self.take(key):
            raise self.cannot(f"{key} expected")

    def cannot(self, why: str = "cannot read the SQL") -> UnsupportedQuery:
        near = self.tokens[max(0, self.at - 3) : self.at + 6]
        here = self.tokens[self.at].text if self.at < len(self.tokens) else "the end"
        return UnsupportedQuery(
            f"{why} at `{here}`",
            where=slice_of(self.text, near),
            fix="supported: [WITH …] SELECT … FROM … [WHERE …] [GROUP BY …] [HAVING …] [UNION ALL …]",
        )

    def since(self, begin: int) -> str:
        return slice_of(self.text, self.tokens[begin : self.at])

    def name(self) -> str:
        if self.at >= len(self.tokens) or not self.tokens[self.at].is_name:
            raise self.cannot("a name expected")
        self.at += 1
        return self.tokens[self.at - 1].name

    def names(self) -> tuple[str, ...]:
        """(a, b, …)"""
        self.expect("(")
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        self.expect(")")
        return tuple(found)

    def refuse_clause(self) -> None:
        """Raise if a clause begins here that is not supported."""
        key = self.key()
        if key in _TRAILING and (key not in _BY or self.key(1) == "BY"):
            what, fix = _TRAILING[key]
            where = slice_of(self.text, self.tokens[self.at : self.at + 6])
            raise UnsupportedQuery(f"{what} is not supported", where=where, fix=fix)
        if key == "UNION":
            raise UnsupportedQuery("UNION removes duplicates", where="UNION", fix="write UNION ALL")

    # -- expressions --------------------------------------------------------------------------------------------

    def expression(self, *, comma: bool, joins: bool = False) -> str:
        """The slice up to the next clause (or comma, or join)."""
        begin = self.at
        while self.at < len(self.tokens) and not self._ends(begin, comma, joins):
            if self.key() in ("(", "[", "{"):
                self.at = closing(self.tokens, self.at)
            self.at += 1
        if begin == self.at:
            raise self.cannot("an expression expected")
        return self.since(begin)

    def _ends(self, begin: int, comma: bool, joins: bool) -> bool:
        key, before, after = self.key(), self.key(-1) if self.at > begin else "", self.key(1)
        if key in (")", ";") or (comma and key == ","):
            return True
        if self.tokens[self.at].kind != WORD or before in (".", ":") or after == ".":
            return False
        if key == "EXCEPT" and before == "*" and after == "(":
            return self.key(2) in ("SELECT", "(")
        if key == "FROM" and before == "DISTINCT":
            return False  # IS [NOT] DISTINCT FROM
        if key in _ENDS:
            return True
        if key in _BY:
            return after == "BY"
        if key == "WINDOW":
            return self.key(2) == "AS" and self.key(3) == "("
        return joins and key in _JOIN_WORDS and (key == "JOIN" or after in _JOIN_WORDS | {"OUTER"})

    def expressions(self) -> tuple[str, ...]:
        found = [self.expression(comma=True)]
        while self.take(","):
            found.append(self.expression(comma=True))
        return tuple(found)

    # -- statements ---------------------------------------------------------------------------------------------

    def query(self) -> Query:
        ctes = []
        if self.take("WITH"):
            if self.key() == "RECURSIVE":
                raise UnsupportedQuery(
                    "WITH RECURSIVE is not supported", where="WITH RECURSIVE", fix="write the levels as joins"
                )
            while True:
                name = self.name()
                columns: tuple[str, ...] = self.names() if self.key() == "(" else ()
                self.expect("AS")
                self.expect("(")
                ctes.append((name, columns, self.query()))
                self.expect(")")
                if not self.take(","):
                    break
        terms = [self.term()]
        while self.key() == "UNION":
            if self.key(1) != "ALL":
                self.refuse_clause()
            self.at += 2
            if self.take("BY", "NAME"):
                raise UnsupportedQuery(
                    "UNION ALL BY NAME is not supported", where="BY NAME", fix="list the columns in order"
                )
            terms.append(self.term())
        self.refuse_clause()
        return Query(tuple(ctes), tuple(terms))

    def term(self) -> Select | Query:
        if self.take("("):
            query = self.query()
            self.expect(")")
            return query
        if self.key() in ("VALUES", "TABLE", "FROM", "MAP", "REDUCE"):
            raise UnsupportedQuery(f"{self.key()} as a query", where=self.key(), fix="write SELECT … FROM …")
        return self.select()

    def select(self) -> Select:
        begin = self.at
        self.expect("SELECT")
        if self.key() == "DISTINCT":
            raise UnsupportedQuery(
                "SELECT DISTINCT would keep every row for ever",
                where=slice_of(self.text, self.tokens[begin : begin + 6]),
                fix="GROUP BY the columns and window(ts, …)",
            )
        if self.key() == "ALL" and self.key(1) not in ("", ",", ".", "FROM"):
            self.at += 1
        items = self.expressions()
        if self.key() != "FROM":
            self.refuse_clause()
            raise UnsupportedQuery("a SELECT without FROM", where=self.since(begin), fix="select from a stream")
        self.at += 1
        sources = self.sources()
        where = group = having = None
        windows: list[tuple[str, str]] = []
        if self.take("WHERE"):
            where = self.expression(comma=False)
        if self.take("GROUP", "BY"):
            group = self.expressions()
            if self.take("WITH"):
                raise UnsupportedQuery(
                    f"GROUP BY … WITH {self.key()}", where=self.key(), fix="one query per grouping, with UNION ALL"
                )
        if self.take("HAVING"):
            having = self.expression(comma=False)
        if self.key() == "WINDOW" and self.key(2) == "AS":
            self.at += 1
            windows = self.named_windows()
        return Select(items, sources, where, group, having, tuple(windows), self.since(begin))

    def named_windows(self) -> list[tuple[str, str]]:
        found = []
        while True:
            name = self.name()
            self.expect("AS")
            stop = closing(self.tokens, self.at)
            found.append((name.lower(), slice_of(self.text, self.tokens[self.at + 1 : stop])))
            self.at = stop + 1
            if not self.take(","):
                return found

    # -- FROM ---------------------------------------------------------------------------------------------------

    def sources(self) -> tuple[Joined, ...]:
        found = [Joined("from", self.source())]
        while True:
            begin = self.at
            if self.take(","):
                if self.key() == "LATERAL":
                    self.refuse_clause()
                found.append(Joined("cross", self.source()))
                continue
            how = self.join_kind()
            if how is None:
                self.refuse_clause_in_from()
                return tuple(found)
            source = self.source()
            on: str | None = None
            using: tuple[str, ...] = ()
            if self.take("ON"):
                on = self.expression(comma=True, joins=True)
            elif self.take("USING"):
                using = self.names()
            found.append(Joined(how, source, on, using, self.since(begin)))

    def join_kind(self) -> str | None:
        """The words up to JOIN, or None when no join follows."""
        begin = self.at
        words = []
        while self.key() in _JOIN_WORDS | {"OUTER"} and self.key() != "JOIN":
            words.append(self.key())
            self.at += 1
        if not self.take("JOIN"):
            self.at = begin
            return None
        return " ".join(w for w in words if w != "OUTER").lower() or "inner"

    def refuse_clause_in_from(self) -> None:
        if self.key() in ("LATERAL", "PIVOT", "UNPIVOT", "TABLESAMPLE"):
            self.refuse_clause()

    def source(self) -> Named | Derived:
        if self.take("("):
            if self.key() not in ("SELECT", "WITH", "(", "FROM", "VALUES"):
                raise UnsupportedQuery(
                    "brackets around a join in FROM",
                    where=slice_of(self.text, self.tokens[self.at - 1 : self.at + 8]),
                    fix="leave them out, or write (SELECT … FROM …) AS name",
                )
            query = self.query()
            self.expect(")")
            alias = self.alias()
            columns = self.names() if alias is not None and self.key() == "(" else ()
            return Derived(query, alias, columns)
        name = self.name()
        if self.key() == "(":
            raise UnsupportedQuery(
                f"the table function {name}() in FROM",
                where=name,
                fix="pass its result to ab.stream or as a static DataFrame",
            )
        while self.take("."):
            name += "." + self.name()
        self.refuse_clause_in_from()
        return Named(name, self.alias())

    def alias(self) -> str | None:
        if self.take("AS"):
            return self.name()
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or not token.is_name:
            return None
        reserved = SYNTAX | _JOIN_WORDS | set(_TRAILING) | {"WINDOW"}
        if token.kind == WORD and token.key in reserved:
            return None
        return self.name()
