"""Experiment: a paper's figure as data. What is run, what is read off it, what the paper reports, what counts as
reproduced.

An experiment is said once, for any size: `registry.py` builds it for a `Size`, so that the same definition runs at the
paper's size, at a small one in tests, and on Spark. Its parts are frozen; nothing here runs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from anabranch.sim.scenario import Scenario
from anabranch.sim.trace import Trace


@dataclass(frozen=True)
class Size:
    """How large. `sites` and `seconds` scale what a figure asks for; `thin` takes every so many-th point of an axis."""

    sites: int = 32
    seconds: float = 1.0  # factor on the length of the runs
    thin: int = 1
    quantum: float = 5e-3


PAPER = Size()
SMALL = Size(sites=8, seconds=0.5, thin=3, quantum=1e-2)
SIZES = {"paper": PAPER, "small": SMALL}


@dataclass(frozen=True)
class Run:
    """One variant at one point of the x axis; None where the x axis is time."""

    variant: str
    x: float | None
    scenario: Scenario


class Results:
    """The traces of an experiment's runs, by variant and point."""

    def __init__(self, traces: Mapping[tuple[str, float | None], Trace]) -> None:
        self.traces = dict(traces)

    def __getitem__(self, key: str | tuple[str, float | None]) -> Trace:
        return self.traces[(key, None) if isinstance(key, str) else key]

    def points(self, variant: str) -> list[tuple[float, Trace]]:
        """The variant's runs along the x axis."""
        found = [(x, trace) for (name, x), trace in self.traces.items() if name == variant and x is not None]
        return sorted(found, key=lambda p: p[0])


@dataclass(frozen=True)
class Difference:
    """Why ours differs from the paper's, and a check on the same results that the reason is true of them."""

    why: str
    true: Callable[[Results], bool]


@dataclass(frozen=True)
class Claim:
    """A number of the paper's and ours. Reproduced: low <= ours <= high."""

    says: str
    paper: str
    ours: Callable[[Results], float]
    low: float = float("-inf")
    high: float = float("inf")
    unit: str = ""
    digits: int = 3
    differs: Difference | None = None


@dataclass(frozen=True)
class Curve:
    name: str
    points: tuple[tuple[float, float], ...]
    style: str = "-"
    like: str = ""  # curves with the same word here have one colour; else each has its own


@dataclass(frozen=True)
class Axes:
    """One plot of the figure: labels with units, as in the paper."""

    x: str
    y: str
    curves: Callable[[Results], list[Curve]]
    title: str = ""
    log_y: bool = False
    paper: tuple[Curve, ...] = ()  # what can be read off the paper's text, to plot beside


@dataclass(frozen=True)
class Experiment:
    name: str  # flux.fig6
    number: str  # FE2
    paper: str
    figure: str
    asks: str  # the question it answers
    parameters: Mapping[str, str]
    runs: tuple[Run, ...]
    axes: tuple[Axes, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...] = field(default=())
