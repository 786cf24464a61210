"""What a site keeps: the live segments of its cells, what it adds to them, and in which tier they are.

Hot segments are plain and mapped; the segments of cold cells are compressed, and only opened when the cell has its
turn. Held rows are segments of ports of their own. Nothing is changed in place: a cell that changes its tier, like one
that is compacted, is written anew, and what it leaves behind is dropped cell by cell.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.site.operators import SiteOperator, appended, together
from anabranch.site.ticket import Ticket
from anabranch.site.turns import tiers
from anabranch.state import compaction
from anabranch.state.segments import Segment, bytes_per_cell, cells_in, mask_of, open_segment, write_segment
from anabranch.state.store import Store

# What an epoch may merge, over what it adds: each row is merged a few times in its life, so this keeps up, and a site
# that was given many cells at once does not do all of their merging in the next epoch.
MERGED = 4
MERGED_BYTES = 32 << 20  # so much in any case


class Keeping:
    def __init__(self, ticket: Ticket, site: int, store: Store) -> None:
        self.ticket = ticket
        self.site = site
        self.store = store
        self.cells = ticket.cells(site)
        self.mask = mask_of(self.cells)
        self.live = [self._mine(port.segments) for port in ticket.ports]
        self.held = [self._mine(port.held) for port in ticket.ports]
        self.cold = frozenset(cells_in(_union(s for port in self.live for s in port if s.compressed)))
        self.left: frozenset[int] = frozenset()  # cells that have held rows when the epoch is over
        self.written: list[tuple[str, Segment]] = []
        self.dropped: list[tuple[str, int]] = []
        self.spilled = self.restored = 0
        self._old = [list(port) for port in self.live]

    def _mine(self, segments: Sequence[Segment]) -> list[Segment]:
        return [part for s in segments if (part := s.only(self.cells)) is not None]

    # -- what there is -----------------------------------------------------------------------------------------

    def bytes_per_cell(self) -> Any:
        """Of state, both tiers; of the site's cells only."""
        sizes = np.zeros(len(self.ticket.owner), np.int64)
        for port in self.live:
            for segment in port:
                sizes += bytes_per_cell(self.store, segment, len(sizes))
        return sizes

    def open(self, cells: Collection[int]) -> list[list[pa.Table]]:
        """The state of some cells, per port; hot ones are slices of mapped files."""
        mask = mask_of(cells)
        return [[open_segment(self.store, s, cells) for s in port if s.mask & mask] for port in self.live]

    @property
    def held_rows(self) -> int:
        return sum(int(self._held_of(s).sum()) for port in self.held for s in port)

    @property
    def held_bytes(self) -> int:
        return sum(s.nbytes for port in self.held for s in port)

    def held_rows_per_cell(self) -> Any:
        rows = np.zeros(len(self.ticket.owner), np.int64)
        for port in self.held:
            for segment in port:
                rows += self._held_of(segment)
        return rows

    def _held_of(self, segment: Segment) -> Any:
        cells = open_segment(self.store, segment, self.cells)["_cell"].to_numpy()
        return np.bincount(cells, minlength=len(self.ticket.owner))

    def has_held(self, cells: Collection[int]) -> bool:
        return any(self.held) and bool(_union(s for port in self.held for s in port) & mask_of(cells))

    def with_held(self, port: int, rows: pa.Table, cells: Collection[int]) -> pa.Table:
        """Rows that arrived, behind those of the same cells that were held; these are held no longer."""
        if port >= len(self.held):
            return rows
        mask = mask_of(cells)
        waiting = [s for s in self.held[port] if s.mask & mask]
        parts = [open_segment(self.store, s, cells) for s in waiting]
        for segment in waiting:
            self._drop(self.held[port], segment, mask)
        return together([*parts, rows], rows).combine_chunks()

    # -- what is added -----------------------------------------------------------------------------------------

    def keep(self, port: int, rows: pa.Table) -> None:
        """New state. That of a cold cell joins it."""
        if not self.cold:
            self._add(str(port), self.live[port], rows)
            return
        lookup = np.zeros(len(self.ticket.owner), bool)
        lookup[sorted(self.cold)] = True
        frozen = pa.array(lookup[rows["_cell"].to_numpy()])
        self._add(str(port), self.live[port], rows.filter(pc.invert(frozen)))
        self._add(str(port), self.live[port], rows.filter(frozen), compressed=True)

    def hold(self, port: int, rows: pa.Table) -> None:
        if rows.num_rows:
            self._add(f"held-{port}", self.held[port], rows)

    def _add(self, port: str, to: list[Segment], rows: pa.Table, *, compressed: bool = False) -> None:
        label = {"e": self.ticket.epoch, "s": self.site}
        folder = f"{self.ticket.stage}/{port}"
        segment = write_segment(self.store, folder, rows, label=label, compressed=compressed)
        if segment is not None:
            to.append(segment)
            self.written.append((port, segment))

    def _drop(self, of: list[Segment], segment: Segment, mask: int) -> None:
        """These cells of a segment are needed no more."""
        gone = segment.mask & mask
        rest = segment.without(cells_in(gone))
        of[of.index(segment)] = rest if rest is not None else segment
        if rest is None:
            of.remove(segment)
        self.dropped.append((segment.path, gone))

    # -- what is rewritten -------------------------------------------------------------------------------------

    def horizon(self, port: int) -> int | None:
        """State before it is of no use to any cell of the site, those that are behind included."""
        reach = self.ticket.ports[port].reach
        levels = [self.ticket.watermark, *(self.ticket.behind[c][0] for c in self.cells if c in self.ticket.behind)]
        known = [level for level in levels if level is not None]
        return None if reach is None or len(known) < len(levels) else min(known) - reach

    def tidy(self, operator: SiteOperator) -> None:
        """Drop what is past its use, merge what has become many. What this epoch wrote is left for a later one, and so
        are merges that would make it long: the smaller ones come first."""
        spec = self.ticket.spec
        left = max(MERGED * sum(segment.nbytes for _, segment in self.written), MERGED_BYTES)
        for number, before in enumerate(self._old):
            horizon = self.horizon(number)
            for compressed in (False, True):
                found = [s for s in self.live[number] if s.compressed == compressed and _was(s, before)]
                plan = compaction.plan(found, horizon, fan_in=operator.fan_in(number))
                for segment in plan.drop:
                    self._drop(self.live[number], segment, self.mask)
                for group in plan.merge:
                    if left <= 0:  # the last one may take more: a large one must not wait for ever
                        break
                    left -= sum(segment.nbytes for segment in group)
                    self._merge(str(number), self.live[number], group, operator.fold(spec, number), horizon, compressed)
        for number, port in enumerate(self.held):
            if len(port) > 2 * compaction.FAN_IN:
                self._merge(f"held-{number}", port, [*port], appended, None, False)

    def _merge(
        self, port: str, of: list[Segment], group: Sequence[Segment], fold: Any, horizon: int | None, compressed: bool
    ) -> None:
        parts = [self._rows(s, self.cells, horizon) for s in group]
        parts = [p for p in parts if p.num_rows]
        for segment in group:
            self._drop(of, segment, self.mask)
        if parts:
            self._add(port, of, fold(parts), compressed=compressed)

    def _rows(self, segment: Segment, cells: Collection[int], horizon: int | None) -> pa.Table:
        rows = open_segment(self.store, segment, cells)
        if horizon is not None and segment.t_min < horizon:
            rows = rows.filter(pc.greater_equal(rows["_t"], horizon))
        return rows

    # -- tiers -------------------------------------------------------------------------------------------------

    def change_tiers(self, operator: SiteOperator, rows: Sequence[int], budget: int | None) -> int:
        """Past the budget some cells go cold; where there is room some come back. How many bytes of state they have."""
        if budget is None and not self.cold:
            return 0
        sizes = self.bytes_per_cell().tolist()
        hot = {c: sizes[c] for c in self.cells if c not in self.cold}
        plan = tiers(hot, {c: sizes[c] for c in sorted(self.cold)}, rows, budget)
        self.spilled, self.restored = len(plan.spill), len(plan.restore)
        for cells, compressed in ((plan.spill, True), (plan.restore, False)):
            if cells:
                self._rewrite(operator, cells, compressed)
        self.cold = (self.cold | frozenset(plan.spill)) - frozenset(plan.restore)
        return sum(sizes[c] for c in (*plan.spill, *plan.restore))

    def _rewrite(self, operator: SiteOperator, cells: Collection[int], compressed: bool) -> None:
        mask = mask_of(cells)
        for number, port in enumerate(self.live):
            touched = [s for s in port if s.mask & mask and s.compressed != compressed]
            parts = [p for s in touched if (p := self._rows(s, cells, self.horizon(number))).num_rows]
            for segment in touched:
                self._drop(port, segment, mask)
            if parts:
                self._add(str(number), port, operator.fold(self.ticket.spec, number)(parts), compressed=compressed)

    # -- ahead of a move ---------------------------------------------------------------------------------------

    def fetched(self, cells: Collection[int]) -> list[int]:
        """Of the cells that will move here, those whose state is on this host; the rest is being copied."""
        found = []
        for cell in cells:
            paths = [s.path for p in self.ticket.ports for s in (*p.segments, *p.held) if s.mask >> cell & 1]
            if self.store.prefetch(paths):
                found.append(cell)
        return found

    # -- telling -----------------------------------------------------------------------------------------------

    def written_json(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        return tuple((port, segment.to_json()) for port, segment in self.written)

    def dropped_json(self) -> tuple[tuple[str, str], ...]:
        return tuple((path, f"{mask:x}") for path, mask in self.dropped)


def _union(segments: Any) -> int:
    mask = 0
    for segment in segments:
        mask |= segment.mask
    return mask


def _was(segment: Segment, before: Sequence[Segment]) -> bool:
    return any(segment.path == s.path for s in before)
