"""Controller: rounds of collect, decide, guard, enact and record, for one operator or several that share sites.

A driver gives it a view per period and asks it, whenever the assignment could change, what to do. It knows no clock
and no engine: `now` and lengths are in the driver's unit.

After a round in which cells moved, their effect is looked for in the next one: what each touched site's load came to,
against what was predicted. What moves deliver decides how long the next rounds are (`pacing.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from statistics import fmean
from typing import Any

from anabranch.control.actions import Action, Move
from anabranch.control.collect import merged
from anabranch.control.guard import Guard
from anabranch.control.journal import Journal
from anabranch.control.pacing import Outcome, Pacing
from anabranch.control.policy import Policy
from anabranch.control.projection import Projection
from anabranch.control.view import Key, View


class Controller:
    def __init__(
        self, policy: Policy, guard: Guard, pacing: Pacing, journal: Journal, *, advise_only: bool = False
    ) -> None:
        self.policy = policy
        self.guard = guard
        self.pacing = pacing
        self.journal = journal
        self.advise_only = advise_only
        self.paused = False
        self.round = 0
        self._periods: list[View] = []
        self._pending: list[dict[str, Any]] = []  # entries whose effect is still to be seen
        self._delivered: float | None = None
        self._last: tuple[int, float] = (0, 0.0)  # moves of the last round, length of its move phase

    # -- collect -----------------------------------------------------------------------------------------------

    def observe(self, period: View) -> None:
        """One period's figures; a period of other sites than the ones before begins the phase again."""
        if self._periods and set(self._periods[-1].site) != set(period.site):
            self._periods.clear()
        self._periods.append(period)

    def restart(self) -> None:
        """Begin the phase again: what was seen is of a layout that is no more."""
        self._periods.clear()

    @property
    def collected(self) -> float:
        return sum(p.length for p in self._periods)

    @property
    def due(self) -> bool:
        """Whether the collection phase is over."""
        return bool(self._periods) and self.collected >= self.pacing.length

    # -- decide, guard, record ---------------------------------------------------------------------------------

    def decide(self, in_flight: Collection[Key] = (), *, now: bool = False) -> list[Action]:
        """What to enact now; nothing while the phase lasts, unless it is to end `now`. Call `moved` when it is done."""
        if not (self.due or (now and self._periods)):
            return []
        view = merged(self._periods)
        self._periods.clear()
        self._look_back(view)
        actions = [] if self.paused else self._propose(view, in_flight)
        self.guard.enacted(actions, self.round)
        self.round += 1
        self._last = len(actions), 0.0
        if not actions:
            self._next_phase()
        return actions

    def moved(self, move_time: float) -> None:
        """The actions of the last `decide` have been enacted, in so long."""
        self._last = self._last[0], move_time
        self._next_phase()

    def _next_phase(self) -> None:
        self.pacing.next(Outcome(*self._last, self._delivered))
        self._delivered = None

    def _propose(self, view: View, in_flight: Collection[Key]) -> list[Action]:
        projection = Projection(view)
        taken: list[Action] = []
        proposals = self.policy.propose(view)
        try:
            proposal = next(proposals)
            while True:
                verdict = self.guard.judge(view, projection, proposal, self.round, taken, in_flight)
                entry = self.journal.record(
                    now=view.now, round=self.round, policy=self.policy.name, proposal=proposal, verdict=verdict,
                    advise_only=self.advise_only,
                )  # fmt: skip
                if verdict.allowed and isinstance(proposal.action, Move):
                    projection.apply(proposal.action)
                    if not self.advise_only:
                        taken.append(proposal.action)
                        self._pending.append(entry)
                proposal = proposals.send(verdict)
        except StopIteration:
            return taken

    # -- predicted and observed --------------------------------------------------------------------------------

    def _look_back(self, view: View) -> None:
        """What the moves of the last round came to. Several moves of one site are one effect: the last prediction of
        a site counts them all."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        rows = max(view.rows, 1)
        shares = []
        for entry in pending:
            predicted = entry["predicted"]
            donor, receiver = (view.site.get(predicted[k]) for k in ("donor", "receiver"))
            if donor is None or receiver is None or not view.rows:
                continue
            share = self.journal.observed(entry, donor.busy / rows, receiver.busy / rows)
            if share is not None:
                shares.append(share)
        self._delivered = fmean(shares) if shares else None
