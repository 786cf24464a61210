"""Sites that take their time: rows with a service time, sites that are slow for a while. For tests and experiments.

Many sites on a few cores behave like as many machines if each spends its time asleep. A row takes `service_us` at a
site of full speed; what the site really computes counts towards it. Cold state lies on a disk of `disk_bytes_s`.
`virtual` sites do not sleep but say that they did.

    with paced(Pace(service_us=50, slow=(Slow(site=3, factor=2.3, first=10),))):
        query = flow.writeStream...start()

The pace goes to the workers with each epoch's tasks; the product knows nothing of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from anabranch.site.clock import Clock
from anabranch.site.ticket import Ticket
from anabranch.spark.epoch import EpochBuilder
from anabranch.spark.mail import Post
from anabranch.spark.worker import SiteTask


@dataclass(frozen=True)
class Slow:
    """A site is slower by a factor, from one epoch to another (the last one not included; None: for good)."""

    site: int
    factor: float
    first: int = 0
    until: int | None = None

    def holds(self, site: int, epoch: int) -> bool:
        return site == self.site and self.first <= epoch and (self.until is None or epoch < self.until)


@dataclass(frozen=True)
class Pace:
    service_us: float  # of a row at a site of full speed
    slow: tuple[Slow, ...] = ()
    virtual: bool = False
    disk_bytes_s: float = float("inf")

    def row_s(self, site: int, epoch: int) -> float:
        """Seconds per row at a site in an epoch."""
        factor = 1.0
        for slow in self.slow:
            if slow.holds(site, epoch):
                factor *= slow.factor
        return self.service_us * factor / 1e6


class PacedClock(Clock):
    def __init__(self, row_s: float, byte_s: float, virtual: bool) -> None:
        super().__init__()
        self.row_s = row_s
        self.byte_s = byte_s
        self.virtual = virtual
        self.served_s = 0.0  # what the work so far should have taken

    def elapsed_ms(self) -> float:
        return self.served_s * 1000 if self.virtual else super().elapsed_ms()

    def worked_ms(self) -> float:
        return self.served_s * 1000  # asleep, but a machine of its own would be at work

    def worked(self, rows: int) -> None:
        self._serve(rows * self.row_s)

    def moved(self, bytes: int) -> None:
        self._serve(bytes * self.byte_s)

    def _serve(self, seconds: float) -> None:
        self.served_s += seconds
        if not self.virtual:
            time.sleep(max(self.served_s - super().elapsed_ms() / 1000, 0.0))


class PacedTask(SiteTask):
    def __init__(self, ticket: Ticket, sites: int, post: Post, pace: Pace) -> None:
        super().__init__(ticket, sites, post)
        self.pace = pace

    def clock(self, site: int) -> Clock:
        row_s = self.pace.row_s(site, self.ticket.epoch)
        return PacedClock(row_s, 1 / self.pace.disk_bytes_s, self.pace.virtual)


@contextmanager
def paced(pace: Pace | None) -> Iterator[None]:
    """Every query of this process is paced inside; None changes nothing."""
    if pace is None:
        yield
        return
    original = EpochBuilder.task

    def task(self: EpochBuilder, ticket: Ticket, sites: int) -> SiteTask:
        return PacedTask(ticket, sites, self.post, pace)

    EpochBuilder.task = task  # type: ignore[method-assign]
    try:
        yield
    finally:
        EpochBuilder.task = original  # type: ignore[method-assign]
