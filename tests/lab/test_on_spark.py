"""A scenario as a query: what becomes of its parts, and what its epochs say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anabranch.lab.agreement import comparable
from anabranch.lab.machine import Emulation, machine_sized
from anabranch.lab.measures import steady_latency
from anabranch.lab.on_spark import LEAD, PARTS, OnSpark, trace
from anabranch.lab.registry import BUILDERS
from anabranch.sim.scenario import MB, Adaptation, CpuLoad, MemoryCut, Producers, Site, TwoLevel, Uniform
from anabranch.testing import Run, Slow
from tests.lab.samples import CALM

ROOT = Path(__file__).parents[2]
EMULATION = Emulation(epoch=0.5, epochs=6, slow_motion=2.0, rows=100, cells_per_site=16)
RUNNER = OnSpark(None, EMULATION, Path())


def test_loads_become_slow_sites_by_epoch() -> None:
    loads = (CpuLoad(1, 0.5, left=0.5), CpuLoad(0, 1.0, 2.0, left=0.25))
    pace = RUNNER.pace(replace(CALM, loads=loads))
    assert pace.slow[:2] == (Slow(0, 0.1, 0, LEAD), Slow(1, 0.1, 0, LEAD))
    assert pace.slow[2:] == (Slow(1, 2.0, LEAD + 1), Slow(0, 4.0, LEAD + 2, LEAD + 4))
    assert pace.service_us * EMULATION.rows == 1e6  # an epoch of half a second, at half the speed


def test_keys_become_weights_of_cells_by_epoch() -> None:
    skewed = TwoLevel(rows=0.8, groups=0.25)
    load = RUNNER.load(replace(CALM, producers=Producers(skewed, phases=((1.0, Uniform(), None),))))
    assert (load.epochs, load.sites, load.cells, load.rows) == (LEAD + 8, 2, 32, 200)
    assert load.weights is not None
    assert sum(load.weights(0)[:8]) == pytest.approx(0.8)
    assert load.weights(LEAD + 1) == load.weights(0)
    assert sum(load.weights(LEAD + 2)[:8]) == pytest.approx(0.25)


def test_what_befalls_between_two_epochs_befalls_the_later_one() -> None:
    assert [RUNNER.at(s) - LEAD for s in (0.0, 0.1, 0.5, 0.7, 3.0)] == [0, 1, 1, 2, 6]


def test_the_policy_becomes_an_option() -> None:
    assert RUNNER.options(CALM)["policies"] == "static"
    assert RUNNER.options(replace(CALM, adaptation=Adaptation("flux.hybrid")))["policies"] == "flux.hybrid"


class Query:
    """As much of a runtime as events touch."""

    def __init__(self) -> None:
        self.memory: dict[int, int | None] = {}
        self.paused: list[bool] = []
        self.adaptation = self

    def pause(self, paused: bool) -> None:
        self.paused.append(paused)

    def recent_progress(self, spark: Any) -> list[Any]:
        return [{"sites": [{"hotBytes": 300}, {"hotBytes": 200}]}]


def test_memory_is_cut_in_proportion_to_the_state_there_is() -> None:
    sites = (Site(memory=1024 * MB), Site(memory=1024 * MB))
    scenario = replace(CALM, sites=sites, cuts=(MemoryCut(1, 1.0, 256 * MB),))
    scenario = replace(scenario, operator=replace(CALM.operator, cells_per_site=8, cell_bytes=64 * MB))
    told: list[tuple[int, int]] = []
    events = RUNNER.events(scenario, 9, lambda epoch, of: told.append((epoch, of)))
    query: Any = Query()
    for epoch in range(9):
        events[epoch](query)
        if epoch == LEAD:
            assert query.memory == {0: 600, 1: 600}
    assert query.memory == {0: 600, 1: 150}
    assert query.paused == [True, False]
    assert told == [(n, 9) for n in range(1, 10)]


def epoch(number: int, ms: float, held: int) -> dict[str, Any]:
    sites = [
        {"numInputRows": 100, "heldRows": held, "busyMs": 800.0},
        {"numInputRows": 100, "heldRows": 0, "busyMs": 400.0},
    ]
    return {"epoch": number, "durationMs": {"triggerExecution": ms}, "sites": sites}


def test_epochs_become_a_trace_in_the_seconds_and_rows_of_the_experiment() -> None:
    move = {
        "verdict": "enacted", "at": float(LEAD), "action": {"kind": "move", "operator": "o", "cell": 5, "site": 1},
        "predicted": {"donor": 0, "receiver": 1},
    }  # fmt: skip
    progress = [epoch(n, 5000, 0) for n in range(LEAD)]
    progress += [epoch(LEAD, 1000, 40), epoch(LEAD + 1, 2000, 0)]
    made = trace(Run(progress, [move], 200, []), EMULATION, service=1e-3)
    assert (made.samples[0].start, made.samples[-1].end) == (0.0, 1.5)
    assert made.throughput(0.0, 0.5) * 0.5 == pytest.approx(160 * 5)  # each row stands for five
    assert made.throughput(0.5, 1.5) == pytest.approx(240 * 5)
    assert made.latency(0.5, 1.5) == pytest.approx(0.6 / 1200)
    assert made.latency(0.0, 0.5) == pytest.approx((0.6 + 40 * 5 * 0.5) / 800)
    assert [(m.started, m.cell, m.donor, m.receiver) for m in made.moves] == [(0.5, 5, 0, 1)]


@pytest.mark.spark
def test_rows_take_long_at_a_loaded_site_until_cells_have_moved(spark: Any, tmp_path: Path) -> None:
    """Told by what sites say of themselves, which is the same on a busy machine; epochs are not."""
    emulation = replace(EMULATION, slow_motion=1.0)
    runner = OnSpark(spark, emulation, tmp_path)
    loaded = replace(CALM, loads=(CpuLoad(1, 0.5, left=0.25),), seconds=3.0)
    adapted = replace(loaded, adaptation=Adaptation("balance"))
    told: list[int] = []
    runs = [machine_sized(s, emulation) for s in (loaded, adapted)]
    static, flux = (runner.run(s, lambda epoch, of: told.append(epoch)) for s in runs)
    assert told == list(range(1, LEAD + 7)) * 2
    assert len(static.samples) == len(flux.samples) == 6 * PARTS
    assert sum(s.rows for s in static.samples) == sum(s.rows for s in flux.samples) == 6 * 2 * 500
    assert steady_latency(static) > 1.8 * static.samples[0].mean_latency
    assert steady_latency(flux) < 0.85 * steady_latency(static)
    assert static.moves == []
    assert {m.donor for m in flux.moves} == {1}


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("name", comparable(list(BUILDERS)))
def test_simulator_and_spark_agree(name: str, tmp_path: Path) -> None:
    """In a process of its own, whose session has a task slot for each site."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "TZ": "UTC"}
    command = [sys.executable, "-m", "anabranch.cli", "lab", "run", name, "--spark", "--out", str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=1500)
    findings = json.loads((tmp_path / f"{name}.spark.json").read_text())["findings"]
    assert len(findings) >= 3
    assert [f for f in findings if not f["reproduced"]] == [], told.stdout
    assert told.returncode == 0, told.stdout + told.stderr
