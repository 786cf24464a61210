"""What a query tells about each epoch: a dict with Spark's keys where Spark has the thing, and a terminal line."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from anabranch.site.ticket import Report


@dataclass(frozen=True)
class Phases:
    """Where an epoch's time went, in milliseconds."""

    plan: float
    run: float  # the action: prepare, exchange, sites, finish and sink
    commit: float
    total: float


def iso(us: int | None) -> str | None:
    if us is None:
        return None
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry(
    *, id: str, run_id: str, name: str | None, epoch: int, batch: int, kind: str, phases: Phases,
    streams: Mapping[str, Mapping[str, Any]], rows_out: int, watermark: int | None, next_watermark: int | None,
    reports: Sequence[Report], state: Mapping[str, Sequence[Any]], sites: int, assignment: int, sink: str,
    moves: int, policy: str,
) -> dict[str, Any]:  # fmt: skip
    """One epoch's progress, made of plain JSON values."""
    rows_in = sum(s["rows"] for s in streams.values())
    seconds = max(phases.total, 0.001) / 1000
    kept: dict[str, list[Any]] = {}
    for port, segments in state.items():
        stage, _, number = port.rpartition("/")
        kept.setdefault(stage, []).extend([] if number.startswith("held-") else segments)
    stages = sorted({r.stage for r in reports}, key=[r.stage for r in reports].index)
    return {
        "id": id,
        "runId": run_id,
        "name": name,
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "batchId": batch,
        "epoch": epoch,
        "kind": kind,
        "numInputRows": rows_in,
        "processedRowsPerSecond": rows_in / seconds,
        "durationMs": {
            "plan": round(phases.plan, 1),
            "run": round(phases.run, 1),
            "commit": round(phases.commit, 1),
            "triggerExecution": round(phases.total, 1),
        },
        "eventTime": {"watermark": iso(watermark), "nextWatermark": iso(next_watermark)},
        "sources": [
            {
                "description": name,
                "numInputRows": s["rows"],
                "numLateRows": s["late"],
                "maxEventTime": iso(s["time"]),
                "idle": s["idle"],
            }
            for name, s in streams.items()
        ],
        "stateOperators": [
            {
                "operatorName": stage,
                "numRowsTotal": sum(s.rows for s in kept.get(stage, [])),
                "memoryUsedBytes": sum(s.bytes for s in kept.get(stage, [])),
                "numSegments": len(kept.get(stage, [])),
                "numHeldRows": sum(r.held_rows for r in reports if r.stage == stage),
                "numCellsBehind": sum(len(r.behind) for r in reports if r.stage == stage),
                "numInputRows": sum(sum(r.rows_in) for r in reports if r.stage == stage),
                "numOutputRows": sum(r.rows_out for r in reports if r.stage == stage),
            }
            for stage in stages
        ],
        "sites": [
            {
                "site": site,
                "where": list(dict.fromkeys(r.where for r in reports if r.site == site)),
                "busyMs": round(sum(r.busy_ms for r in reports if r.site == site), 1),
                "numInputRows": sum(sum(r.rows_in) for r in reports if r.site == site),
                "numOutputRows": sum(r.rows_out for r in reports if r.site == site),
                "hotBytes": sum(r.hot_bytes for r in reports if r.site == site),
                "coldBytes": sum(r.cold_bytes for r in reports if r.site == site),
                "heldRows": sum(r.held_rows for r in reports if r.site == site),
            }
            for site in range(sites)
        ],
        "assignment": {"version": assignment, "sites": sites, "moves": moves, "policy": policy},
        "sink": {"description": sink, "numOutputRows": rows_out},
    }


class ProgressLine:
    """One line that keeps up with a long run; only where somebody can see it."""

    def __init__(self, wanted: bool | None) -> None:
        self.on = sys.stderr.isatty() if wanted is None else wanted
        self.rows = 0

    def show(self, p: Mapping[str, Any]) -> None:
        if not self.on:
            return
        self.rows += p["numInputRows"]
        late = sum(s["numLateRows"] for s in p["sources"])
        state = sum(s["memoryUsedBytes"] for s in p["stateOperators"]) / 1e6
        text = (
            f"epoch {p['epoch']}: {p['numInputRows']:,} rows in {p['durationMs']['triggerExecution']:.0f} ms"
            f" ({p['processedRowsPerSecond']:,.0f}/s), {p['sink']['numOutputRows']:,} out, {self.rows:,} in all,"
            f" state {state:.1f} MB, watermark {p['eventTime']['nextWatermark'] or 'none'}"
            + (f", {late} late" if late else "")
        )
        end = "" if sys.stderr.isatty() else "\n"
        print(("\r\x1b[2K" if sys.stderr.isatty() else "") + text, end=end, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.on and sys.stderr.isatty():
            print(file=sys.stderr)
