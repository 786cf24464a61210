"""The scenarios about adaptation: what they compute from runs, and that they are found."""

from __future__ import annotations

from typing import Any

import pytest

from anabranch.testing import Run
from bench import __main__ as cli
from bench import adaptive
from bench.adaptive import hot, journal, memory, round_robin, slow, spread
from bench.adaptive.scenario import SITES, Field, Figure


def run(ms: list[float], entries: list[dict[str, Any]] | None = None, sites: list[dict[str, Any]] | None = None) -> Run:
    progress = [
        {"epoch": n, "durationMs": {"triggerExecution": took}, "sites": sites or []} for n, took in enumerate(ms)
    ]
    return Run(progress, entries or [], 1000, [])


def move(at: int, round: int, **changes: Any) -> dict[str, Any]:
    action = {"kind": "move", "operator": "aggregate-1"}
    return {"at": at, "round": round, "policy": "balance", "verdict": "enacted", "action": action} | changes


def test_a_bar_is_at_least_or_at_most_its_limit() -> None:
    assert Figure("f", 1.0).reached is None
    assert [Figure("f", v, 0.9).reached for v in (0.9, 0.89)] == [True, False]
    assert [Figure("f", v, 2, at_most=True).reached for v in (2, 2.1)] == [True, False]


def test_an_unknown_scenario_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["adaptive", "slwo"]) == 2
    assert "round_robin" in capsys.readouterr().out
    assert [s.name for s in adaptive.select(["hot", "slow"])] == ["slow", "hot"]


def test_the_least_number_of_moves_is_that_after_which_the_slow_site_is_level() -> None:
    assert slow.LEAST == 9  # 7 cells at 2.3 are 16.1, 8 are 18.4; level is 16.6


def test_rounds_are_counted_until_the_speed_is_back() -> None:
    moves = [move(11, 5), move(13, 6), move(15, 7)]
    back = run([100.0] * 10 + [200.0] * 4 + [110.0] * 8, moves)
    assert slow.rounds(back, 100.0) == 2
    assert slow.rounds(run([100.0] * 10 + [200.0] * 12, moves), 100.0) == float("inf")


def test_a_line_is_straight_or_not() -> None:
    assert spread.straightness([0, 1, 2, 3], [9, 7, 5, 3]) == pytest.approx(1)
    assert spread.straightness([0, 1, 2, 3], [9, 3, 3, 3]) < 0.7


def test_the_number_of_slow_sites_rises_along_the_axis() -> None:
    pace = spread.rising((0, 2, 16), 10)
    slow_at = [sum(s.holds(s.site, epoch) for s in pace.slow) for epoch in (0, 9, 10, 19, 20)]
    assert slow_at == [0, 0, 2, 2, 16]


def test_four_fifths_of_the_rows_are_in_a_fifth_of_the_cells_and_these_are_others_after_a_while() -> None:
    weights = hot.drifting(50)
    first, same, other = (sorted(range(hot.CELLS), key=lambda c: -weights(e)[c])[: hot.CELLS // 5] for e in (0, 49, 50))
    assert sum(weights(0)[c] for c in first) == pytest.approx(0.8)
    assert first == same
    assert not set(first) & set(other)
    assert sum(hot.one_hot(0)) == pytest.approx(1)


def test_the_load_goes_round() -> None:
    loads = round_robin.round_robin(SITES + 1, 4)
    assert [[s.site for s in loads if s.holds(s.site, e)] for e in (3, 4, 5, 6, 4 + 2 * SITES)] == [
        [],
        [0],
        [0],
        [1],
        [0],
    ]


def test_rows_that_wait_add_to_the_latency_and_hot_bytes_are_held_against_the_budget_of_the_time() -> None:
    each = 1000 / SITES
    idle = [{"site": s, "heldRows": 0, "hotBytes": 50} for s in range(SITES)]
    waiting = [site | {"heldRows": 2 * each if site["site"] == memory.SHORT else 0} for site in idle]
    assert memory.latency(run([100.0] * 4, sites=idle), 0, None) == pytest.approx(100)
    assert memory.latency(run([100.0] * 4, sites=waiting), 0, None) == pytest.approx(300)
    assert memory.fullness(run([1.0] * memory.CUT, sites=idle), 100, 40) == 0.5
    assert memory.fullness(run([1.0] * (memory.CUT + 1), sites=idle), 100, 40) == 1.25


def test_a_move_without_an_effect_is_counted_unless_nothing_came_behind_it() -> None:
    seen = {"predicted": {"gain": 1}, "observed": {"gain": 1}, "reason": "allowed"}
    field = Field(folder=None, quick=False)  # type: ignore[arg-type]
    field.runs["a"] = run([1.0], [move(1, 0, **seen), move(2, 1, **seen | {"observed": None}), move(3, 2, **seen)])
    field.runs["b"] = run([1.0], [move(1, 0, **seen), move(2, 1, **seen | {"observed": None})])
    figures = {f.name: f.value for f in journal.measure(field)}
    assert figures["journal: moves in all runs"] == 3
    assert figures["journal: moves without an observed effect"] == 1
