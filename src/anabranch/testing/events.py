"""What befalls a running query, by epoch: a site loses memory, an executor dies, somebody asks for other sites.

    with befalls({20: shrink(3, 64 << 20), 30: rescale(8)}):
        query = flow.writeStream...start()

An event is a function of the runtime, called before the epoch of that number begins, in the thread that runs it.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from anabranch.control.actions import Move, Resize
from anabranch.spark.runtime import Runtime

Event = Callable[[Runtime], None]


@contextmanager
def befalls(events: Mapping[int, Event]) -> Iterator[None]:
    """Every query of this process, inside."""
    original = Runtime.run_epoch

    @functools.wraps(original)
    def run_epoch(self: Runtime, *args: Any, **kwargs: Any) -> None:
        event = events.get(self.manifest.epoch + 1)
        if event is not None:
            event(self)
        original(self, *args, **kwargs)

    Runtime.run_epoch = run_epoch  # type: ignore[method-assign]
    try:
        yield
    finally:
        Runtime.run_epoch = original  # type: ignore[method-assign]


def shrink(site: int, bytes: int | None) -> Event:
    """The site has so much memory for hot state from now on."""

    def event(runtime: Runtime) -> None:
        runtime.memory[site] = bytes

    return event


def rescale(sites: int) -> Event:
    return lambda runtime: runtime.ask(Resize(sites))


def move(operator: str, cell: int, site: int) -> Event:
    return lambda runtime: runtime.ask(Move(operator, cell, site))


def kill_executor(site: int) -> Event:
    """The executor that the site ran on dies; only where it is a process of its own (local-cluster)."""

    def event(runtime: Runtime) -> None:
        places = runtime.recent_progress(None)[-1]["sites"][site]["where"]
        os.kill(int(places[0].partition("/")[2]), signal.SIGKILL)

    return event


def several(*events: Event) -> Event:
    def event(runtime: Runtime) -> None:
        for one in events:
            one(runtime)

    return event
