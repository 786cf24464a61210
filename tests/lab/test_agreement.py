"""Spark beside the simulator: what is run, and when the two agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anabranch.lab.agreement import (
    COMPARED,
    LATENCY,
    THROUGHPUT,
    Yardstick,
    agreement,
    comparable,
    overlaid,
    selected,
    undisturbed,
)
from anabranch.lab.experiment import Results
from anabranch.lab.machine import MACHINE, Emulation, machine_sized
from anabranch.lab.registry import BUILDERS, built
from anabranch.lab.results import Finding
from anabranch.sim.scenario import MemoryCut, Site
from tests.lab.samples import CALM, flat, halved


def found(simulated: tuple[int, int], spark: tuple[int, int], yardstick: Yardstick = THROUGHPUT) -> list[Finding]:
    one, two = (Results({("calm", None): flat(a), ("loaded", None): flat(b)}) for a, b in (simulated, spark))
    return agreement(halved(), one, two, yardstick)


def test_of_what_is_asked_for_only_what_can_run_on_spark_is_compared() -> None:
    assert set(comparable(list(BUILDERS))) >= {"flux.fig6", "flux.fig7"}
    assert comparable(list(BUILDERS)) == [name for name in BUILDERS if name in COMPARED]
    assert comparable(["flux.fig6", "flux.fig8"]) == ["flux.fig6"]


def test_drivers_agree_within_ten_points_of_the_undisturbed_throughput() -> None:
    share, order = found((1000, 430), (400, 210))
    assert share.reproduced
    assert (share.paper, share.text) == ("0.43", "0.53")
    assert order.reproduced
    share, _ = found((1000, 430), (400, 214))
    assert not share.reproduced


def test_the_order_of_variants_counts_where_they_have_one() -> None:
    assert [f.reproduced for f in found((1000, 940), (1000, 1030))] == [True, False]
    assert [f.reproduced for f in found((1000, 955), (1000, 1030))] == [True, True]


def test_latencies_agree_when_rows_wait_on_both_or_on_neither() -> None:
    def latency(calm: float, other: float) -> Results:
        return Results({("calm", None): flat(1000, latency=calm), ("loaded", None): flat(1000, latency=other)})

    for other, agree in ((1.9, False), (2.1, True), (np.float64(1e6), True)):  # the simulator's numbers are numpy's
        share, _ = agreement(halved(), latency(1.0, 50.0), latency(1.0, other), LATENCY)
        assert share.reproduced is agree


def test_each_variant_runs_at_a_few_of_its_points() -> None:
    experiment = selected(built("flux.fig7", MACHINE), Emulation())
    assert {r.variant: [s.x for s in experiment.runs if s.variant == r.variant] for r in experiment.runs} == {
        "static": [0, 1, 4, 8],
        "flux": [1, 4, 8],
    }
    assert [undisturbed(r) for r in experiment.runs] == [True] + [False] * 6
    assert [r.variant for r in selected(built("flux.fig6", MACHINE), Emulation()).runs] == [
        "unloaded", "static", "flux",
    ]  # fmt: skip


def test_both_curves_are_in_one_plot_in_one_colour() -> None:
    results = Results({("calm", None): flat(10), ("loaded", None): flat(5)})
    plot = overlaid(halved(), results, results)[0]
    assert [(c.name, c.like) for c in plot.curves] == [
        ("calm, simulated", "calm"), ("loaded, simulated", "loaded"), ("calm, Spark", "calm"),
        ("loaded, Spark", "loaded"),
    ]  # fmt: skip
    assert plot.x == halved().axes[0].x


def test_the_simulator_runs_what_spark_runs() -> None:
    emulation = replace(Emulation(), epoch=0.5, cells_per_site=32)
    for run in selected(built("flux.fig6", MACHINE), emulation).runs:
        assert run.scenario.operator.cells_per_site == 32
        if run.scenario.adaptation is not None:
            assert run.scenario.adaptation.policy == "flux.balance"
            assert run.scenario.adaptation.limits
            assert run.scenario.adaptation.pace.least == 0.5


def test_memory_is_less_as_there_are_fewer_cells() -> None:
    scenario = replace(CALM, sites=(Site(memory=800), Site()), cuts=(MemoryCut(0, 1.0, 400),))
    sized = machine_sized(scenario, replace(Emulation(), cells_per_site=2))
    assert [s.memory for s in sized.sites] == [200, None]
    assert [c.memory for c in sized.cuts] == [100]
    assert sized.operator.cell_bytes == CALM.operator.cell_bytes
