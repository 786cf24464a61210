"""Stage: producers, lanes and sites of one operator, a quantum at a time.

In each quantum a site has so much CPU time as its speed and its loads leave, and takes rows for it from its lanes; then
producers fill the lanes up. Service times are normal, drawn once for the sum over the rows of a quantum. What does not
depend on the row (packing a cell, producing) is a debt against the same CPU time. A site in synchronous I/O is blocked:
it takes nothing, and is busy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anabranch.sim.kernel import Kernel
from anabranch.sim.lanes import Lanes
from anabranch.sim.scenario import Scenario
from anabranch.sim.trace import Trace


class Stage:
    def __init__(
        self, kernel: Kernel, scenario: Scenario, lanes: Lanes, trace: Trace, rng: np.random.Generator
    ) -> None:
        n = len(scenario.sites)
        self.kernel = kernel
        self.operator = scenario.operator
        self.producing = scenario.producers.cost
        self.lanes = lanes
        self.trace = trace
        self.rng = rng
        self.speed = np.array([s.speed for s in scenario.sites])
        self.left = np.ones(n)  # by external loads
        self.blocked = np.zeros(n, dtype=bool)
        self.idle = np.zeros(n)
        self.credit = np.zeros(n)  # CPU time not yet used, in seconds at speed 1; negative: a debt
        self.rate = np.full(n, np.inf if scenario.producers.rate is None else scenario.producers.rate)
        self._allowed = np.zeros(n)
        self._producing = np.zeros(n)  # of the last quantum, in CPU time
        self._row = np.full(n, self.operator.service)  # what a row last cost at each site
        self.cold: Any = np.zeros(len(lanes.owner), dtype=bool)
        self.cold_sites: set[int] = set()
        self.staged: Callable[[int, Any, float], None] = _nowhere  # a site's rows for cells that are on disk
        self._watched: list[tuple[Any, Any, Callable[[], None]]] = []
        self.state_rows = np.zeros(n)  # for operators whose cost depends on it

    def service(self, now: float) -> Any:
        """The mean service time of a row at each site, at speed 1."""
        cost = self.operator.cost_of
        if cost is None:
            return self.operator.service
        return np.array([cost(now, rows) for rows in self.state_rows])

    def watch(self, lanes: Any, positions: Any, action: Callable[[], None]) -> None:
        """Run the action when all rows before these positions of these lanes have been taken."""
        self._watched.append((lanes, positions, action))
        self._look()

    def advance(self, now: float, step: float) -> None:
        lanes, service = self.lanes, self.service(now)
        share = np.where(self.blocked, 0.0, self.speed * self.left)
        self.credit += step * share
        row = self._mixed(service) if self.cold_sites else service
        want = (np.maximum(self.credit * (share > 0), 0.0) / row).astype(np.int64)
        taken = lanes.take(want)
        rows = taken.sum(axis=0)
        noise = self.operator.deviation * np.sqrt(rows) * self.rng.standard_normal(len(rows))
        cost = np.maximum(rows * service + noise, 0.0)
        latency = float((rows * service / np.maximum(share, 1e-9)).sum())
        processed = int(rows.sum())
        for site in sorted(self.cold_sites):
            if rows[site]:
                processed, latency = self._cold_rows(site, now + step / 2, rows, cost, share, processed, latency)
        self.credit -= cost
        # A site that got less than it wanted waited for the rest; that a producer ran meanwhile makes it no busier.
        starved = (rows < want) & (self.credit > 0) & (share > 0)
        waited = np.minimum((self.credit + self._producing) / np.maximum(share, 1e-9), step)
        self.idle += np.where(starved, waited, 0.0)
        self.credit[starved] = 0.0
        self._allowed = np.minimum(self._allowed + self.rate * step, 1e9)
        made = lanes.make(np.floor(self._allowed).astype(np.int64), int(taken.sum(axis=1).max()))
        self._allowed = np.where(np.isinf(self.rate), 0.0, np.minimum(self._allowed - made, self.rate * 0.01 + 1))
        self._producing = made * self.producing
        self.credit -= self._producing
        self.trace.processed(processed, latency)
        self._look()

    def _mixed(self, service: Any) -> Any:
        """What a row costs where some of them are only staged: as it was in the quantum before."""
        row = np.full(len(self.credit), 1.0) * service
        cold = sorted(self.cold_sites)
        row[cold] = np.maximum(self._row[cold], 0.05 * self.operator.service)
        return row

    def _cold_rows(
        self, site: int, when: float, rows: Any, cost: Any, share: Any, processed: int, latency: float
    ) -> tuple[int, float]:
        """Of the rows just taken, those of cells on disk are staged in place of being processed."""
        cells = self.lanes.cells_taken(site)
        waiting = cells[self.cold[cells]]
        number = len(waiting)
        service = cost[site] / rows[site]
        cost[site] -= number * (service - self.operator.handling)
        self._row[site] = 0.5 * self._row[site] + 0.5 * cost[site] / rows[site]
        self.staged(site, waiting, when)
        return processed - number, latency - number * service / max(share[site], 1e-9)

    def _look(self) -> None:
        if not self._watched:
            return
        reached, waiting = [], []
        for watched in self._watched:
            lanes, positions, action = watched
            if (self.lanes.head[lanes] >= positions).all():
                reached.append(action)
            else:
                waiting.append(watched)
        self._watched = waiting
        for action in reached:
            self.kernel.after(0.0, action)


def _nowhere(site: int, cells: Any, when: float) -> None:
    raise AssertionError("no cell is on disk")
