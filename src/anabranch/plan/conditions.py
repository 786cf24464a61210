"""Join conditions taken apart: equalities, time bounds and comparisons between two inputs, and the rest.

A conjunct is understood only as far as its tokens make it certain; whatever is not goes to the rest, which Spark
applies right after the join. So a mistake in here can cost speed, never rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from anabranch.plan.pending import plain
from anabranch.plan.typer import Typer
from anabranch.query.references import references
from anabranch.query.tokens import Token, depths, slice_of, tokenise, unwrap

OPS = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
FLIP = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
WORDS = {"AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "RLIKE", "ILIKE", "REGEXP", "IS", "ESCAPE"}
DAY = 86_400_000_000


@dataclass(frozen=True)
class Comparison:
    """`left op right`, both texts; the inputs each refers to."""

    left: str
    op: str
    right: str
    left_inputs: frozenset[int]
    right_inputs: frozenset[int]
    conjunct: str


@dataclass(frozen=True)
class Bound:
    """low <= t[j] - t[i] <= high, over these time columns. Not exact: Spark checks the conjunct as well."""

    i: int
    time_i: str
    j: int
    time_j: str
    low: int | None
    high: int | None
    exact: bool


class Reader:
    """Reads the conjuncts of one join."""

    def __init__(self, owner: Mapping[str, int], times: Sequence[Mapping[str, int]], typer: Typer) -> None:
        self.owner = owner  # lower-case column -> input
        self.times = times  # per input: its event-time columns
        self.typer = typer

    def inputs(self, text: str) -> frozenset[int]:
        return frozenset(self.owner[r] for r in references(text) if r in self.owner)

    def comparisons(self, conjunct: str) -> list[Comparison]:
        """The comparisons that a conjunct is made of; empty if it is something else."""
        tokens = unwrap(tokenise(conjunct))
        parts = _between(conjunct, tokens) or _compare(conjunct, tokens)
        return [Comparison(a, op, b, self.inputs(a), self.inputs(b), conjunct) for a, op, b in parts]

    def bound(self, c: Comparison) -> Bound | None:
        """t_i - t_j + constant op 0, when that is all the comparison says."""
        if c.op == "!=":
            return None
        left, right = self._linear(c.left), self._linear(c.right)
        if left is None or right is None:
            return None
        plus, minus, constant = left[0] + right[1], left[1] + right[0], left[2] - right[2]
        for time in list(plus):
            if time in minus:
                plus.remove(time)
                minus.remove(time)
        if len(plus) != 1 or len(minus) != 1 or plus[0][0] == minus[0][0]:
            return None
        (i, time_i), (j, time_j) = plus[0], minus[0]
        low = {"<=": constant, "<": constant + 1, "=": constant}.get(c.op)  # t_j - t_i >= constant
        high = {">=": constant, ">": constant - 1, "=": constant}.get(c.op)
        exact = abs(constant) < DAY  # a day is not always 24 hours in the session's time zone
        if not exact:
            low = None if low is None else low - DAY // 8
            high = None if high is None else high + DAY // 8
        return Bound(i, time_i, j, time_j, low, high, exact)

    def window_bound(self, c: Comparison) -> Bound | None:
        """What it says of the times that two windows are equal."""
        left, right = plain(c.left), plain(c.right)
        if c.op != "=" or left is None or right is None:
            return None
        ends = self._time(f"{left}.end"), self._time(f"{right}.end")
        if ends[0] is None or ends[1] is None or ends[0][0] == ends[1][0]:
            return None
        return Bound(*ends[0], *ends[1], 0, 0, True)

    def _time(self, name: str | None) -> tuple[int, str] | None:
        """(input, event time) of that name."""
        for owner, times in enumerate(self.times):
            for time in times:
                if name is not None and time.lower() == name.lower():
                    return owner, time
        return None

    def _linear(self, text: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]], int] | None:
        """A sum of event times and constant intervals: (added, subtracted, microseconds)."""
        plus: list[tuple[int, str]] = []
        minus: list[tuple[int, str]] = []
        constant = 0
        for sign, part in _terms(text):
            time = self._time(plain(part))
            if time is not None:
                (plus if sign > 0 else minus).append(time)
                continue
            if references(part) & set(self.owner):
                return None
            value = self.typer.interval_us(part)
            if value is None:
                return None
            constant += sign * value
        return plus, minus, constant


def _terms(text: str) -> list[tuple[int, str]]:
    """`a + b - c` at depth 0 with signs; brackets around a sum are opened."""
    tokens = unwrap(tokenise(text))
    terms: list[tuple[int, str]] = []
    sign, begin = 1, 0
    levels = depths(tokens)
    for k, token in enumerate(tokens):
        operand_before = k > begin and tokens[k - 1].key not in ("INTERVAL", "+", "-", "*", "/")
        if levels[k] == 0 and token.key in ("+", "-") and operand_before:
            terms += _signed(sign, text, tokens[begin:k])
            sign, begin = (1 if token.key == "+" else -1), k + 1
    return terms + _signed(sign, text, tokens[begin:])


def _signed(sign: int, text: str, tokens: Sequence[Token]) -> list[tuple[int, str]]:
    inner = unwrap(tokens)
    piece = slice_of(text, inner)
    if len(inner) != len(tokens):
        return [(sign * s, t) for s, t in _terms(piece)]
    return [(sign, piece)]


def _compare(text: str, tokens: Sequence[Token]) -> list[tuple[str, str, str]]:
    levels = depths(tokens)
    at = [k for k, t in enumerate(tokens) if levels[k] == 0 and t.key in OPS]
    if len(at) != 1 or _words(tokens, levels) & WORDS or any(t.key == "<=>" for t in tokens):
        return []
    k = at[0]
    if k == 0 or k == len(tokens) - 1:
        return []
    return [(slice_of(text, tokens[:k]), OPS[tokens[k].key], slice_of(text, tokens[k + 1 :]))]


def _between(text: str, tokens: Sequence[Token]) -> list[tuple[str, str, str]]:
    levels = depths(tokens)
    words = [k for k, t in enumerate(tokens) if levels[k] == 0 and t.key in WORDS]
    if [tokens[k].key for k in words] != ["BETWEEN", "AND"]:
        return []
    if any(levels[k] == 0 and t.key in OPS for k, t in enumerate(tokens)):
        return []
    b, a = words
    value, low, high = tokens[:b], tokens[b + 1 : a], tokens[a + 1 :]
    if not (value and low and high) or low[0].key in ("SYMMETRIC", "ASYMMETRIC"):
        return []
    subject = slice_of(text, value)
    return [(subject, ">=", slice_of(text, low)), (subject, "<=", slice_of(text, high))]


def _words(tokens: Sequence[Token], levels: Sequence[int]) -> set[str]:
    return {t.key for t, level in zip(tokens, levels, strict=True) if level == 0}


def same_text(text: str) -> str:
    """A text with case and space out of the way, to compare expressions."""
    return " ".join(t.name.lower() if t.is_name else t.text for t in unwrap(tokenise(text)))


def classes(pairs: Collection[tuple[tuple[int, str], tuple[int, str]]]) -> list[list[tuple[int, str]]]:
    """Equivalence classes of (input, text) under the given equalities, in order of appearance."""
    groups: list[list[tuple[int, str]]] = []
    for a, b in pairs:
        touched = [g for g in groups if a in g or b in g]
        merged = [m for g in touched for m in g]
        merged += [m for m in (a, b) if m not in merged]
        groups = [g for g in groups if g not in touched] + [merged]
    return groups


Owner = Callable[[str], frozenset[int]]
