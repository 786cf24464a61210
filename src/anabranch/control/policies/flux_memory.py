"""Flux's policy against short memory (F9), as in section 6.1 of the paper."""

from __future__ import annotations

from anabranch.control.actions import Move, Proposal, Proposals
from anabranch.control.policies.pairs import paired
from anabranch.control.policy import Policy, register
from anabranch.control.view import SiteView, View


@register
class FluxMemory(Policy):
    """Sites paired by excess (state beyond the budget); of each donor, cells in memory first, the largest first, the
    first whose move lowers the pair's imbalance. The receiver's utilisation is not looked at."""

    name = "flux.memory"
    reads_memory = True

    def propose(self, view: View) -> Proposals:
        if any(s.budget_bytes is None for s in view.sites):
            return
        for donor, receiver in paired(view, excess):
            high, low = excess(donor), excess(receiver)
            if high <= 0 or high <= low:
                return  # this pair, and those that follow, have room
            for cell in sorted(view.by_site[donor.site], key=lambda c: (c.cold, -c.bytes, c.key)):
                if not 0 < cell.bytes < high - low:
                    continue  # moved, it would turn the imbalance round
                yield Proposal(
                    Move(cell.operator, cell.cell, receiver.site),
                    f"site {donor.site} has {high:,.0f} bytes of state too many, site {receiver.site} {-low:,.0f} free",
                    {"donor_excess": high, "receiver_excess": low, "bytes": cell.bytes},
                )
                break


def excess(site: SiteView) -> float:
    return site.excess
