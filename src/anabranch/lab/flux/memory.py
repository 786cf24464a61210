"""FE6, section 6.2 of the paper: latency and throughput against the number of machines whose memory is cut in half."""

from __future__ import annotations

import random
from math import sqrt

from anabranch.lab.experiment import Axes, Claim, Curve, Experiment, Results, Run, Size
from anabranch.lab.flux.common import PAPER, flux, memory_scenario, memory_setup
from anabranch.lab.measures import steady, steady_latency

CUT = (0, 1, 8, 14, 20, 32)  # of 32; beyond 15 of them the cells do not fit into all memory together
SECONDS = 60.0
ORDER = sqrt(10)  # within an order of magnitude: this factor either way
LAST = 0.4  # of a run counts as steady


def experiment(size: Size, seed: int) -> Experiment:
    order = random.Random(seed).sample(range(size.sites), size.sites)  # a random subset, the larger with the smaller
    counts = sorted({max(k * size.sites // 32, min(k, 1)) for k in CUT})
    fits = [k for k in counts if k * 32 < 16 * size.sites]
    runs = []
    for k in counts:
        cuts = dict.fromkeys(order[:k], 0.0)
        # All moves share the network: the more machines there are to relieve, the longer it takes.
        long = SECONDS * (1 + 7 * k / size.sites) if k in fits else 2 * SECONDS
        runs.append(Run("static", float(k), memory_scenario(size, SECONDS * (2 if k else 0.5), seed, cuts)))
        runs.append(Run("flux", float(k), memory_scenario(size, long if k else SECONDS * 0.5, seed, cuts,
                                                          adaptation=flux("flux.memory"))))  # fmt: skip
    one, most = float(1), float(size.sites)
    return Experiment(
        "flux.memory", "FE6", PAPER, "section 6.2",
        "How do latency and throughput change as more machines lose half of their memory?",
        memory_setup() | {"external load": f"memory for state cut from 1 GB to 512 MB on {', '.join(map(str, counts))} "
                          "machines, from the start"},
        tuple(runs),
        (
            Axes("machines with half the memory", "mean latency (µs)", _latency, log_y=True),
            Axes("machines with half the memory", "throughput (rows/s)", _throughput),
        ),
        (
            Claim("static latency with all memory", "45 µs", lambda r: latency(r, "static", 0.0), 40, 55, "µs"),
            Claim("static latency with one machine cut", "2.4e5 µs", lambda r: latency(r, "static", one),
                  2.4e5 / ORDER * 32 / size.sites, 2.4e5 * ORDER * 32 / size.sites, "µs"),
            Claim("static latency with all machines cut", "6.7e6 µs", lambda r: latency(r, "static", most),
                  6.7e6 / ORDER, 6.7e6 * ORDER, "µs"),
            Claim("static throughput with one machine cut", "1.6e5 rows/s", lambda r: throughput(r, "static", one),
                  1.2e5 * size.sites / 32, 2.0e5 * size.sites / 32, "rows/s"),
            Claim("with moves, worst latency while the cells fit into all memory together", "45 µs",
                  lambda r: max(latency(r, "flux", float(k)) for k in fits), 40, 55, "µs"),
            Claim("with moves, least latency where they do not fit, over that with all memory", "rises exponentially",
                  lambda r: min(latency(r, "flux", float(k)) for k in counts if k not in fits)
                  / latency(r, "flux", 0.0), 10),
        ),
        notes=("Order of magnitude: within a factor of the square root of ten.",),
    )  # fmt: skip


def latency(results: Results, variant: str, x: float) -> float:
    return 1e6 * steady_latency(results[variant, x], LAST)


def throughput(results: Results, variant: str, x: float) -> float:
    return steady(results[variant, x], LAST)


def _latency(results: Results) -> list[Curve]:
    return [
        Curve(v, tuple((x, 1e6 * steady_latency(t, LAST)) for x, t in results.points(v)), "o-")
        for v in ("flux", "static")
    ]


def _throughput(results: Results) -> list[Curve]:
    return [Curve(v, tuple((x, steady(t, LAST)) for x, t in results.points(v)), "o-") for v in ("flux", "static")]
