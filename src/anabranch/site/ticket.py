"""What a site is told to do in one epoch, and what it reports back. Frozen; travels to the workers and back.

Watermarks in here are the flow's. A stage's own are `lag` behind them: what it releases, and what its rows may still be
of use to.
"""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from anabranch.kernels.specs import Spec
from anabranch.state.segments import Segment

PORT = "_port"
CELL = "_cell"
TIME = "_t"

HELD_BYTES = 256 << 20

Behind = tuple[int | None, int]  # released up to this watermark; waiting since this epoch


@dataclass(frozen=True)
class PortTicket:
    """One input of the stage."""

    taps: tuple[int, ...]  # the values of _port that mean this input
    slots: tuple[tuple[str, str], ...]  # (wire column, prepared column)
    reach: int | None  # state rows with _t below the watermark minus this are of no use; None: kept as the kernel says
    segments: tuple[Segment, ...]  # live state, all sites'
    held: tuple[Segment, ...] = ()  # rows that came and have not been processed


@dataclass(frozen=True)
class Bounds:
    """What a site may use in one epoch. Kept for a replay: the same bounds make the same rows."""

    memory: tuple[int | None, ...] = ()  # hot bytes per site; empty: not bounded
    patience_ms: float | None = None  # a site that takes longer holds the rest of its rows
    held_bytes: int = HELD_BYTES  # per site; above it, a site does not hold more for want of time
    unhurried: bool = False  # nothing may stay held: epochs without new rows

    def budget(self, site: int) -> int | None:
        return self.memory[site] if site < len(self.memory) else None


@dataclass(frozen=True)
class Ticket:
    """One stage of one epoch, the same for all its sites."""

    stage: str
    epoch: int
    spec: Spec
    store: str
    owner: tuple[int, ...]  # cell -> site
    ports: tuple[PortTicket, ...]
    watermark: int | None  # results up to here are released in this epoch
    released: int | None  # results up to here were released before, but for cells that are behind
    lag: int
    input: bytes  # Arrow schema of the rows that arrive, serialised
    output: bytes  # Arrow schema of the rows to emit
    behind: Mapping[int, Behind] = field(default_factory=dict)
    coming: Mapping[int, int] = field(default_factory=dict)  # cells that will move: cell -> site
    bounds: Bounds = Bounds()

    def cells(self, site: int) -> tuple[int, ...]:
        return tuple(c for c, s in enumerate(self.owner) if s == site)

    def local(self, watermark: int | None) -> int | None:
        """A watermark of the flow as this stage counts."""
        return None if watermark is None else watermark - self.lag


@dataclass(frozen=True)
class CellReport:
    rows_in: int  # that arrived
    rows_out: int
    bytes: int  # of state, both tiers


@dataclass(frozen=True)
class Report:
    """What one site did in one epoch."""

    stage: str
    site: int
    epoch: int
    rows_in: tuple[int, ...]  # that arrived, per port
    rows_out: int
    busy_ms: float
    worked_ms: float  # of these: without waiting for a processor
    processed: int = 0  # rows; with held ones of before, without those that are held now
    written: tuple[tuple[str, dict[str, Any]], ...] = ()  # (port, segment); the port of held rows is "held-0"
    dropped: tuple[tuple[str, str], ...] = ()  # (path, cells in hex) that this site no longer needs
    cells: Mapping[int, CellReport] = field(default_factory=dict)  # those with rows or state
    behind: Mapping[int, Behind] = field(default_factory=dict)
    cold: tuple[int, ...] = ()  # cells whose state is cold
    hot_bytes: int = 0
    cold_bytes: int = 0
    peak_bytes: int = 0  # the most state that was open at once
    held_rows: int = 0
    spilled: int = 0  # cells that went cold in this epoch
    restored: int = 0
    noted: bool = False  # whether the site wrote down what it held for want of time
    ready: tuple[int, ...] = ()  # cells that will move here and whose state is here already
    where: str = ""  # the process that ran it: host/pid of the executor

    def to_json(self) -> dict[str, Any]:
        body = asdict(self) | {"cells": {c: (r.rows_in, r.rows_out, r.bytes) for c, r in self.cells.items()}}
        return {k: v for k, v in body.items() if v or k in _ALWAYS}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Report:
        return Report(
            **data
            | {
                "rows_in": tuple(data["rows_in"]),
                "written": tuple((p, s) for p, s in data.get("written", ())),
                "dropped": tuple((p, c) for p, c in data.get("dropped", ())),
                "cells": {int(c): CellReport(*r) for c, r in data.get("cells", {}).items()},
                "behind": {int(c): (level, since) for c, (level, since) in data.get("behind", {}).items()},
                "cold": tuple(data.get("cold", ())),
                "ready": tuple(data.get("ready", ())),
            }
        )

    def to_text(self) -> str:
        """Packed: the driver reads all reports of an epoch at once, through a gateway that halts for 40 ms where an
        answer is more than 8 KB (measured; Nagle's algorithm and delayed acknowledgements)."""
        return b85encode(zlib.compress(json.dumps(self.to_json(), separators=(",", ":")).encode(), 1)).decode()

    @staticmethod
    def from_text(text: str) -> Report:
        return Report.from_json(json.loads(zlib.decompress(b85decode(text))))


_ALWAYS = frozenset({"stage", "site", "epoch", "rows_in", "rows_out", "busy_ms", "worked_ms"})
