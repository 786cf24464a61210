"""Projection: the load and state that a view's sites would have after some moves. Mutable, made anew each round.

It assumes what Flux assumes: each cell brings as many rows as before, each site takes as long for a row as before.
"""

from __future__ import annotations

from anabranch.control.actions import Effect, Move
from anabranch.control.view import CellView, View


class Projection:
    def __init__(self, view: View) -> None:
        self.view = view
        self.cost = {s.site: view.cost(s.site) for s in view.sites}
        self.busy = {s.site: s.busy for s in view.sites}
        self.bytes = {s.site: s.state_bytes for s in view.sites}
        self.place = {c.key: c.site for c in view.cells}

    def effect(self, move: Move) -> Effect:
        """What the move alone would change now."""
        view, cell = self.view, self.view.by_key[move.key]
        donor, receiver = self.place[move.key], move.site
        before = self.busy[donor], self.busy[receiver]
        after = before[0] - self.load(cell, donor), before[1] + self.load(cell, receiver)
        rows = max(view.rows, 1)
        state = self.bytes[donor], self.bytes[receiver]
        return Effect(
            donor, receiver, (before[0] / rows, before[1] / rows), (after[0] / rows, after[1] / rows),
            state, (state[0] - cell.bytes, state[1] + cell.bytes),
            memory=self.room(donor) < 0 and self.room(receiver) > self.room(donor),
        )  # fmt: skip

    def load(self, cell: CellView, site: int) -> float:
        """Seconds of work that the cell would take there."""
        return cell.rows_in * self.cost[site]

    def room(self, site: int) -> float:
        budget = self.view.site[site].budget_bytes
        return float("inf") if budget is None else budget - self.bytes[site]

    def apply(self, move: Move) -> None:
        cell = self.view.by_key[move.key]
        donor = self.place[move.key]
        self.busy[donor] -= self.load(cell, donor)
        self.busy[move.site] += self.load(cell, move.site)
        self.bytes[donor] -= cell.bytes
        self.bytes[move.site] += cell.bytes
        self.place[move.key] = move.site
