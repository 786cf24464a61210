"""What runs in Spark's Python workers: one site of one stage. Sent by reference; the ticket is its only state."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
from pyspark import TaskContext

from anabranch.site.clock import Clock
from anabranch.site.stage import run_site
from anabranch.site.ticket import Ticket
from anabranch.spark.mail import Post


class SiteTask:
    """The function given to `mapInArrow`; a task's partition is its site.

    In a union of several subqueries, Spark numbers the tasks through: as each has one per site, and other rows stand
    behind them, the site is the remainder.
    """

    def __init__(self, ticket: Ticket, sites: int, post: Post) -> None:
        self.ticket = ticket
        self.sites = sites
        self.post = post

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        acknowledge_at_once()
        site = context.partitionId() % self.sites
        report = yield from run_site(self.ticket, site, batches, executor(), self.clock(site))
        self.post(report.to_text())

    def clock(self, site: int) -> Clock:
        return Clock()


@cache
def executor() -> str:
    """The executor that this worker belongs to, as host/pid; outside Linux the pid of the workers' common parent.

    A worker is forked by a daemon that the executor's JVM started, so the JVM is its grandparent.
    """
    daemon = os.getppid()
    try:
        with open(f"/proc/{daemon}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        pid = daemon
    return f"{socket.gethostname()}/{pid}"


def acknowledge_at_once() -> None:
    """Spare the first rows of a task a wait of 40 ms.

    Spark writes to a worker in several small pieces over loopback TCP. The kernel holds the next piece back until the
    one before is acknowledged, and acknowledges late what nobody answers. Unix sockets
    (`spark.python.unix.domain.socket.enabled`) have no such wait; where they are not set this takes it away.
    """
    if not hasattr(socket, "TCP_QUICKACK"):
        return
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as own:
                    if own.family in (socket.AF_INET, socket.AF_INET6) and own.type == socket.SOCK_STREAM:
                        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        except OSError:
            continue
