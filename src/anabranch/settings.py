"""Every setting of a query, parsed once from options and `spark.anabranch.*`, frozen, with the unit in the name.

An option `sites` and a Spark configuration `spark.anabranch.sites` mean the same; the option wins. Option names are
case-insensitive. Collaborators (stores, clocks, sinks) are constructor arguments elsewhere, never settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise SettingError(f"{text!r} is neither true nor false")
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
    verify: bool = True  # check the checksum of every segment a process opens


OPTIONS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "sites": ("sites", int),
    "cells": ("cells", int),
    "strategy": ("strategy", str),
    "idleafter": ("idle_after_us", lambda v: duration_us(v, "idleAfter")),
    "heartbeat": ("heartbeat_us", lambda v: duration_us(v, "heartbeat")),
    "flushatend": ("flush_at_end", _boolean),
    "statelocation": ("state_location", str),
    "combine": ("combine", str),
    "progress": ("progress", _boolean),
    "verify": ("verify", _boolean),
}


def parse(options: Mapping[str, str], conf: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    """Settings from options over configuration, and the options that are not ours (for the sink)."""
    known = {k.removeprefix(CONF_PREFIX).lower(): v for k, v in conf.items() if k.startswith(CONF_PREFIX)}
    for name in known:
        if name not in OPTIONS:
            raise SettingError(f"unknown configuration {CONF_PREFIX}{name}", fix=f"known: {', '.join(sorted(OPTIONS))}")
    rest: dict[str, str] = {}
    for name, value in options.items():
        if name.lower() in OPTIONS:
            known[name.lower()] = value
        else:
            rest[name] = value
    values: dict[str, Any] = {}
    for name, value in known.items():
        field, read = OPTIONS[name]
        try:
            values[field] = read(str(value))
        except ValueError:
            raise SettingError(f"option {name} has the value {value!r}, which is not a number") from None
    settings = Settings(**values)
    _check(settings)
    return settings, rest


def _check(s: Settings) -> None:
    if s.sites < 0:
        raise SettingError(f"sites is {s.sites}", fix="use a positive number, or 0 for one per task slot")
    if s.cells < 1 or s.cells & (s.cells - 1) or s.cells > 65536:
        raise SettingError(f"cells is {s.cells}", fix="use a power of two from 1 to 65536")
    if s.sites > s.cells:
        raise SettingError(f"{s.sites} sites cannot share {s.cells} cells", fix="raise cells or lower sites")
    if s.strategy not in STRATEGIES:
        raise SettingError(f"strategy is {s.strategy!r}", fix=f"use one of {', '.join(STRATEGIES)}")
    if s.combine not in ("auto", "always", "never"):
        raise SettingError(f"combine is {s.combine!r}", fix="use auto, always or never")


NAMES = tuple(f.name for f in fields(Settings))
