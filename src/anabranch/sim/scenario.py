"""Scenario: what is simulated, as data. Sites and their hardware, the stage, the disturbances, the adaptation.

Times are seconds, sizes bytes, rates rows or bytes per second. A scenario holds no behaviour: `world.py` builds the
parts that run from it.

Known limits: one stage of producers and one stateful operator; rows all have one size. Several stages are several
`Stage` parts over the same sites, which is why sites, network and loads are said apart from the stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from anabranch.control.guard import Limits

MB = 1_000_000
MIB = 1 << 20
PACKET = 1000  # bytes


@dataclass(frozen=True)
class Disk:
    bandwidth: float = 20 * MB
    seek: float = 5e-3

    def seconds(self, size: float, seeks: int = 1) -> float:
        """Reading or writing so many bytes, synchronously."""
        return seeks * self.seek + size / self.bandwidth


@dataclass(frozen=True)
class Site:
    """One machine. Speed 1 is what the operators' costs are said for: 1000 MIPS in the Flux paper."""

    speed: float = 1.0
    memory: int | None = None  # for the operator's state; None: ample
    disk: Disk = Disk()


@dataclass(frozen=True)
class Network:
    """Bandwidths are those of state that moves; None is no limit. Rows between operators only have latency."""

    latency: float = 70e-6
    point_to_point: float | None = None
    cross_section: float | None = None


@dataclass(frozen=True)
class Uniform:
    """Every group as likely as any other."""


# Unequal groups lie in the order of their likelihood, as neighbours in a range, unless `order` is a seed: then they are
# shuffled, as by a hash.


@dataclass(frozen=True)
class Zipf:
    """Group r (from 1) is as likely as r ** -exponent."""

    exponent: float
    order: int | None = None


@dataclass(frozen=True)
class SelfSimilar:
    """A share of 1 - h of the rows goes to a share h of the groups, and so on within these: 80/20 is h = 0.2."""

    h: float = 0.2
    order: int | None = None


@dataclass(frozen=True)
class TwoLevel:
    """A share of the rows goes to a share of the groups, evenly within each of the two classes."""

    rows: float = 0.8
    groups: float = 0.2
    order: int | None = None


Keys = Uniform | Zipf | SelfSimilar | TwoLevel


@dataclass(frozen=True)
class Producers:
    """One per site. `rate` is rows per second of each; None: as fast as rows are taken.

    `phases` are later keys and rates, as (from when, keys, rate), so that a workload can drift.
    """

    keys: Keys = Uniform()
    rate: float | None = None
    cost: float = 0.5e-6  # CPU of the producer's site, per row
    phases: tuple[tuple[float, Keys, float | None], ...] = ()


@dataclass(frozen=True)
class Operator:
    """The cost model of a stateful operator. `cost_of`, if given, is the mean service time of a site's rows in place
    of `service`, from (virtual time, rows of state at the site): what a join over a window costs."""

    name: str = "groupby"
    service: float = 45e-6  # of one row on a site of speed 1
    deviation: float = 3e-6
    groups: int = 16_384
    cells_per_site: int = 64
    cell_bytes: int = 800_000
    row_bytes: int = 80
    handling: float = 0.2e-6  # to pack, unpack or stage one row of state or input
    page_bytes: int = 4096  # of staged input, per cell on disk
    cost_of: Callable[[float, float], float] | None = None

    @property
    def cell_rows(self) -> int:
        return self.cell_bytes // self.row_bytes


@dataclass(frozen=True)
class Exchange:
    """Between each producer and each site a queue of `connection` rows. `buffer` rows more are each producer's own:
    shared by all destinations and cells if `shared` (Flux's skew buffer), else divided among the queues."""

    connection: int = 2 * PACKET // 80
    packet: int = PACKET // 80  # a connection delivers whole packets
    buffer: int = 2048
    shared: bool = True


@dataclass(frozen=True)
class CpuLoad:
    """A process beside the operator, busy and asleep in turn. `left` is the share of its own speed that the operator
    keeps; None: worked out from the times (`loads.share_left`)."""

    site: int
    start: float
    end: float = float("inf")
    busy: float = 100e-6
    asleep: float = 50e-6
    left: float | None = None


@dataclass(frozen=True)
class MemoryCut:
    """From then on the operator has so much memory at the site."""

    site: int
    start: float
    memory: int


@dataclass(frozen=True)
class Pace:
    """Lengths of collection phases in seconds: the paper's rule over `least`, or the self-damping one up to `most`."""

    least: float = 0.01
    first: float | None = None
    damped: bool = False
    most: float = 4.0


ANY = Limits()  # every safe move is worth it


@dataclass(frozen=True)
class Adaptation:
    """Who decides. `limits` are what the guard asks of a move beside its safety: nothing for the papers' policies."""

    policy: str = "flux.balance"
    pace: Pace = Pace()
    limits: Limits = ANY


@dataclass(frozen=True)
class Scenario:
    sites: tuple[Site, ...]
    seconds: float
    producers: Producers = Producers()
    operator: Operator = Operator()
    exchange: Exchange = Exchange()
    network: Network = Network()
    loads: tuple[CpuLoad, ...] = ()
    cuts: tuple[MemoryCut, ...] = ()
    adaptation: Adaptation | None = None  # None: nothing is ever decided
    quantum: float = 5e-3
    interval: float = 1.0  # over which throughput and latency are reported
    seed: int = 1
    note: str = field(default="", compare=False)
