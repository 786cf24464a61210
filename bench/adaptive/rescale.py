"""From two sites to eight and to three while the query runs, with a gigabyte of state. The work is real."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from anabranch.testing import Load, rescale
from bench.adaptive.scenario import Field, Figure, Scenario

FILLED = 24  # epochs until the window is full
EACH = 8  # epochs on each number of sites
QUERY = """SELECT a.k, a.ts AS t, b.ts AS u, a.v, b.v AS w FROM a JOIN b ON a.k = b.k
           AND b.ts BETWEEN a.ts - INTERVAL {seconds} SECONDS AND a.ts + INTERVAL {seconds} SECONDS"""
GB = 1 << 30


def measure(field: Field) -> Iterator[Figure]:
    load = Load(
        epochs=FILLED + 3 * EACH, sites=2, cells=64, rows=12_800, query=QUERY, seconds=20, payload=2000, keys=8192,
    )  # fmt: skip
    first, second = FILLED + EACH, FILLED + 2 * EACH
    with field.session(slots=8) as ground:
        options = {"policies": "balance"}
        events = {first - 1: rescale(8), second - 1: rescale(3)}
        run = ground.run("rescale: 2, 8, 3", load, options=options, events=events, sink="parquet")
    counts = [p["assignment"]["sites"] for p in run.progress]
    yield Figure("rescale: numbers of sites seen", len({2, 8, 3} & set(counts)), 3)
    size = min(sum(o["memoryUsedBytes"] for o in p["stateOperators"]) for p in run.progress[first - 1 : second + 1])
    yield Figure("rescale: state when the sites change", size / GB, 1, unit="GB")
    for at, sites in ((first, 8), (second, 3)):
        around = median(run.ms[at - EACH : at + EACH])
        longest = max(run.ms[at - 1 : at + EACH])
        yield Figure(f"rescale to {sites}: longest epoch from the change on, of the median", longest / around, 2, True)


RESCALE = Scenario("rescale", "2 to 8 to 3 sites with 1 GB of state; real work", measure)
