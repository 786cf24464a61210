"""Network: transfers of state that share bandwidth, each direction of a pair of sites and all of them together.

Every transfer gets the least of the point-to-point limit and an even share of the cross-section; when one begins or
ends, the others' rates change. Several transfers between the same two sites share that connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from anabranch.sim.kernel import Kernel
from anabranch.sim.scenario import Network


@dataclass
class Transfer:
    donor: int
    receiver: int
    left: float
    done: Callable[[], None]
    rate: float = 0.0


class Transfers:
    def __init__(self, kernel: Kernel, network: Network) -> None:
        self.kernel = kernel
        self.network = network
        self.bytes = 0.0
        self._running: list[Transfer] = []
        self._since = 0.0
        self._version = 0

    def start(self, donor: int, receiver: int, size: float, done: Callable[[], None]) -> None:
        """`done` is called when the last byte has arrived."""
        self.bytes += size
        self._progress()
        self._running.append(Transfer(donor, receiver, max(size, 1.0), done))
        self._share()

    def _progress(self) -> None:
        passed = self.kernel.now - self._since
        if passed > 0:
            for transfer in self._running:
                transfer.left -= transfer.rate * passed
        self._since = self.kernel.now

    def _share(self) -> None:
        """New rates, and the moment of the next end under them."""
        pairs = Counter((t.donor, t.receiver) for t in self._running)
        for t in self._running:
            point = self.network.point_to_point
            whole = self.network.cross_section
            t.rate = min(
                float("inf") if point is None else point / pairs[t.donor, t.receiver],
                float("inf") if whole is None else whole / len(self._running),
            )
        self._version += 1
        if self._running:
            version = self._version
            soonest = min(0.0 if t.rate == float("inf") else t.left / t.rate for t in self._running)
            self.kernel.after(soonest, lambda: self._end(version))

    def _end(self, version: int) -> None:
        if version != self._version:
            return  # the rates have changed since this was foreseen
        self._progress()
        ended = [t for t in self._running if not t.left > 1e-6 * t.rate]
        self._running = [t for t in self._running if t.left > 1e-6 * t.rate]
        self._share()
        for t in ended:
            self.kernel.after(self.network.latency, t.done)
