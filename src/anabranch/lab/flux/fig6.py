"""FE2, figure 6: one machine gets a load; how soon is it felt, and how soon is the work rebalanced?"""

from __future__ import annotations

from anabranch.lab.experiment import Axes, Claim, Curve, Experiment, Results, Run, Size
from anabranch.lab.flux.common import PAPER, SETUP, flux, load, scenario
from anabranch.lab.measures import first_below, over_time, steady, steady_from

LOADED = 5  # which site; any
FELT = 0.9  # of the unloaded throughput: more is lost than the one machine's own share
STEADY = 0.97  # of the throughput at the end


def experiment(size: Size, seed: int) -> Experiment:
    seconds = 30.0 * max(size.seconds, 0.8)
    loads = (load(LOADED),)
    return Experiment(
        "flux.fig6", "FE2", PAPER, "figure 6",
        "How quickly does the load-balancing policy react to an external load on one machine?",
        SETUP,
        (
            Run("unloaded", None, scenario(size, seconds, seed)),
            Run("static", None, scenario(size, seconds, seed, loads=loads)),
            Run("flux", None, scenario(size, seconds, seed, loads=loads, adaptation=flux())),
        ),
        (Axes("time (s)", "throughput (rows/s)", _curves),),
        (
            Claim("an unloaded run processes", "6.9e5 rows/s", lambda r: steady(r["unloaded"]),
                  0.93 * 6.9e5 * size.sites / 32, 1.07 * 6.9e5 * size.sites / 32, "rows/s"),
            Claim("the load is felt when the skew buffers are full, at t =", "5 s", felt, 4, 6, "s"),
            Claim("throughput is steady again at t =", "14 s", again, 11, 17, "s"),
            Claim("cells that the loaded machine has given away by then", "32", given, 26, 38),
            Claim("static stays at this share of the unloaded run", "low", kept, 0.36, 0.50),
        ),
        notes=(
            "Felt: the first interval of a second below 90 % of the unloaded run. Steady: from then on never below "
            "97 % of the throughput at the end, single intervals aside.",
        ),
    )  # fmt: skip


def _curves(results: Results) -> list[Curve]:
    return [over_time(name, results[name]) for name in ("unloaded", "flux", "static")]


def felt(results: Results) -> float:
    return first_below(results["static"], FELT * steady(results["unloaded"]), 1.0)


def again(results: Results) -> float:
    return steady_from(results["flux"], STEADY * steady(results["flux"]), felt(results))


def given(results: Results) -> float:
    """Net: a cell that came and went again is none."""
    moves = [m for m in results["flux"].moves if m.ended <= again(results) + 1]
    return sum((m.donor == LOADED) - (m.receiver == LOADED) for m in moves)


def kept(results: Results) -> float:
    return steady(results["static"]) / steady(results["unloaded"])
