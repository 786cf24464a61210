"""Every cell has exactly one owner, whatever sequence of moves and resizes; and a change moves no more than it must."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.errors import SettingError
from anabranch.routing.assignment import Assignment
from anabranch.routing.cells import DEFAULT_CELLS, MAX_CELLS, cell_bits, cell_expression, cell_of

few = settings(max_examples=int(os.environ.get("ANABRANCH_EXAMPLES", "25")), deadline=None)
cell_counts = st.integers(0, 8).map(lambda bits: 1 << bits)
site_counts = st.integers(1, 40)


@st.composite
def assignments(draw: st.DrawFn) -> Assignment:
    cells, sites = draw(cell_counts), draw(site_counts)
    owner = draw(st.lists(st.integers(0, sites - 1), min_size=cells, max_size=cells))
    return Assignment(draw(st.integers(0, 9)), sites, tuple(owner))


def spread(assignment: Assignment) -> int:
    counts = assignment.counts()
    return max(counts) - min(counts)


@few
@given(cell_counts, site_counts)
def test_the_initial_assignment_is_balanced_and_contiguous(cells: int, sites: int) -> None:
    assignment = Assignment.initial(cells, sites)
    assert (assignment.version, assignment.cells) == (0, cells)
    assert list(assignment.owner) == sorted(assignment.owner)
    assert spread(assignment) <= 1


@few
@given(assignments())
def test_every_cell_is_in_exactly_one_site(assignment: Assignment) -> None:
    owned = [cell for site in range(assignment.sites) for cell in assignment.cells_of(site)]
    assert sorted(owned) == list(range(assignment.cells))
    assert assignment.counts() == tuple(len(assignment.cells_of(s)) for s in range(assignment.sites))


@few
@given(assignments(), st.data())
def test_a_move_changes_one_cell_and_one_version(assignment: Assignment, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, assignment.cells - 1))
    site = data.draw(st.integers(0, assignment.sites - 1))
    after = assignment.moved(cell, site)
    if assignment.owner[cell] == site:
        assert after is assignment
    else:
        assert after.version == assignment.version + 1
        assert assignment.changed_cells(after) == (cell,)
        assert after.owner[cell] == site


@few
@given(assignments(), site_counts)
def test_a_resize_is_balanced_and_moves_as_little_as_balance_allows(assignment: Assignment, sites: int) -> None:
    after = assignment.resized(sites)
    if sites == assignment.sites:
        assert after is assignment
        return
    assert (after.sites, after.version) == (sites, assignment.version + 1)
    assert spread(after) <= 1
    # The least possible: of all balanced targets, the one that lets the most cells stay.
    held = sorted((sum(o == s for o in assignment.owner) for s in range(sites)), reverse=True)
    share, extra = divmod(assignment.cells, sites)
    stay = sum(min(n, share + (rank < extra)) for rank, n in enumerate(held))
    assert len(assignment.changed_cells(after)) == assignment.cells - stay


@few
@given(assignments(), st.lists(site_counts, max_size=6))
def test_resizes_are_deterministic_and_survive_json(assignment: Assignment, sizes: list[int]) -> None:
    one = other = assignment
    for sites in sizes:
        one = one.resized(sites)
        other = Assignment.from_json(json.loads(json.dumps(other.to_json()))).resized(sites)
        assert one == other


def test_growing_by_one_site_only_fills_the_new_site() -> None:
    before = Assignment.initial(256, 8)
    after = before.resized(9)
    assert {after.owner[c] for c in before.changed_cells(after)} == {8}
    assert len(before.changed_cells(after)) == 28


def test_several_moves_are_one_version() -> None:
    after = Assignment.initial(4, 2).moved_all({0: 1, 3: 0})
    assert after == Assignment(1, 2, (1, 0, 1, 0))


@pytest.mark.parametrize(
    ("version", "sites", "owner", "says"),
    [
        (0, 2, (0, 1, 0), "power of two"),
        (0, 2, (), "power of two"),
        (0, 0, (0,), "at least 1"),
        (0, True, (0,), "at least 1"),
        (0, 2, (0, 2), "cell 1 is assigned to site 2"),
        (0, 2, (0, -1), "cell 1 is assigned to site -1"),
        (-1, 2, (0, 1), "version"),
    ],
)
def test_an_assignment_that_makes_no_sense_is_refused(version: int, sites: int, owner: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        Assignment(version, sites, owner)


@pytest.mark.parametrize(("cell", "site"), [(4, 0), (-1, 0), (0, 2), (0, -1)])
def test_a_move_out_of_range_is_refused(cell: int, site: int) -> None:
    with pytest.raises(SettingError):
        Assignment.initial(4, 2).moved(cell, site)


@pytest.mark.parametrize("extra", [{"shapes": {}}, {"owner": "01"}, {"owner": [0, "1"]}])
def test_json_that_is_not_fully_understood_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Assignment.from_json(Assignment.initial(2, 2).to_json() | extra)


@few
@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 15))
def test_cells_are_the_top_bits_and_doubling_them_splits_each_in_two(key_hash: int, bits: int) -> None:
    cell = cell_of(key_hash, 1 << bits)
    assert 0 <= cell < 1 << bits
    assert cell_of(key_hash, 2 << bits) // 2 == cell


def test_one_cell_is_not_a_shift_by_64() -> None:
    assert cell_expression("h", 1) == "CAST(0 AS INT)"
    assert cell_expression("xxhash64(a, b)", 256) == "CAST(shiftrightunsigned(xxhash64(a, b), 56) AS INT)"
    assert (cell_of(-1, 1), cell_of(-1, 256)) == (0, 255)


@pytest.mark.parametrize("cells", [0, -2, 3, 257, 2 * MAX_CELLS, 4.0, None, True, "256"])
def test_a_number_of_cells_that_cannot_be_used_is_refused(cells: Any) -> None:
    with pytest.raises(SettingError, match="power of two"):
        cell_bits(cells)
    assert cell_bits(DEFAULT_CELLS) == 8
