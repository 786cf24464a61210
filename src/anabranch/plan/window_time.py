"""`window_time(w)` in terms of w's end.

Spark's own function wants a column that it knows to have come out of `window(...)`, and what comes out of a site no
longer is one. A window's time is its last microsecond.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from anabranch.plan.physical import Branch, Filter, Lookup, Plan, Port, Project, Stage
from anabranch.query import calls
from anabranch.query.operators import Item
from anabranch.query.tokens import substitute

T = TypeVar("T")
TEXTS = {"text", "condition", "event_time", "hash"}
PLACES = (Branch, Filter, Item, Lookup, Plan, Port, Project, Stage)


def evaluable(text: str) -> str:
    """The text with every window_time(...) spelt out."""
    if "window_time" not in text.lower():
        return text
    found = [c for c in calls.find(text) if c.name == "window_time" and len(c.args) == 1]
    changes = [(c.start, c.end, f"({c.args[0]}.`end` - INTERVAL '0.000001' SECOND)") for c in found]
    return substitute(text, changes)


def spell_out(plan: Plan) -> Plan:
    """The pass: every text that Spark will evaluate."""
    return _within(plan)


def _within(value: T) -> T:
    changes: dict[str, Any] = {}
    for f in fields(value):  # type: ignore[arg-type]
        old = getattr(value, f.name)
        new = _evaluable(old) if f.name in TEXTS else _inside(old)
        if new is not old:
            changes[f.name] = new
    return replace(value, **changes) if changes else value  # type: ignore[type-var]


def _evaluable(value: Any) -> Any:
    return tuple(map(evaluable, value)) if isinstance(value, tuple) else evaluable(value)


def _inside(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_inside, value))
    return _within(value) if is_dataclass(value) and isinstance(value, PLACES) else value
