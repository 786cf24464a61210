"""Nothing moves: the baseline of every comparison."""

from __future__ import annotations

from anabranch.control.actions import Proposals
from anabranch.control.policy import Policy, register
from anabranch.control.view import View


@register
class Static(Policy):
    name = "static"

    def propose(self, view: View) -> Proposals:
        yield from ()
