"""Journal: every decision with its inputs, verdict, reason and predicted and observed effect, refused ones too.

Entries are plain JSON values. The observed effect of a move is known a round later, so an entry is written twice: when
it is decided, and once more when its effect was seen. Keeps the newest entries in memory; a driver writes those that
`take` gives it wherever it keeps such things.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from anabranch.control.actions import Action, Effect, Move, Overfull, Proposal, Resize, Verdict

KEPT = 2000


class Journal:
    def __init__(self, first: int = 0) -> None:
        self.entries: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._next = first
        self._fresh: list[dict[str, Any]] = []

    def record(
        self, *, now: float, round: int, policy: str, proposal: Proposal, verdict: Verdict, advise_only: bool = False
    ) -> dict[str, Any]:
        """One proposal and what became of it."""
        entry: dict[str, Any] = {
            "id": self._next,
            "at": now,
            "round": round,
            "policy": policy,
            "action": described(proposal.action),
            "why": proposal.reason,
            "inputs": {k: _rounded(v) for k, v in proposal.inputs.items()},
            "verdict": _verdict(verdict, advise_only),
            "reason": verdict.reason if not (verdict.allowed and advise_only) else "advise-only: nothing is enacted",
            "predicted": effect_of(verdict.effect),
            "observed": None,
        }
        self._next += 1
        self._add(entry)
        return entry

    def asked(self, *, now: float, round: int, action: Action, allowed: bool, reason: str) -> dict[str, Any]:
        """What a person asked for."""
        proposal = Proposal(action, "asked for")
        return self.record(now=now, round=round, policy="manual", proposal=proposal, verdict=Verdict(allowed, reason))

    def observed(
        self, entry: dict[str, Any], after: tuple[float, float], gain: float, bytes: tuple[int, int]
    ) -> None:  # fmt: skip
        """What load and state of the two sites came to, and the move's share in the gain."""
        entry["observed"] = {"after": [_rounded(v) for v in after], "gain": _rounded(gain), "bytes": list(bytes)}
        self._fresh.append(entry)

    def unseen(self, entry: dict[str, Any], why: str) -> None:
        """The effect cannot be observed any more."""
        entry["observed"] = {"why": why}
        self._fresh.append(entry)

    @property
    def next_id(self) -> int:
        """That of the entry to come."""
        return self._next

    def take(self) -> list[dict[str, Any]]:
        """Entries that are new, or have changed, since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def _add(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        self._fresh.append(entry)


def described(action: Action) -> dict[str, Any]:
    if isinstance(action, Move):
        return {"kind": "move", "operator": action.operator, "cell": action.cell, "site": action.site}
    if isinstance(action, Resize):
        return {"kind": "resize", "sites": action.sites}
    assert isinstance(action, Overfull)
    return {"kind": "overfull", "operator": action.operator, "cell": action.cell, "site": action.site}


def effect_of(effect: Effect | None) -> dict[str, Any] | None:
    """Load in seconds of work per row of the operator's input, state in bytes."""
    if effect is None:
        return None
    return {
        "donor": effect.donor,
        "receiver": effect.receiver,
        "before": [_rounded(v) for v in effect.before],
        "after": [_rounded(v) for v in effect.after],
        "gain": _rounded(effect.gain),
        "bytes": {"before": list(effect.bytes_before), "after": list(effect.bytes_after)},
        "memory": effect.memory,
    }


def _verdict(verdict: Verdict, advise_only: bool) -> str:
    if not verdict.allowed:
        return "refused"
    return "advised" if advise_only else "enacted"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
