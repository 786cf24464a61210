"""Assignment: which site owns each cell. Immutable, versioned, and the same wherever it is computed.

A version holds from one epoch on; between two epochs a new version may take over, never within one. The controller
produces versions, the manifest keeps them, the exchange is routed by them and a site opens its state by them.

Today every cell has shape 1x1: one owner. A shape n x m (left rows cut into n lanes, right rows into m, lane pairs on
n * m sites) will come as a further field beside `owner`; that is why `from_json` refuses fields it does not know: an
older version must never route a reshaped cell as if it were whole.

Limits: `resized` balances the *number* of cells. Balance by load is the controller's business, cell by cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.errors import SettingError
from anabranch.routing.cells import cell_bits

_FIELDS = frozenset({"version", "sites", "owner"})


@dataclass(frozen=True)
class Assignment:
    """Cell c is owned by site ``owner[c]``. A site may own nothing (more sites than cells, or drained)."""

    version: int
    sites: int
    owner: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_sites(self.sites)
        cell_bits(len(self.owner))
        if type(self.version) is not int or self.version < 0:
            raise SettingError(f"the version of an assignment must be a whole number from 0, not {self.version!r}")
        for cell, site in enumerate(self.owner):
            if type(site) is not int or not 0 <= site < self.sites:
                raise SettingError(
                    f"cell {cell} is assigned to site {site!r}, but the sites are 0 to {self.sites - 1}",
                    where=f"assignment version {self.version}",
                )

    @staticmethod
    def initial(cells: int, sites: int) -> Assignment:
        """Contiguous ranges whose sizes differ by at most one, as version 0."""
        cell_bits(cells)
        _check_sites(sites)
        return Assignment(0, sites, tuple(cell * sites // cells for cell in range(cells)))

    @property
    def cells(self) -> int:
        return len(self.owner)

    def cells_of(self, site: int) -> tuple[int, ...]:
        """The cells a site owns, ascending."""
        self._check_site(site)
        return tuple(cell for cell, owner in enumerate(self.owner) if owner == site)

    def counts(self) -> tuple[int, ...]:
        """How many cells each site owns."""
        counts = [0] * self.sites
        for site in self.owner:
            counts[site] += 1
        return tuple(counts)

    def moved(self, cell: int, site: int) -> Assignment:
        """The next version, with one cell elsewhere; the same version if it is there already."""
        return self.moved_all({cell: site})

    def moved_all(self, moves: Mapping[int, int]) -> Assignment:
        """The next version, with several cells elsewhere at once: one epoch takes one step of the version."""
        owner = list(self.owner)
        for cell, site in moves.items():
            if type(cell) is not int or not 0 <= cell < self.cells:
                raise SettingError(f"there is no cell {cell!r}: the cells are 0 to {self.cells - 1}")
            self._check_site(site)
            owner[cell] = site
        return self._next(self.sites, owner)

    def resized(self, sites: int) -> Assignment:
        """The next version, over another number of sites: balanced, with as few cells moved as balance allows.

        Sites 0 to ``sites - 1`` stay, and what lies on the others is handed out. The same number of sites changes
        nothing, so that a balance found by load survives a resize that is none.
        """
        _check_sites(sites)
        if sites == self.sites:
            return self
        held: list[list[int]] = [[] for _ in range(sites)]
        homeless: list[int] = []
        for cell, site in enumerate(self.owner):
            (held[site] if site < sites else homeless).append(cell)
        # Every site gets `share` cells, and `extra` of them one more. The fullest get it: they give away the least.
        share, extra = divmod(self.cells, sites)
        target = [share] * sites
        for site in sorted(range(sites), key=lambda s: (-len(held[s]), s))[:extra]:
            target[site] += 1
        for site in range(sites):
            homeless.extend(held[site][target[site] :])
        owner = list(self.owner)
        spare = iter(sorted(homeless))
        for site in range(sites):
            for _ in range(target[site] - len(held[site])):
                owner[next(spare)] = site
        return self._next(sites, owner)

    def changed_cells(self, other: Assignment) -> tuple[int, ...]:
        """The cells whose owner differs between two assignments over the same cells."""
        if self.cells != other.cells:
            raise SettingError(f"assignments over {self.cells} and {other.cells} cells cannot be compared")
        return tuple(c for c, (a, b) in enumerate(zip(self.owner, other.owner, strict=True)) if a != b)

    def to_json(self) -> dict[str, Any]:
        return {"version": self.version, "sites": self.sites, "owner": list(self.owner)}

    @staticmethod
    def from_json(data: Any) -> Assignment:
        """The inverse of `to_json`; refuses what it does not understand rather than routing by half of it."""
        if not isinstance(data, Mapping) or set(data) != _FIELDS or not isinstance(data["owner"], list | tuple):
            found = sorted(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
            raise SettingError(
                f"an assignment needs exactly the fields {sorted(_FIELDS)}, found {found}",
                fix="if a newer Anabranch wrote it, open it with that version",
            )
        return Assignment(data["version"], data["sites"], tuple(data["owner"]))

    def _next(self, sites: int, owner: Iterable[int]) -> Assignment:
        owners = tuple(owner)
        if sites == self.sites and owners == self.owner:
            return self
        return Assignment(self.version + 1, sites, owners)

    def _check_site(self, site: int) -> None:
        if type(site) is not int or not 0 <= site < self.sites:
            raise SettingError(f"there is no site {site!r}: the sites are 0 to {self.sites - 1}")


def _check_sites(sites: int) -> None:
    if type(sites) is not int or sites < 1:
        raise SettingError(f"the number of sites must be at least 1, not {sites!r}", where="option 'sites'")
