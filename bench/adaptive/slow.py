"""One site of sixteen slows down: what is left of the throughput, and how soon it is back."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, median

from anabranch.testing import Load, Pace, Run, Slow
from bench.adaptive.scenario import SITES, Field, Figure, Scenario

FACTOR = 2.3
SINCE = 10  # the epoch
ROUNDS = 10  # of two epochs each
WINDOW = 4  # epochs over which a rate is taken
ROWS = 640  # per site and epoch
SERVICE_US = 2000  # so that rows take longer than what an epoch of sixteen tasks costs on few cores
IDEAL = (SITES - 1 + 1 / FACTOR) / SITES
CELLS = 16  # per site
# So many cells have to leave the slow site, before it ends when the others would if all shared its work evenly.
LEAST = next(n for n in range(CELLS) if (CELLS - n) * FACTOR <= CELLS / IDEAL)
PACE = Pace(SERVICE_US, (Slow(3, FACTOR, SINCE),))


def measure(field: Field) -> Iterator[Figure]:
    load = Load(epochs=SINCE + 2 * ROUNDS + WINDOW, rows=ROWS * SITES)
    short = Load(epochs=SINCE + 6, rows=ROWS * SITES)
    adaptive = ("flux.balance", "balance")
    with field.session() as ground:
        static = ground.run("slow: static", short, pace=PACE)
        runs = {p: ground.run(f"slow: {p}", load, pace=PACE, options={"policies": p}) for p in adaptive}
        full = median(ms for run in (static, *runs.values()) for ms in run.ms[WINDOW:SINCE])
        yield Figure("slow site: static, of full speed", full / median(static.ms[SINCE:]), 0.6, at_most=True)
        for policy, run in runs.items():
            end = full / median(run.ms[-WINDOW:]) / IDEAL
            yield Figure(f"slow site: {policy} in the end, of the ideal", end, 0.9)
            back = rounds(run, full)
            yield Figure(f"slow site: rounds until {policy} is back at 0.9", back, ROUNDS, at_most=True)
            moves = sum(e["at"] >= SINCE for e in run.moves) / LEAST
            yield Figure(f"slow site: moves of {policy} over the {LEAST} that would do", moves, 1.99, at_most=True)
        small = Load(epochs=24, rows=10 * SITES)
        for policy in adaptive:
            ground.check(f"slow: {policy}", small, pace=Pace(60_000, PACE.slow), options={"policies": policy})


def rounds(run: Run, full: float) -> float:
    """How many rounds the policy took from the first move until the speed was back; infinite if it was not."""
    for first in range(SINCE, len(run.ms) - WINDOW + 1):
        if full / fmean(run.ms[first : first + WINDOW]) >= 0.9 * IDEAL:
            before = {e["round"] for e in run.moves if SINCE <= e["at"] < run.progress[first]["epoch"]}
            return float(max(before) - min(before) + 1) if before else 0.0
    return float("inf")


SLOW = Scenario("slow", f"one of {SITES} sites slows down by a factor of {FACTOR}", measure)
