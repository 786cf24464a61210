"""Machine: a scenario that both the simulator and this machine's Spark can run, and how Spark runs it.

`machine_sized` leaves fewer cells, a decision per epoch at most, the guard and pacing of a query on Spark, and no skew
buffer to speak of. The simulator runs just that; `on_spark.py` says what becomes of it on Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.control.guard import Guard
from anabranch.lab.experiment import Size
from anabranch.sim.scenario import Pace, Scenario

MACHINE = Size(sites=8, seconds=0.5, thin=3, quantum=2.5e-3)
LONGEST = 16  # rounds of a query on Spark are at most so many times the least
EVEN = 256  # rows of buffer that even out the luck of the draw, which Spark's epochs do not have


@dataclass(frozen=True)
class Emulation:
    epoch: float = 2.0  # seconds of the experiment that an epoch lasts at full speed
    epochs: int = 8  # that a run has at most
    slow_motion: float = 1.5  # real seconds in one of the experiment's
    rows: int = 400  # per site and epoch
    cells_per_site: int = 8


def machine_sized(scenario: Scenario, emulation: Emulation) -> Scenario:
    """What both the simulator and Spark run. Cells stay as large; memory is less as there are fewer of them."""
    operator, adaptation = scenario.operator, scenario.adaptation
    if adaptation is not None:
        pace = Pace(least=emulation.epoch, damped=True, most=LONGEST * emulation.epoch)
        adaptation = replace(adaptation, pace=pace, limits=Guard().limits)
    fewer = emulation.cells_per_site / operator.cells_per_site
    return replace(
        scenario,
        sites=tuple(replace(s, memory=None if s.memory is None else round(s.memory * fewer)) for s in scenario.sites),
        seconds=min(scenario.seconds, emulation.epochs * emulation.epoch),
        operator=replace(operator, cells_per_site=emulation.cells_per_site),
        exchange=replace(scenario.exchange, buffer=min(scenario.exchange.buffer, EVEN)),
        cuts=tuple(replace(c, memory=round(c.memory * fewer)) for c in scenario.cuts),
        adaptation=adaptation,
    )
