"""Several policies one after the other, each seeing the same view; the guard keeps them out of each other's way."""

from __future__ import annotations

from collections.abc import Sequence

from anabranch.control.actions import Proposals
from anabranch.control.policy import Policy
from anabranch.control.view import View


class Several(Policy):
    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = policies
        self.name = ",".join(p.name for p in policies)  # type: ignore[misc]
        self.reads_memory = any(p.reads_memory for p in policies)  # type: ignore[misc]

    def propose(self, view: View) -> Proposals:
        for policy in self.policies:
            yield from policy.propose(view)
