"""Adaptation of a running query: what sites report becomes views, and what controllers decide becomes the next layout.

One controller for each operator with an exchange: their stages run one behind the other, so each is balanced for
itself. Decisions are made when an epoch's reports are in, and hold from the next epoch on; the layout is committed with
the epoch's manifest, and the journal's entries before it.

A cell moves when its state is where it will be: at once where all sites see one folder, and else when the receiver has
copied what there was. Until then the cell stays where it is, and no epoch waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence

from anabranch.control.actions import Action, Move, Resize
from anabranch.control.controller import Controller
from anabranch.control.guard import Guard
from anabranch.control.journal import Journal
from anabranch.control.pacing import DampedPacing
from anabranch.control.policy import named
from anabranch.control.view import CellView, Key, SiteView, StreamView, View
from anabranch.errors import SettingError
from anabranch.plan.physical import Plan
from anabranch.routing.layout import Layout
from anabranch.settings import Settings
from anabranch.site.ticket import Report
from anabranch.site.turns import full
from anabranch.state.journal import JournalFiles, read_entries
from anabranch.state.store import Store

__all__ = ["Adaptation", "read_entries"]

LONGEST = 16  # times the least round


class Adaptation:
    def __init__(self, plan: Plan, settings: Settings, store: Store, cells: int) -> None:
        self.plan = plan
        self.store = store
        self.cells = cells
        self.policy = settings.policies
        self.files = JournalFiles(store)
        self.journal = Journal(first=self.files.next_id())
        least = settings.round_epochs
        self.controllers = {
            operator: Controller(
                named(settings.policies), Guard(), DampedPacing(least, LONGEST * least), self.journal,
                advise_only=settings.advise_only, steady=True,
            )
            for operator in plan.leaders
        }  # fmt: skip
        self.coming: dict[Key, int] = {}  # moves that wait for state to be copied
        self.moves = 0
        self._since: dict[str, int] = {}  # operator -> epoch of the decision that is being enacted
        self._asked: deque[Action] = deque()
        self._sites: int | None = None  # what was last asked for, in force or not yet
        self._rebalance = False
        self._last_use: dict[Key, int] = {}
        self._lock = threading.Lock()

    # -- what people ask for -----------------------------------------------------------------------------------

    def ask(self, action: Action) -> None:
        with self._lock:
            self._asked.append(action)
            if isinstance(action, Resize):
                self._sites = action.sites

    def rebalance(self) -> None:
        self._rebalance = True

    def pause(self, paused: bool) -> None:
        for controller in self.controllers.values():
            controller.paused = paused

    @property
    def paused(self) -> bool:
        return any(c.paused for c in self.controllers.values())

    @property
    def wanted(self) -> bool:
        """Whether somebody waits for a change."""
        return bool(self._asked) or bool(self.coming)

    # -- after an epoch ----------------------------------------------------------------------------------------

    def next_layout(
        self, layout: Layout, epoch: int, reports: Sequence[Report], rows: Mapping[str, int] | None,
        budgets: Mapping[str, Sequence[int | None]],
    ) -> Layout:  # fmt: skip
        """Where the cells are from the next epoch on. `rows` per stream; None for an epoch without new ones."""
        ready = self._ready(reports)
        if rows is not None:
            for operator, controller in self.controllers.items():
                controller.observe(self.view(operator, layout, epoch, reports, rows, budgets.get(operator, ())))
                moves = controller.decide(set(self.coming), now=self._rebalance)
                for move in moves:
                    assert isinstance(move, Move)
                    self.coming[move.key] = move.site
                if moves:
                    self._since[operator] = epoch
            self._rebalance = False
        layout = self._take_asked(layout, epoch)
        if self.store.local:
            ready |= set(self.coming)
        arrived = {key: site for key, site in self.coming.items() if key in ready and site < layout.sites}
        self.coming = {k: s for k, s in self.coming.items() if k not in arrived and s < layout.sites}
        self.moves += len(arrived)
        for operator in {key[0] for key in arrived}:
            self.controllers[operator].restart()
        for operator in set(self._since) - {key[0] for key in self.coming}:
            self.controllers[operator].moved(float(epoch - self._since.pop(operator)))
        return layout.moved_all(arrived)

    def _ready(self, reports: Sequence[Report]) -> set[Key]:
        """The cells of which every stage's state is at the site to which they will move."""
        wanted: dict[Key, int] = {}
        for report in reports:
            leader = self.plan.leader(report.stage)
            for cell in report.ready:
                wanted[leader, cell] = wanted.get((leader, cell), 0) + 1
        stages = {o: sum(self.plan.leader(s.id) == o for s in self.plan.stages) for o in self.plan.leaders}
        return {key for key, count in wanted.items() if count == stages[key[0]] and key in self.coming}

    def _take_asked(self, layout: Layout, epoch: int) -> Layout:
        with self._lock:
            asked = list(self._asked)
            self._asked.clear()
        for action in asked:
            reason = "asked for"
            allowed = True
            if isinstance(action, Resize):
                layout = layout.resized(action.sites)
                for controller in self.controllers.values():
                    controller.restart("the number of sites changed")
            elif isinstance(action, Move) and 0 <= action.site < layout.sites:
                self.coming[action.key] = action.site
            else:
                allowed, reason = False, f"there are {layout.sites} sites by now"
            self.journal.asked(now=epoch, round=-1, action=action, allowed=allowed, reason=reason)
        return layout

    # -- views -------------------------------------------------------------------------------------------------

    def view(
        self, operator: str, layout: Layout, epoch: int, reports: Sequence[Report], rows: Mapping[str, int],
        budgets: Sequence[int | None] = (),
    ) -> View:  # fmt: skip
        """One epoch of an operator, with the stages that run behind it at the same sites.

        A site's work is its share of its machine's time (`shared_out`). It is that of the rows that arrived, at the
        pace of those that it processed: a site that holds rows for want of time or memory is no less loaded for that,
        and one that catches up no more.
        """
        mine = [r for r in reports if self.plan.leader(r.stage) == operator]
        first = {r.site: r for r in mine if r.stage == operator}
        arrived = [sum(c.rows_in for c in first[s].cells.values()) if s in first else 0 for s in range(layout.sites)]
        spent = shared_out(mine)
        busy = [sum(spent[r.stage, r.site] for r in mine if r.site == s) / 1000 for s in range(layout.sites)]
        busy = [b * arrived[s] / first[s].processed if s in first and first[s].processed else b
                for s, b in enumerate(busy)]  # fmt: skip
        longest = max(busy, default=0.0)
        sites = tuple(
            SiteView(
                s, busy[s], longest - busy[s], arrived[s],
                sum(r.hot_bytes for r in mine if r.site == s), sum(r.cold_bytes for r in mine if r.site == s),
                full(budgets[s]) if s < len(budgets) else None, sum(r.held_rows for r in mine if r.site == s),
            )
            for s in range(layout.sites)
        )  # fmt: skip
        size: dict[int, int] = {}
        out: dict[int, int] = {}
        for report in mine:
            for cell, told in report.cells.items():
                size[cell] = size.get(cell, 0) + told.bytes
                out[cell] = told.rows_out
        cold = {c for r in mine for c in r.cold}
        cells = []
        for cell, site in enumerate(layout.owner(operator)):
            facts = first[site].cells.get(cell) if site in first else None
            count = facts.rows_in if facts is not None else 0
            if count:
                self._last_use[operator, cell] = epoch
            used = self._last_use.get((operator, cell), 0)
            cells.append(CellView(operator, cell, site, count, out.get(cell, 0), size.get(cell, 0), used, cell in cold))
        streams = tuple(StreamView(name, count) for name, count in rows.items())
        return View(float(epoch), 1.0, sites, tuple(cells), streams)

    # -- the journal -------------------------------------------------------------------------------------------

    def write_journal(self, epoch: int) -> None:
        """What has been decided or seen since the last time, as one file."""
        fresh = self.journal.take()
        if fresh:
            self.files.write(epoch, fresh, self.journal.next_id)

    def check(self, action: Action, layout: Layout) -> None:
        """Refuse what a person asks for and cannot be."""
        if isinstance(action, Resize):
            if not 1 <= action.sites <= self.cells:
                raise SettingError(f"{action.sites} sites cannot share {self.cells} cells",
                                   fix="use a number from 1 to the number of cells")  # fmt: skip
            return
        assert isinstance(action, Move)
        assignment = layout.of(action.operator)
        if not 0 <= action.cell < assignment.cells:
            raise SettingError(f"there is no cell {action.cell}: the cells are 0 to {assignment.cells - 1}")
        sites = self._sites or layout.sites
        if not 0 <= action.site < sites:
            raise SettingError(f"there is no site {action.site}: the sites are 0 to {sites - 1}")


def shared_out(reports: Sequence[Report]) -> dict[tuple[str, int], float]:
    """How much of their machine's time each stage and site took, in milliseconds.

    Sites on one machine wait for each other's processors, by chance now this and now that one; moving cells between
    them would not help. So the time that all of them took is shared out by what each did. A machine that is slow, or
    busy with something else, is seen as slow all the same.
    """
    took: dict[str, float] = {}
    worked: dict[str, float] = {}
    for r in reports:
        machine = r.where.partition("/")[0]
        took[machine] = took.get(machine, 0.0) + r.busy_ms
        worked[machine] = worked.get(machine, 0.0) + r.worked_ms
    stretch = {m: took[m] / worked[m] if worked[m] > 0 else 0.0 for m in took}
    return {(r.stage, r.site): r.worked_ms * stretch[r.where.partition("/")[0]] for r in reports}
