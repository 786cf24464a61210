"""World: a scenario made to run. The only place where its parts are put together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from anabranch.control.controller import Controller
from anabranch.control.guard import Guard
from anabranch.control.journal import Journal
from anabranch.control.pacing import DampedPacing, FixedPacing, Pacing
from anabranch.control.policy import named
from anabranch.routing.assignment import Assignment
from anabranch.sim.kernel import Kernel
from anabranch.sim.keys import CellStream, cell_weights
from anabranch.sim.lanes import Lanes
from anabranch.sim.loads import left_by
from anabranch.sim.mover import Mover
from anabranch.sim.network import Transfers
from anabranch.sim.rounds import Rounds
from anabranch.sim.scenario import Adaptation, CpuLoad, Keys, MemoryCut, Scenario
from anabranch.sim.spill import Spill
from anabranch.sim.stage import Stage
from anabranch.sim.trace import Trace


@dataclass
class World:
    """The parts of a run; tests look inside, the lab only at the trace."""

    scenario: Scenario
    kernel: Kernel
    lanes: Lanes
    stage: Stage
    spill: Spill
    transfers: Transfers
    mover: Mover
    controller: Controller | None
    trace: Trace

    def run(self, until: float | None = None) -> Trace:
        self.kernel.run(self.scenario.seconds if until is None else until)
        return self.trace


def run(scenario: Scenario) -> Trace:
    """The whole scenario, from its first to its last second."""
    return built(scenario).run()


def built(scenario: Scenario) -> World:
    rows, times = (np.random.default_rng(s) for s in np.random.SeedSequence(scenario.seed).spawn(2))
    operator, sites = scenario.operator, len(scenario.sites)
    cells = operator.cells_per_site * sites
    assignment = Assignment.initial(cells, sites)
    kernel, trace = Kernel(_quantum(scenario)), Trace()

    stream = CellStream(rows, cell_weights(scenario.producers.keys, operator.groups, cells))
    lanes = Lanes(scenario.exchange, sites, assignment.owner, stream.draw)
    stage = Stage(kernel, scenario, lanes, trace, times)
    spill = Spill(kernel, scenario, stage, assignment.owner, trace)
    transfers = Transfers(kernel, scenario.network)
    mover = Mover(kernel, scenario, stage, spill, transfers, assignment, trace)
    kernel.flow = stage

    def phase(keys: Keys, rate: float | None) -> None:
        lanes.draw = CellStream(rows, cell_weights(keys, operator.groups, cells)).draw
        stage.rate[:] = np.inf if rate is None else rate
        trace.note(kernel.now, f"producers: {keys}, rate {rate}")

    for start, keys, rate in scenario.producers.phases:
        kernel.at(start, partial(phase, keys, rate))
    for load in scenario.loads:
        kernel.at(load.start, partial(_load, stage, load, True))
        kernel.at(load.end, partial(_load, stage, load, False))
    for cut in scenario.cuts:
        kernel.at(cut.start, partial(_cut, spill, cut))
    for n in range(1, round(scenario.seconds / scenario.interval) + 1):
        kernel.at(n * scenario.interval, lambda: trace.sample(kernel.now))

    controller = None
    if scenario.adaptation is not None:
        controller = controlled(scenario.adaptation)
        kernel.at(0.0, Rounds(kernel, scenario, stage, spill, mover, controller, trace).collect)
    return World(scenario, kernel, lanes, stage, spill, transfers, mover, controller, trace)


def _quantum(scenario: Scenario) -> float:
    """As asked for, but never longer than a site lives on half of what its connections hold: they are filled up again
    only at the end of a quantum."""
    fastest = max(site.speed for site in scenario.sites)
    rows = scenario.exchange.connection * len(scenario.sites)
    return min(scenario.quantum, 0.5 * rows * scenario.operator.service / fastest)


def controlled(adaptation: Adaptation) -> Controller:
    """The controller that the Spark runtime has too, with this policy and pacing."""
    pace = adaptation.pace
    pacing: Pacing = FixedPacing(pace.least, pace.first)
    if pace.damped:
        pacing = DampedPacing(pace.least, pace.most, pace.first)
    return Controller(named(adaptation.policy), Guard(adaptation.limits), pacing, Journal())


def _load(stage: Stage, load: CpuLoad, begins: bool) -> None:
    """Several loads of a site leave the product of what each leaves."""
    left = left_by(load, stage.operator.service / float(stage.speed[load.site]))
    stage.left[load.site] *= left if begins else 1 / left


def _cut(spill: Spill, cut: MemoryCut) -> None:
    spill.set_memory(cut.site, cut.memory)
