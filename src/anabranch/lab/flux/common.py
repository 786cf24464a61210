"""What the Flux experiments share: the cluster of the paper's section 3, its external load, its baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from anabranch.lab.experiment import Size
from anabranch.sim.scenario import MB, Adaptation, CpuLoad, MemoryCut, Network, Operator, Pace, Scenario, Site

PAPER = "Flux: an adaptive partitioning operator for continuous query systems"
MBIT = 1e6 / 8  # bytes per second

# Section 4: the load "degrades throughput of the operator instance by about 57%".
LEFT = 0.43

NETWORK = Network(latency=70e-6, point_to_point=250 * MBIT, cross_section=500 * MBIT)

SETUP = {
    "sites": "32 of 1000 MIPS, 1 GB memory, disk of 20 MB/s and 5 ms a seek",
    "operator": "windowed group-by, 45 ± 3 µs a row, 16K groups, 64 cells a site, 800 KB a cell",
    "rows": "80 bytes; producers as fast as rows are taken, one per site, 0.5 µs a row",
    "exchange": "two packets of 1 KB (12 rows each) per connection, 70 µs; skew buffer 2048 rows (160 KB) per producer",
    "movement": "250 Mbit/s point to point, 500 Mbit/s in all; 0.2 µs a row to pack and to unpack",
    "external load": "100 µs busy, 50 µs asleep; leaves the operator 43 % of its speed",
    "policy": "th_imb 1.2, th_util 0.9, δ_min 10 ms",
}


def scenario(size: Size, seconds: float, seed: int, **changes: Any) -> Scenario:
    """The baseline: a uniform stream over even cells, nothing loaded, nothing moved."""
    return Scenario(
        tuple(Site() for _ in range(size.sites)), seconds, network=NETWORK, quantum=size.quantum, seed=seed,
        **changes,
    )  # fmt: skip


def load(site: int, start: float = 1.0, end: float = float("inf")) -> CpuLoad:
    return CpuLoad(site, start, end, busy=100e-6, asleep=50e-6, left=LEFT)


def flux(policy: str = "flux.balance", least: float = 0.01) -> Adaptation:
    """The paper's policies under the paper's pacing, and no judgement of worth but their own."""
    return Adaptation(policy, Pace(least=least))


def memory_setup() -> dict[str, str]:
    """What differs in the paper's section 6."""
    return SETUP | {
        "operator": "windowed group-by, 45 ± 3 µs a row, 16K groups, 128 cells a site, 6 MB a cell",
        "spill": "synchronous, 20 MB/s and 5 ms a seek; a staged page of 4 KB per cell on disk",
        "external load": "memory for state cut from 1 GB to 512 MB",
    }


def memory_scenario(
    size: Size, seconds: float, seed: int, cuts: Mapping[int, float] | None = None, **changes: Any
) -> Scenario:
    """Section 6: cells of 6 MB that fill three quarters of the memory; `cuts` says when a site loses half of it."""
    whole = scenario(
        size, seconds, seed, operator=Operator(cells_per_site=128, cell_bytes=6 * MB), interval=1.0,
        cuts=tuple(MemoryCut(site, start, 512 * MB) for site, start in (cuts or {}).items()), **changes,
    )  # fmt: skip
    return replace(whole, sites=tuple(Site(memory=1024 * MB) for _ in range(size.sites)))
