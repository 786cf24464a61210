"""Every setting of a query, parsed once from options and `spark.anabranch.*`, frozen, with the unit in the name.

An option `sites` and a Spark configuration `spark.anabranch.sites` mean the same; the option wins. Option names are
case-insensitive. Collaborators (stores, clocks, sinks) are constructor arguments elsewhere, never settings.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from anabranch.errors import SettingError

CONF_PREFIX = "spark.anabranch."
STRATEGIES = ("subquery-cluster", "operator-cluster", "query-cluster")
UNITS = {
    "us": 1, "microsecond": 1, "ms": 1000, "millisecond": 1000, "s": 1_000_000, "sec": 1_000_000, "second": 1_000_000,
    "m": 60_000_000, "min": 60_000_000, "minute": 60_000_000, "h": 3_600_000_000, "hour": 3_600_000_000,
    "d": 86_400_000_000, "day": 86_400_000_000, "w": 604_800_000_000, "week": 604_800_000_000,
}  # fmt: skip


def duration_us(text: str, what: str = "duration") -> int:
    """'60 seconds', '1 minute 30 seconds', 'interval 1 hour', '250ms' -> microseconds (fixed-length units only)."""
    body = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE).replace("'", " ").strip()
    total, position = 0.0, 0
    for part in re.finditer(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", body):
        unit = part.group(2).lower()
        scale = UNITS.get(unit) or UNITS.get(unit.removesuffix("s"))
        if scale is None or part.start() != position:
            break
        total += float(part.group(1)) * scale
        position = part.end()
    if not body or position != len(body):
        raise SettingError(
            f"{what} {text!r} is not a length of time",
            fix="write it like '10 seconds', '1 minute 30 seconds' or '1 hour'; months and years have no fixed length",
        )
    return round(total)


def _size(text: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)i?b?\s*", text.lower())
    if not match:
        raise SettingError(f"size {text!r} is not a number of bytes", fix="write it like '512m' or '2g'")
    exponent = " kmgt".index(match.group(2) or " ")
    return int(match.group(1)) << 10 * exponent


def _boolean(text: str, what: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise SettingError(f"option {what} has the value {text!r}", fix="use true or false")
    return text.lower() == "true"


@dataclass(frozen=True)
class Settings:
    """What a user can set for one query."""

    sites: int = 0  # places where a subquery runs; 0: as many as the session has task slots
    cells: int = 256  # partition groups per subquery, a power of two; fixed for the life of a checkpoint
    strategy: str = "subquery-cluster"  # how StreamCloud's compiler cuts the flow into rounds
    idle_after_us: int | None = None  # a stream silent for so long (processing time) no longer holds the watermark
    heartbeat_us: int = 1_000_000  # how often waiting results are looked for when no rows arrive
    flush_at_end: bool = False  # emit what the watermark still holds when a finite run ends
    state_location: str | None = None  # where state lives; default: inside checkpointLocation
    combine: str = "auto"  # pre-aggregation in Spark before a site: auto, always, never
    progress: bool | None = None  # a progress line in the terminal; default: when it is one
    policies: str = "balance"  # what decides which cells move; several with commas between; static: nothing moves
    advise_only: bool = False  # decide and write it down, but move nothing
    round_epochs: int = 4  # epochs that a decision looks at, at least
    state_memory_bytes: int | None = None  # hot state of a site; what is above it goes cold
    time_budget_us: int | None = None  # a site that takes longer in an epoch holds the rest of its rows
    held_bytes: int = 256 << 20  # rows that a site may hold for want of time


OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "sites": ("sites", int),
    "cells": ("cells", int),
    "strategy": ("strategy", str),
    "idleAfter": ("idle_after_us", lambda v: duration_us(v, "idleAfter")),
    "heartbeat": ("heartbeat_us", lambda v: duration_us(v, "heartbeat")),
    "flushAtEnd": ("flush_at_end", lambda v: _boolean(v, "flushAtEnd")),
    "stateLocation": ("state_location", str),
    "combine": ("combine", str),
    "progress": ("progress", lambda v: _boolean(v, "progress")),
    "policies": ("policies", str),
    "adviseOnly": ("advise_only", lambda v: _boolean(v, "adviseOnly")),
    "roundEpochs": ("round_epochs", int),
    "stateMemory": ("state_memory_bytes", _size),
    "timeBudget": ("time_budget_us", lambda v: duration_us(v, "timeBudget")),
    "heldBytes": ("held_bytes", _size),
}
_SPELT = {name.lower(): name for name in OPTIONS}
ELSEWHERE = ("checkpointLocation", "path")  # every sink's, read by the writer


def parse(options: Mapping[str, str], conf: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    """Settings from options over configuration, and the options that are not ours (for the sink)."""
    known: dict[str, str] = {}
    for key, value in conf.items():
        if key.startswith(CONF_PREFIX):
            name = key.removeprefix(CONF_PREFIX)
            if name.lower() not in _SPELT:
                raise SettingError(f"unknown configuration {key}", fix=_meant(name, CONF_PREFIX))
            known[_SPELT[name.lower()]] = value
    rest: dict[str, str] = {}
    for name, value in options.items():
        if name.lower() in _SPELT:
            known[_SPELT[name.lower()]] = value
        else:
            rest[name] = value
    values: dict[str, Any] = {}
    for name, value in known.items():
        field, read = OPTIONS[name]
        try:
            values[field] = read(str(value))
        except ValueError:
            raise SettingError(
                f"option {name} has the value {value!r}, which is not a whole number", fix=f"write it like {name}=8"
            ) from None
    settings = Settings(**values)
    _check(settings)
    return settings, rest


def refuse_misspelt(rest: Mapping[str, str], sink: str, known: Collection[str], open_ended: bool) -> None:
    """Options that are neither ours nor the sink's. A sink that hands its options on to Spark (`open_ended`) may have
    any, so there only one that is nearly one of ours is refused."""
    lower = {k.lower() for k in known}
    for name in rest:
        if name.lower() in lower:
            continue
        near = nearest(name, (*OPTIONS, *ELSEWHERE, *known))
        if near is not None:
            raise SettingError(
                f"there is no option {name}", where=f"writeStream to {sink}", fix=f"did you mean {near}?"
            )
        if not open_ended:
            fix = f"its own: {', '.join(known) or 'none'}; of the query: {', '.join((*OPTIONS, *ELSEWHERE[:1]))}"
            raise SettingError(f"there is no option {name}", where=f"writeStream to {sink}", fix=fix)


def nearest(name: str, known: Collection[str], cutoff: float = 0.8) -> str | None:
    """The known name that this one is probably a slip of."""
    lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), list(lower), 1, cutoff)
    return lower[close[0]] if close else None


def _meant(name: str, prefix: str) -> str:
    near = nearest(name, OPTIONS)
    return f"did you mean {prefix}{near}?" if near else f"known: {prefix}… with {', '.join(OPTIONS)}"


def _check(s: Settings) -> None:
    if s.sites < 0:
        raise SettingError(f"sites is {s.sites}", fix="use a positive number, or 0 for one per task slot")
    if s.cells < 1 or s.cells & (s.cells - 1) or s.cells > 65536:
        raise SettingError(f"cells is {s.cells}", fix="use a power of two from 1 to 65536")
    if s.sites > s.cells:
        raise SettingError(f"{s.sites} sites cannot share {s.cells} cells", fix="raise cells or lower sites")
    if s.strategy not in STRATEGIES:
        raise SettingError(f"strategy is {s.strategy!r}", fix=f"use one of {', '.join(STRATEGIES)}")
    if s.heartbeat_us <= 0 or (s.idle_after_us is not None and s.idle_after_us <= 0):
        name = "heartbeat" if s.heartbeat_us <= 0 else "idleAfter"
        raise SettingError(f"{name} is no time at all", fix="use a length like '1 second'")
    if s.round_epochs < 1:
        raise SettingError(f"roundEpochs is {s.round_epochs}", fix="use a positive number of epochs")
    if s.time_budget_us is not None and s.time_budget_us <= 0:
        raise SettingError("timeBudget is no time at all", fix="use a length like '2 seconds', or leave it out")
    if s.state_memory_bytes is not None and s.state_memory_bytes < 1 << 16:
        raise SettingError(f"stateMemory is {s.state_memory_bytes} bytes", fix="write it like '512m' or '2g'")
    if s.combine not in ("auto", "always", "never"):
        raise SettingError(f"combine is {s.combine!r}", fix="use auto, always or never")


NAMES = tuple(f.name for f in fields(Settings))
