"""Rows on their way: none is lost or made twice, and stalled cells stand still while their neighbours go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anabranch.sim.lanes import Lanes
from anabranch.sim.rings import Rings
from anabranch.sim.scenario import Exchange

SITES, CELLS = 3, 6
OWNER = (0, 0, 1, 1, 2, 2)
ALL = np.full(SITES, 10**9)


def lanes(exchange: Exchange, cells: tuple[int, ...] = tuple(range(CELLS))) -> Lanes:
    """Producers that make rows of these cells with equal chance."""
    rng = np.random.default_rng(3)
    return Lanes(exchange, SITES, OWNER, lambda shape: rng.choice(np.array(cells, dtype=np.int16), size=shape))


def take(found: Lanes, *want: int) -> Any:
    return found.take(np.array(want)).sum(axis=0)


@pytest.mark.parametrize("shared", [True, False])
def test_every_row_made_is_taken_or_waits(shared: bool) -> None:
    found = lanes(Exchange(connection=4, packet=2, buffer=30, shared=shared))
    for step in range(50):
        found.make(ALL, 8)
        assert (found.tally() + found.waiting() == found.all_made()).all()
        assert (found.free() >= 0).all()
        if step == 20:
            found.stall(2)
        if step == 30:
            found.resume(2, 0)
        take(found, 9, 5, 0)
    assert found.all_made().sum() > 100


def test_a_slow_site_stops_the_producers_only_when_the_shared_buffer_is_full() -> None:
    """Site 2 takes nothing. With the buffer in the queues its share of it is all that helps."""
    taken = {}
    for shared in (True, False):
        found = lanes(Exchange(connection=4, packet=1, buffer=30, shared=shared))
        taken[shared] = sum(int(found.make(ALL, 8).sum() * 0 + take(found, 50, 50, 0).sum()) for _ in range(40))
    assert taken[True] > 1.5 * taken[False]


def test_a_stalled_cell_stands_still_and_what_is_in_flight_arrives() -> None:
    found = lanes(Exchange(connection=4, packet=2, buffer=100))
    found.make(ALL, 8)
    positions_of, until = found.stall(0)
    for _ in range(20):
        take(found, 100, 0, 0)
        found.make(ALL, 8)
    assert (found.head[positions_of] >= until).all()
    arrived = found.tally()[0]
    for _ in range(5):
        take(found, 100, 0, 0)
        found.make(ALL, 8)
    assert found.tally()[0] == arrived
    assert found.held[:, 0].sum() > 0
    found.resume(0, 1)
    for _ in range(5):
        take(found, 0, 100, 0)
        found.make(ALL, 8)
    assert found.tally()[0] > arrived


def test_cells_of_a_site_take_turns() -> None:
    """A cell that many rows wait for does not hold up its neighbour."""
    found = lanes(Exchange(connection=4, packet=1, buffer=400), cells=(0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
    found.make(ALL, 8)
    assert found.held[:, 0].sum() > 800
    before = found.tally().copy()
    for _ in range(10):
        take(found, 6, 0, 0)
        found.make(np.zeros(SITES, dtype=np.int64), 8)
    rows = found.tally() - before
    assert rows[1] > 0.3 * rows[0]


def test_a_connection_delivers_whole_packets_and_the_rest_when_it_stalls() -> None:
    found = lanes(Exchange(connection=24, packet=12, buffer=0), cells=(0,))
    found.make(np.array([7, 0, 0]), 8)
    assert take(found, 100, 0, 0).sum() == 0
    found.stall(0)
    assert take(found, 100, 0, 0).sum() == 7


def test_rings_keep_order_across_their_end() -> None:
    rings = Rings(2, 4, np.int16)
    for turn in range(5):
        rings.append(np.array([0, 0, 0, 1]), np.array([turn, turn + 10, turn + 20, turn + 30]))
        rings.remove(np.array([0]), turn + 10)
        assert rings.pop(np.array([0, 1]), np.array([2, 1])).tolist() == [turn, turn + 20, turn + 30]
