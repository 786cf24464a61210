"""What a site is told to do in one epoch, and what it reports back. Frozen; travels to the workers and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from anabranch.kernels.specs import Spec
from anabranch.state.segments import Segment

REPORT = "_report"
PORT = "_port"
CELL = "_cell"
TIME = "_t"


@dataclass(frozen=True)
class PortTicket:
    """One input of the stage."""

    taps: tuple[int, ...]  # the values of _port that mean this input
    slots: tuple[tuple[str, str], ...]  # (wire column, prepared column)
    horizon: int | None  # state rows with _t below it are of no use any more
    segments: tuple[Segment, ...]  # live state, all sites'


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
    closed: int | None  # results up to here were released before
    input: bytes  # Arrow schema of the rows that arrive, serialised
    output: bytes  # Arrow schema of the rows to emit
    verify: bool = True

    def cells(self, site: int) -> tuple[int, ...]:
        return tuple(c for c, s in enumerate(self.owner) if s == site)


@dataclass(frozen=True)
class Report:
    """What one site did in one epoch."""

    stage: str
    site: int
    epoch: int
    rows_in: tuple[int, ...]
    rows_out: int
    busy_ms: float
    written: tuple[tuple[int, dict[str, Any]], ...] = ()  # (port, segment)
    dropped: tuple[str, ...] = ()  # paths that this site no longer needs
    cells_in: Mapping[int, int] = field(default_factory=dict)  # rows in per cell, the busiest ones
    where: str = ""  # the process that ran it: host/pid of the executor

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Report:
        return Report(
            data["stage"], data["site"], data["epoch"], tuple(data["rows_in"]), data["rows_out"], data["busy_ms"],
            tuple((p, s) for p, s in data["written"]), tuple(data["dropped"]),
            {int(c): n for c, n in data["cells_in"].items()}, data["where"],
        )  # fmt: skip
