"""The default: many moves a round, packed by what the sites can take, memory before work.

1. Where a site has spilled or has more state than its budget, its cells go to where there is room, largest first.
2. Then, if a site has clearly more work than is fair, the one with the most gives a cell to the site that would finish
   first with it, and so on until all are about level. Several hot cells are packed at once: each step counts the ones
   before it. How much is clear depends on how much the sites differ without a reason (the view's noise).
3. A cell that alone is more work than a fair share of all sites together is reported: no move can help it.

Sites of different speed are told apart by their work per row, so a slow site ends up with less.
"""

from __future__ import annotations

from anabranch.control.actions import Move, Overfull, Proposal, Proposals
from anabranch.control.policy import Policy, register
from anabranch.control.projection import Projection
from anabranch.control.view import CellView, Key, View


@register
class Balance(Policy):
    name = "balance"
    reads_memory = True

    def __init__(
        self, imbalance: float = 1.15, level: float = 1.05, overfull: float = 1.25, moves: int = 64
    ) -> None:  # fmt: skip
        self.imbalance = imbalance  # most over fair work below which sites count as balanced
        self.level = level  # to where work is moved once they do not
        self.overfull = overfull  # one cell's work over a fair share, from which on it is reported
        self.moves = moves  # per round

    def propose(self, view: View) -> Proposals:
        projection = Projection(view)
        refused: set[Key] = set()
        yield from self._relieve(view, projection, refused)
        yield from self._level(view, projection, refused)

    # -- memory ------------------------------------------------------------------------------------------------

    def _relieve(self, view: View, projection: Projection, refused: set[Key]) -> Proposals:
        for _ in range(self.moves):
            donor = min(projection.bytes, key=lambda s: (projection.room(s), s))
            receiver = max(projection.bytes, key=lambda s: (projection.room(s), -s))
            short, room = -projection.room(donor), projection.room(receiver)
            if short <= 0 or room <= 0:
                return
            found = [c for c in here(view, projection, donor, refused) if 0 < c.bytes <= room]
            if not found:
                return
            # In memory first: a cold cell costs reading. The smallest that is enough, else the largest.
            enough = [c for c in found if c.bytes >= short]
            cell = min(enough, key=lambda c: (c.cold, c.bytes, c.key), default=None) or max(
                found, key=lambda c: (not c.cold, c.bytes)
            )
            move = Move(cell.operator, cell.cell, receiver)
            verdict = yield Proposal(
                move, f"site {donor} has {short:,.0f} bytes of state too many, site {receiver} {room:,.0f} free",
                {"donor_short": short, "receiver_room": room, "bytes": cell.bytes},
            )  # fmt: skip
            if verdict.allowed:
                projection.apply(move)
            else:
                refused.add(cell.key)

    # -- work --------------------------------------------------------------------------------------------------

    def _level(self, view: View, projection: Projection, refused: set[Key]) -> Proposals:
        target = fair(view)
        if target <= 0 or max(projection.busy.values()) <= max(self.imbalance, 1 + 2 * view.noise) * target:
            return
        least = min(c for s in view.site if (c := view.cost(s)) > 0)
        reported: set[Key] = set()
        stuck: set[int] = set()  # sites that have nothing to give
        for _ in range(self.moves):
            donor = max((s for s in projection.busy if s not in stuck), key=lambda s: (projection.busy[s], -s))
            most = projection.busy[donor]
            if most <= max(self.level, 1 + view.noise) * target:
                return
            cells = [c for c in here(view, projection, donor, set()) if c.rows_in]
            hot = max(cells, key=lambda c: (c.rows_in, c.key), default=None)
            if hot is not None and hot.rows_in * least > self.overfull * target and hot.key not in reported:
                reported.add(hot.key)
                alone = hot.rows_in * least / target
                yield Proposal(
                    Overfull(hot.operator, hot.cell, donor), f"one cell is {alone:.1f} times a site's fair share",
                    {"share": alone, "rows": hot.rows_in, "most": most, "target": target},
                )  # fmt: skip
            best = self._best(projection, donor, most, [c for c in cells if c.key not in refused])
            if best is None:
                stuck.add(donor)
                if len(stuck) == len(projection.busy):
                    return
                continue
            cell, receiver, after = best
            move = Move(cell.operator, cell.cell, receiver)
            verdict = yield Proposal(
                move, f"site {donor} has {most / target:.2f} times the work that is fair, site {receiver} "
                f"{projection.busy[receiver] / target:.2f}",
                {"most": most, "target": target, "after": after, "rows": cell.rows_in, "bytes": cell.bytes},
            )  # fmt: skip
            if verdict.allowed:
                projection.apply(move)
            refused.add(cell.key)  # either way: a cell has one move a round

    @staticmethod
    def _best(
        projection: Projection, donor: int, most: float, cells: list[CellView]
    ) -> tuple[CellView, int, float] | None:
        """The cell and receiver after which the busier of the two sites has least; None if none is better than now.
        Of receivers that are alike in this, the one that would finish first."""
        best: tuple[tuple[float, float, int], CellView, int] | None = None
        others = [s for s in projection.busy if s != donor]
        for cell in cells:
            left = most - projection.load(cell, donor)
            for site in others:
                then = projection.busy[site] + projection.load(cell, site)
                worth = max(left, then), then, cell.bytes
                if (
                    worth[0] < most * (1 - 1e-9)
                    and (best is None or worth < best[0])
                    and projection.room(site) >= cell.bytes
                ):
                    best = worth, cell, site
        return None if best is None else (best[1], best[2], best[0][0])


def fair(view: View) -> float:
    """The work of each site if all finished together: rows shared out in proportion to speed."""
    speed = sum(1 / c for s in view.site if (c := view.cost(s)) > 0)
    return view.rows / speed if speed else 0.0


def here(view: View, projection: Projection, site: int, refused: set[Key]) -> list[CellView]:
    """The cells that the site would have now, in order."""
    return [c for c in view.cells if projection.place[c.key] == site and c.key not in refused]
