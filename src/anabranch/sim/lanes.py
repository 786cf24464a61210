"""Lanes: every row between its producer and its site, in order, and what a producer may still produce.

One lane per (producer, site): a ring of cell numbers, oldest first. The first `connection` rows of a lane are in the
connection's queue, in flight and no longer to be recalled; the rest is in the producer's buffer, which is of one size
for all its lanes together and for the rows of stalled cells. A producer goes on until the next row fits in neither.
With a buffer divided among the connections (`shared=False`) the queues are longer and there is no buffer: the first
row whose queue is full stops its producer. That is Exchange; the shared buffer is Flux's (F3).

A connection delivers whole packets. A site that gets few rows therefore gets them in bursts, and a short sample of it
says little: what Flux's policy stumbles over when its collection phases are short (figure 8 of the paper).

Rows are single here; only their taking and making is done in bulk. Which rows a site has taken is read from the rings
later (`tally`), when somebody asks for counts per cell.

Known limit: a lane is first in, first out over all its cells, where Flux takes the cells of a destination in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anabranch.sim.scenario import Exchange

AHEAD = 2048  # rows of each producer that are drawn in advance


class Lanes:
    def __init__(
        self, exchange: Exchange, sites: int, owner: tuple[int, ...], draw: Callable[[tuple[int, int]], Any]
    ) -> None:
        n, self.n = sites, sites
        self.draw = draw
        self.packet = exchange.packet
        self.connection = exchange.connection
        self.buffer = exchange.buffer
        if not exchange.shared:
            self.connection, self.buffer = exchange.connection + exchange.buffer // sites, 0
        self.owner = np.array(owner, dtype=np.int32)  # of each cell; where its rows go
        size = 1 << int(np.ceil(np.log2(2 * (self.connection + self.buffer) + 256)))
        self._mask = size - 1
        self._ring = np.zeros((n * n, size), dtype=np.int32 if len(owner) > 1 << 15 else np.int16)
        self._flat = self._ring.reshape(-1)
        self._base = np.arange(n * n) * size
        # One lane more per producer stands for its stalled cells; it is always empty and never has room.
        self.head = np.zeros(n * n, dtype=np.int64)
        self.tail = np.zeros(n * n, dtype=np.int64)
        self._sent_off = np.zeros(n * n, dtype=np.int64)
        self._counted = np.zeros(n * n, dtype=np.int64)
        self._room_end = np.full(n * n + n, self.connection)
        self._room_end[n * n :] = 0
        self._turn = np.zeros(n, dtype=np.int64)
        self._rows = np.arange(n)[:, None]
        self._range = np.arange(max(AHEAD, n * AHEAD // 2))
        self._ahead = draw((n, AHEAD))
        self._ahead_lane: Any = None
        self._at = np.zeros(n, dtype=np.int64)
        self._made_from = np.zeros(n, dtype=np.int64)
        self._window = 0
        self.stalled: dict[int, Any] = {}  # cell -> rows held for it, per producer
        self.made = np.zeros(len(owner), dtype=np.int64)
        self.taken = np.zeros(len(owner), dtype=np.int64)
        self._route()

    # -- sites take ----------------------------------------------------------------------------------------------

    @property
    def length(self) -> Any:
        """Rows in each lane, as producers by sites."""
        return (self.tail - self.head).reshape(self.n, self.n)

    def take(self, want: Any) -> Any:
        """Each site takes up to so many rows, from its lanes in turn; how many it got of each producer."""
        n, length = self.n, self._arrived() if self.packet > 1 else self.length
        total = length.sum(axis=0)
        number = np.minimum(want, total)
        each, over = np.divmod(number, n)
        taken = each + ((self._rows - self._turn) % n < over)
        short = (taken > length).any(axis=0)
        if short.any():
            taken[:, short] = self._shared(length[:, short], number[short])
        self._turn = (self._turn + over) % n
        self.head += taken.reshape(-1)
        return taken

    def _arrived(self) -> Any:
        """Rows that have reached their site: whole packets, and what a producer has sent off before they were full."""
        sent = np.minimum(self.tail, self.head + self.connection)
        whole = sent - sent % self.packet
        return (np.maximum(whole, np.minimum(self._sent_off, self.tail)) - self.head).clip(0).reshape(self.n, self.n)

    def _shared(self, length: Any, number: Any) -> Any:
        """Even shares of what there is, where some lanes have less than their share."""
        taken = np.zeros_like(length)
        left = number.copy()
        while left.any():
            room = length - taken
            open_ = room > 0
            lanes = open_.sum(axis=0)
            whole = left // np.maximum(lanes, 1)
            last = (whole == 0) & (left > 0)
            more = np.minimum(room, whole)
            if last.any():
                rank = np.cumsum(open_, axis=0)
                more = np.where(last, open_ & (rank <= left), more)
            taken += more
            left = number - taken.sum(axis=0)
        return taken

    def tally(self) -> Any:
        """Rows taken per cell since the beginning, up to now."""
        self.taken += np.bincount(self._cells(self._counted, self.head), minlength=len(self.taken))
        self._counted[:] = self.head
        return self.taken

    def cells_taken(self, site: int) -> Any:
        """The cells of the rows that one site has taken since it was last asked; counted in `taken` from now on."""
        lanes = np.arange(site, self.n * self.n, self.n)
        cells = self._cells(self._counted[lanes], self.head[lanes], lanes)
        self._counted[lanes] = self.head[lanes]
        np.add.at(self.taken, cells, 1)
        return cells

    def _cells(self, start: Any, end: Any, lanes: Any = None) -> Any:
        counts = end - start
        base = self._base if lanes is None else self._base[lanes]
        first = np.cumsum(counts) - counts
        position = np.arange(int(counts.sum())) + np.repeat(start - first, counts)
        return self._flat[np.repeat(base, counts) + (position & self._mask)]

    # -- producers make ------------------------------------------------------------------------------------------

    def make(self, limit: Any, guess: int) -> Any:
        """Each producer makes rows until the next one has no place, at most `limit`; how many each made. A good guess
        of the most saves work: a window of rows that is too short costs another turn, the rest of a long one is lost."""
        self._window = min(AHEAD // 2, guess + guess // 8 + 8)
        made = np.zeros(self.n, dtype=np.int64)
        if int((self.tail - self._counted).max()) + self._window > self._mask:
            self.tally()
        going = np.flatnonzero(limit > 0)
        while len(going):
            done, stopped = self._some(going, limit[going] - made[going])
            made[going] += done
            going = going[~stopped]
        return made

    def _some(self, who: Any, limit: Any) -> tuple[Any, Any]:
        """One window of rows of these producers: how many are made, and who has come to a stop."""
        n, width = self.n, self._window
        if int(self._at[who].max()) + width > AHEAD:
            self._refill()
        index = ((who * AHEAD + self._at[who])[:, None] + self._range[:width]).reshape(-1)
        lane = self._ahead_lane.take(index)
        order = lane.argsort(kind="stable")
        sorted_ = lane.take(order).astype(np.intp)
        counts = np.bincount(sorted_, minlength=n * n + n)
        start = np.cumsum(counts) - counts
        # A row is beyond its connection if there are as many before it in its lane as the connection has places.
        end = start + self._room_end
        end[: n * n] -= self.tail - self.head
        position = self._range[: len(order)]
        beyond = np.empty(len(order), dtype=bool)
        beyond[order] = position >= end.take(sorted_)
        fits = beyond.reshape(len(who), width).cumsum(axis=1, dtype=np.int32) <= self.free()[who][:, None]
        if int(limit.min()) < width:
            fits &= self._range[:width] < limit[:, None]
        done = fits.sum(axis=1)
        self._at[who] += done
        kept = np.flatnonzero(fits.reshape(-1).take(order))
        cells = self._ahead.take(index.take(order.take(kept)))
        lanes = sorted_.take(kept)
        self._append(lanes, kept - start.take(lanes), cells)
        return done, done < width

    def free(self) -> Any:
        """Rows that still fit into each producer's buffer."""
        held = np.maximum(self.length - self.connection, 0).sum(axis=1)
        for rows in self.stalled.values():
            held += rows
        return self.buffer - held

    def _append(self, lanes: Any, rank: Any, cells: Any) -> None:
        """Rows at the ends of their lanes; `rank` counts those of one lane from 0."""
        n = self.n
        if self.stalled:
            held = lanes >= n * n
            for lane, cell in zip(lanes[held].tolist(), cells[held].tolist(), strict=True):
                self.stalled[cell][lane - n * n] += 1
            lanes, rank, cells = lanes[~held], rank[~held], cells[~held]
        self._flat[self._base.take(lanes) + ((self.tail.take(lanes) + rank) & self._mask)] = cells
        self.tail += np.bincount(lanes, minlength=n * n)

    def _refill(self) -> None:
        """Drop what has been made from the rows drawn in advance, and draw as many."""
        self._count_made()
        both = np.concatenate([self._ahead, self.draw((self.n, AHEAD))], axis=1)
        self._ahead = np.take_along_axis(both, self._at[:, None] + self._range[:AHEAD], axis=1)
        self._at[:] = 0
        self._made_from[:] = 0
        self._route()

    def _count_made(self) -> Any:
        """Rows made per cell since the beginning, up to now."""
        for producer in range(self.n):
            cells = self._ahead[producer, self._made_from[producer] : self._at[producer]]
            self.made += np.bincount(cells, minlength=len(self.made))
        self._made_from[:] = self._at
        return self.made

    def _route(self) -> None:
        """The lanes of the rows drawn in advance, by the owners of now."""
        n = self.n
        owner = self.owner[self._ahead]
        lane = np.where(owner >= 0, self._rows * n + owner, n * n + self._rows)
        self._ahead_lane = lane.astype(np.int16 if n * n + n < 1 << 15 else np.int32)

    # -- cells move ----------------------------------------------------------------------------------------------

    def stall(self, cell: int) -> Any:
        """Hold the cell's rows back from now on. What is in a connection already is not; the position in each of the
        owner's lanes up to which rows have to be taken before none of this cell can come any more."""
        site = int(self.owner[cell])
        lanes = np.arange(site, self.n * self.n, self.n)
        flying = np.minimum(self.head[lanes] + self.connection, self.tail[lanes])
        held = np.zeros(self.n, dtype=np.int64)
        for producer, lane in enumerate(lanes):
            position = self._base[lane] + (np.arange(flying[producer], self.tail[lane]) & self._mask)
            rows = self._flat[position]
            keep = rows[rows != cell]
            held[producer] = len(rows) - len(keep)
            if held[producer]:
                self._flat[position[: len(keep)]] = keep
                self.tail[lane] -= held[producer]
        self._sent_off[lanes] = np.maximum(self._sent_off[lanes], flying)  # the acknowledgement goes out with them
        self.stalled[cell] = held
        self.owner[cell] = -1
        self._route()
        return lanes, flying

    def resume(self, cell: int, site: int) -> None:
        """Send the cell's rows to the site, those that were held first."""
        held = self.stalled.pop(cell)
        self.owner[cell] = site
        self._route()
        for producer in np.flatnonzero(held):
            lane = producer * self.n + site
            position = self._base[lane] + (np.arange(self.tail[lane], self.tail[lane] + held[producer]) & self._mask)
            self._flat[position] = cell
            self.tail[lane] += held[producer]

    def all_made(self) -> Any:
        """Rows made per cell since the beginning."""
        return self._count_made().copy()

    def waiting(self) -> Any:
        """Rows per cell that have been made and not taken: with `tally`, all there are."""
        found = np.bincount(self._cells(self.head, self.tail), minlength=len(self.taken))
        for cell, rows in self.stalled.items():
            found[cell] += int(rows.sum())
        return found
