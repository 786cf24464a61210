"""Results: what came out of an experiment, as plain data in JSON, to keep and to read again.

An `Outcome` has all that a report shows: parameters, findings and curves, worked out when the runs were made. A report
therefore needs no run, and shows what was true of the version that ran; it names that version, the size and the seed.
One file per experiment and driver; a new run replaces the one before.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anabranch
from anabranch.errors import SettingError
from anabranch.lab.experiment import Claim, Curve, Experiment, Results

FORMAT = 1
SUFFIX = ".json"


@dataclass(frozen=True)
class Finding:
    """One claim and what became of it."""

    says: str
    paper: str  # the number ours is held against
    ours: float
    text: str
    reproduced: bool
    why: str = ""  # in a sentence, where ours differs
    explained: bool = False  # the sentence is true of these results


@dataclass(frozen=True)
class Plot:
    """One pair of axes with what is drawn in them."""

    x: str
    y: str
    curves: tuple[Curve, ...]
    title: str = ""
    log_y: bool = False


@dataclass(frozen=True)
class Outcome:
    name: str
    number: str
    paper: str
    figure: str
    asks: str
    driver: str  # simulator, or Spark
    against: str  # what the findings hold ours against: the paper, or the simulator
    size: str
    seed: int
    parameters: Mapping[str, str]
    findings: tuple[Finding, ...]
    plots: tuple[Plot, ...]
    notes: tuple[str, ...]
    seconds: float  # it took
    at: str
    version: str

    @property
    def settled(self) -> bool:
        """Whether every claim is reproduced, or told apart by a reason that holds."""
        return all(f.reproduced or f.explained for f in self.findings)

    @property
    def file(self) -> str:
        """The name of its files, without the ending."""
        return self.name if self.driver == "simulator" else f"{self.name}.{self.driver.lower()}"


def outcome(experiment: Experiment, results: Results, size: str, seed: int, seconds: float) -> Outcome:
    """What the simulator's results come to."""
    return made(experiment, findings(experiment, results), plots(experiment, results), size, seed, seconds)


def made(
    experiment: Experiment, found: Sequence[Finding], drawn: Sequence[Plot], size: str, seed: int, seconds: float,
    *, driver: str = "simulator", against: str = "paper", parameters: Mapping[str, str] | None = None,
    notes: Sequence[str] | None = None,
) -> Outcome:  # fmt: skip
    return Outcome(
        experiment.name, experiment.number, experiment.paper, experiment.figure, experiment.asks, driver, against,
        size, seed, dict(experiment.parameters if parameters is None else parameters), tuple(found), tuple(drawn),
        tuple(experiment.notes if notes is None else notes), round(seconds, 1),
        datetime.now(UTC).isoformat(timespec="seconds"), anabranch.__version__,
    )  # fmt: skip


def findings(experiment: Experiment, results: Results) -> list[Finding]:
    return [_finding(claim, results) for claim in experiment.claims]


def _finding(claim: Claim, results: Results) -> Finding:
    ours = float(claim.ours(results))
    holds = claim.low <= ours <= claim.high
    why, explained = "", False
    if claim.differs is not None:
        explained = bool(claim.differs.true(results))
        why = claim.differs.why if explained else f"(not so in this run: {claim.differs.why})"
    return Finding(claim.says, claim.paper, ours, written(ours, claim.unit, claim.digits), holds, why, explained)


def plots(experiment: Experiment, results: Results) -> list[Plot]:
    return [Plot(a.x, a.y, (*a.curves(results), *a.paper), a.title, a.log_y) for a in experiment.axes]


def written(value: float, unit: str = "", digits: int = 3) -> str:
    text = f"{value:.{digits}g}" if abs(value) < 1e5 else f"{value:.{max(digits - 1, 1)}e}"
    return f"{text} {unit}".strip()


# -- files ---------------------------------------------------------------------------------------------------------


def keep(outcome: Outcome, folder: Path) -> Path:
    """Write it aside, then under its name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{outcome.file}{SUFFIX}"
    aside = path.with_suffix(f".{os.getpid()}.tmp")
    aside.write_text(json.dumps({"format": FORMAT} | _plain(asdict(outcome)), indent=1, allow_nan=False) + "\n")
    aside.replace(path)
    return path


def kept(folder: Path) -> list[Outcome]:
    """Every outcome of the folder, by name; the simulator's before Spark's."""
    return [_read(path) for path in sorted(folder.glob(f"*{SUFFIX}"), key=lambda p: p.stem)]


def _read(path: Path) -> Outcome:
    name = path.stem.removesuffix(".spark")
    again = f"run the experiment again: anabranch lab run {name}{'' if name == path.stem else ' --spark'}"
    try:
        told: dict[str, Any] = json.loads(path.read_text())
        found = told.pop("format")
        if found != FORMAT:
            raise SettingError(f"results of format {found}; this version reads {FORMAT}", where=str(path), fix=again)
        told["findings"] = tuple(Finding(**f | {"ours": float(f["ours"])}) for f in told["findings"])
        told["plots"] = tuple(Plot(**p | {"curves": tuple(map(_curve, p["curves"]))}) for p in told["plots"])
        return Outcome(**told | {"notes": tuple(told["notes"])})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SettingError(f"not results of the lab ({error})", where=str(path), fix=again) from None


def _curve(told: dict[str, Any]) -> Curve:
    return Curve(**told | {"points": tuple((float(x), float(y)) for x, y in told["points"])})


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN: they are written as text, which `float` reads."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
