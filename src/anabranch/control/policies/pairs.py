"""What Flux's policies share: sites in an order, the first paired with the last, one cell at most per pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from anabranch.control.view import SiteView, View


def paired(
    view: View, measure: Callable[[SiteView], float], takes: Callable[[SiteView], bool] = lambda site: True
) -> Iterator[tuple[SiteView, SiteView]]:
    """(donor, receiver): most with least, second with second-least, … by the measure; ties by the site's number. A site
    that takes nothing is nobody's receiver, so that it does not keep a donor from another one."""
    ordered = sorted(view.sites, key=lambda s: (-measure(s), s.site))
    receivers = [n for n in reversed(range(len(ordered))) if takes(ordered[n])]
    for donor, receiver in enumerate(receivers):
        if donor >= receiver:
            return
        yield ordered[donor], ordered[receiver]
