"""Lanes: every row between its producer and its site, and what a producer may still produce.

One lane per (producer, site): the connection, a ring of cell numbers, oldest first, no longer to be recalled. Behind
all lanes of a producer is its buffer, keyed by cell (F3): so many rows of each, and per lane the cells that have
rows, which take turns. A cell that many rows wait for does not hold up its neighbours; a stalled one has no turn. The
buffer is of one size for all cells together, and a producer goes on until the next row fits neither into it nor into
its connection. With a buffer divided among the connections (`shared=False`) the connections are longer and there is
no buffer: the first row whose connection is full stops its producer. That is Exchange; the shared buffer is Flux's.

A connection delivers whole packets. A site that gets few rows therefore gets them in bursts, and a short sample of it
says little: what Flux's policy stumbles over when its collection phases are short (figure 8 of the paper).

Rows are single here; only their taking and making is done in bulk. Which rows a site has taken is read from the rings
later (`tally`), when somebody asks for counts per cell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anabranch.sim.rings import Rings
from anabranch.sim.scenario import Exchange

AHEAD = 2048  # rows of each producer that are drawn in advance
BEHIND = 2048  # rows of a lane that have been taken and are not yet counted


class Lanes:
    def __init__(
        self, exchange: Exchange, sites: int, owner: tuple[int, ...], draw: Callable[[tuple[int, int]], Any]
    ) -> None:
        n, self.n, self.cells = sites, sites, len(owner)
        self.draw = draw
        self.packet = exchange.packet
        self.connection = exchange.connection
        self.buffer = exchange.buffer
        if not exchange.shared:
            self.connection, self.buffer = exchange.connection + exchange.buffer // sites, 0
        self.owner = np.array(owner, dtype=np.int32)  # of each cell; where its rows go, -1 while it is stalled
        kind = np.int32 if self.cells > 1 << 15 else np.int16
        self._connections = Rings(n * n, self.connection + BEHIND, kind)
        self.head, self.tail = self._connections.head, self._connections.tail
        self._sent_off = np.zeros(n * n, dtype=np.int64)
        self._counted = np.zeros(n * n, dtype=np.int64)
        self.held = np.zeros((n, self.cells), dtype=np.int32)  # rows in the buffers, by producer and cell
        self._held = self.held.reshape(-1)
        self._queued = np.zeros(n * n, dtype=np.int64)  # of these, by lane, without those of stalled cells
        self._turns = Rings(n * n, self.cells, kind)  # cells with rows in the buffer, each once
        self._seen = np.zeros(n * self.cells, dtype=np.int64)
        # One lane more per producer stands for its stalled cells; it is always empty and never has room.
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
        self.made = np.zeros(self.cells, dtype=np.int64)
        self.taken = np.zeros(self.cells, dtype=np.int64)
        self._route()

    # -- sites take ----------------------------------------------------------------------------------------------

    @property
    def length(self) -> Any:
        """Rows in each connection, as producers by sites."""
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
        whole = self.tail - self.tail % self.packet
        return (np.maximum(whole, self._sent_off) - self.head).clip(0).reshape(self.n, self.n)

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
        lanes = self._lanes(site)
        cells = self._cells(self._counted[lanes], self.head[lanes], lanes)
        self._counted[lanes] = self.head[lanes]
        np.add.at(self.taken, cells, 1)
        return cells

    def _cells(self, start: Any, end: Any, lanes: Any = None) -> Any:
        return self._connections.between(np.arange(self.n * self.n) if lanes is None else lanes, start, end - start)

    # -- producers make ------------------------------------------------------------------------------------------

    def make(self, limit: Any, guess: int) -> Any:
        """Each producer makes rows until the next one has no place, at most `limit`; how many each made. A good guess
        of the most saves work: a window of rows that is too short costs another turn, the rest of a
        long one is lost."""
        self._window = min(AHEAD // 2, guess + guess // 8 + 8)
        made = np.zeros(self.n, dtype=np.int64)
        if int((self.tail - self._counted).max()) + self.connection > self._connections.size:
            self.tally()
        going = np.flatnonzero(limit > 0)
        while len(going):
            done, stopped = self._some(going, limit[going] - made[going])
            made[going] += done
            going = going[~stopped]
        self._forward()
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
        end[: n * n] -= self.tail - self.head + self._queued
        position = self._range[: len(order)]
        beyond = np.empty(len(order), dtype=bool)
        beyond[order] = position >= end.take(sorted_)
        fits = beyond.reshape(len(who), width).cumsum(axis=1, dtype=np.int32) <= self.free()[who][:, None]
        if int(limit.min()) < width:
            fits &= self._range[:width] < limit[:, None]
        done = fits.sum(axis=1)
        self._at[who] += done
        kept = np.flatnonzero(fits.reshape(-1).take(order))
        source = index.take(order.take(kept))
        self._hold(source // AHEAD, self._ahead.take(source).astype(np.intp), sorted_.take(kept))
        return done, done < width

    def free(self) -> Any:
        """Rows that still fit into each producer's buffer."""
        beyond = np.maximum(self.tail - self.head + self._queued - self.connection, 0).reshape(self.n, self.n)
        stalled = np.flatnonzero(self.owner < 0)
        return self.buffer - beyond.sum(axis=1) - self.held[:, stalled].sum(axis=1)

    def _hold(self, producers: Any, cells: Any, lanes: Any) -> None:
        """Rows into the buffers, in the order of their lanes."""
        keys = producers * self.cells + cells
        index = self._range[: len(keys)]
        self._seen[keys[::-1]] = index[::-1]
        new = (self._seen[keys] == index) & (self._held[keys] == 0) & (lanes < self.n * self.n)
        np.add.at(self._held, keys, 1)
        self._queued += np.bincount(lanes, minlength=self.n * self.n)[: self.n * self.n]
        self._turns.append(lanes[new], cells[new])

    def _forward(self) -> None:
        """Rows from the buffers into connections that have room, cell by cell in turn."""
        more = np.minimum(self.connection - (self.tail - self.head), self._queued)
        while True:
            lanes = np.flatnonzero(more > 0)
            if not len(lanes):
                return
            want, turns = more[lanes], self._turns
            active = turns.tail[lanes] - turns.head[lanes]
            number = np.minimum(want, active)
            lane, each = np.repeat(lanes, number), np.repeat(np.maximum(want // active, 1), number)
            cells = turns.pop(lanes, number).astype(np.intp)
            keys = lane // self.n * self.cells + cells
            have = self._held[keys]
            sent = np.minimum(have, each)
            self._held[keys] = have - sent
            self._connections.append(np.repeat(lane, sent), np.repeat(cells, sent))
            again = sent < have
            turns.append(lane[again], cells[again])
            gone = np.bincount(lane, weights=sent, minlength=self.n * self.n).astype(np.int64)
            self._queued -= gone
            more -= gone

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
        lanes = self._lanes(int(self.owner[cell]))
        held = self.held[:, cell]
        self._turns.remove(lanes[held > 0], cell)
        self._queued[lanes] -= held
        flying = self.tail[lanes]
        self._sent_off[lanes] = flying  # the acknowledgement goes out with them
        self.owner[cell] = -1
        self._route()
        return lanes, flying

    def resume(self, cell: int, site: int) -> None:
        """Send the cell's rows to the site, those that were held first."""
        lanes = self._lanes(site)
        held = self.held[:, cell]
        self.owner[cell] = site
        self._route()
        self._queued[lanes] += held
        self._turns.append(lanes[held > 0], np.full(int((held > 0).sum()), cell))
        self._forward()

    def _lanes(self, site: int) -> Any:
        return np.arange(site, self.n * self.n, self.n)

    def all_made(self) -> Any:
        """Rows made per cell since the beginning."""
        return self._count_made().copy()

    def waiting(self) -> Any:
        """Rows per cell that have been made and not taken: with `tally`, all there are."""
        return np.bincount(self._cells(self.head, self.tail), minlength=self.cells) + self.held.sum(axis=0)
