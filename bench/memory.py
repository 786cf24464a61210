"""Peak memory of a process and all its descendants, sampled from outside every 50 ms.

What is added up: resident memory for Java (it shares next to nothing), the proportional share (PSS) for every other
process, since Spark's Python workers are forks of one parent and would otherwise be counted many times over. Pages
of mapped files count as far as they are resident. Where the system has no PSS, resident minus shared is taken.

The kernel takes milliseconds to add up a PSS, and the engine would pay for it. So it is asked every 500 ms, together
with the list of processes, and in between the growth of the resident memory is added to it, which costs microseconds.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import psutil

PERIOD_S = 0.05
SURVEY_S = 0.5


class Sampler:
    """Watches one process tree from `start` to `stop`; `peak` and `samples` (seconds, bytes) are then final."""

    def __init__(self, pid: int) -> None:
        self.peak = 0
        self.samples: list[tuple[float, int]] = []
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        began = time.perf_counter()
        members: list[Member] = []
        surveyed = -SURVEY_S
        while not self._done.wait(PERIOD_S):
            now = time.perf_counter() - began
            if now - surveyed >= SURVEY_S:
                members, surveyed = survey(self._pid), now
            size = sum(m.bytes() for m in members)
            self.peak = max(self.peak, size)
            if not self.samples or now - self.samples[-1][0] >= 1.0:
                self.samples.append((round(now, 2), size))


@dataclass(frozen=True)
class Member:
    """One process of the tree, and how much of its resident memory others pay for."""

    process: psutil.Process
    shared: int

    def bytes(self) -> int:
        """Its memory now; nothing once it has ended."""
        try:
            return max(0, int(self.process.memory_info().rss) - self.shared)
        except psutil.Error:
            return 0


def survey(pid: int) -> list[Member]:
    """The process and all below it; none if it has ended."""
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    members = []
    for process in processes:
        try:
            members.append(Member(process, shared_bytes(process)))
        except psutil.Error:
            continue  # ended while we looked
    return members


def shared_bytes(process: psutil.Process) -> int:
    """The part of its resident memory that is not its own."""
    if process.name() == "java":
        return 0
    full = process.memory_full_info()
    if hasattr(full, "pss"):
        return int(full.rss - full.pss)
    return int(getattr(full, "shared", 0))
