"""Where a process can die: the stages of an epoch, of a start and of an end, by name.

A stage is a place in the product's own methods. `install` wraps one of them from outside, so that the product knows
nothing of it and pays nothing for it; the n-th time the place is reached, the given action is taken, for example
`kill`. The order of the list is the order in which a run comes by.

    install("manifest.written", 2, kill)      # the process dies when its second manifest is aside, but not yet in place
"""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from anabranch.spark.epoch import EpochBuilder
from anabranch.spark.runtime import Runtime
from anabranch.spark.sinks import FileSink, ForeachBatchSink
from anabranch.spark.sinks.filelog import FileLog
from anabranch.state import store as stores
from anabranch.state.manifest import ManifestLog
from anabranch.state.pending import Pending

Action = Callable[[], None]

# name -> (owner of the method, the method, whether the place is after it)
PLACES: dict[str, tuple[Any, str, bool]] = {
    "start": (Runtime, "open", False),
    "start.sweep": (ManifestLog, "sweep", False),
    "start.swept": (ManifestLog, "sweep", True),
    "start.marked": (FileLog, "mark", True),
    "started": (Runtime, "open", True),
    "batch.given": (Runtime, "on_batch", False),  # Spark has written its offsets
    "epoch": (Runtime, "run_epoch", False),
    "pending.noted": (Pending, "write", True),
    "planned": (EpochBuilder, "build", True),
    "sink.staged": (FileSink, "_move_in", False),  # the sites are done
    "sink.moving": (FileSink, "_empty", False),  # once per file, before it moves
    "sink.moved": (FileSink, "_move_in", True),
    "sink.entering": (FileLog, "_move_new", False),  # the log entry is aside
    "sink.entered": (FileLog, "append", True),
    "sink.written": (FileSink, "write", True),
    "function.before": (ForeachBatchSink, "write", False),  # the sites are done
    "function.after": (ForeachBatchSink, "write", True),
    "manifest": (ManifestLog, "commit", False),
    "manifest.written": (stores, "_rename_new", False),  # aside, not yet in place
    "manifest.done": (ManifestLog, "commit", True),
    "retained": (ManifestLog, "retain", True),
    "epoch.done": (Runtime, "run_epoch", True),
    "batch.done": (Runtime, "on_batch", True),  # Spark has not yet noted it
    "closing": (Runtime, "own_epoch", False),
    "closed": (Runtime, "own_epoch", True),
    "finish": (Runtime, "finish", False),
    "finished": (Runtime, "finish", True),
}
# Places that no method marks: while the sites are at work, as the first new segment appears; and between the two
# deletions of a retention.
SITES = "sites"
RETAINING = "retaining"
STAGES = (*PLACES, SITES, RETAINING)


def kill() -> None:
    """What a power switch does to a process."""
    os.kill(os.getpid(), signal.SIGKILL)


def install(stage: str, nth: int, action: Action) -> Callable[[], None]:
    """Take the action at the n-th time that the stage is reached; gives back what removes it again."""
    reached = _Counter(nth, action)
    if stage == SITES:
        return _wrap(Runtime, "_write", lambda method: _watching(method, reached))
    if stage == RETAINING:
        return _wrap(ManifestLog, "retain", lambda method: _between_deletions(method, reached))
    owner, name, after = PLACES[stage]
    return _wrap(owner, name, lambda method: _at(method, reached, after))


def after(seconds: float, action: Action) -> None:
    """Take the action at a time, wherever the process is then."""
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()


class _Counter:
    def __init__(self, nth: int, action: Action) -> None:
        self.left = nth
        self.action = action

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.action()


def _wrap(owner: Any, name: str, wrapped: Callable[[Any], Any]) -> Callable[[], None]:
    original = getattr(owner, name)
    setattr(owner, name, wrapped(original))
    return lambda: setattr(owner, name, original)


def _at(method: Any, reached: Action, after: bool) -> Any:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not after:
            reached()
        result = method(*args, **kwargs)
        if after:
            reached()
        return result

    return call


def _watching(method: Any, reached: Action) -> Any:
    """A thread looks for a segment that is not there before the sites begin."""

    @functools.wraps(method)
    def call(self: Runtime, *args: Any, **kwargs: Any) -> Any:
        known = set(self.store.list("segments"))
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                if set(self.store.list("segments")) - known:
                    reached()
                    return
                time.sleep(0.001)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            return method(self, *args, **kwargs)
        finally:
            done.set()
            watcher.join()

    return call


def _between_deletions(method: Any, reached: Action) -> Any:
    """Manifests are deleted before segments: stop at the second call."""

    @functools.wraps(method)
    def call(self: ManifestLog, *args: Any, **kwargs: Any) -> Any:
        store = self._store
        calls = 0

        def delete(paths: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                reached()
            type(store).delete(store, paths)

        store.delete = delete  # type: ignore[method-assign]
        try:
            return method(self, *args, **kwargs)
        finally:
            del store.delete

    return call
