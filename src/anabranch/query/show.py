"""A readable dump of an operator tree, for golden tests, `explain()` and anyone who debugs the front-end."""

from __future__ import annotations

from .operators import (
    Aggregate,
    Call,
    Field,
    Frame,
    FrameCall,
    Item,
    Join,
    Operator,
    Select,
    Source,
    StaticJoin,
    Union,
    Where,
)
from .windows import show as duration


def describe(operator: Operator) -> str:
    """One operator per line, children indented; event times behind `@` with their lag."""
    return "\n".join(_lines(operator, 0))


def _lines(operator: Operator, depth: int) -> list[str]:
    pad = "  " * depth
    head, *more = _text(operator)
    times = ", ".join(t for t in map(_time, operator.fields) if t)
    lines = [f"{pad}{head}{f'  @ {times}' if times else ''}", *(f"{pad}    {line}" for line in more)]
    for child in children(operator):
        lines += _lines(child, depth + 1)
    return lines


def children(operator: Operator) -> tuple[Operator, ...]:
    """The inputs of an operator."""
    match operator:
        case Select(child=child) | Where(child=child) | StaticJoin(child=child):
            return (child,)
        case Aggregate(child=child) | Frame(child=child):
            return (child,)
        case Union(children=inputs) | Join(inputs=inputs):
            return inputs
    return ()


def _text(operator: Operator) -> list[str]:
    match operator:
        case Source():
            return [f"Source {operator.stream} ({', '.join(f.column for f in operator.fields)})"]
        case Select():
            return ["Select " + ", ".join(map(_item, operator.items))]
        case Where():
            return [f"Where {operator.condition}"]
        case Union():
            return [f"Union ({', '.join(f.column for f in operator.fields)})"]
        case StaticJoin():
            names = ", ".join(map(_item, operator.renames))
            return [f"StaticJoin {operator.how} {operator.static} ({names}) on {operator.condition or 'nothing'}"]
        case Join():
            return ["Join", *(f"on {condition}" for condition in operator.conditions)]
        case Aggregate():
            w = operator.window
            parts = [duration(w.size)] + ([duration(w.slide)] if w.slide != w.size else [])
            parts += [f"from {duration(w.offset)}"] if w.offset else []
            window = f"window({w.time}, {', '.join(parts)})" if w.struct else f"at {w.time}"
            window += f" -> {w.column}" if w.struct else ""
            keys = ", ".join(map(_item, operator.keys)) or "nothing"
            return [f"Aggregate by {keys}; {window}", *map(_call, operator.calls)]
        case Frame():
            order = "".join(
                f", {o.text}{' desc' if o.descending else ''}{' nulls last' if o.nulls_last else ''}"
                for o in operator.order
            )
            keys = ", ".join(operator.keys) or "nothing"
            return [f"Frame by {keys} order {operator.time}{order}", *map(_frame_call, operator.calls)]
    return [type(operator).__name__]


def _item(item: Item) -> str:
    return item.text if item.text.strip("`") == item.column else f"{item.text} -> {item.column}"


def _call(call: Call) -> str:
    distinct = "distinct " if call.distinct else ""
    where = f" where {call.where}" if call.where is not None else ""
    return f"{call.function}({distinct}{', '.join(call.args)}){where} -> {call.column}"


def _frame_call(call: FrameCall) -> str:
    where = f" where {call.where}" if call.where is not None else ""
    nulls = " ignore nulls" if call.ignore_nulls else ""
    rows = f" rows -{call.preceding}..{call.following}"
    return f"{call.function}({', '.join(call.args)}){nulls}{where}{rows} -> {call.column}"


def _time(field: Field) -> str:
    if field.lag is not None:
        return f"{field.column} {duration(field.lag)}" if field.lag else field.column
    if field.window is not None:
        return f"{field.column}[{duration(field.window[0])}, {duration(field.window[1])}]"
    return ""
