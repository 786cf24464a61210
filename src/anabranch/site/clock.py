"""The site's clock: how long it has been at work. A collaborator, so that a test can make a site slow."""

from __future__ import annotations

import time


class Clock:
    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._spent = time.process_time()

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._begin) * 1000

    def worked_ms(self) -> float:
        """What the site itself did of that, its waiting for a processor left out."""
        return (time.process_time() - self._spent) * 1000

    def worked(self, rows: int) -> None:
        """So many input rows have been processed."""

    def moved(self, bytes: int) -> None:
        """So much cold state has been read or written."""
