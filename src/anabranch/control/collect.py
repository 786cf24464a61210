"""Collect: a round's periods as one view.

A site takes as long for a row as in its best period of the round: a stalled epoch (a garbage collection, a neighbour on
the machine) is no trend, and such things only ever add. By how much the periods differ is the view's noise. Rows are
summed; sizes and places are the last ones.

Rows are counted, but times are measured: where sites share a machine, one may look slow for a whole round. So that a
site is slower or faster than the others counts as far as two rounds in a row agree on it (`steadied`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from anabranch.control.view import Key, SiteView, StreamView, View


def merged(periods: Sequence[View]) -> View:
    """The periods of a round, all with the same sites."""
    last = periods[-1]
    if len(periods) == 1:
        return last
    seen = {s.site: [p.site[s.site] for p in periods] for s in last.sites}
    rows: dict[Key, list[int]] = {}
    for period in periods:
        for cell in period.cells:
            counts = rows.setdefault(cell.key, [0, 0])
            counts[0] += cell.rows_in
            counts[1] += cell.rows_out
    cells = tuple(replace(c, rows_in=rows[c.key][0], rows_out=rows[c.key][1]) for c in last.cells)
    streams = {s.name: 0 for p in periods for s in p.streams}
    for period in periods:
        for stream in period.streams:
            streams[stream.name] += stream.rows
    return View(
        last.now, sum(p.length for p in periods), tuple(map(_site, seen.values())), cells,
        tuple(StreamView(name, count) for name, count in streams.items()), _noise(seen.values()),
    )  # fmt: skip


def _site(seen: Sequence[SiteView]) -> SiteView:
    rows = sum(s.rows for s in seen)
    costs = _costs(seen)
    busy = min(costs) * rows if costs else sum(s.busy for s in seen)
    whole = sum(s.busy + s.idle for s in seen)
    return replace(seen[-1], busy=busy, idle=max(whole - busy, 0.0), rows=rows)


def _costs(seen: Sequence[SiteView]) -> list[float]:
    """Per row, in the periods that had rows."""
    return [s.busy / s.rows for s in seen if s.rows]


def _noise(sites: Iterable[Sequence[SiteView]]) -> float:
    """By how much a site's periods are above its best one, in the mean."""
    above = [fmean(costs) / min(costs) - 1 for seen in sites if (costs := _costs(seen)) and min(costs) > 0]
    return fmean(above) if above else 0.0


def paces(view: View) -> dict[int, float]:
    """The sites' work per row over that of the middle one, which a few slow ones do not change."""
    middle = _middle(view)
    return {s.site: view.cost(s.site) / middle for s in view.sites} if middle > 0 else {}


def _middle(view: View) -> float:
    costs = _costs(view.sites)
    return median(costs) if costs else 0.0


def steadied(view: View, before: Mapping[int, float]) -> View:
    """The round with each site's pace as far from the others' as the round before says too."""
    now, middle = paces(view), _middle(view)
    if not now:
        return view
    sites = []
    for site in view.sites:
        pace = _agreed(now[site.site], before.get(site.site, 1.0))
        whole, busy = site.busy + site.idle, pace * middle * site.rows
        sites.append(replace(site, busy=busy, idle=max(whole - busy, 0.0)))
    return replace(view, sites=tuple(sites))


def _agreed(one: float, other: float) -> float:
    """What both say: 1 if one is above and the other below."""
    low, high = min(one, other), max(one, other)
    return low if low > 1 else high if high < 1 else 1.0
