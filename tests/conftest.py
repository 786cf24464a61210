"""What every test shares: one time zone, one Spark session for the tests that need one, and no leftovers after any."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["TZ"] = "UTC"
time.tzset()
# Temporary folders of this run, its workers and its children: what another run leaves behind is not ours to find.
tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="tests-")
atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session with two task slots."""
    import anabranch as ab

    session = ab.session(
        "anabranch-tests",
        master="local[2]",
        spark__sql__session__timeZone="UTC",
        spark__sql__shuffle__partitions="2",
        spark__sql__warehouse__dir=str(tmp_path_factory.mktemp("warehouse")),
    )
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_leftovers(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test with a session leaves no running query, no thread of ours and no temporary folder of ours behind."""
    if "spark" not in request.fixturenames:
        yield
        return
    before = ours()
    yield
    session = request.getfixturevalue("spark")
    running = list(session.streams.active)
    for query in running:
        query.stop()
    deadline = time.monotonic() + 5
    while threads() and time.monotonic() < deadline:
        time.sleep(0.02)
    left = [*(f"query {q.name or q.id}" for q in running), *threads(), *sorted(ours() - before)]
    assert not left, f"left behind: {', '.join(left)}"


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("anabranch")]


def ours() -> set[str]:
    """Temporary folders that belong to a query; the workers' caches outlive queries on purpose."""
    return {
        str(p) for kind in ("checkpoint", "memory") for p in Path(tempfile.gettempdir()).glob(f"anabranch-{kind}-*")
    }
