"""The table of workloads, in the order in which they run."""

from __future__ import annotations

from bench.workload import Workload
from bench.workloads import (
    fixed_cost,
    interval_join,
    last_100_average,
    sliding_aggregate,
    steady,
    three_way_join,
    zipf_join,
)

ALL: tuple[Workload, ...] = (
    *interval_join.WORKLOADS,
    *sliding_aggregate.WORKLOADS,
    *three_way_join.WORKLOADS,
    *zipf_join.WORKLOADS,
    *last_100_average.WORKLOADS,
    *steady.WORKLOADS,
    *fixed_cost.WORKLOADS,
)


def named(name: str) -> Workload:
    """The workload of that exact name."""
    for workload in ALL:
        if workload.name == name:
            return workload
    raise KeyError(name)


def select(names: list[str]) -> list[Workload]:
    """Workloads by name or family, all of them for no name; an unknown name is a ValueError that lists the known."""
    unknown = [n for n in names if not any(n in (w.name, w.family) for w in ALL)]
    if unknown:
        known = ", ".join(dict.fromkeys(x for w in ALL for x in (w.family, w.name)))
        raise ValueError(f"no workload named {', '.join(unknown)}; there are: {known}")
    return [w for w in ALL if not names or w.name in names or w.family in names]
