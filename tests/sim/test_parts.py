"""Kernel, network, loads, keys and disk, each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.sim.kernel import Kernel
from anabranch.sim.keys import cell_weights, group_weights
from anabranch.sim.loads import share_left
from anabranch.sim.network import Transfers
from anabranch.sim.scenario import Disk, Network, SelfSimilar, TwoLevel, Uniform


class Steps:
    def __init__(self) -> None:
        self.seen: list[tuple[float, float]] = []

    def advance(self, now: float, step: float) -> None:
        self.seen.append((round(now, 9), round(step, 9)))


def test_events_come_in_time_and_in_the_order_of_asking() -> None:
    kernel, seen = Kernel(0.1), []
    for name, time in (("b", 0.2), ("a", 0.1), ("c", 0.2)):
        kernel.at(time, lambda name=name: seen.append((name, round(kernel.now, 9))))  # type: ignore[misc]
    kernel.run(1.0)
    assert seen == [("a", 0.1), ("b", 0.2), ("c", 0.2)]


def test_the_flow_never_crosses_an_event() -> None:
    kernel, steps = Kernel(0.1), Steps()
    kernel.flow = steps
    kernel.at(0.25, lambda: kernel.after(0.02, lambda: None))
    kernel.run(0.4)
    assert steps.seen == [(0.0, 0.1), (0.1, 0.1), (0.2, 0.05), (0.25, 0.02), (0.27, 0.1), (0.37, 0.03)]


def test_transfers_share_the_network() -> None:
    """Two of one pair share its 10; a third of another pair has its own; together they have 15."""
    kernel, ended = Kernel(1.0), {}
    network = Transfers(kernel, Network(latency=0.0, point_to_point=10, cross_section=15))
    for name, donor, size in (("a", 0, 50), ("b", 0, 50), ("c", 1, 50)):
        network.start(donor, 2, size, lambda name=name: ended.update({name: kernel.now}))  # type: ignore[misc]
    kernel.run(100.0)
    assert ended == pytest.approx({"a": 10.0, "b": 10.0, "c": 10.0})
    network.start(0, 2, 100, lambda: ended.update(d=kernel.now))
    kernel.run(200.0)
    assert ended["d"] == pytest.approx(110.0)


def test_a_load_leaves_whole_rows_between_its_wakings() -> None:
    assert share_left(100e-6, 50e-6, 45e-6) == pytest.approx(90 / 190)
    assert share_left(0.0, 1.0, 45e-6) == 1.0


def test_self_similar_keys_are_80_20_at_every_scale() -> None:
    weights = group_weights(SelfSimilar(0.2), 10_000)
    assert weights[:2000].sum() == pytest.approx(0.8, abs=1e-6)
    assert weights[:400].sum() == pytest.approx(0.64, abs=1e-6)
    assert group_weights(TwoLevel(0.8, 0.2), 1000)[:200].sum() == pytest.approx(0.8)


@pytest.mark.parametrize("keys", [Uniform(), SelfSimilar(0.2), SelfSimilar(0.2, order=4)])
def test_cells_together_get_every_row(keys: Uniform | SelfSimilar) -> None:
    weights = cell_weights(keys, 1000, 64)
    assert weights.sum() == pytest.approx(1)
    assert np.all(weights > 0)


def test_a_disk_seeks_and_then_streams() -> None:
    assert Disk(bandwidth=20e6, seek=5e-3).seconds(6e6, 2) == pytest.approx(0.31)
