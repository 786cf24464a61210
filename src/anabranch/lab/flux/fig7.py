"""FE3, figure 7: throughput, once steady, against the number of loaded machines."""

from __future__ import annotations

import random

from anabranch.lab.experiment import Axes, Claim, Curve, Experiment, Results, Run, Size
from anabranch.lab.flux.common import LEFT, PAPER, SETUP, flux, load, scenario
from anabranch.lab.measures import line, steady

LOADED = (0, 1, 4, 8, 12, 16, 20, 24, 28, 32)  # of 32


def experiment(size: Size, seed: int) -> Experiment:
    order = random.Random(seed).sample(range(size.sites), size.sites)  # a random subset, the larger with the smaller
    counts = sorted({max(round(k * size.sites / 32), min(k, 1)) for k in LOADED})
    seconds = 40.0 * max(size.seconds, 0.5)
    runs = []
    for k in counts:
        loads = tuple(load(site, 0.0) for site in order[:k])
        runs.append(Run("static", float(k), scenario(size, seconds * 0.4, seed, loads=loads)))
        runs.append(Run("flux", float(k), scenario(size, seconds, seed, loads=loads, adaptation=flux())))
    return Experiment(
        "flux.fig7", "FE3", PAPER, "figure 7",
        "How does steady throughput fall as more machines are loaded?",
        SETUP, tuple(runs),
        (Axes("machines loaded", "throughput (rows/s)", _curves),),
        (
            Claim("static with one machine loaded, as a share of none", "about 0.43",
                  lambda r: share(r, "static", 1), 0.36, 0.50),
            Claim("static with all loaded, as a share of static with one", "1: it remains there",
                  lambda r: share(r, "static", counts[-1]) / share(r, "static", 1), 0.9, 1.1),
            Claim("Flux falls on a straight line: R²", "linear", straight, 0.98, 1.0),
            Claim("Flux with half of the machines loaded, over what these machines can do at best", "near",
                  lambda r: share(r, "flux", counts[len(counts) // 2]) / capacity(counts[len(counts) // 2], size.sites),
                  0.85, 1.01),
        ),
    )  # fmt: skip


def share(results: Results, variant: str, x: float) -> float:
    return steady(results[variant, float(x)]) / steady(results["static", 0.0])


def capacity(loaded: int, sites: int) -> float:
    """What the machines can do together, as a share of none being loaded."""
    return 1 - (1 - LEFT) * loaded / sites


def straight(results: Results) -> float:
    return line([(x, steady(t)) for x, t in results.points("flux")])[2]


def _curves(results: Results) -> list[Curve]:
    return [Curve(v, tuple((x, steady(t)) for x, t in results.points(v)), "o-") for v in ("flux", "static")]
