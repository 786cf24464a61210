"""The simulator as a runner: experiments' runs, in as many processes as there are cores.

Each run is seeded by itself, so their order and the number of processes change nothing.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from anabranch.lab.experiment import Experiment, Results
from anabranch.sim.scenario import Scenario
from anabranch.sim.trace import Trace
from anabranch.sim.world import run

Progress = Callable[[int, int], None]  # runs done, of how many


def silent(done: int, of: int) -> None:
    """Nobody looks."""


def simulate(experiments: Sequence[Experiment], processes: int = 1, progress: Progress = silent) -> list[Results]:
    """Every run of every experiment; one result per experiment, in order."""
    return list(simulated(experiments, processes, progress))


def simulated(experiments: Sequence[Experiment], processes: int = 1, progress: Progress = silent) -> Iterator[Results]:
    """The same, each as soon as it is there."""
    distinct = list(dict.fromkeys(r.scenario for e in experiments for r in e.runs))  # some share a run
    coming = enumerate(zip(distinct, _traces(distinct, processes), strict=True), 1)
    traces: dict[Scenario, Trace] = {}
    for experiment in experiments:
        while any(r.scenario not in traces for r in experiment.runs):
            done, (scenario, trace) = next(coming)
            traces[scenario] = trace
            progress(done, len(distinct))
        yield Results({(r.variant, r.x): traces[r.scenario] for r in experiment.runs})


def _traces(scenarios: Sequence[Scenario], processes: int) -> Iterator[Trace]:
    if processes <= 1:
        yield from map(run, scenarios)
        return
    # Not by fork: a parent that has threads (a JVM's gateway, a test runner) must not be copied.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run, scenarios)
