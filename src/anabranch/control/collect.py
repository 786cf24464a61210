"""Collect: a round's periods as one view.

A site's work is the median of its periods times their number: one stalled epoch (a garbage collection, a neighbour on
the machine) is no trend. Rows are summed; sizes and places are the last ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from anabranch.control.view import CellView, Key, SiteView, StreamView, View


def merged(periods: Sequence[View]) -> View:
    """The periods of a round, all with the same sites."""
    last = periods[-1]
    if len(periods) == 1:
        return last
    sites = tuple(_site([p.site[s.site] for p in periods if s.site in p.site]) for s in last.sites)
    rows: dict[Key, list[int]] = {}
    for period in periods:
        for cell in period.cells:
            counts = rows.setdefault(cell.key, [0, 0])
            counts[0] += cell.rows_in
            counts[1] += cell.rows_out
    cells = tuple(_cell(c, rows[c.key]) for c in last.cells)
    names = {s.name: 0 for p in periods for s in p.streams}
    for period in periods:
        for stream in period.streams:
            names[stream.name] += stream.rows
    streams = tuple(StreamView(name, count) for name, count in names.items())
    return View(last.now, sum(p.length for p in periods), sites, cells, streams)


def _site(seen: Sequence[SiteView]) -> SiteView:
    busy = median(s.busy for s in seen) * len(seen)
    whole = sum(s.busy + s.idle for s in seen)
    return replace(seen[-1], busy=busy, idle=max(whole - busy, 0.0), rows=sum(s.rows for s in seen))


def _cell(cell: CellView, counts: Sequence[int]) -> CellView:
    return replace(cell, rows_in=counts[0], rows_out=counts[1])
