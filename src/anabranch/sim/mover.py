"""Mover: a cell's way from one site to another (F6), message by message.

The order reaches the donor; the donor asks all producers to stall the cell; each acknowledges behind the rows that it
has in flight to the donor, so the cell is quiet when the donor has taken all of these; the donor packs the state; it is
transferred beside everything else; the receiver unpacks it; producers resume. Meanwhile the producers' buffers hold the
cell's rows, and every other cell goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from anabranch.control.actions import Move
from anabranch.routing.assignment import Assignment
from anabranch.sim.kernel import Kernel
from anabranch.sim.network import Transfers
from anabranch.sim.scenario import Scenario
from anabranch.sim.spill import Spill
from anabranch.sim.stage import Stage
from anabranch.sim.trace import Moved, Trace


@dataclass
class Mover:
    kernel: Kernel
    scenario: Scenario
    stage: Stage
    spill: Spill
    transfers: Transfers
    assignment: Assignment
    trace: Trace

    def start(self, move: Move, done: Callable[[], None]) -> None:
        """Order the move now; `done` when the receiver has the cell and its input flows again."""
        kernel, latency = self.kernel, self.scenario.network.latency
        donor, receiver, cell = self.assignment.owner[move.cell], move.site, move.cell
        operator = self.scenario.operator
        began, quiet = kernel.now, kernel.now

        def ordered() -> None:
            self.spill.draining[donor] += 1
            kernel.after(latency, stalled)

        def stalled() -> None:
            lanes, flying = self.stage.lanes.stall(cell)
            self.stage.watch(lanes, flying, lambda: self.spill.when_free(donor, quiesced))

        def quiesced() -> None:
            nonlocal quiet
            quiet = kernel.now
            self.spill.fetch(donor, cell, fetched)

        def fetched() -> None:
            self.spill.pack(donor)
            kernel.after(self._handling(donor), packed)

        def packed() -> None:
            self.spill.draining[donor] -= 1
            self.transfers.start(donor, receiver, operator.cell_bytes, arrived)
            self.spill.go_on(donor)

        def arrived() -> None:
            self.spill.when_free(receiver, received)

        def received() -> None:
            self.spill.pack(receiver)
            kernel.after(self._handling(receiver) + latency, installed)

        def installed() -> None:
            self.stage.lanes.resume(cell, receiver)
            self.spill.install(receiver, cell)
            self.assignment = self.assignment.moved(cell, receiver)
            self.trace.moves.append(Moved(began, quiet, kernel.now, move.operator, cell, donor, receiver))
            self.spill.go_on(receiver)
            done()

        kernel.after(latency, lambda: self.spill.when_free(donor, ordered))

    def _handling(self, site: int) -> float:
        """How long packing or unpacking one cell takes at the site as it is now."""
        operator = self.scenario.operator
        share = max(float(self.stage.speed[site] * self.stage.left[site]), 1e-9)
        return operator.handling * operator.cell_rows / share
