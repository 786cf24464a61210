"""Guard: policies suggest, the guard disposes, and says why.

Two kinds of rules. What is unsafe is always refused: a cell or site that does not exist, a cell that is on its way, a
receiver without room. What is not worth it is refused by the guard's limits, judged by the sites and the cell that the
move touches and never by the query's total. `Guard.paper()` has no such limits, since the papers' policies have their
own tests.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from anabranch.control.actions import Action, Effect, Move, Overfull, Proposal, Verdict
from anabranch.control.projection import Projection
from anabranch.control.view import Key, View


@dataclass(frozen=True)
class Limits:
    """What makes a move worth it. Zero, or None, is no limit."""

    moves_per_round: int | None = None
    bytes_per_round: int | None = None
    cool_down_rounds: int = 0  # how long a moved cell stays
    least_imbalance: float = 0.0  # by which the site that gives is busier than the one that takes, as a share of it
    least_gain: float = 0.0  # of the cell's own load: by how much the busier of the two is relieved
    least_seconds: float = 0.0  # half of the difference between the two, per period of length 1


class Guard:
    """Knows what has been moved in the rounds before; one per controller."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits(
            moves_per_round=64, bytes_per_round=1 << 30, cool_down_rounds=3, least_imbalance=0.05, least_gain=0.2,
            least_seconds=0.004,
        )  # fmt: skip
        self.moved_at: dict[Key, int] = {}

    @staticmethod
    def paper() -> Guard:
        return Guard(Limits())

    def judge(
        self, view: View, projection: Projection, proposal: Proposal, round: int, taken: Collection[Action],
        in_flight: Collection[Key] = (),
    ) -> Verdict:  # fmt: skip
        """The verdict on one proposal, after those already taken in this round."""
        action = proposal.action
        if isinstance(action, Overfull):
            return Verdict(False, "no move can help; splitting a cell is not available")
        if not isinstance(action, Move):
            return Verdict(False, "a policy may only move cells")
        unsafe = self._unsafe(view, projection, action, taken, in_flight)
        if unsafe:
            return Verdict(False, unsafe)
        effect = projection.effect(action)
        waste = self._waste(view, action, effect, round, taken)
        return Verdict(not waste, waste or "allowed", effect)

    def enacted(self, actions: Collection[Action], round: int) -> None:
        for action in actions:
            if isinstance(action, Move):
                self.moved_at[action.key] = round
        oldest = round - self.limits.cool_down_rounds
        self.moved_at = {k: r for k, r in self.moved_at.items() if r >= oldest}

    def _unsafe(
        self, view: View, projection: Projection, move: Move, taken: Collection[Action], in_flight: Collection[Key]
    ) -> str | None:
        if move.key not in view.by_key:
            return f"there is no cell {move.cell} of {move.operator}"
        if move.site not in view.site:
            return f"there is no site {move.site}"
        if move.site == projection.place[move.key]:
            return "the cell is there already"
        if move.key in in_flight:
            return "the cell is on its way"
        if any(isinstance(a, Move) and a.key == move.key for a in taken):
            return "the cell has been given another move in this round"
        cell, donor = view.by_key[move.key], view.site[projection.place[move.key]]
        if donor.excess <= 0 and projection.room(move.site) < cell.bytes:
            # A site that is itself out of room may push state where there is less of it missing (F9).
            return f"site {move.site} has no room for {cell.bytes} bytes"
        return None

    def _waste(
        self, view: View, move: Move, effect: Effect, round: int, taken: Collection[Action]
    ) -> str | None:  # fmt: skip
        limits = self.limits
        moves = [a for a in taken if isinstance(a, Move)]
        if limits.moves_per_round is not None and len(moves) >= limits.moves_per_round:
            return f"{limits.moves_per_round} moves in one round are enough"
        cell = view.by_key[move.key]
        carried = sum(view.by_key[a.key].bytes for a in moves)
        if limits.bytes_per_round is not None and moves and carried + cell.bytes > limits.bytes_per_round:
            return f"{carried + cell.bytes} bytes in one round are too many"
        last = self.moved_at.get(move.key)
        if last is not None and limits.cool_down_rounds and round - last <= limits.cool_down_rounds:
            return f"the cell was moved {round - last} rounds ago"
        if effect.memory:
            return None
        gives, takes = effect.before
        # Judged by the two sites and by the cell, never by its share of a site: many small moves may be worth it.
        if limits.least_imbalance and gives <= takes * (1 + max(limits.least_imbalance, view.noise)):
            return (
                f"the sites it touches are busy alike, as far as can be told: sites differ by {view.noise:.0%} anyway"
            )
        if limits.least_gain and effect.gain < limits.least_gain * (gives - effect.after[0]):
            return "the gain is small against the load of the cell: it would rather move the imbalance"
        seconds = (gives - takes) / 2 * view.rows / view.length if view.length else 0.0
        if seconds < limits.least_seconds:
            return f"there are {seconds * 1000:.1f} ms of an epoch to be saved, too little to tell from noise"
        return None
