"""Hot cells: 80 % of the rows for 20 % of the cells, side by side, and others every fifty epochs.

And a cell that is more than a site can carry: no move helps, and the journal says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from anabranch.testing import Load, Pace
from bench.adaptive.scenario import SITES, Field, Figure, Scenario

CELLS = 256
DRIFT = 50  # epochs
SERVICE_US = 400
ROWS = 1000  # per site and epoch, were they spread evenly


def drifting(every: int) -> Callable[[int], Sequence[float]]:
    hot = CELLS // 5

    def weights(epoch: int) -> Sequence[float]:
        first = epoch // every * 90 % CELLS
        return [0.8 / hot if (cell - first) % CELLS < hot else 0.2 / (CELLS - hot) for cell in range(CELLS)]

    return weights


def one_hot(epoch: int) -> Sequence[float]:
    """A fifth of all rows, three times what a site should have, is one cell's."""
    return [0.2 if cell == 77 else 0.8 / (CELLS - 1) for cell in range(CELLS)]


def measure(field: Field) -> Iterator[Figure]:
    turns = 1 if field.quick else 3
    pace = Pace(SERVICE_US)
    with field.session() as ground:
        # Static is as slow in each epoch as in any other: a few of them will do.
        still = ground.run("hot: static", Load(epochs=8 * turns, rows=ROWS * SITES, weights=drifting(8)), pace=pace)
        load = Load(epochs=DRIFT * turns, rows=ROWS * SITES, weights=drifting(DRIFT))
        run = ground.run("hot: balance", load, pace=pace, options={"policies": "balance"})
        yield Figure("hot cells: adaptive over static, whole run", run.rate() / still.rate(2), 1.5)
        flux = ground.run("hot: flux.balance", load, pace=pace, options={"policies": "flux.balance"})
        yield Figure("hot cells: flux.balance over static, whole run", flux.rate() / still.rate(2))
        small = Load(epochs=24, rows=1600, weights=drifting(10))
        ground.check("hot: balance", small, pace=Pace(8_000), options={"policies": "balance"})
        single = Load(epochs=12, rows=1600, weights=one_hot)
        told = ground.check("hot: one cell", single, pace=Pace(8_000), options={"policies": "balance"})
        found = {e["action"]["cell"] for e in told.journal if e["action"]["kind"] == "overfull"}
        yield Figure("hot cells: cells reported that need splitting, of one", len(found & {77}), 1)
        yield Figure("hot cells: others reported", len(found - {77}), 0, at_most=True)


HOT = Scenario("hot", f"80 % of the rows for 20 % of {CELLS} cells, drifting every {DRIFT} epochs", measure)
