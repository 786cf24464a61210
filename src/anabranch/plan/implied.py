"""Time bounds that follow from others: a before b and b before c bound a and c.

A join in steps needs them. The inputs that meet first may be bounded only through one that comes later; what follows
from all bounds holds for every row of the final result, so it may be checked as early as one likes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from anabranch.plan.conditions import Bound
from anabranch.plan.pending import Pending, written

Node = tuple[int, str]  # an input and one of its event times
Far = dict[tuple[Node, Node], int]  # (a, b) -> the most that b - a can be


def bounds_between(inputs: Sequence[Pending], bounds: Sequence[Bound], subset: Collection[int]) -> list[str]:
    """Conditions between the inputs of the subset that follow only from bounds with the others."""
    inner = [b for b in bounds if b.i in subset and b.j in subset]
    known, all_known = _closed(inputs, inner), _closed(inputs, bounds)
    found = []
    for (a, b), most in sorted(all_known.items()):
        used = {(x.i, x.time_i) for x in bounds} | {(x.j, x.time_j) for x in bounds}
        if a[0] == b[0] or not {a, b} <= used or not {a[0], b[0]} <= set(subset):
            continue
        if (a, b) not in known or most < known[a, b]:
            found.append(f"{written(b[1])} <= {written(a[1])} + INTERVAL '{seconds(most)}' SECOND")
    return found


def seconds(micros: int) -> str:
    whole, rest = divmod(abs(micros), 1_000_000)
    return f"{'-' if micros < 0 else ''}{whole}.{rest:06d}"


def _closed(inputs: Sequence[Pending], bounds: Sequence[Bound]) -> Far:
    """Shortest ways over all event times."""
    far: Far = {}

    def tighten(a: Node, b: Node, most: int | None) -> None:
        if most is not None and a != b:
            far[a, b] = min(most, far.get((a, b), most))

    for i, pending in enumerate(inputs):
        for (x, y), most in pending.gaps.items():
            tighten((i, x), (i, y), most)
    for bound in bounds:
        a, b = (bound.i, bound.time_i), (bound.j, bound.time_j)
        tighten(a, b, bound.high)
        tighten(b, a, None if bound.low is None else -bound.low)
    nodes = sorted({node for pair in far for node in pair})
    for via in nodes:
        for a in nodes:
            for b in nodes:
                if (a, via) in far and (via, b) in far:
                    tighten(a, b, far[a, via] + far[via, b])
    return far


def composed(
    gaps: Sequence[Mapping[tuple[str, str], int]], times: Sequence[str], all_times: Sequence[Collection[str]],
    reach: Sequence[Sequence[int]],
) -> dict[tuple[str, str], int]:  # fmt: skip
    """The gaps between any two event times of a join's result."""
    found: dict[tuple[str, str], int] = {}
    for i, own in enumerate(all_times):
        found |= gaps[i]
        for j, others in enumerate(all_times):
            for a in own if i != j else ():
                for b in others:
                    before = 0 if a == times[i] else gaps[i].get((a, times[i]))
                    after = 0 if b == times[j] else gaps[j].get((times[j], b))
                    if before is not None and after is not None:
                        found[a, b] = before + reach[i][j] + after
    return found
