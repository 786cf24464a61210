"""FE7, section 6.3 of the paper: some machines have a load beside the operator, others lose half of their memory."""

from __future__ import annotations

from anabranch.lab.experiment import Axes, Claim, Curve, Experiment, Results, Run, Size
from anabranch.lab.flux.common import PAPER, flux, load, memory_scenario, memory_setup
from anabranch.lab.measures import steady, steady_latency

EACH = (1, 4)  # of 32 machines with either load
VARIANTS = {"balance": "flux.balance", "memory": "flux.memory", "hybrid": "flux.hybrid"}
SECONDS = 240.0


def experiment(size: Size, seed: int) -> Experiment:
    counts = sorted({max(k * size.sites // 32, 1) for k in EACH})
    runs = []
    for k in counts:
        cuts = dict.fromkeys(range(k), 0.0)
        loads = tuple(load(size.sites - 1 - n, 0.0) for n in range(k))
        runs += [
            Run(name, float(k), memory_scenario(size, SECONDS, seed, cuts, loads=loads, adaptation=flux(policy)))
            for name, policy in VARIANTS.items()
        ]
    return Experiment(
        "flux.hybrid", "FE7", PAPER, "section 6.3",
        "Is the hybrid policy as good as the better of the two that it is made of, under loads of both kinds?",
        memory_setup() | {"external load": "100 µs busy, 50 µs asleep on some machines; on as many others memory for "
                          "state cut from 1 GB to 512 MB"},
        tuple(runs),
        (
            Axes("machines with either load", "throughput (rows/s)", _throughput),
            Axes("machines with either load", "mean latency (µs)", _latency, log_y=True),
        ),
        (
            Claim("throughput of the hybrid over that of the better of the two, at worst", "never worse",
                  lambda r: worst(r, counts), 0.99),
            Claim("latency of the hybrid over that of the better of the two, at worst", "never worse",
                  lambda r: latest(r, counts), 0, 1.05),
        ),
        notes=("Steady: the last quarter of the run. Runs differ by up to 1 % in throughput by chance.",),
    )  # fmt: skip


def worst(results: Results, counts: list[int]) -> float:
    return min(
        steady(results["hybrid", k]) / max(steady(results["balance", k]), steady(results["memory", k]))
        for k in map(float, counts)
    )


def latest(results: Results, counts: list[int]) -> float:
    """The better of the two is the one with more throughput: a policy that lets rows wait has less of both."""
    return max(
        steady_latency(results["hybrid", k])
        / min(steady_latency(results["balance", k]), steady_latency(results["memory", k]))
        for k in map(float, counts)
    )


def _throughput(results: Results) -> list[Curve]:
    return [Curve(v, tuple((x, steady(t)) for x, t in results.points(v)), "o-") for v in VARIANTS]


def _latency(results: Results) -> list[Curve]:
    return [Curve(v, tuple((x, 1e6 * steady_latency(t)) for x, t in results.points(v)), "o-") for v in VARIANTS]
