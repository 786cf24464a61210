"""What runs in Spark's Python workers: one site of one stage. Sent by reference; the ticket is its only state."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
from pyspark import TaskContext

from anabranch.site.stage import run_site
from anabranch.site.ticket import Ticket


class SiteTask:
    """The function given to `mapInArrow`; a task's partition is its site.

    In a union of several subqueries, Spark numbers the tasks through: as each has one per site, and other rows stand
    behind them, the site is the remainder.
    """

    def __init__(self, ticket: Ticket, sites: int) -> None:
        self.ticket = ticket
        self.sites = sites

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        yield from run_site(self.ticket, context.partitionId() % self.sites, batches, executor())


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
