"""Peak memory of a process and all its descendants, sampled from outside every 50 ms.

What is added up: resident memory for Java (it shares next to nothing), the proportional share (PSS) for every other
process, since Spark's Python workers are forks of one parent and would otherwise be counted many times over. Pages
of mapped files count as far as they are resident. Where the system has no PSS, resident minus shared is taken.
"""

from __future__ import annotations

import threading
import time

import psutil

PERIOD_S = 0.05
SEARCH_S = 0.5  # how often to look for new processes: it costs more than all the rest


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
        processes, search = tree(self._pid), SEARCH_S
        while not self._done.wait(PERIOD_S):
            now = time.perf_counter() - began
            if now >= search:
                processes, search = tree(self._pid), now + SEARCH_S
            size = sum(process_bytes(p) for p in processes)
            self.peak = max(self.peak, size)
            if not self.samples or now - self.samples[-1][0] >= 1.0:
                self.samples.append((round(now, 2), size))


def tree(pid: int) -> list[psutil.Process]:
    """The process and all below it; none if it has ended."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def process_bytes(process: psutil.Process) -> int:
    """Memory of one process; nothing for one that ends while we look."""
    try:
        if process.name() == "java":
            return int(process.memory_info().rss)
        full = process.memory_full_info()
        if hasattr(full, "pss"):
            return int(full.pss)
        return int(full.rss - getattr(full, "shared", 0))
    except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return 0
