"""On Spark: machine-sized scenarios as real queries. Rows take their time asleep, so that many sites fit on few cores.

    seconds       are epochs, by what a site of full speed does in one
    rows          are fewer and heavier: each stands for as many as it takes time for
    CpuLoad       is a site that is slower by a factor
    MemoryCut     is less memory for hot state, in proportion to the state that there really is
    keys          are weights of cells, and every epoch has exactly these
    adaptation    is the option `policies`
    throughput    is rows over the whole length of the epochs: nothing is taken off

What stays different: an epoch ends for all sites together, which the simulator knows nothing of, and has a fixed cost.
`slow_motion` makes that cost small against the service times. The first epochs fill the state and warm the workers up;
nothing is decided in them, and the trace begins after them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from anabranch.lab.machine import Emulation
from anabranch.sim.keys import cell_weights
from anabranch.sim.loads import left_by
from anabranch.sim.scenario import Scenario
from anabranch.sim.trace import Moved, Sample, Trace
from anabranch.testing import Load, Pace, Run, Slow, run_load, several
from anabranch.testing.events import Event
from anabranch.testing.load import JOIN

LEAD = 4  # epochs before the trace begins
HASTE = 10  # times as fast are these
PARTS = 10  # samples of an epoch
PAYLOAD = 200  # bytes of a row, where memory is the point


class OnSpark:
    """Machine-sized scenarios run one after the other in one session; `tell` hears of every epoch."""

    def __init__(self, session: Any, emulation: Emulation, folder: Path) -> None:
        self.session = session
        self.emulation = emulation
        self.folder = folder
        self._number = 0

    def warm_up(self, scenario: Scenario) -> None:
        """Start the workers and compile, before anything is measured."""
        load = replace(self.load(scenario), epochs=LEAD)
        run_load(self.session, load, self.folder / "warm-up")

    def run(self, scenario: Scenario, tell: Callable[[int, int], None]) -> Trace:
        self._number += 1
        load = self.load(scenario)
        run = run_load(
            self.session, load, self.folder / f"epochs-{load.epochs}", pace=self.pace(scenario),
            options=self.options(scenario), events=self.events(scenario, load.epochs, tell), name=f"run-{self._number}",
        )  # fmt: skip
        return trace(run, self.emulation, scenario.operator.service)

    def at(self, seconds: float) -> int:
        """The first epoch that begins then or later."""
        return LEAD + math.ceil(seconds / self.emulation.epoch - 1e-9)

    def load(self, scenario: Scenario) -> Load:
        sites = len(scenario.sites)
        cells = self.emulation.cells_per_site * sites
        keys, groups = scenario.producers.keys, scenario.operator.groups
        phases = [(0, keys), *((self.at(start), keys) for start, keys, _ in scenario.producers.phases)]

        def weights(epoch: int) -> list[float]:
            now = next(keys for start, keys in reversed(phases) if start <= epoch)
            return list(map(float, cell_weights(now, groups, cells)))

        whole = Load(self.at(scenario.seconds), sites, cells, self.emulation.rows * sites, weights)
        if scenario.sites[0].memory is None:
            return whole
        return replace(whole, rows=whole.rows // 2, query=JOIN, seconds=1, payload=PAYLOAD)  # of two streams

    def pace(self, scenario: Scenario) -> Pace:
        slow = [Slow(site, 1 / HASTE, 0, LEAD) for site in range(len(scenario.sites))]
        for load in scenario.loads:
            until = None if load.end > scenario.seconds else self.at(load.end)
            left = left_by(load, scenario.operator.service)
            slow.append(Slow(load.site, 1 / left, self.at(load.start), until))
        real = self.emulation.epoch * self.emulation.slow_motion
        return Pace(real / self.emulation.rows * 1e6, tuple(slow))

    def options(self, scenario: Scenario) -> dict[str, Any]:
        adaptation = scenario.adaptation
        return {"policies": "static" if adaptation is None else adaptation.policy, "roundEpochs": 1}

    def events(self, scenario: Scenario, epochs: int, tell: Callable[[int, int], None]) -> dict[int, Event]:
        found: dict[int, list[Event]] = {e: [partial(_tell, tell, e + 1, epochs)] for e in range(epochs)}
        found[0].append(_paused(True))
        found[LEAD].append(_paused(False))
        memory = Memory(scenario)
        found[LEAD].append(memory.measured)
        for cut in scenario.cuts:
            found[self.at(cut.start)].append(memory.cut(cut.site, cut.memory))
        return {epoch: several(*events) for epoch, events in found.items()}


class Memory:
    """Budgets as shares of the state that a site really has, as in the scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.state = scenario.operator.cells_per_site * scenario.operator.cell_bytes
        self.budgets = [site.memory for site in scenario.sites]
        self.real = 0.0

    def measured(self, runtime: Any) -> None:
        sites = runtime.recent_progress(None)[-1]["sites"]
        self.real = max(s["hotBytes"] for s in sites)
        for site, budget in enumerate(self.budgets):
            if budget is not None:
                runtime.memory[site] = self.bytes(budget)

    def cut(self, site: int, budget: int) -> Event:
        def event(runtime: Any) -> None:
            runtime.memory[site] = self.bytes(budget)

        return event

    def bytes(self, budget: int) -> int:
        return round(self.real * budget / self.state)


def _tell(tell: Callable[[int, int], None], epoch: int, of: int, runtime: Any) -> None:
    tell(epoch, of)


def _paused(paused: bool) -> Event:
    def event(runtime: Any) -> None:
        runtime.adaptation.pause(paused)

    return event


def trace(run: Run, emulation: Emulation, service: float) -> Trace:
    """What the query told of its epochs, as the simulator would: in seconds and rows of the experiment, an epoch's rows
    evenly over its time."""
    stands_for = emulation.epoch / emulation.rows / service
    ends, samples, held = {}, list[Sample](), 0
    now = 0.0
    for p in run.progress:
        waiting = sum(s["heldRows"] for s in p["sites"])
        rows = sum(s["numInputRows"] for s in p["sites"]) + held - waiting
        held = waiting
        if p["epoch"] >= LEAD:
            took = p["durationMs"]["triggerExecution"] / 1000 / emulation.slow_motion
            busy = sum(s["busyMs"] for s in p["sites"]) / 1000 / emulation.slow_motion
            latency = busy + waiting * stands_for * took  # at work, and waiting at a site
            for n in range(PARTS):
                start, end = now + took * n / PARTS, now + took * (n + 1) / PARTS
                samples.append(Sample(start, end, round(rows * stands_for / PARTS), latency / PARTS))
            now += took
        ends[p["epoch"]] = now
    return Trace(samples, list(_moves(run, ends)))


def _moves(run: Run, ends: dict[int, float]) -> Iterator[Moved]:
    """Decided at the end of an epoch, and so from the next one on."""
    for entry in run.moves:
        at = ends.get(int(entry["at"]), 0.0)
        action, effect = entry["action"], entry["predicted"]
        yield Moved(at, at, at, action["operator"], action["cell"], effect["donor"], action["site"])
