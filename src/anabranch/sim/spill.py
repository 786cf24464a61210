"""Spill: what a site does with cells for which it has no memory (F11).

State beyond the site's memory is written to disk, the cell longest in memory first. Rows for a cell on disk are
staged in pages, one per cell. When a page is full, all staged pages are written (one seek each) and the rotation
takes its next step: the cell longest on disk is read with its waiting rows, and these are processed. Where there is
no room for it, the cell longest in memory is written first.

All I/O is synchronous: the site is blocked while it writes its pages, or writes or reads one cell, and handles messages
of the controller and of other sites only between two of these (`when_free`). While it drains a cell that is about to
leave, it begins no new one.

The paper leaves the local mechanism to a technical report; that a page is 4 KB and that a full page turns the rotation
is ours (docs/lab.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from anabranch.sim.kernel import Kernel
from anabranch.sim.scenario import Scenario
from anabranch.sim.stage import Stage
from anabranch.sim.trace import Trace


class Spill:
    def __init__(self, kernel: Kernel, scenario: Scenario, stage: Stage, owner: tuple[int, ...], trace: Trace) -> None:
        n, cells = len(scenario.sites), len(owner)
        self.kernel, self.stage, self.trace = kernel, stage, trace
        self.operator = scenario.operator
        self.disk = [s.disk for s in scenario.sites]
        self.budget: list[float] = [float("inf") if s.memory is None else s.memory for s in scenario.sites]
        self.bounded = any(s.memory is not None for s in scenario.sites)
        self.size = self.operator.cell_bytes
        self.page = max(1, self.operator.page_bytes // self.operator.row_bytes)
        self.resident: list[deque[int]] = [deque() for _ in range(n)]
        self.on_disk: list[deque[int]] = [deque() for _ in range(n)]
        for cell, site in enumerate(owner):
            self.resident[site].append(cell)
        self.cold = stage.cold
        self.waiting = np.zeros(cells, dtype=np.int64)  # rows that wait with their cell
        self.arrived = np.zeros(cells)  # the sum of their times
        self.in_page = np.zeros(cells, dtype=np.int64)  # of these, not yet written
        self.draining = [0] * n  # cells that are about to leave
        self._turning = [False] * n  # the pages are written, the rest of the step is to follow
        self._catching_up = [0] * n  # cells whose waiting rows are being processed
        self._messages: list[list[Callable[[], None]]] = [[] for _ in range(n)]
        stage.staged = self._stage_rows

    def hot_bytes(self, site: int) -> int:
        return len(self.resident[site]) * self.size

    def cold_bytes(self, site: int) -> int:
        return len(self.on_disk[site]) * self.size

    def when_free(self, site: int, action: Callable[[], None]) -> None:
        """Now, or when the site's I/O ends."""
        if self.stage.blocked[site]:
            self._messages[site].append(action)
        else:
            action()

    def set_memory(self, site: int, memory: int) -> None:
        self.bounded = True
        self.budget[site] = memory
        self.trace.note(self.kernel.now, f"site {site} has {memory} bytes")
        self.go_on(site)

    def go_on(self, site: int) -> None:
        """The next thing the site has to do about its memory, if any."""
        while not self.stage.blocked[site] and self._messages[site]:
            self._messages[site].pop(0)()
        if self.stage.blocked[site] or self.draining[site] or self._catching_up[site]:
            return
        room = self.hot_bytes(site) + self.size <= self.budget[site]
        if self.resident[site] and (self.hot_bytes(site) > self.budget[site] or (self._turning[site] and not room)):
            self._write(site)
        elif self._turning[site] and self.on_disk[site]:
            self._turning[site] = False
            cell = self.on_disk[site].popleft()
            self._io(site, self._reading(site, cell), lambda: self._activate(site, cell))

    # -- a cell leaves or comes ------------------------------------------------------------------------------------

    def fetch(self, site: int, cell: int, then: Callable[[], None]) -> None:
        """Have the cell in memory and nothing waiting for it, to be given away; it counts no more."""
        if not self.cold[cell]:
            self.resident[site].remove(cell)
            then()
            return
        self.on_disk[site].remove(cell)

        def read() -> None:
            self._thaw(site, cell)
            self._process(site, cell, then)

        self._io(site, self._reading(site, cell), read)

    def install(self, site: int, cell: int) -> None:
        self.resident[site].append(cell)

    # -- disk --------------------------------------------------------------------------------------------------------

    def _io(self, site: int, seconds: float, then: Callable[[], None]) -> None:
        self.stage.blocked[site] = True

        def end() -> None:
            self.stage.blocked[site] = False
            then()
            self.go_on(site)

        self.kernel.after(seconds, end)

    def _write(self, site: int) -> None:
        cell = self.resident[site].popleft()
        self.pack(site)
        self._freeze(site, cell)
        self._io(site, self.disk[site].seconds(self.size), lambda: self.on_disk[site].append(cell))

    def _rotate(self, site: int) -> None:
        pages = np.flatnonzero(self.in_page * self._at(site))
        staged = int(self.in_page[pages].sum()) * self.operator.row_bytes
        self.in_page[pages] = 0
        self._turning[site] = True
        self._io(site, self.disk[site].seconds(staged, len(pages)), lambda: None)

    def _at(self, site: int) -> Any:
        return self.stage.lanes.owner == site

    def _reading(self, site: int, cell: int) -> float:
        """A cell's state and the rows that wait for it."""
        rows = int(self.waiting[cell] - self.in_page[cell])
        disk = self.disk[site]
        return disk.seconds(self.size) + (disk.seconds(rows * self.operator.row_bytes) if rows else 0.0)

    def _activate(self, site: int, cell: int) -> None:
        self.pack(site)
        self._thaw(site, cell)
        self.resident[site].append(cell)
        self._process(site, cell, lambda: None)

    def pack(self, site: int) -> None:
        """Packing or unpacking one cell, charged to the site's CPU."""
        self.stage.credit[site] -= self.operator.handling * self.operator.cell_rows

    def _process(self, site: int, cell: int, then: Callable[[], None]) -> None:
        """The rows that waited for the cell, before anything else is done but to handle messages."""
        rows = int(self.waiting[cell])
        stage = self.stage
        work = rows * self.operator.service
        stage.credit[site] -= work
        seconds = work / max(float(stage.speed[site] * stage.left[site]), 1e-9)
        latency = rows * (self.kernel.now + seconds / 2) - float(self.arrived[cell])
        self.waiting[cell], self.arrived[cell], self.in_page[cell] = 0, 0.0, 0
        self._catching_up[site] += 1

        def processed() -> None:
            self._catching_up[site] -= 1
            self.trace.processed(rows, latency)
            then()
            self.go_on(site)

        self.kernel.after(seconds, processed)

    def _freeze(self, site: int, cell: int) -> None:
        # Rows taken so far belong to what was hot.
        if not self.stage.cold_sites:
            self.stage.lanes.tally()
        elif site not in self.stage.cold_sites:
            self.stage.lanes.cells_taken(site)
        self.cold[cell] = True
        self.stage.cold_sites.add(site)

    def _thaw(self, site: int, cell: int) -> None:
        self.cold[cell] = False
        if not self.on_disk[site]:
            self.stage.cold_sites.discard(site)

    def _stage_rows(self, site: int, cells: Any, when: float) -> None:
        np.add.at(self.waiting, cells, 1)
        np.add.at(self.arrived, cells, when)
        np.add.at(self.in_page, cells, 1)
        full = len(cells) and self.in_page[cells].max() >= self.page
        waits = self.draining[site] or self._turning[site] or self._catching_up[site]
        if full and not waits and self.resident[site] and self.on_disk[site]:
            self._rotate(site)
