"""Whole runs at a small size: the same each time, the same at any quantum, and as fast as promised."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from anabranch.lab.experiment import Size
from anabranch.lab.flux.common import flux, load, scenario
from anabranch.sim.scenario import MemoryCut, Operator, Producers, Scenario, SelfSimilar, Site
from anabranch.sim.world import built, run

TINY = Size(sites=4, quantum=1e-2)
SKEW = Producers(SelfSimilar(0.2, order=1))


def loaded(seconds: float = 6.0, seed: int = 1, quantum: float = 1e-2) -> Scenario:
    made = scenario(TINY, seconds, seed, loads=(load(1),), adaptation=flux())
    return replace(made, quantum=quantum)


def test_the_same_seed_is_the_same_run_and_another_seed_another() -> None:
    first = run(loaded(4.0))
    assert run(loaded(4.0)).digest() == first.digest()
    assert run(loaded(4.0, seed=2)).digest() != first.digest()
    assert first.moves


def test_sites_do_what_their_cpu_allows() -> None:
    """45 us a row and half a microsecond to produce one."""
    assert run(scenario(TINY, 2.0, 1)).throughput() == pytest.approx(4 / 45.5e-6, rel=0.01)


def test_the_quantum_does_not_change_the_answer() -> None:
    """Throughput before the load comes and after it has been answered, and how many cells left the loaded site."""
    coarse, fine = run(loaded()), run(loaded(quantum=1e-3))
    for span in ((0, 1), (4, 6)):
        assert coarse.throughput(*span) == pytest.approx(fine.throughput(*span), rel=0.04)
    left = [sum((m.donor == 1) - (m.receiver == 1) for m in t.moves) for t in (coarse, fine)]
    assert abs(left[0] - left[1]) <= 3


def test_rows_are_neither_lost_nor_made_twice_while_cells_move() -> None:
    world = built(scenario(TINY, 3.0, 1, producers=SKEW, adaptation=flux()))
    for until in (0.5, 1.0, 2.0, 3.0):
        world.run(until)
        lanes = world.lanes
        assert (lanes.tally() + lanes.waiting() == lanes.all_made()).all()
    assert len(world.trace.moves) > 5
    owner = [world.mover.assignment.owner[m.cell] for m in world.trace.moves[-1:]]
    assert owner == [world.trace.moves[-1].receiver]


def test_a_loaded_site_slows_all_down_and_its_cells_leave_it() -> None:
    static = run(replace(loaded(), adaptation=None))
    assert static.throughput(5, 6) == pytest.approx(0.43 * static.throughput(0, 1), rel=0.05)
    assert run(loaded()).throughput(5, 6) > 1.8 * static.throughput(5, 6)


def short(policy: str | None, seconds: float = 12.0) -> Scenario:
    """16 cells of 6 MB a site; from 1 s on site 0 has memory for 8 of them."""
    operator = Operator(cells_per_site=16, cell_bytes=6_000_000)
    cut = (MemoryCut(0, 1.0, 50_000_000),)
    made = scenario(TINY, seconds, 1, operator=operator, cuts=cut, adaptation=policy and flux(policy))
    return replace(made, sites=tuple(Site(memory=150_000_000) for _ in made.sites))


def test_state_beyond_the_memory_goes_to_disk_and_its_rows_wait() -> None:
    world = built(short(None))
    trace = world.run()
    assert trace.throughput(2, 3) < 0.05 * trace.throughput(0, 1)  # while 8 cells are written
    assert 0 < trace.throughput(6, 12) < 0.6 * trace.throughput(0, 1)
    assert trace.latency(6, 12) > 0.1
    assert world.spill.hot_bytes(0) <= 50_000_000
    assert world.spill.waiting.sum() > 0
    assert world.spill.cold_bytes(0) == 48_000_000


def test_moves_bring_all_back_into_memory() -> None:
    world = built(short("flux.memory"))
    trace = world.run()
    assert world.spill.cold_bytes(0) == 0
    assert trace.latency(11, 12) == pytest.approx(45e-6, rel=0.05)
    assert {m.donor for m in trace.moves} == {0}
    assert len(trace.moves) == 8


def test_a_second_of_a_large_cluster_takes_less_than_half_a_second() -> None:
    """60 virtual seconds of 32 sites in under 30 real ones, at a small scale and on this process's own CPU time."""
    world = built(scenario(Size(), 3.0, 1))
    began = time.process_time()
    trace = world.run()
    assert time.process_time() - began < 3.0 * 30 / 60
    assert trace.throughput() == pytest.approx(6.9e5, rel=0.05)
