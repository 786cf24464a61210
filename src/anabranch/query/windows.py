"""Event-time windows and durations as the user writes them, in microseconds.

`window(...)` is the builder's spec and `parse` reads the same from SQL; whether `time` is an event time is for
`aggregate.py` to say. Months and years have no fixed length and are refused, as Spark does for windows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import UnsupportedQuery
from .calls import CallSite

MICROSECOND, MILLISECOND, SECOND = 1, 1_000, 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
_LENGTHS = {
    "week": 7 * DAY,
    "day": DAY,
    "hour": HOUR,
    "minute": MINUTE,
    "second": SECOND,
    "millisecond": MILLISECOND,
    "microsecond": MICROSECOND,
}
_ORDER = ("day", "hour", "minute", "second")
_PART = re.compile(r"\s*([+-]?)\s*'?\s*([+-]?)(\d+)(?:\.(\d{1,6}))?\s*'?\s*([a-z]+)", re.IGNORECASE)
_CLOCK = re.compile(r"([+-]?)\s*'\s*([+-]?)([\d\s:.]+)'\s+(day|hour|minute)\s+to\s+(hour|minute|second)", re.IGNORECASE)
_EXAMPLE = "a length such as '60 seconds', '1 minute 30 seconds' or INTERVAL 1 HOUR"


@dataclass(frozen=True)
class WindowSpec:
    """A window over an event-time column; tumbling when slide equals size. Windows start at offset + k * slide."""

    time: str
    size: int
    slide: int
    offset: int = 0


def window(time: str, size: str, slide: str | None = None, start: str | None = None) -> WindowSpec:
    """A window as Spark's `F.window` takes it: `window("calls.ts", "60 seconds", "10 seconds")`."""
    written = f"window({', '.join(x for x in (time, size, slide, start) if x is not None)})"
    size_micros = micros(size)
    slide_micros = size_micros if slide is None else micros(slide)
    offset = 0 if start is None else micros(start)
    if size_micros <= 0 or slide_micros <= 0:
        raise UnsupportedQuery("a window's size and slide must be longer than nothing", where=written, fix=_EXAMPLE)
    if slide_micros > size_micros:
        raise UnsupportedQuery(
            "a window's slide is longer than its size, so that rows would fall between windows",
            where=written,
            fix="make the slide at most the size, or filter the rows with where(...)",
        )
    if abs(offset) >= slide_micros:
        raise UnsupportedQuery(
            "a window's start must be shorter than its slide", where=written, fix=f"use {show(offset % slide_micros)}"
        )
    return WindowSpec(time, size_micros, slide_micros, offset % slide_micros)


def parse(call: CallSite) -> WindowSpec:
    """`window(time, size[, slide[, start]])` of SQL text."""
    if not 2 <= len(call.args) <= 4:
        raise UnsupportedQuery(
            "window() takes the event time, a size, and optionally a slide and a start",
            where=call.text,
            fix="write it as window(ts, '60 seconds', '10 seconds')",
        )
    return window(*call.args)


def micros(text: str) -> int:
    """A duration in microseconds: a quoted or bare string, or an INTERVAL literal."""
    body = text.strip()
    body = re.sub(r"\Ainterval\b", "", body, flags=re.IGNORECASE).strip()
    clock = _CLOCK.fullmatch(body)
    if clock:
        return _clock(text, *clock.groups())
    if len(body) > 1 and body[0] == body[-1] and body[0] in "'\"":
        body = body[1:-1].strip()
        body = re.sub(r"\Ainterval\b", "", body, flags=re.IGNORECASE).strip()
    position = total = 0
    while position < len(body):
        match = _PART.match(body, position)
        if not match:
            raise UnsupportedQuery("this is not a duration", where=text, fix=f"write {_EXAMPLE}")
        outer, sign, whole, fraction, unit = match.groups()
        unit = unit.lower().removesuffix("s")
        if unit in ("month", "year", "quarter"):
            raise UnsupportedQuery(f"a {unit} has no fixed length", where=text, fix="use days or weeks")
        if unit not in _LENGTHS or (fraction and unit != "second"):
            raise UnsupportedQuery("this is not a duration", where=text, fix=f"write {_EXAMPLE}")
        amount = int(whole) * _LENGTHS[unit] + (int(fraction.ljust(6, "0")) if fraction else 0)
        total += -amount if (outer == "-") != (sign == "-") else amount
        position = match.end()
    if not body:
        raise UnsupportedQuery("a duration is empty", where=text or "''", fix=f"write {_EXAMPLE}")
    return total


def _clock(text: str, outer: str, sign: str, digits: str, first: str, last: str) -> int:
    """INTERVAL '1 02:03:04.5' DAY TO SECOND and its shorter forms."""
    units = _ORDER[_ORDER.index(first.lower()) : _ORDER.index(last.lower()) + 1]
    numbers = re.split(r"[\s:]+", digits.strip())
    if len(numbers) != len(units):
        raise UnsupportedQuery("this is not a duration", where=text, fix=f"write {_EXAMPLE}")
    total = 0
    for number, unit in zip(numbers, units, strict=True):
        whole, _, fraction = number.partition(".")
        total += int(whole or 0) * _LENGTHS[unit] + (int(fraction[:6].ljust(6, "0")) if fraction else 0)
    return -total if (outer == "-") != (sign == "-") else total


def show(length: int) -> str:
    """A number of microseconds in the largest unit that divides it."""
    for unit in ("day", "hour", "minute", "second", "millisecond", "microsecond") if length else ("second",):
        if length % _LENGTHS[unit] == 0:
            n = length // _LENGTHS[unit]
            return f"{n} {unit}" if abs(n) == 1 else f"{n} {unit}s"
    raise AssertionError("every integer is a number of microseconds")
