"""One site of one stage in one epoch: rows in, state opened, kernel run, rows out, new segments, one report.

    arrive ─▶ choose turns ─▶ batch by batch: open state, run the kernel ─▶ keep ─▶ hold the rest ─▶ tidy ─▶ tiers

On a plain day there is one batch, with every cell in it. What differs between the kinds of operators is in
`operators.py`, which cells are when is in `turns.py`; everything here is the same for all. The state that a site opens
is whatever segments hold its cells, whoever wrote them: a restart, a move and a recovery are this same act.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.routing.cells import MAX_CELLS
from anabranch.site import holds
from anabranch.site.clock import Clock
from anabranch.site.keeping import Keeping
from anabranch.site.operators import OPERATORS, Epoch, rows_per_cell
from anabranch.site.ticket import PORT, Behind, CellReport, PortTicket, Report, Ticket
from anabranch.site.turns import Batch, Cells, batches, cold_turns, in_time
from anabranch.state.store import Store

Rows = Any  # an int64 array
BATCH_ROWS = 65_536


def run_site(
    ticket: Ticket, site: int, arriving: Iterable[pa.RecordBatch], where: str = "", clock: Clock | None = None
) -> Generator[pa.RecordBatch, None, Report]:
    """Gives the site's rows, and returns its report."""
    wire = pa.ipc.read_schema(pa.py_buffer(ticket.input))
    arrived = collected(wire, arriving)
    work = SiteWork(ticket, site, arrived, clock or Clock())
    result = work.run()
    schema = pa.ipc.read_schema(pa.py_buffer(ticket.output))
    rows = fitted(result, schema)
    yield from rows.to_batches(max_chunksize=BATCH_ROWS)
    return work.report(rows.num_rows, where)


