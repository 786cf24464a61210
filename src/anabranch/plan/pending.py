"""What the compiler knows of rows between two stages: how they get there, their types, times and places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from anabranch.plan.physical import Branch, Step
from anabranch.plan.types import quoted
from anabranch.query.operators import Item
from anabranch.query.tokens import tokenise


@dataclass(frozen=True)
class Placed:
    """Rows lie at their sites by the hash of these key components; each is known by some columns (none: lost)."""

    stage: str
    keys: tuple[frozenset[str], ...]
    types: tuple[str, ...]


@dataclass(frozen=True)
class Pending:
    branches: tuple[Branch, ...]
    types: Mapping[str, str]
    times: Mapping[str, int] = field(default_factory=dict)  # event-time expression -> lag behind the watermark
    gaps: Mapping[tuple[str, str], int] = field(default_factory=dict)  # (a, b) -> the most that b - a can be
    placed: Placed | None = None

    def then(self, step: Step) -> Pending:
        return replace(self, branches=tuple(b.then(step) for b in self.branches))

    def projected(self, items: tuple[Item, ...], types: list[str], step: Step) -> Pending:
        """After a projection: times and places survive where an item is nothing but a reference."""
        new: dict[str, list[str]] = {}
        for item in items:
            new.setdefault(plain(item.text) or item.text, []).append(item.column)
        times = {column: lag for old, lag in self.times.items() for column in new.get(old, ())}
        for item in items:  # fields and functions of a window that is projected as a whole
            for old, lag in self.times.items():
                for form in ("{}.start", "{}.end", "window_time({})"):
                    whole = plain(item.text)
                    if whole and old == form.format(whole):
                        times[form.format(item.column)] = lag
        gaps = {(c, d): gap for (a, b), gap in self.gaps.items() for c in renamed(a, items) for d in renamed(b, items)}
        for old in self.times:  # one time under several names
            same = renamed(old, items)
            gaps |= {(a, b): 0 for a in same for b in same if a != b}
        placed = self.placed and Placed(
            self.placed.stage,
            tuple(frozenset(c for old in key for c in new.get(old, ())) for key in self.placed.keys),
            self.placed.types,
        )
        columns = {item.column: type for item, type in zip(items, types, strict=True)}
        return Pending(tuple(b.then(step) for b in self.branches), columns, times, gaps, placed)


def renamed(time: str, items: tuple[Item, ...]) -> list[str]:
    """The names that an event-time expression has after a projection."""
    found = []
    for item in items:
        whole = plain(item.text)
        if whole is None:
            continue
        if whole == time:
            found.append(item.column)
        for form in ("{}.start", "{}.end", "window_time({})"):
            if time == form.format(whole):
                found.append(form.format(item.column))
    return found


def plain(text: str) -> str | None:
    """The column, window field (`w.start`, `w.end`) or `window_time(w)` that a text is, None if it computes."""
    tokens = tokenise(text)
    while len(tokens) > 2 and tokens[0].key == "(" and tokens[-1].key == ")":
        inner = tokens[1:-1]
        if any(t.key in "()" for t in inner):
            break
        tokens = inner
    if len(tokens) == 1 and tokens[0].is_name:
        return tokens[0].name
    if len(tokens) == 3 and tokens[0].is_name and tokens[1].key == "." and tokens[2].is_name:
        return f"{tokens[0].name}.{tokens[2].name.lower()}"
    if len(tokens) == 4 and tokens[0].key == "WINDOW_TIME" and tokens[2].is_name:
        return f"window_time({tokens[2].name})"
    return None


def written(time: str) -> str:
    """An event-time expression, as `times` names it, in SQL."""
    if time.startswith("window_time("):
        return f"window_time({quoted(time[len('window_time(') : -1])})"
    column, dot, part = time.rpartition(".")
    return f"{quoted(column)}.{part}" if dot and part in ("start", "end") else quoted(time)
