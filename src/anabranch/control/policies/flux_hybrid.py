"""Flux's hybrid (F10): memory first where any site has spilled, else work, and only to where there is room."""

from __future__ import annotations

from anabranch.control.actions import Proposals
from anabranch.control.policies.flux_balance import FluxBalance
from anabranch.control.policies.flux_memory import FluxMemory
from anabranch.control.policy import Policy, register
from anabranch.control.view import CellView, SiteView, View


@register
class FluxHybrid(Policy):
    name = "flux.hybrid"
    reads_memory = True

    def __init__(self, imbalance: float = 1.2, utilised: float = 0.9) -> None:
        self.work = FluxBalance(imbalance, utilised)
        self.memory = FluxMemory()

    def propose(self, view: View) -> Proposals:
        if any(s.cold_bytes for s in view.sites):
            yield from self.memory.propose(view)
        else:
            yield from self.work.balanced(view, has_room)


def has_room(cell: CellView, receiver: SiteView) -> bool:
    return receiver.excess + cell.bytes <= 0