class SiteWork:
    def __init__(self, ticket: Ticket, site: int, arrived: pa.Table, clock: Clock) -> None:
        self.ticket = ticket
        self.site = site
        self.clock = clock
        self.store = Store.open(ticket.store)
        self.operator = OPERATORS[ticket.spec.kind]
        self.deltas = [delta(arrived, port) for port in ticket.ports]
        self.keeping = Keeping(ticket, site, self.store)
        self.budget = ticket.bounds.budget(site)
        count = len(ticket.owner)
        self.arrived = sum((rows_per_cell(d, count) for d in self.deltas), start=np.zeros(count, np.int64))
        self.rows_in = np.zeros(count, np.int64)  # processed
        self.held = self.keeping.held_rows_per_cell()
        self.rows_out = np.zeros(count, np.int64)
        self.sizes = self.keeping.bytes_per_cell()  # of state, before the epoch
        self.peak = 0
        self.released: set[int] = set()  # cells whose results are out up to the epoch's watermark
        bounds = ticket.bounds
        self.patience = None if bounds.unhurried else bounds.patience_ms
        self.known = None if self.patience is None else holds.noted(self.store, ticket.stage, ticket.epoch, site)
        self.hurried = self.patience is not None and self.known is None
        self.noted = self.known is not None

    # -- the epoch ---------------------------------------------------------------------------------------------

    def run(self) -> pa.Table:
        keeping, bounds = self.keeping, self.ticket.bounds
        rows = self.arrived + self.held
        cells = Cells(
            keeping.cells, rows.tolist(), self.sizes.tolist(), keeping.cold, self.ticket.behind, self.ticket.released
        )
        everyone = bounds.unhurried or keeping.held_bytes > bounds.held_bytes
        turns = cold_turns(cells, self.budget, self.ticket.watermark, everyone)
        now = [c for c in keeping.cells if c not in keeping.cold or c in turns]
        results = self.run_in_turn(batches(cells, now, self.budget, stepwise=self.hurried), rows)
        results += self.leave(cells, rows)
        keeping.tidy(self.operator)
        self.clock.moved(keeping.change_tiers(self.operator, self.rows_in.tolist(), self.budget))
        if not results:  # no cells here: still the right columns
            results.append(self.process(Batch((), self.ticket.released, 0), [d.slice(0, 0) for d in self.deltas]))
        return results[0] if len(results) == 1 else pa.concat_tables(results, promote_options="default")

    def run_in_turn(self, todo: list[Batch], rows: Rows) -> list[pa.Table]:
        """The batches one after the other, as far as time allows. What is held for want of it is written down before
        anything is given out, and so is that nothing was."""
        if self.known:
            todo = without(todo, self.known)
        undecided, number, results = self.hurried, 0, []
        parts = Parts(self.deltas, todo, self.keeping.cells)
        while number < len(todo):
            room = self.room(todo[:number]) if undecided and number else float("inf")
            if todo[number].rows > room:
                undecided = False
                now = in_time(todo[number:], rows, room)
                late = [c for b in todo[number:] for c in b.cells if c not in now]
                late = self.holdable([c for c in late if rows[c] or self.operator.postpones])
                self.note(late)
                todo = [*todo[:number], *without(todo[number:], late)]
                parts = Parts(self.deltas, todo, self.keeping.cells)
                continue
            results.append(self.process(todo[number], parts.of(number)))
            number += 1
        if undecided:
            self.note(())
        return results

    def note(self, held: Collection[int]) -> None:
        holds.note(self.store, self.ticket.stage, self.ticket.epoch, self.site, held)
        self.noted = True

    def process(self, batch: Batch, deltas: list[pa.Table], *, with_input: bool = True) -> pa.Table:
        """Run the kernel for some cells: on what arrived, and what was held."""
        ticket, keeping = self.ticket, self.keeping
        if with_input and keeping.has_held(batch.cells):
            deltas = [keeping.with_held(port, d, batch.cells) for port, d in enumerate(deltas)]
        states = keeping.open(batch.cells)
        self.peak = max(self.peak, int(self.sizes[list(batch.cells)].sum()))
        horizons = [
            None if ticket.watermark is None or p.reach is None else ticket.watermark - p.reach for p in ticket.ports
        ]
        epoch = Epoch(deltas, states, horizons, ticket.local(batch.level), ticket.local(ticket.watermark))
        outcome = self.operator.run(ticket.spec, epoch)
        for port, rows in enumerate(outcome.keep):
            if rows is not None and rows.num_rows:
                keeping.keep(port, rows)
        mine = list(batch.cells)
        if with_input:
            self.rows_in[mine] += self.arrived[mine] + self.held[mine]
        self.rows_out += rows_per_cell(outcome.rows, len(ticket.owner))
        self.released.update(batch.cells)
        self.clock.worked(sum(d.num_rows for d in deltas))
        self.clock.moved(int(self.sizes[[c for c in mine if c in keeping.cold]].sum()))
        return outcome.rows

    def room(self, before: list[Batch]) -> float:
        """For how many rows there is time left, at the pace of the batches so far."""
        elapsed, rows = self.clock.elapsed_ms(), sum(b.rows for b in before)
        if self.patience is None or not rows or not elapsed:
            return float("inf")
        return max(self.patience - elapsed, 0.0) * rows / elapsed

    def holdable(self, late: list[int]) -> list[int]:
        """As many of the late cells as may be held besides what is held already, the last ones: the rows of the others
        are processed although it takes too long, and the other sites wait."""
        total = sum(d.num_rows for d in self.deltas)
        row_bytes = sum(d.nbytes for d in self.deltas) / total if total else 0.0
        left = self.ticket.bounds.held_bytes - self.keeping.held_bytes
        used = np.cumsum(self.arrived[late[::-1]]) * row_bytes
        return late[len(late) - int(np.searchsorted(used, left, side="right")) :]

    # -- what has to wait --------------------------------------------------------------------------------------

    def leave(self, cells: Cells, rows: Rows) -> list[pa.Table]:
        """Hold the rows of the cells that had no turn; release what their state alone can give."""
        ticket, keeping = self.ticket, self.keeping
        waiting = tuple(c for c in keeping.cells if c not in self.released)
        if not waiting:
            return []
        for port, table in enumerate(Parts(self.deltas, [Batch(waiting, None, 0)], keeping.cells).of(0)):
            keeping.hold(port, table)
        keeping.left = frozenset(c for c in waiting if rows[c])
        if not self.operator.releases or self.operator.postpones:
            return []
        # What the state of cells that only lack time has to give by now: stages behind this one count on it.
        owed = [c for c in waiting if c not in cells.cold and c not in ticket.behind]
        nothing = [d.slice(0, 0) for d in self.deltas]
        return [self.process(b, nothing, with_input=False) for b in batches(cells, owed, self.budget, stepwise=False)]

    def behind(self) -> dict[int, Behind]:
        """The cells that have held rows, or results that are due and not out; and up to where theirs are out."""
        ticket, releases, found = self.ticket, self.operator.releases, {}
        for cell in self.keeping.cells:
            done = cell in self.released
            if not (cell in self.keeping.left or (releases and (cell in self.keeping.cold or not done))):
                continue
            if done or (cell not in ticket.behind and not releases):
                found[cell] = (ticket.watermark, ticket.epoch)
            else:
                found[cell] = ticket.behind.get(cell, (ticket.released, ticket.epoch))
        return found

    # -- telling -----------------------------------------------------------------------------------------------

    def report(self, rows_out: int, where: str) -> Report:
        keeping, ticket = self.keeping, self.ticket
        sizes = keeping.bytes_per_cell()
        cold = np.zeros(len(sizes), bool)
        cold[sorted(keeping.cold)] = True
        mentioned = np.flatnonzero((self.arrived > 0) | (self.rows_out > 0) | (sizes > 0))
        cells = {
            int(c): CellReport(int(self.arrived[c]), int(self.rows_out[c]), int(sizes[c])) for c in mentioned.tolist()
        }
        coming = [c for c, s in ticket.coming.items() if s == self.site]
        return Report(
            ticket.stage, self.site, ticket.epoch, tuple(d.num_rows for d in self.deltas), rows_out,
            round(self.clock.elapsed_ms(), 3), round(self.clock.worked_ms(), 3), int(self.rows_in.sum()),
            keeping.written_json(), keeping.dropped_json(), cells, self.behind(),
            cold=tuple(sorted(keeping.cold)), hot_bytes=int(sizes[~cold].sum()), cold_bytes=int(sizes[cold].sum()),
            peak_bytes=self.peak, held_rows=keeping.held_rows, spilled=keeping.spilled, restored=keeping.restored,
            noted=self.noted, ready=tuple(keeping.fetched(coming)), where=where,
        )  # fmt: skip


