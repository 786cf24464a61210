"""Compaction: which segments of one input of one site to drop, and which to make one; and making them one.

`plan` is pure, so whoever asks gets the same answer. It is size-tiered: tier k holds the segments of
fan_in^k to fan_in^(k+1) rows, and as soon as a tier has fan_in segments they become one of a higher tier. So

1. a tier keeps fewer than fan_in segments, and there are log(rows) tiers: the count is bounded by fan_in * log;
2. a row rises a tier each time it is rewritten: it is rewritten log(rows) times at most;
3. rows that are past the horizon are left behind by any rewrite. One rewrite more, alone, is worth it for a segment
   that seems mostly expired and is a good part of the whole: the rows it leaves behind pay for the rows it keeps.

The horizon is a time: a row is expired if its `_t` is *before* it; a row exactly on it stays.

A segment that two sites share is rewritten by each for its own cells: see `compact` and `Segment.without`.

Limits: expired rows are estimated as if times were spread evenly. Only part of a shared segment may be live, which
`rows` does not tell, so the plan may see it a tier too high until it is rewritten. `max_bytes` bounds one merge; above
it segments stay as they are, and their number grows with the state instead of its logarithm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.state.segments import TIME, Segment, open_segment, write_segment
from anabranch.state.store import Store

FAN_IN = 8
MAX_BYTES = 128 << 20
_TRIM_EXPIRED = 0.5  # the share of a segment that must seem expired for a rewrite of its own
_TRIM_WEIGHT = 0.125  # and the share of all rows that it must make up


@dataclass(frozen=True)
class Plan:
    """Every segment is in exactly one of the three. Merges are independent of each other, the cheapest first."""

    drop: tuple[Segment, ...]  # wholly expired
    merge: tuple[tuple[Segment, ...], ...]  # each becomes one segment, or none; a group of one is trimmed
    keep: tuple[Segment, ...]

    @property
    def idle(self) -> bool:
        return not self.drop and not self.merge


def plan(
    segments: Iterable[Segment], expired_before: int | None, *, fan_in: int = FAN_IN, max_bytes: int = MAX_BYTES
) -> Plan:
    """What to do with the live segments of one operator input at one site. The same for any order of them."""
    if fan_in < 2:
        raise ValueError(f"fan_in must be at least 2, not {fan_in}")
    ordered = sorted(segments, key=_age)
    live = [s for s in ordered if not _expired(s, expired_before)]
    tiers: dict[int, list[Segment]] = {}
    for segment in live:
        tiers.setdefault(_tier(segment.rows, fan_in), []).append(segment)
    groups: list[tuple[Segment, ...]] = []
    for tier in sorted(tiers):
        groups += _groups(tiers[tier], fan_in, max_bytes)
    merged = {segment.path for group in groups for segment in group}
    total = sum(segment.rows for segment in live)
    for segment in live:
        if segment.path not in merged and _worth_trimming(segment, expired_before, total, max_bytes):
            groups.append((segment,))
            merged.add(segment.path)
    groups.sort(key=lambda group: (sum(s.nbytes for s in group), group[0].path))
    return Plan(
        drop=tuple(s for s in ordered if _expired(s, expired_before)),
        merge=tuple(groups),
        keep=tuple(s for s in live if s.path not in merged),
    )


def compact(
    store: Store,
    folder: str,
    segments: Sequence[Segment],
    expired_before: int | None,
    *,
    cells: Collection[int] | None = None,
    label: Mapping[str, Any] | None = None,
    compressed: bool = False,
    durable: bool = False,
) -> Segment | None:
    """Write the live rows of the segments, without the expired ones, as one segment; None if none are left.

    `cells` are those of this site (None: all). What another site has in the same files is not touched: for it, the
    caller keeps ``segment.without(cells)`` in the manifest.
    """
    parts = []
    for segment in sorted(segments, key=_age):
        if _expired(segment, expired_before):
            continue
        part = open_segment(store, segment, cells)
        if expired_before is not None and segment.t_min < expired_before:
            part = part.filter(pc.greater_equal(part.column(TIME), expired_before))
        if part.num_rows:
            parts.append(part)
    if not parts:
        return None
    merged = pa.concat_tables(parts)
    return write_segment(
        store, folder, merged, label=label or {"compacted": len(parts)}, compressed=compressed, durable=durable
    )


def _age(segment: Segment) -> tuple[int, int, str]:
    # Neighbours in time are merged with each other: then whole segments expire sooner.
    return segment.t_max, segment.t_min, segment.path


def _expired(segment: Segment, expired_before: int | None) -> bool:
    return expired_before is not None and segment.t_max < expired_before


def _tier(rows: int, fan_in: int) -> int:
    """floor(log(rows)) to the base fan_in, in whole numbers: a float could place fan_in^k a tier too low."""
    tier = 0
    while rows >= fan_in:
        rows //= fan_in
        tier += 1
    return tier


def _groups(tier: Sequence[Segment], fan_in: int, max_bytes: int) -> list[tuple[Segment, ...]]:
    """The segments of a tier as groups to merge: at least fan_in each, oldest first, none above max_bytes."""
    groups: list[tuple[Segment, ...]] = []
    group: list[Segment] = []
    weight = 0
    for segment in tier:
        if group and weight + segment.nbytes > max_bytes:
            if len(group) >= fan_in:
                groups.append(tuple(group))
            group, weight = [], 0
        group.append(segment)
        weight += segment.nbytes
    if len(group) >= fan_in:
        groups.append(tuple(group))
    return groups


def _worth_trimming(segment: Segment, expired_before: int | None, total: int, max_bytes: int) -> bool:
    if expired_before is None or segment.t_min >= expired_before or segment.nbytes > max_bytes:
        return False
    expired = (expired_before - segment.t_min) / (segment.t_max - segment.t_min + 1)
    return expired >= _TRIM_EXPIRED and segment.rows >= _TRIM_WEIGHT * total
