"""One site loses half of its memory (FE5's shape); then a slow site besides.

State is three quarters of the memory, so the site keeps two thirds of its cells in memory at most. What is cold is on
an emulated disk that takes about an epoch for a quarter of a site's memory, in proportion to the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from anabranch.testing import Load, Pace, Run, Slow, shrink
from anabranch.testing.load import JOIN
from bench.adaptive.scenario import SITES, Field, Figure, Ground, Scenario

CUT = 20  # the epoch
SHORT, SLOW = 3, 9  # sites
WINDOW = 6
SERVICE_US = 2000
LOAD = Load(epochs=56, rows=160 * SITES, query=JOIN, seconds=4, payload=1000)


def measure(field: Field) -> Iterator[Figure]:
    with field.session() as ground:
        free = ground.check("memory: enough", LOAD, pace=Pace(SERVICE_US), options={"stateMemory": "1g"})
        state = max(s["hotBytes"] for p in free.progress[CUT:] for s in p["sites"])
        memory, half = round(state / 0.75), round(state / 1.5)
        disk = memory / 4 / (2 * 160 * SERVICE_US / 1e6)  # bytes per second
        for policy in ("static", "flux.memory", "balance"):
            run = cut(ground, f"memory: {policy}", policy, memory, half, Pace(SERVICE_US, disk_bytes_s=disk))
            yield Figure(
                f"memory halved: {policy}, hot bytes over the budget at most", fullness(run, memory, half), 1, True
            )
            rate = run.rate(-WINDOW) / run.rate(4, CUT)
            wait = latency(run, -WINDOW, None) / latency(run, 4, CUT)
            there = policy == "static"
            yield Figure(f"memory halved: {policy}, throughput in the end, of before", rate, 0.9, there)
            yield Figure(f"memory halved: {policy}, latency in the end, of before", wait, 1.1, not there)
        if field.quick:
            return
        ends = {}
        pace = Pace(SERVICE_US, (Slow(SLOW, 2.3, CUT),), disk_bytes_s=disk)
        for policy in ("flux.balance", "flux.memory", "flux.hybrid", "balance"):
            run = cut(ground, f"memory and work: {policy}", policy, memory, half, pace)
            yield Figure(
                f"memory and work: {policy}, hot bytes over the budget at most", fullness(run, memory, half), 1, True
            )
            ends[policy] = run.rate(-WINDOW) / run.rate(4, CUT)
            yield Figure(f"memory and work: {policy}, throughput in the end, of before", ends[policy])
        for policy in ("flux.hybrid", "balance"):
            ratio = ends[policy] / max(ends["flux.balance"], ends["flux.memory"])
            yield Figure(f"memory and work: {policy} over the better of flux.balance and flux.memory", ratio, 0.98)
        for policy in ("static", "flux.memory", "flux.hybrid"):
            options = bounds(policy, memory)
            ground.check(f"memory: {policy}", LOAD, pace=pace, options=options, events={CUT: shrink(SHORT, half)})


def bounds(policy: str, memory: int) -> Mapping[str, Any]:
    return {"policies": policy, "stateMemory": memory}


def cut(ground: Ground, name: str, policy: str, memory: int, half: int, pace: Pace) -> Run:
    return ground.run(name, LOAD, pace=pace, options=bounds(policy, memory), events={CUT: shrink(SHORT, half)})


def fullness(run: Run, memory: int, half: int) -> float:
    """Over all epochs and sites: hot bytes over what was allowed."""
    return max(
        float(s["hotBytes"]) / (half if s["site"] == SHORT and p["epoch"] >= CUT else memory)
        for p in run.progress + run.after
        for s in p["sites"]
    )


def latency(run: Run, first: int, last: int | None) -> float:
    """Mean time from a row's epoch to its processing: an epoch, and as many more as epochs' rows are held (Little)."""
    epochs = run.progress[first:last]
    each = run.rows / SITES
    waiting = fmean(max(s["heldRows"] for s in p["sites"]) / each for p in epochs)
    return (1 + waiting) * fmean(run.ms[first:last])


MEMORY = Scenario("memory", "one site loses half of its memory, without and with a slow site besides", measure)
