"""No row is lost and none is there twice; the segments stay few; a row is not rewritten for ever."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.state.compaction import compact, plan
from anabranch.state.segments import Segment, open_segment, write_segment
from anabranch.state.store import Store
from tests.state.state_tools import CELLS, few, multiset, rows_of, segment_of, table_of

segments_on_paper = st.lists(
    st.builds(lambda rows, t, span: (rows, t, t + span), st.integers(1, 5000), st.integers(0, 99), st.integers(0, 40)),
    max_size=60,
).map(lambda shapes: [segment_of(f"s{i}", *shape) for i, shape in enumerate(shapes)])
horizons = st.one_of(st.none(), st.integers(-1, 150))


@few
@given(segments_on_paper, horizons, st.integers(2, 9), st.integers(1, 2_000_000), st.randoms(use_true_random=False))
def test_a_plan_names_every_segment_once_whatever_their_order(
    segments: list[Segment], horizon: int | None, fan_in: int, max_bytes: int, rng: random.Random
) -> None:
    made = plan(segments, horizon, fan_in=fan_in, max_bytes=max_bytes)
    named = [*made.drop, *made.keep, *(segment for group in made.merge for segment in group)]
    assert sorted(s.path for s in named) == sorted(s.path for s in segments)
    assert all(horizon is not None and s.t_max < horizon for s in made.drop)
    assert all(horizon is None or s.t_max >= horizon for s in named[len(made.drop) :])
    assert all(group and sum(s.nbytes for s in group) <= max_bytes for group in made.merge)
    assert all(len(group) >= fan_in or len(group) == 1 for group in made.merge)
    assert made.idle == (len(made.keep) == len(segments))
    shuffled = list(segments)
    rng.shuffle(shuffled)
    assert plan(shuffled, horizon, fan_in=fan_in, max_bytes=max_bytes) == made


@few
@given(st.lists(rows_of, max_size=5), horizons, st.sets(st.integers(0, CELLS - 1)))
def test_compacting_keeps_each_live_row_once_for_the_site_and_leaves_the_rest_to_others(
    batches: list[Any], horizon: int | None, ours: set[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(folder)
        written = [write_segment(store, "op/0", table_of(rows), label={"epoch": i}) for i, rows in enumerate(batches)]
        segments = [segment for segment in written if segment is not None]
        merged = compact(store, "op/0", segments, horizon, cells=ours)
        rest = [segment.without(ours) for segment in segments]
        everything = multiset(pa.concat_tables([table_of([]), *(table_of(rows) for rows in batches)]))
        live = {row: n for row, n in everything.items() if horizon is None or row[1] >= horizon}
        kept = multiset(open_segment(store, merged)) if merged else {}
        assert kept == {row: n for row, n in live.items() if row[0] in ours}
        left = multiset(pa.concat_tables([table_of([]), *(open_segment(store, s) for s in rest if s)]))
        assert left == {row: n for row, n in everything.items() if row[0] not in ours}


def simulate(sizes: list[int], window: int | None, fan_in: int) -> tuple[list[int], float, list[int]]:
    """An epoch per size, times as epochs; (segments after each, rows written per row arrived, rows not yet expired)."""
    live: list[Segment] = []
    counts, space = [], []
    arrived = written = serial = 0
    for epoch, rows in enumerate(sizes):
        horizon = None if window is None else epoch - window
        made = plan(live, horizon, fan_in=fan_in)
        live = list(made.keep)
        for group in made.merge:
            # Rows are spread evenly over a segment's times, as in a steady stream.
            kept, times = 0, []
            for s in group:
                first = s.t_min if horizon is None else max(s.t_min, horizon)
                kept += max(1, round(s.rows * (s.t_max - first + 1) / (s.t_max - s.t_min + 1)))
                times += [first, s.t_max]
            serial += 1
            live.append(segment_of(f"m{serial}", kept, min(times), max(times)))
            written += kept
        live.append(segment_of(f"e{epoch}", rows, epoch, epoch))
        arrived += rows
        written += rows
        counts.append(len(live))
        space.append(sum(s.rows for s in live))
    return counts, written / arrived, space


shapes: dict[str, Callable[[random.Random], int]] = {
    "steady": lambda rng: 1000,
    "tiny": lambda rng: 1,
    "mixed": lambda rng: rng.choice([1, 30, 1000, 50_000]),
    "bursts": lambda rng: 200_000 if rng.random() < 0.02 else 100,
}


@pytest.mark.parametrize("fan_in", [2, 8])
@pytest.mark.parametrize("window", [None, 60, 7])
@pytest.mark.parametrize("shape", shapes)
def test_over_500_epochs_segments_stay_few_and_rows_are_rewritten_seldom(
    shape: str, window: int | None, fan_in: int
) -> None:
    rng = random.Random(f"{shape} {window} {fan_in}")
    sizes = [shapes[shape](rng) for _ in range(500)]
    counts, amplification, space = simulate(sizes, window, fan_in)
    tiers = math.ceil(math.log(sum(sizes), fan_in)) + 1
    assert max(counts) <= fan_in * tiers
    assert amplification <= tiers + 1
    if shape == "steady" and window:
        # Nothing is rewritten more often than the size of the window asks for, and expired rows do not pile up.
        assert amplification <= 2 + math.log(window, fan_in) * 1.5
        assert max(space) <= 3 * 1000 * (window + fan_in)


def test_a_mostly_expired_segment_is_trimmed_only_if_it_weighs_enough() -> None:
    old, new = segment_of("old", 1000, 0, 100), segment_of("new", 1000, 90, 100)
    assert plan([old, new], 40).idle
    assert plan([old, new], 60).merge == ((old,),)
    assert plan([replace(old, rows=100), new], 60).idle
    assert plan([old, new], 101).drop == (new, old) or set(plan([old, new], 101).drop) == {old, new}


def test_a_row_exactly_on_the_horizon_stays(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path))
    segment = write_segment(store, "op/0", table_of([(0, 9, "a"), (0, 10, "b")]), label={})
    assert segment is not None
    assert plan([segment], 10).drop == ()
    kept = compact(store, "op/0", [segment], 10)
    assert kept is not None
    assert (kept.rows, kept.t_min) == (1, 10)
    assert plan([segment], 11).drop == (segment,)
    assert compact(store, "op/0", [segment], 11) is None
