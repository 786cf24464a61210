"""What the parent tells the process of one run, and what it hears back: plain JSON both ways."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import workloads
from bench.workload import Workload


@dataclass(frozen=True)
class Job:
    """One run of one engine. `output` is a folder for parquet files in a run that checks answers, else empty."""

    workload: str
    rows: int
    epochs: int
    engine: str
    data: str
    scratch: str
    output: str = ""
    memory: str = "4g"
    rounds: int = 1  # fixed_cost only

    def load(self) -> Workload:
        """The workload at the size of this job."""
        base = workloads.named(self.workload)
        return base.resized(self.rows if self.rows != base.rows else None, self.epochs)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


@dataclass(frozen=True)
class Epoch:
    """One epoch that had rows, as the engine reported it."""

    rows: int
    ms: float
    started_s: float = 0.0  # since the first one


@dataclass
class Outcome:
    """What a run measured. `total_s` is from the start of the query to its end, session start-up left out."""

    epochs: list[Epoch] = field(default_factory=list)
    total_s: float = 0.0
    rows: int = 0
    extra: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    error: str = ""


def from_progress(progress: list[dict[str, Any]]) -> list[Epoch]:
    """Epochs with rows, from the progress reports of Spark or Anabranch; a repeated report counts once."""
    from datetime import datetime

    seen: dict[int, dict[str, Any]] = {int(p["batchId"]): p for p in progress if p["numInputRows"] > 0}
    started = [datetime.fromisoformat(str(p["timestamp"])).timestamp() for p in seen.values()]
    first = min(started, default=0.0)
    return [
        Epoch(int(p["numInputRows"]), float(p["durationMs"]["triggerExecution"]), at - first)
        for p, at in zip(seen.values(), started, strict=True)
    ]
