"""Controller: rounds of collect, decide, guard, enact and record, for one operator or several that share sites.

A driver gives it a view per period and asks it, whenever the assignment could change, what to do. It knows no clock
and no engine: `now` and lengths are in the driver's unit.

After a round in which cells moved, their effect is looked for in the next one: what each touched site's load came to,
against what was predicted. What moves deliver decides how long the next rounds are (`pacing.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from anabranch.control.actions import Action, Move
from anabranch.control.collect import merged, paces, steadied
from anabranch.control.guard import Guard
from anabranch.control.journal import Journal
from anabranch.control.pacing import Outcome, Pacing
from anabranch.control.policy import Policy
from anabranch.control.projection import Projection
from anabranch.control.view import Key, View


class Controller:
    def __init__(
        self, policy: Policy, guard: Guard, pacing: Pacing, journal: Journal, *, advise_only: bool = False,
        steady: bool = False,
    ) -> None:  # fmt: skip
        self.policy = policy
        self.guard = guard
        self.pacing = pacing
        self.journal = journal
        self.advise_only = advise_only
        self.steady = steady  # whether a site's pace has to be seen in two rounds
        self.paused = False
        self.round = 0
        self._periods: list[View] = []
        self._paces: dict[int, float] = {}  # of the last round
        self._pending: list[dict[str, Any]] = []  # entries whose effect is still to be seen
        self._delivered: float | None = None
        self._last: tuple[int, float] = (0, 0.0)  # moves of the last round, length of its move phase

    # -- collect -----------------------------------------------------------------------------------------------

    def observe(self, period: View) -> None:
        """One period's figures; a period of other sites than the ones before begins the phase again."""
        if self._periods and set(self._periods[-1].site) != set(period.site):
            self._periods.clear()
        self._periods.append(period)

    def restart(self, why: str | None = None) -> None:
        """Begin the phase again: what was seen is of a layout that is no more. With `why`, the effect of the last moves
        cannot be seen either."""
        self._periods.clear()
        if why is not None:
            for entry in self._pending:
                self.journal.unseen(entry, why)
            self._pending.clear()
            self._paces.clear()

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
        seen, self._paces = self._paces, paces(view)
        if self.steady:
            view = steadied(view, seen)
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
        """What the moves of the last round came to. Those of one donor are one effect: its first move tells how it was,
        the last mention of each site how it should be, and every move gets its share of what was delivered."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        before: dict[int, float] = {}
        wanted: dict[int, float] = {}
        donors: dict[int, list[dict[str, Any]]] = {}
        for entry in pending:
            effect = entry["predicted"]
            donors.setdefault(effect["donor"], []).append(entry)
            for n, site in enumerate((effect["donor"], effect["receiver"])):
                before.setdefault(site, effect["before"][n])
                wanted[site] = effect["after"][n]
        rows = max(view.rows, 1)
        seen = {site: view.site[site].busy / rows for site in before if site in view.site}
        predicted = observed = 0.0
        for donor, entries in donors.items():
            touched = {donor, *(e["predicted"]["receiver"] for e in entries)}
            if not view.rows or not touched <= set(seen):
                for entry in entries:
                    self.journal.unseen(entry, "no rows came" if touched <= set(seen) else "the sites are others now")
                continue
            most = max(before[s] for s in touched)
            hoped, came = (most - max(found[s] for s in touched) for found in (wanted, seen))
            if not any(e["predicted"]["memory"] for e in entries):  # these are not made to relieve anybody of work
                predicted, observed = predicted + hoped, observed + came
            for entry in entries:
                effect = entry["predicted"]
                both = view.site[donor], view.site[effect["receiver"]]
                gain = effect["gain"] * came / hoped if hoped > 0 else came
                state = both[0].state_bytes, both[1].state_bytes
                self.journal.observed(entry, (seen[donor], seen[effect["receiver"]]), gain, state)
        self._delivered = observed / predicted if predicted > 0 else None
