"""Rounds: what a driver owes the controller (F7, F8). Views at the end of each collection phase, moves carried out, and
how long they took.

The controller is the one that Spark has. Its unit of time here is the second.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from anabranch.control.actions import Move
from anabranch.control.controller import Controller
from anabranch.control.view import CellView, SiteView, StreamView, View
from anabranch.sim.kernel import Kernel
from anabranch.sim.mover import Mover
from anabranch.sim.scenario import Scenario
from anabranch.sim.spill import Spill
from anabranch.sim.stage import Stage
from anabranch.sim.trace import Trace


class Rounds:
    def __init__(
        self, kernel: Kernel, scenario: Scenario, stage: Stage, spill: Spill, mover: Mover, controller: Controller,
        trace: Trace,
    ) -> None:  # fmt: skip
        self.kernel, self.scenario, self.stage = kernel, scenario, stage
        self.spill, self.mover, self.controller, self.trace = spill, mover, controller, trace
        self._began = 0.0
        self._idle: Any = stage.idle.copy()
        self._taken: Any = stage.lanes.taken.copy()
        self._tallied: tuple[float, Any] = (-1.0, None)
        self._reports: dict[int, tuple[float, float, Any]] = {}  # per site: when, idle, rows of its cells

    def collect(self) -> None:
        """Begin a collection phase: the sites start counting when they hear of it, and answer after its length."""
        length = self.controller.pacing.length
        self.kernel.after(self.scenario.network.latency, lambda: self._start(length))

    def _start(self, length: float) -> None:
        self._began = self.kernel.now
        self._idle = self.stage.idle.copy()
        self._taken = self.stage.lanes.tally().copy()
        self._reports = {}
        self._tallied = -1.0, None
        self.kernel.after(length, lambda: self._ask(length))

    def _ask(self, length: float) -> None:
        for site in range(len(self.scenario.sites)):
            self.spill.when_free(site, lambda site=site: self._report(site, length))  # type: ignore[misc]

    def _report(self, site: int, length: float) -> None:
        if self._tallied[0] != self.kernel.now:  # most sites answer at the same moment
            self._tallied = self.kernel.now, self.stage.lanes.tally() - self._taken
        rows = self._tallied[1]
        idle = float(self.stage.idle[site] - self._idle[site])
        self._reports[site] = self.kernel.now, idle, rows
        if len(self._reports) == len(self.scenario.sites):
            self.kernel.after(self.scenario.network.latency, lambda: self._decide(length))

    def _decide(self, length: float) -> None:
        self.controller.observe(self.view(length))
        actions = [a for a in self.controller.decide() if isinstance(a, Move)]
        self.trace.rounds.append((self.kernel.now, length, len(actions)))
        if not actions:
            self.collect()
            return
        began, left = self.kernel.now, len(actions)

        def done() -> None:
            nonlocal left
            left -= 1
            if not left:
                self.controller.moved(self.kernel.now - began)
                self.collect()

        for action in actions:
            self.mover.start(action, done)

    def view(self, length: float) -> View:
        """What the sites have reported."""
        spill, now = self.spill, self.kernel.now
        owner = self.mover.assignment.owner
        rows = np.zeros(len(owner), dtype=np.int64)
        where = np.array(owner)
        sites = []
        last = self._began
        for site, (when, idle, taken) in sorted(self._reports.items()):
            here = where == site
            rows[here] = taken[here]
            last = max(last, when)
            whole = when - self._began
            budget = int(spill.budget[site]) if spill.budget[site] != float("inf") else None
            sites.append(
                SiteView(
                    site, max(whole - idle, 0.0), min(idle, whole), int(taken[here].sum()),
                    hot_bytes=spill.hot_bytes(site), cold_bytes=spill.cold_bytes(site), budget_bytes=budget,
                    held_rows=int(spill.waiting[here].sum()) if spill.bounded else 0,
                )
            )  # fmt: skip
        name, size = self.scenario.operator.name, self.scenario.operator.cell_bytes
        cells = tuple(
            _cell(name, cell, site, count, size, frozen, held)
            for cell, (site, count, frozen, held) in enumerate(
                zip(owner, rows.tolist(), spill.cold.tolist(), spill.waiting.tolist(), strict=True)
            )
        )
        # The phase has been as long as asked for, or longer where a site answered late.
        return View(now, max(last - self._began, length), tuple(sites), cells, (StreamView("input", int(rows.sum())),))


@lru_cache(maxsize=1 << 18)
def _cell(name: str, cell: int, site: int, rows: int, size: int, cold: bool, held: int) -> CellView:
    """Most cells look the same in most rounds."""
    return CellView(name, cell, site, rows_in=rows, bytes=size, cold=cold, held_rows=held)
