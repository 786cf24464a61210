"""View: what the controller knows of an operator's sites and cells. Frozen, made of numbers, the same for every driver.

A driver reports one view per period (an epoch, or a collection phase); `collect.py` makes one view of a round's
periods. Times are seconds of work and of waiting, whatever clock the driver has; `now` and `length` are in the
driver's own unit (epochs, or seconds), and nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

Key = tuple[str, int]  # an operator's cell


@dataclass(frozen=True)
class SiteView:
    """One site over the period."""

    site: int
    busy: float  # seconds at work
    idle: float  # seconds without work: no input, or waiting for slower sites
    rows: int  # rows processed
    hot_bytes: int = 0
    cold_bytes: int = 0
    budget_bytes: int | None = None  # for hot state; None: not bounded
    held_rows: int = 0

    @property
    def utilisation(self) -> float:
        """Flux's 1 - I/delta (F7)."""
        whole = self.busy + self.idle
        return self.busy / whole if whole > 0 else 0.0

    @property
    def state_bytes(self) -> int:
        return self.hot_bytes + self.cold_bytes

    @property
    def excess(self) -> float:
        """State beyond the budget, negative where there is room (F9)."""
        return float("-inf") if self.budget_bytes is None else float(self.state_bytes - self.budget_bytes)


@dataclass(frozen=True)
class CellView:
    """One cell over the period; sizes are those at its end."""

    operator: str
    cell: int
    site: int
    rows_in: int = 0
    rows_out: int = 0
    bytes: int = 0
    last_use: float = 0.0  # when rows last came for it
    cold: bool = False
    held_rows: int = 0

    @property
    def key(self) -> Key:
        return self.operator, self.cell


@dataclass(frozen=True)
class StreamView:
    name: str
    rows: int  # in the period


@dataclass(frozen=True)
class View:
    """The period: `length` before `now`."""

    now: float
    length: float
    sites: tuple[SiteView, ...]
    cells: tuple[CellView, ...]
    streams: tuple[StreamView, ...] = ()
    noise: float = 0.0  # by how much a site's work per row varies without a reason, as a share of it

    @cached_property
    def by_site(self) -> Mapping[int, tuple[CellView, ...]]:
        found: dict[int, list[CellView]] = {s.site: [] for s in self.sites}
        for cell in self.cells:
            found[cell.site].append(cell)
        return {site: tuple(cells) for site, cells in found.items()}

    @cached_property
    def by_key(self) -> Mapping[Key, CellView]:
        return {cell.key: cell for cell in self.cells}

    @cached_property
    def site(self) -> Mapping[int, SiteView]:
        return {s.site: s for s in self.sites}

    @cached_property
    def rows(self) -> int:
        return sum(s.rows for s in self.sites)

    @cached_property
    def mean_cost(self) -> float:
        """Seconds of work per row over all sites: what a site costs of which nothing is known."""
        return sum(s.busy for s in self.sites) / self.rows if self.rows else 0.0

    def cost(self, site: int) -> float:
        """Seconds of work per row at a site, as fast or slow as it was in this period."""
        s = self.site[site]
        return s.busy / s.rows if s.rows else self.mean_cost

    def load(self, cell: CellView) -> float:
        """Seconds of its site's work that a cell took."""
        return cell.rows_in * self.cost(cell.site)
