"""One site of one stage in one epoch: rows in, state opened, kernel run, rows out, new segments, one report.

What differs between the kinds of operators is in `operators.py`; everything here is the same for all. The state that a
site opens is whatever segments hold its cells, whoever wrote them: a restart, a move and a recovery are this same act.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.site.operators import OPERATORS, Epoch, Fold
from anabranch.site.ticket import PORT, REPORT, PortTicket, Report, Ticket
from anabranch.state import compaction
from anabranch.state.segments import Segment, open_segment, write_segment
from anabranch.state.store import Store

BATCH_ROWS = 65_536
BUSIEST = 16  # cells that a report names


def run_site(ticket: Ticket, site: int, batches: Iterable[pa.RecordBatch], where: str = "") -> Iterator[pa.RecordBatch]:
    """The site's rows, then its report as a last row."""
    wire = pa.ipc.read_schema(pa.py_buffer(ticket.input))
    arrived = collected(wire, batches)
    begin = time.perf_counter()
    work = SiteWork(ticket, site, arrived)
    result = work.run()
    schema = pa.ipc.read_schema(pa.py_buffer(ticket.output))
    rows = fitted(result, schema)
    yield from rows.to_batches(max_chunksize=BATCH_ROWS)
    report = work.report(rows.num_rows, (time.perf_counter() - begin) * 1000, where)
    yield reported(schema, json.dumps(report.to_json(), separators=(",", ":")))


class SiteWork:
    def __init__(self, ticket: Ticket, site: int, arrived: pa.Table) -> None:
        self.ticket = ticket
        self.site = site
        self.cells = ticket.cells(site)
        self.store = Store.open(ticket.store)
        self.deltas = [delta(arrived, port) for port in ticket.ports]
        self.mine = [[part for s in port.segments if (part := s.only(self.cells)) is not None] for port in ticket.ports]
        self.written: list[tuple[int, Segment]] = []
        self.dropped: list[str] = []

    def run(self) -> pa.Table:
        ticket = self.ticket
        operator = OPERATORS[ticket.spec.kind]
        states = [[open_segment(self.store, s, self.cells) for s in segments] for segments in self.mine]
        epoch = Epoch(self.deltas, states, [p.horizon for p in ticket.ports], ticket.closed, ticket.watermark)
        outcome = operator.run(ticket.spec, epoch)
        for port, rows in enumerate(outcome.keep):
            if rows is not None and rows.num_rows:
                self.write(port, rows)
        for port in range(len(ticket.ports)):
            self.tidy(port, operator.fold(ticket.spec, port), operator.fan_in(port))
        return outcome.rows

    def write(self, port: int, rows: pa.Table) -> None:
        label = {"e": self.ticket.epoch, "s": self.site}
        segment = write_segment(self.store, f"{self.ticket.stage}/{port}", rows, label=label)
        if segment is not None:
            self.written.append((port, segment))

    def tidy(self, port: int, fold: Fold, fan_in: int) -> None:
        """Drop what is past its use, merge what has become many."""
        horizon = self.ticket.ports[port].horizon
        plan = compaction.plan(self.mine[port], horizon, fan_in=fan_in)
        self.dropped += [s.path for s in plan.drop]
        for group in plan.merge:
            parts = []
            for segment in group:
                part = open_segment(self.store, segment, self.cells)
                if horizon is not None and segment.t_min < horizon:
                    part = part.filter(pc.greater_equal(part["_t"], horizon))
                if part.num_rows:
                    parts.append(part)
            if parts:
                self.write(port, fold(parts))
            self.dropped += [s.path for s in group]

    def report(self, rows_out: int, busy_ms: float, where: str) -> Report:
        counts: dict[int, int] = {}
        for rows in self.deltas:
            if rows.num_rows:
                cells, n = np.unique(rows["_cell"].to_numpy(), return_counts=True)
                for cell, number in zip(cells.tolist(), n.tolist(), strict=True):
                    counts[cell] = counts.get(cell, 0) + number
        busiest = dict(sorted(counts.items(), key=lambda kv: -kv[1])[:BUSIEST])
        return Report(
            self.ticket.stage, self.site, self.ticket.epoch, tuple(d.num_rows for d in self.deltas), rows_out,
            round(busy_ms, 3), tuple((p, s.to_json()) for p, s in self.written), tuple(self.dropped), busiest, where,
        )  # fmt: skip


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
    ports = arrived[PORT]
    if arrived.num_rows == 0:
        return slots
    low, high = pc.min_max(ports).values()
    if low == high:
        return slots if low.as_py() in port.taps else slots.slice(0, 0)
    if len(port.taps) == 1:
        return slots.filter(pc.equal(ports, port.taps[0]))
    return slots.filter(pc.is_in(ports, pa.array(port.taps, ports.type)))


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Exactly the columns and types that Spark was promised, behind an empty report column."""
    columns = [pa.nulls(rows.num_rows, schema.field(0).type)]
    for field in list(schema)[1:]:
        column = rows[field.name]
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.table(columns, names=schema.names)


def reported(schema: pa.Schema, report: str) -> pa.RecordBatch:
    assert schema.names[0] == REPORT
    columns = [pa.array([report], schema.field(0).type), *(pa.nulls(1, f.type) for f in list(schema)[1:])]
    return pa.RecordBatch.from_arrays(columns, names=schema.names)
