"""Spark beside the simulator: what is run, and when the two agree."""

from __future__ import annotations

from dataclasses import replace

from anabranch.lab.agreement import COMPARED, agreement, comparable, overlaid, selected, undisturbed
from anabranch.lab.experiment import Results
from anabranch.lab.machine import MACHINE, Emulation
from anabranch.lab.registry import BUILDERS, built
from anabranch.lab.results import Finding
from tests.lab.samples import flat, halved


def found(simulated: tuple[int, int], spark: tuple[int, int]) -> list[Finding]:
    results = [Results({("calm", None): flat(a), ("loaded", None): flat(b)}) for a, b in (simulated, spark)]
    return agreement(halved(), *results)


def test_what_is_compared_is_there() -> None:
    assert set(COMPARED) <= set(BUILDERS)
    assert comparable(["flux.fig6", "flux.fig8"]) == ["flux.fig6"]


def test_drivers_agree_within_ten_points_of_the_undisturbed_throughput() -> None:
    share, order = found((1000, 430), (40, 21))
    assert share.reproduced
    assert (share.paper, share.text) == ("0.43", "0.53")
    assert order.reproduced
    share, _ = found((1000, 430), (40, 22))
    assert not share.reproduced


def test_the_order_of_variants_counts_where_they_have_one() -> None:
    assert [f.reproduced for f in found((1000, 940), (1000, 1030))] == [True, False]
    assert [f.reproduced for f in found((1000, 960), (1000, 1030))] == [True, True]


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
        operator = run.scenario.operator
        assert operator.cells_per_site * operator.cell_bytes == 64 * 800_000
        assert operator.cells_per_site == 32
        if run.scenario.adaptation is not None:
            assert run.scenario.adaptation.policy == "flux.balance"
            assert run.scenario.adaptation.limits
            assert run.scenario.adaptation.pace.least == 0.5
