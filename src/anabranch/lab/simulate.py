"""The simulator as a runner: an experiment's runs, in as many processes as there are cores.

Each run is seeded by itself, so their order and the number of processes change nothing.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor

from anabranch.lab.experiment import Experiment, Results, Run
from anabranch.sim.trace import Trace
from anabranch.sim.world import run


def simulate(
    experiments: Sequence[Experiment], processes: int = 1, progress: Callable[[int, int], None] = lambda done, of: None
) -> list[Results]:
    """Every run of every experiment; one result per experiment, in order."""
    runs = [r for e in experiments for r in e.runs]
    distinct = list(dict.fromkeys(r.scenario for r in runs))  # several experiments may share a run
    traces = dict(zip(distinct, _all(distinct, processes, progress), strict=True))
    return [Results({(r.variant, r.x): traces[r.scenario] for r in e.runs}) for e in experiments]


def one(item: Run) -> Trace:
    return run(item.scenario)


def _all(scenarios: Sequence[object], processes: int, progress: Callable[[int, int], None]) -> list[Trace]:
    found: list[Trace] = []
    total = len(scenarios)
    if processes <= 1:
        for n, scenario in enumerate(scenarios):
            found.append(run(scenario))  # type: ignore[arg-type]
            progress(n + 1, total)
        return found
    # Not by fork: a parent that has threads (a JVM's gateway, a test runner) must not be copied.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        for n, trace in enumerate(pool.map(run, scenarios)):  # type: ignore[arg-type]
            found.append(trace)
            progress(n + 1, total)
    return found
