"""More and more slow sites: static drops at the first, adaptation degrades along a straight line (FE3's shape)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from anabranch.testing import Load, Pace, Slow
from bench.adaptive.scenario import SITES, Field, Figure, Scenario

FACTOR = 2.3
AXIS = (0, 1, 2, 4, 6, 8, 10, 12, 14, 16)
QUICK = (0, 2, 8, 16)
SETTLING, WINDOW = 12, 4  # epochs of each number of slow sites
STATIC = 3
ROWS, SERVICE_US = 640, 2500  # an epoch of sixteen tasks costs most of a second on two cores: rows have to take longer


def measure(field: Field) -> Iterator[Figure]:
    axis = QUICK if field.quick else AXIS
    with field.session() as ground:
        rates = {}
        for name, settling, policy in (("static", 1, "static"), ("balance", SETTLING, "balance")):
            length = settling + (STATIC if policy == "static" else WINDOW)
            load = Load(epochs=length * len(axis), rows=ROWS * SITES)
            run = ground.run(f"spread: {name}", load, pace=rising(axis, length), options={"policies": policy})
            rates[name] = [run.rate(n * length + settling, (n + 1) * length) for n in range(len(axis))]
            for k, rate in zip(axis, rates[name], strict=True):
                yield Figure(f"{k} slow sites: {name}, of full speed", rate / rates[name][0])
    yield Figure("slow sites: how straight the line is (R²)", straightness(axis, rates["balance"]), 0.98)
    ideal = [(SITES - k + k / FACTOR) / SITES for k in axis]
    least = min(r / rates["balance"][0] / i for r, i in zip(rates["balance"], ideal, strict=True))
    yield Figure("slow sites: the least share of the ideal", least, 0.9)
    drop = (rates["static"][0] - rates["static"][1]) / (rates["static"][0] - rates["static"][-1])
    yield Figure("slow sites: share of static's whole drop that the first ones cause", drop, 0.9)


def rising(axis: Sequence[int], length: int) -> Pace:
    """So many slow sites, one number of them after the other."""
    slow = []
    for site in range(SITES):
        first = next(n for n, k in enumerate(axis) if k > site) * length
        slow.append(Slow(site * 5 % SITES, FACTOR, first))
    return Pace(SERVICE_US, tuple(slow))


def straightness(x: Sequence[float], y: Sequence[float]) -> float:
    """R² of the least-squares line."""
    mx, my = fmean(x), fmean(y)
    sxy = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return sxy**2 / (sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))


SPREAD = Scenario("spread", f"0 to {SITES} of {SITES} sites are slow", measure)
