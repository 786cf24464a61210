"""FE1, figure 3: a load goes round the machines, half a second on each. How much buffer does it take not to feel it?

Exchange gets the same room in the queues of its connections, divided evenly; Flux keeps it in one buffer per producer.
"""

from __future__ import annotations

from anabranch.lab.experiment import Axes, Claim, Curve, Experiment, Results, Run, Size
from anabranch.lab.flux.common import PAPER, SETUP, load, scenario
from anabranch.sim.scenario import Exchange

KB = (0, 20, 40, 80, 160, 240, 320, 480, 640)  # per producer
TURN = 0.5  # seconds on each machine
NEAR = 0.95  # of the unloaded run: it does not feel the load


def experiment(size: Size, seed: int) -> Experiment:
    seconds = TURN * size.sites
    loads = tuple(load(site, TURN * site, TURN * (site + 1)) for site in range(size.sites))
    sizes = [kb for n, kb in enumerate(KB) if n % size.thin == 0]
    runs = [
        Run(
            name,
            kb,
            scenario(size, seconds, seed, loads=loads, exchange=Exchange(buffer=kb * 1024 // 80, shared=shared)),
        )
        for name, shared in (("exchange", False), ("flux", True))
        for kb in sizes
    ]
    return Experiment(
        "flux.fig3", "FE1", PAPER, "figure 3",
        "How much buffer masks a load that goes round the machines, in the queues and in a skew buffer?",
        SETUP | {"external load": f"{SETUP['external load']}; {TURN} s on each machine, once round",
                 "policy": "none: nothing moves"},
        (Run("unloaded", None, scenario(size, seconds, seed)), *runs),
        (Axes("buffer (KB per producer)", "throughput (rows/s)", _curves),),
        (
            Claim("Exchange without a buffer, as a share of the unloaded run", "about half",
                  lambda r: share(r, "exchange", 0.0), 0.38, 0.58),
            Claim("buffer from which on Flux reaches 95 % of unloaded, over that of Exchange", "Flux first",
                  lambda r: enough(r, "flux") / min(enough(r, "exchange"), 2 * KB[-1]), 0, 0.999),
            Claim("Flux at its best, as a share of the unloaded run", ">= 0.95",
                  lambda r: max(share(r, "flux", x) for x, _ in r.points("flux")), 0.95, 1.01),
            Claim("sizes at which Exchange is ahead of Flux by more than 2 %", "none",
                  lambda r: float(sum(share(r, "exchange", x) > share(r, "flux", x) + 0.02
                                      for x, _ in r.points("flux"))), 0, 0),
        ),
    )  # fmt: skip


def share(results: Results, variant: str, x: float) -> float:
    return results[variant, x].throughput() / results["unloaded"].throughput()


def enough(results: Results, variant: str) -> float:
    """The smallest buffer in KB that reaches 95 % of the unloaded run; infinite if none of them does."""
    return next((max(x, 1) for x, _ in results.points(variant) if share(results, variant, x) >= NEAR), float("inf"))


def _curves(results: Results) -> list[Curve]:
    xs = [x for x, _ in results.points("flux")]
    level = results["unloaded"].throughput()
    return [
        Curve("unloaded", ((xs[0], level), (xs[-1], level)), "--"),
        *(Curve(v, tuple((x, t.throughput()) for x, t in results.points(v)), "o-") for v in ("flux", "exchange")),
    ]
