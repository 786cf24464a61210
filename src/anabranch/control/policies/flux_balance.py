"""Flux's policy against imbalance of work (F8), as in section 5.3 of the paper."""

from __future__ import annotations

from collections.abc import Callable

from anabranch.control.actions import Move, Proposal, Proposals
from anabranch.control.policies.pairs import paired
from anabranch.control.policy import Policy, register
from anabranch.control.view import CellView, SiteView, View


@register
class FluxBalance(Policy):
    """Sites paired by utilisation; of each donor, from its busiest cell on, the first whose move lowers the pair's
    imbalance."""

    name = "flux.balance"

    def __init__(self, imbalance: float = 1.2, utilised: float = 0.9) -> None:
        self.imbalance = imbalance  # th_imb
        self.utilised = utilised  # th_util

    def propose(self, view: View) -> Proposals:
        yield from self.balanced(view, lambda cell, receiver: True)

    def balanced(self, view: View, fits: Callable[[CellView, SiteView], bool]) -> Proposals:
        average = sum(s.utilisation for s in view.sites) / len(view.sites)
        lightest = min(view.cells, key=lambda c: (c.bytes, c.key), default=None)
        if lightest is None:
            return
        for donor, receiver in paired(view, lambda s: s.utilisation, lambda s: fits(lightest, s)):
            d, r = donor.utilisation, receiver.utilisation
            if d < average or r > self.utilised or d < self.imbalance * r or d <= 0:
                return  # the pairs that follow are closer to each other
            for cell in sorted(view.by_site[donor.site], key=lambda c: (-c.rows_in, c.key)):
                if not cell.rows_in:
                    break
                after = self.after(view, donor, receiver, cell)
                if after is None or abs(after[0] - after[1]) >= d - r or not fits(cell, receiver):
                    continue
                verdict = yield Proposal(
                    Move(cell.operator, cell.cell, receiver.site),
                    f"site {donor.site} is busy {d:.0%} of the time, site {receiver.site} {r:.0%}",
                    {"donor": d, "receiver": r, "average": average, "donor_after": after[0],
                     "receiver_after": after[1], "rows": cell.rows_in},
                )  # fmt: skip
                if verdict.allowed:
                    break  # one cell per pair and round

    @staticmethod
    def after(view: View, donor: SiteView, receiver: SiteView, cell: CellView) -> tuple[float, float] | None:
        """Both utilisations after the move; None if the receiver would be over-utilised."""
        new_d = donor.utilisation * (1 - cell.rows_in / donor.rows)
        if receiver.rows:
            new_r = receiver.utilisation * (1 + cell.rows_in / receiver.rows)
        else:  # nothing is known of its speed: as fast as the average
            whole = receiver.busy + receiver.idle
            new_r = cell.rows_in * view.mean_cost / whole if whole else 0.0
        return None if new_r > 1 else (new_d, new_r)
