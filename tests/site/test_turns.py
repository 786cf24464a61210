"""Which cells of a site are processed, and in which tier they end."""

from __future__ import annotations

from collections.abc import Collection

from anabranch.site.ticket import Behind
from anabranch.site.turns import Batch, Cells, Tiers, batches, cold_turns, in_time, tiers


def cells(
    rows: list[int], sizes: list[int], cold: Collection[int] = (), behind: dict[int, Behind] | None = None
) -> Cells:
    return Cells(tuple(range(len(rows))), rows, sizes, frozenset(cold), behind or {}, 10)


def test_on_a_plain_day_there_is_one_batch() -> None:
    assert batches(cells([5, 0, 7], [1, 1, 1]), [0, 1, 2], None, stepwise=False) == [Batch((0, 1, 2), 10, 12)]


def test_cells_of_different_levels_are_not_processed_together_and_the_oldest_come_first() -> None:
    known = cells([1] * 4, [1] * 4, behind={2: (5, 3), 3: (5, 1), 1: (None, 2)})
    found = batches(known, [0, 1, 2, 3], None, stepwise=False)
    assert [(b.cells, b.level) for b in found] == [((3,), 5), ((1,), None), ((2,), 5), ((0,), 10)]


def test_a_batch_has_no_more_state_than_the_memory_holds() -> None:
    found = batches(cells([1] * 5, [40, 40, 40, 90, 10]), range(5), 100, stepwise=False)
    assert [b.cells for b in found] == [(0, 1), (2,), (3, 4)]


def test_a_cell_larger_than_the_memory_is_a_batch_of_its_own() -> None:
    assert [b.cells for b in batches(cells([1] * 3, [5, 500, 5]), range(3), 100, stepwise=False)] == [(0,), (1,), (2,)]


def test_where_time_is_bounded_each_batch_has_as_many_rows_as_all_before_it() -> None:
    found = batches(cells([10] * 64, [1] * 64), range(64), None, stepwise=True)
    assert [b.rows for b in found] == [80, 80, 160, 320]


def test_a_cell_is_in_time_if_more_than_half_of_it_is() -> None:
    todo = [Batch((3, 1), 10, 30), Batch((0, 2), 10, 30)]
    assert in_time(todo, [10, 10, 20, 20], 100) == {0, 1, 2, 3}
    assert in_time(todo, [10, 10, 20, 20], 26) == {3, 1}
    assert in_time(todo, [10, 10, 20, 20], 24) == {3}
    assert in_time(todo, [10, 10, 20, 20], 0) == set()


def test_cold_cells_take_turns_those_first_that_have_waited_longest() -> None:
    known = cells([1, 1, 1, 1], [20] * 4, cold={0, 1, 2, 3}, behind={0: (9, 7), 1: (9, 2), 2: (9, 2), 3: (9, 5)})
    assert cold_turns(known, 100, 12, everyone=False) == {1}  # 25 of the 100 bytes at once
    assert cold_turns(known, 200, 12, everyone=False) == {1, 2}
    assert cold_turns(known, 100, 12, everyone=True) == {0, 1, 2, 3}
    assert cold_turns(known, None, 12, everyone=False) == {0, 1, 2, 3}


def test_a_cold_cell_with_nothing_to_do_has_no_turn() -> None:
    known = cells([0, 0, 3], [20] * 3, cold={0, 1, 2}, behind={0: (12, 7), 1: (9, 2)})
    assert cold_turns(known, None, 12, everyone=False) == {1, 2}


def test_a_cell_too_large_for_a_turn_has_one_all_the_same() -> None:
    assert cold_turns(cells([1], [900], cold={0}, behind={0: (1, 1)}), 100, 12, everyone=False) == {0}


def test_within_the_budget_nothing_changes_its_tier() -> None:
    assert tiers({0: 50, 1: 50}, {}, [1, 1], 100) == Tiers()
    assert tiers({0: 60}, {1: 60}, [1, 1], 100) == Tiers()


def test_past_the_budget_the_least_used_for_their_size_go_cold_until_there_is_room_for_turns() -> None:
    assert tiers({0: 50, 1: 30, 2: 30}, {}, [50, 1, 10], 100).spill == (1, 2)
    assert tiers({0: 50, 1: 30, 2: 10}, {3: 5}, [50, 1, 10, 1], 100).spill == (1,)


def test_where_half_is_free_the_most_used_come_back_as_far_as_they_fit() -> None:
    assert tiers({0: 20}, {1: 40, 2: 40}, [0, 1, 9], 100).restore == (2,)
    assert tiers({}, {1: 40, 2: 400}, [0, 1, 9], None).restore == (1, 2)


def test_all_come_back_where_all_fit_with_some_room_to_grow() -> None:
    assert tiers({0: 60}, {1: 20, 2: 10}, [1, 1, 1], 100).restore == (1, 2)
    assert tiers({0: 60}, {1: 20, 2: 11}, [1, 1, 1], 100) == Tiers()
