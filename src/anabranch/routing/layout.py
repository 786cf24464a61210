"""Layout: one assignment per operator, all over the same sites. What the manifest keeps and the controller changes.

Operators have cells of their own: cell 5 of a join and cell 5 of the aggregate behind it are different keys, and move
apart. The version counts every change of any operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.errors import SettingError
from anabranch.routing.assignment import Assignment

_FIELDS = frozenset({"version", "sites", "operators"})


@dataclass(frozen=True)
class Layout:
    version: int
    sites: int
    operators: Mapping[str, Assignment]

    @staticmethod
    def initial(operators: Iterable[str], cells: int, sites: int) -> Layout:
        return Layout(0, sites, {name: Assignment.initial(cells, sites) for name in operators})

    def of(self, operator: str) -> Assignment:
        if operator not in self.operators:
            known = ", ".join(sorted(self.operators)) or "none"
            raise SettingError(f"there is no operator {operator!r}", fix=f"the operators with cells are: {known}")
        return self.operators[operator]

    def owner(self, operator: str) -> tuple[int, ...]:
        return self.of(operator).owner

    def moved_all(self, moves: Mapping[tuple[str, int], int]) -> Layout:
        """The next version, with cells (operator, cell) at other sites; the same one if they are there already."""
        changed = dict(self.operators)
        for operator in {name for name, _ in moves}:
            here = {cell: site for (name, cell), site in moves.items() if name == operator}
            changed[operator] = self.of(operator).moved_all(here)
        return self._next(self.sites, changed)

    def resized(self, sites: int) -> Layout:
        return self._next(sites, {name: a.resized(sites) for name, a in self.operators.items()})

    def over(self, operators: Iterable[str], cells: int) -> Layout:
        """The same for exactly these operators: a new one begins with equal ranges, wherever its state may lie."""
        wanted = list(operators)
        if set(wanted) == set(self.operators):
            return self
        kept = {n: self.operators.get(n) or Assignment.initial(cells, self.sites) for n in wanted}
        return Layout(self.version + 1, self.sites, kept)

    def to_json(self) -> dict[str, Any]:
        operators = {name: a.to_json() for name, a in self.operators.items()}
        return {"version": self.version, "sites": self.sites, "operators": operators}

    @staticmethod
    def from_json(data: Any) -> Layout:
        """The inverse of `to_json`; refuses what it does not understand rather than routing by half of it."""
        if not isinstance(data, Mapping) or set(data) != _FIELDS or not isinstance(data["operators"], Mapping):
            raise SettingError(
                f"a layout needs exactly the fields {sorted(_FIELDS)}",
                fix="if a newer Anabranch wrote it, open it with that version",
            )
        operators = {str(name): Assignment.from_json(a) for name, a in data["operators"].items()}
        if any(a.sites != data["sites"] for a in operators.values()) or type(data["version"]) is not int:
            raise SettingError("the assignments of a layout are over different sites")
        return Layout(data["version"], data["sites"], operators)

    def _next(self, sites: int, operators: Mapping[str, Assignment]) -> Layout:
        if sites == self.sites and operators == self.operators:
            return self
        return Layout(self.version + 1, sites, dict(operators))
