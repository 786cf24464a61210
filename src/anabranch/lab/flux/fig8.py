"""FE4, figure 8: skewed producers, and how long a collection phase has to be at least.

The paper says 80/20 over 16K groups, and that a few partitions get most of the work. That is the self-similar 80/20
distribution (80 % of the rows to 20 % of the groups, 80 % of these to 20 % of those, and so on), with the groups dealt
to cells as by a hash: with two classes of groups, hot and cold, no partition of eight groups would stand out.
"""

from __future__ import annotations

from collections import Counter

from anabranch.lab.experiment import Axes, Claim, Curve, Difference, Experiment, Results, Run, Size
from anabranch.lab.flux.common import PAPER, SETUP, flux, load, scenario
from anabranch.sim.keys import cell_weights
from anabranch.sim.scenario import CpuLoad, Operator, Producers, SelfSimilar
from anabranch.sim.trace import Trace

LEAST = (0.01, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0)
LOADED = 8
SECONDS = 60.0


def experiment(size: Size, seed: int) -> Experiment:
    seconds = max(SECONDS * size.seconds, 20.0)
    skewed = Producers(SelfSimilar(0.2, order=seed))
    least = [d for n, d in enumerate(LEAST) if n % size.thin == 0]
    loads = loaded(size, skewed)
    runs = [
        Run("static", None, scenario(size, seconds, seed, producers=skewed)),
        Run("static, loaded", None, scenario(size, seconds, seed, producers=skewed, loads=loads)),
    ]
    for name, here in (("flux", ()), ("flux, loaded", loads)):
        for d in least:
            made = scenario(size, seconds, seed, producers=skewed, loads=here, adaptation=flux(least=d))
            runs.append(Run(name, d, made))
    return Experiment(
        "flux.fig8", "FE4", PAPER, "figure 8",
        "How short may a collection phase be, before the policy runs after its own noise?",
        SETUP | {"producers": "80/20, self-similar, over 16K groups",
                 "external load": f"none, or on {LOADED} machines, "
                 "the one with the most popular partition among them",
                 "policy": "th_imb 1.2, th_util 0.9, δ_min varies"},
        tuple(runs),
        (Axes("δ_min (ms)", "mean throughput over the run (rows/s)", _curves),),
        (
            Claim("at the smallest δ_min Flux has this share of static", "about half",
                  lambda r: share(r, "flux", least[0]), 0.4, 0.6,
                  differs=Difference(
                      "nearly every round moves the popular cell, but it goes on working while its rows in flight "
                      "drain; it stands still for two fifths of the time, not for half",
                      lambda r: 0.3 <= still(r["flux", least[0]]) <= 0.45)),
            Claim("δ_min from which on Flux is ahead of static", "250 ms",
                  lambda r: 1000 * crossing(r, "flux"), 0, 250, "ms", differs=LAGS),
            Claim("loaded: δ_min from which on Flux is ahead of static unloaded", "150 ms",
                  lambda r: 1000 * crossing(r, "flux, loaded"), 0, 150, "ms", differs=LAGS),
            Claim("that is at a smaller δ_min than unloaded, or the same: the difference", "100 ms smaller",
                  lambda r: 1000 * (crossing(r, "flux") - crossing(r, "flux, loaded")), 0, 200, "ms"),
            Claim("loaded: static has this share of static unloaded", "drops",
                  lambda r: r["static, loaded"].throughput() / r["static"].throughput(), 0, 0.6),
        ),
    )  # fmt: skip


def again(trace: Trace) -> float:
    """How often the cell that is moved most often is moved, per round."""
    return Counter(m.cell for m in trace.moves).most_common(1)[0][1] / len(trace.rounds)


def still(trace: Trace) -> float:
    """The share of the run in which that cell was on its way."""
    cell = Counter(m.cell for m in trace.moves).most_common(1)[0][0]
    return sum(m.ended - m.quiesced for m in trace.moves if m.cell == cell) / trace.samples[-1].end


LAGS = Difference(
    "a connection delivers whole packets, so a site that the popular cell has just left gets nothing until its packets "
    "have filled again, looks idle and gets the cell back; that fades only when the phase is much longer than that",
    lambda r: again(r["flux", 0.01]) > 2 * again(r["flux", 1.0]),
)


def popular(size: Size, producers: Producers) -> int:
    """The site that has the most popular cell at first."""
    cells = Operator().cells_per_site * size.sites
    weights = cell_weights(producers.keys, Operator().groups, cells)
    return int(weights.argmax()) * size.sites // cells


def loaded(size: Size, producers: Producers) -> tuple[CpuLoad, ...]:
    """A quarter of the machines from the start, the popular one among them."""
    number = max(1, LOADED * size.sites // 32)
    first = popular(size, producers)
    return tuple(load((first + n * size.sites // number) % size.sites, 0.0) for n in range(number))


def share(results: Results, variant: str, least: float) -> float:
    return results[variant, least].throughput() / results["static"].throughput()


def crossing(results: Results, variant: str) -> float:
    """The smallest δ_min from which on the variant is ahead of static without load; infinite if there is none."""
    ahead = float("inf")
    for least, _ in reversed(results.points(variant)):
        if share(results, variant, least) <= 1:
            break
        ahead = least
    return ahead


def _curves(results: Results) -> list[Curve]:
    points = results.points("flux")
    ends = 1000 * points[0][0], 1000 * points[-1][0]
    curves = []
    for name in ("static", "static, loaded"):
        level = results[name].throughput()
        curves.append(Curve(name, ((ends[0], level), (ends[1], level)), "--"))
    for name in ("flux", "flux, loaded"):
        curves.append(Curve(name, tuple((1000 * d, t.throughput()) for d, t in results.points(name)), "o-"))
    return curves
