"""Kernel: virtual time, a heap of what is due, and the flow of rows between two of these moments.

What is discrete (a phase that ends, a message, a transfer, a load that comes) is an event at its exact time. What is
many and small (rows) flows in quanta: between two events the flow is advanced in steps of at most one quantum, and
never across an event. Events of one time run in the order in which they were asked for, so a run is the same each time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Protocol


class Flow(Protocol):
    def advance(self, now: float, step: float) -> None:
        """From `now` to `now + step`, a time without events."""


class Kernel:
    def __init__(self, quantum: float) -> None:
        self.now = 0.0
        self.quantum = quantum
        self.events = 0
        self.flow: Flow | None = None
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._asked = 0

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Run the action then; at once, but after what is already due, if that is past."""
        heapq.heappush(self._due, (max(time, self.now), self._asked, action))
        self._asked += 1

    def after(self, delay: float, action: Callable[[], None]) -> None:
        self.at(self.now + delay, action)

    def run(self, until: float) -> None:
        while True:
            while self._due and self._due[0][0] <= self.now:
                self.events += 1
                heapq.heappop(self._due)[2]()
            if self.now >= until:
                return
            target = min(until, self._due[0][0]) if self._due else until
            self._flow_to(target)

    def _flow_to(self, target: float) -> None:
        """One step at most: a step may itself ask for an event before the target."""
        left = target - self.now
        step = left if left <= self.quantum * 1.000001 else self.quantum
        if self.flow is not None:
            self.flow.advance(self.now, step)
        self.now = target if step == left else self.now + step
