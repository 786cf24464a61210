"""What can be done to a running query, and what a policy says when it proposes one of these.

An action takes effect between two epochs, under a new version of the assignment.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

from anabranch.control.view import Key


@dataclass(frozen=True)
class Move:
    """A cell, with its state and whatever is held for it, to another site."""

    operator: str
    cell: int
    site: int

    @property
    def key(self) -> Key:
        return self.operator, self.cell

    def __str__(self) -> str:
        return f"move {self.operator} cell {self.cell} to site {self.site}"


@dataclass(frozen=True)
class Resize:
    """Another number of sites."""

    sites: int

    def __str__(self) -> str:
        return f"resize to {self.sites} sites"


@dataclass(frozen=True)
class Overfull:
    """No action but a finding: one cell is more than a site can carry, and no move can help."""

    operator: str
    cell: int
    site: int

    @property
    def key(self) -> Key:
        return self.operator, self.cell

    def __str__(self) -> str:
        return f"{self.operator} cell {self.cell} at site {self.site} needs splitting"


Action = Move | Resize | Overfull


@dataclass(frozen=True)
class Proposal:
    """An action, why, and the figures that it was judged by."""

    action: Action
    reason: str
    inputs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Effect:
    """The load of the two sites that a move touches, in seconds of work per row of the operator's whole input.

    Per row of the whole, so that it can be compared with what is observed later, when more or fewer rows come.
    """

    donor: int
    receiver: int
    before: tuple[float, float]
    after: tuple[float, float]
    bytes_before: tuple[int, int] = (0, 0)  # of state
    bytes_after: tuple[int, int] = (0, 0)
    memory: bool = False  # whether it relieves a site that has more state than its budget

    @property
    def gain(self) -> float:
        """By how much the busier of the two is relieved."""
        return max(self.before) - max(self.after)


@dataclass(frozen=True)
class Verdict:
    """What the guard says of a proposal; a policy hears it before it goes on."""

    allowed: bool
    reason: str
    effect: Effect | None = None


Proposals = Generator[Proposal, Verdict, None]
