"""F12, ours: the paper leaves open how long a collection phase has to be at least.

The damped pacing finds it itself. Here it is put beside every fixed δ_min of FE4, on both workloads of that experiment
and on one whose popular keys change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anabranch.control.guard import Guard
from anabranch.lab.experiment import Axes, Claim, Curve, Experiment, Results, Run, Size
from anabranch.lab.flux.common import PAPER, SETUP, flux, scenario
from anabranch.lab.flux.fig8 import LEAST, SECONDS, loaded
from anabranch.sim.scenario import Adaptation, Pace, Producers, SelfSimilar

DRIFT = 10.0  # seconds until other keys are popular
LONGEST = 0.16  # seconds, 16 times the least, as for a query on Spark
WORKLOADS = ("unloaded", "loaded", "drifting")


def experiment(size: Size, seed: int) -> Experiment:
    seconds = max(SECONDS * size.seconds, 20.0)
    skewed = Producers(SelfSimilar(0.2, order=seed))
    phases = tuple((DRIFT * n, SelfSimilar(0.2, order=seed + n), None) for n in range(1, int(seconds / DRIFT)))
    bases = {
        "unloaded": scenario(size, seconds, seed, producers=skewed),
        "loaded": scenario(size, seconds, seed, producers=skewed, loads=loaded(size, skewed)),
        "drifting": scenario(size, seconds, seed, producers=replace(skewed, phases=phases)),
    }
    least = [d for n, d in enumerate(LEAST) if n % size.thin == 0]
    runs = []
    for name, base in bases.items():
        runs += [Run(f"{name}, fixed", d, replace(base, adaptation=flux(least=d))) for d in least]
        runs.append(Run(f"{name}, damped", None, replace(base, adaptation=damped())))
    return Experiment(
        "flux.damping", "F12", PAPER, "ours, on the workloads of figure 8",
        "Does the controller find a better pace by itself than the best fixed δ_min?",
        SETUP | {"producers": "80/20, self-similar, over 16K groups; drifting: other groups are the popular ones "
                 f"every {DRIFT:.0f} s", "policy": "th_imb 1.2, th_util 0.9; δ_min varies, or damped between 10 and "
                 "160 ms, and the guard that a query on Spark has"},
        tuple(runs),
        tuple(Axes("δ_min (ms)", "mean throughput over the run (rows/s)", curves(name), name) for name in WORKLOADS),
        tuple(
            Claim(f"{name}: damped over the best fixed δ_min", "left open", ahead(name), 1.0) for name in WORKLOADS
        ),
    )  # fmt: skip


def damped() -> Adaptation:
    """Flux's policy under the pacing and the guard that a user gets."""
    return Adaptation("flux.balance", Pace(damped=True, most=LONGEST), Guard().limits)


def ahead(name: str) -> Callable[[Results], float]:
    def ratio(results: Results) -> float:
        best = max(trace.throughput() for _, trace in results.points(f"{name}, fixed"))
        return results[f"{name}, damped"].throughput() / best

    return ratio


def curves(name: str) -> Callable[[Results], list[Curve]]:
    def found(results: Results) -> list[Curve]:
        points = [(1000 * d, t.throughput()) for d, t in results.points(f"{name}, fixed")]
        level = results[f"{name}, damped"].throughput()
        return [
            Curve("fixed δ_min", tuple(points), "o-"),
            Curve("damped", ((points[0][0], level), (points[-1][0], level)), "--"),
        ]

    return found
