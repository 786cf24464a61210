"""Sites on a cluster: they stay on their executors, and an executor that dies takes nothing with it but time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """In a process of its own: a process has one Spark session, and the other tests' is a local one."""
    folder = tmp_path_factory.mktemp("cluster")
    env = {**os.environ, "TZ": "UTC", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    with (folder / "log.txt").open("w") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.child", str(folder), "chain"],
            cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        try:
            child.wait(600)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == 0, (folder / "log.txt").read_text()[-4000:]
    result: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return result


def at_home(epochs: list[dict[str, Any]]) -> float:
    """The share of sites, over all epochs, that ran where the site ran most often, with all their stages."""
    found = []
    for places in zip(*(e["where"] for e in epochs), strict=True):
        home = max(places, key=places.count)
        assert len(home) == 1
        found += [place == home for place in places]
    return sum(found) / len(found)


def test_a_query_survives_the_death_of_an_executor_with_the_same_answer(run: dict[str, Any]) -> None:
    assert 3 < run["died"]["epoch"] < run["epochs"][-1]["epoch"] - 3
    assert run["rows"] > 100
    assert run["same"]


def test_sites_stay_on_their_executors(run: dict[str, Any]) -> None:
    before = [e for e in run["epochs"] if e["epoch"] < run["died"]["epoch"]]
    assert len({place for e in before for places in e["where"] for place in places}) > 1
    assert at_home(before) >= 0.95, before


def test_sites_of_a_dead_executor_move_and_then_stay_again(run: dict[str, Any]) -> None:
    dead = run["died"]["where"]
    after = [e for e in run["epochs"] if e["epoch"] > run["died"]["epoch"]]
    assert all(dead not in places for e in after for places in e["where"])
    assert at_home(after) >= 0.95, after
