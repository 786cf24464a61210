"""A query under construction: columns with their kinds, event times, and what tells rows apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from tests.property.values import Kind


@dataclass(frozen=True)
class Col:
    """An output column. Not exact: its value depends on the order of a floating-point sum."""

    name: str
    kind: Kind
    exact: bool = True
    unordered: bool = False  # an array in no order: carried along, compared as a multiset, never computed with


@dataclass(frozen=True)
class Rel:
    """`unique` columns tell rows apart, up to rows that are equal in every column; empty when nothing does."""

    name: str
    cols: tuple[Col, ...]
    times: tuple[str, ...]  # event times as written behind an alias: ts, w.start, w.end
    unique: tuple[str, ...]
    spaced: bool = False  # no two different rows have one event time
    doubles: bool = False  # rows may be equal in every column
    windows: tuple[str, ...] = ()  # window structs
    stateful: bool = False  # behind a stateful operator

    def usable(self) -> list[Col]:
        """Columns that expressions may use."""
        return [c for c in self.cols if c.exact and not c.unordered]

    def pick(self, rng: Random, *, adds: bool = False, flat: bool = False, floats: bool = True) -> Col | None:
        found = [
            c for c in self.usable()
            if (c.kind.adds or not adds) and not (flat and c.kind.nested) and (floats or not c.kind.floats)
        ]  # fmt: skip
        return rng.choice(found) if found else None

    def kind_of(self, name: str) -> Kind:
        return next(c.kind for c in self.cols if c.name == name)

    def tie(self) -> str:
        """Sort keys that order rows completely."""
        parts = []
        for name in self.unique:
            if name in self.windows:
                parts.append(f"{name}.start")
            else:
                parts.append(f"CAST({name} AS STRING)" if self.kind_of(name).nested else name)
        return ", ".join(parts)


@dataclass
class Text:
    """The query so far: common table expressions, in our words and in the oracle's."""

    rng: Random
    time: Kind  # of every event time
    steps: list[tuple[str, str]] = field(default_factory=list)  # (name, text with markers)
    names: int = 0
    features: set[str] = field(default_factory=set)

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def step(self, text: str, rel: Rel) -> Rel:
        name = self.fresh("r")
        self.steps.append((name, text))
        return replace(rel, name=name)


MARK = ("«", "|", "»")


def either(ours: str, oracle: str) -> str:
    """A piece that the oracle says in other words: first(x) is Spark's first to arrive, and ours the earliest."""
    return f"{MARK[0]}{ours}{MARK[1]}{oracle}{MARK[2]}"


def rendered(text: str, oracle: bool) -> str:
    parts = text.split(MARK[0])
    out = [parts[0]]
    for part in parts[1:]:
        marked, rest = part.split(MARK[2], 1)
        pair = marked.split(MARK[1])
        out.append(pair[oracle] + rest)
    return "".join(out)
