"""A load goes round the sites, two epochs on each (FE1's shape): sites over their time hold rows and catch up later."""

from __future__ import annotations

from collections.abc import Iterator

from anabranch.testing import Load, Pace, Slow
from bench.adaptive.scenario import SITES, Field, Figure, Scenario

FACTOR = 2.3
TURN = 2  # epochs on each site
BUDGET = 1.05  # of what a site takes that is not slow
ROWS, SERVICE_US = 640, 2500


def round_robin(turns: int, first: int) -> tuple[Slow, ...]:
    return tuple(Slow(n % SITES, FACTOR, first + n * TURN, first + (n + 1) * TURN) for n in range(turns))


def measure(field: Field) -> Iterator[Figure]:
    turns = 8 if field.quick else SITES
    warm = 4
    load = Load(epochs=warm + turns * TURN, rows=ROWS * SITES)
    pace = Pace(SERVICE_US, round_robin(turns, warm))
    budget = f"{round(BUDGET * ROWS * SERVICE_US / 1000)} milliseconds"
    with field.session() as ground:
        unloaded = ground.run("round robin: unloaded", Load(epochs=12, rows=ROWS * SITES), pace=Pace(SERVICE_US))
        full = unloaded.rate(warm)
        static = ground.run("round robin: static", load, pace=pace)
        yield Figure("round robin: static, of unloaded", static.rate(warm) / full, 0.6, at_most=True)
        for name, options in (
            ("bounded", {"timeBudget": budget}),
            ("bounded, balance", {"timeBudget": budget, "policies": "balance", "roundEpochs": 4}),
        ):
            run = ground.run(f"round robin: {name}", load, pace=pace, options=options)
            # Rows that are held have been read and not been paid for: what draining them takes counts.
            took = sum(run.ms[warm:]) + sum(run.drain_ms)
            rate = run.rows * (len(run.ms) - warm) / took * 1000
            held = max(s["heldRows"] for p in run.progress for s in p["sites"])
            yield Figure(f"round robin: {name}, drain included, of unloaded", rate / full, 0.85)
            yield Figure(
                f"round robin: {name}, most rows held by a site, in its epochs' rows", held / ROWS, 2.5, at_most=True
            )
            yield Figure(f"round robin: {name}, rows held in the end", run.left, 0, at_most=True)
        small = Load(epochs=24, rows=32 * SITES)
        slow = round_robin(10, 4)
        options = {"timeBudget": f"{round(BUDGET * 32)} milliseconds"}
        ground.check("round robin: bounded", small, pace=Pace(1000, slow), options=options)


ROUND_ROBIN = Scenario("round_robin", f"a load goes round {SITES} sites, {TURN} epochs on each", measure)
