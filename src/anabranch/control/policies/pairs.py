"""What Flux's policies share: sites in an order, the first paired with the last, one cell at most per pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anabranch.control.view import SiteView, View


def paired(view: View, measure: Callable[[SiteView], float]) -> Iterator[tuple[SiteView, SiteView]]:
    """(donor, receiver): most with least, second with second-least, … by the measure; ties by the site's number."""
    ordered = sorted(view.sites, key=lambda s: (-measure(s), s.site))
    for n in range(len(ordered) // 2):
        yield ordered[n], ordered[-1 - n]
