"""One site of sixteen slows down: what is left of the throughput, and how soon it is back."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.testing import Load, Pace, Run, Slow
from bench.adaptive.scenario import SITES, Field, Figure, Scenario

FACTOR = 2.3
SINCE = 10  # the epoch
ROUNDS = 10  # of two epochs each
WINDOW = 4  # epochs over which a rate is taken
ROWS = 640  # per site and epoch
SERVICE_US = 1000
IDEAL = (SITES - 1 + 1 / FACTOR) / SITES
PACE = Pace(SERVICE_US, (Slow(3, FACTOR, SINCE),))


def measure(field: Field) -> Iterator[Figure]:
    with field.session() as ground:
        load = Load(epochs=SINCE + 2 * ROUNDS + WINDOW, rows=ROWS * SITES)
        short = Load(epochs=SINCE + 6, rows=ROWS * SITES)
        static = ground.run("slow: static", short, pace=PACE)
        yield Figure("slow site: static, of its own speed before", share(static, len(static.ms)), 0.6, at_most=True)
        for policy in ("flux.balance", "balance"):
            run = ground.run(f"slow: {policy}", load, pace=PACE, options={"policies": policy})
            yield Figure(f"slow site: {policy} in the end, of the ideal", share(run, len(run.ms)) / IDEAL, 0.9)
            yield Figure(f"slow site: rounds until {policy} is back at 0.9", rounds(run), ROUNDS, at_most=True)
        small = Load(epochs=24, rows=10 * SITES)
        for policy in ("flux.balance", "balance"):
            ground.check(f"slow: {policy}", small, pace=Pace(60_000, PACE.slow), options={"policies": policy})


def share(run: Run, end: int) -> float:
    """The rate at the end of a run, of that before the site slowed down."""
    return run.rate(end - WINDOW, end) / run.rate(WINDOW, SINCE)


def rounds(run: Run) -> float:
    """How many rounds the policy took from the first move until the rate was back; infinite if it was not."""
    epochs = [p["epoch"] for p in run.progress]
    for end in range(SINCE + WINDOW, len(run.ms) + 1):
        if share(run, end) >= 0.9 * IDEAL:
            before = {e["round"] for e in run.moves if e["at"] < epochs[end - WINDOW]}
            return float(max(before) - min(before) + 1) if before else 0.0
    return float("inf")


SLOW = Scenario("slow", f"one of {SITES} sites slows down by a factor of {FACTOR}", measure)
