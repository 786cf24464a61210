"""Cells that move while a query runs, measured: what a disturbance costs with adaptation and without.

The queries, sites, state and decisions are the real ones. Rows have an emulated service time (`testing.Pace`), so
that 16 sites behave like as many machines on a few cores; scenarios about real work say so. One scenario is one file.
"""

from bench.adaptive.hot import HOT
from bench.adaptive.journal import JOURNAL
from bench.adaptive.memory import MEMORY
from bench.adaptive.rescale import RESCALE
from bench.adaptive.round_robin import ROUND_ROBIN
from bench.adaptive.scenario import Scenario
from bench.adaptive.slow import SLOW
from bench.adaptive.spread import SPREAD
from bench.adaptive.uniform import UNIFORM

ALL = (SLOW, SPREAD, HOT, ROUND_ROBIN, MEMORY, RESCALE, UNIFORM, JOURNAL)


def select(names: list[str]) -> list[Scenario]:
    """The scenarios of these names, in the order of the list; all of them for no name."""
    unknown = set(names) - {s.name for s in ALL}
    if unknown:
        known = ", ".join(s.name for s in ALL)
        raise ValueError(f"no scenario named {', '.join(sorted(unknown))}; known: {known}")
    return [s for s in ALL if not names or s.name in names]