class Parts:
    """The arrived rows cut by batch: gathered once, and not at all where one batch has every cell."""

    def __init__(self, deltas: list[pa.Table], batches: list[Batch], every: Collection[int]) -> None:
        self.whole = deltas
        self.batches = batches
        self.uncut = len(batches) == 1 and len(batches[0].cells) == len(every)

    def of(self, number: int) -> list[pa.Table]:
        """One table per port."""
        if self.uncut:
            return self.whole
        return [table.slice(int(b[number]), int(b[number + 1] - b[number])) for table, b in self._cut]

    @cached_property
    def _cut(self) -> list[tuple[pa.Table, Rows]]:
        """Per port, the rows in the order of their batches, and where each batch begins."""
        count = len(self.batches)
        batch_of = np.full(MAX_CELLS, count, np.int64)
        for number, batch in enumerate(self.batches):
            batch_of[list(batch.cells)] = number
        found = []
        for table in self.whole:
            batches = batch_of[table["_cell"].to_numpy()]
            order = np.argsort(batches, kind="stable")
            bounds = np.searchsorted(batches[order], np.arange(count + 1))
            found.append((table.take(pa.array(order[: bounds[-1]])), bounds))
        return found


def without(todo: list[Batch], cells: Collection[int]) -> list[Batch]:
    rest = [replace(b, cells=tuple(c for c in b.cells if c not in cells)) for b in todo]
    return [b for b in rest if b.cells]


def collected(wire: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """What arrived as one table of the wire's types (Spark names the session's time zone, the state has UTC)."""
    held = list(batches)
    if not held:
        return wire.empty_table()
    table = pa.Table.from_batches(held).combine_chunks()  # once: sorting and gathering would do it column by column
    columns = [
        table[name] if table[name].type == wire.field(name).type else table[name].cast(wire.field(name).type)
        for name in wire.names
    ]
    return pa.table(columns, names=wire.names)


def delta(arrived: pa.Table, port: PortTicket) -> pa.Table:
    """The rows of one port under the names of its prepared columns."""
    names = ["_cell", "_t", *(column for _, column in port.slots)]
    if not port.taps:
        return pa.table({"_cell": pa.array([], pa.int32()), "_t": pa.array([], pa.int64())})
    slots = arrived.select(["_cell", "_t", *(slot for slot, _ in port.slots)]).rename_columns(names)
    if arrived.num_rows == 0 or PORT not in arrived.column_names:  # all rows are of one tap
        return slots
    ports = arrived[PORT]
    low, high = pc.min_max(ports).values()
    if low == high:
        return slots if low.as_py() in port.taps else slots.slice(0, 0)
    if len(port.taps) == 1:
        return slots.filter(pc.equal(ports, port.taps[0]))
    return slots.filter(pc.is_in(ports, pa.array(port.taps, ports.type)))


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Exactly the columns and types that Spark was promised."""
    columns = [rows[f.name] if rows[f.name].type == f.type else rows[f.name].cast(f.type) for f in schema]
    return pa.table(columns, names=schema.names)
