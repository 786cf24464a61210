"""Policies, guard and controller over views made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.control.actions import Move, Overfull, Proposal, Proposals, Verdict
from anabranch.control.controller import Controller
from anabranch.control.guard import Guard, Limits
from anabranch.control.journal import Journal
from anabranch.control.pacing import DampedPacing, FixedPacing, Outcome
from anabranch.control.policies import Balance, FluxBalance, FluxHybrid, FluxMemory, Static
from anabranch.control.policy import Policy, named, register
from anabranch.control.projection import Projection
from anabranch.control.view import CellView, SiteView, View
from anabranch.errors import SettingError

MB = 1 << 20


def view(
    cells: dict[int, list[int]], busy: dict[int, float] | None = None, length: float = 1.0,
    sizes: dict[int, int] | None = None, budget: int | None = None, cold: set[int] | None = None, now: float = 0.0,
) -> View:  # fmt: skip
    """Rows of the cells at each site; a row is a millisecond of work unless `busy` says otherwise."""
    ids = {site: [site * 100 + n for n in range(len(rows))] for site, rows in cells.items()}
    sizes, cold = sizes or {}, cold or set()
    found = [
        CellView("agg", cell, site, rows_in=n, bytes=sizes.get(cell, 0), cold=cell in cold)
        for site, rows in cells.items()
        for cell, n in zip(ids[site], rows, strict=True)
    ]
    sites = []
    for site, rows in cells.items():
        work = (busy or {}).get(site, sum(rows) / 1000)
        held = [c for c in found if c.site == site]
        hot, frozen = (sum(c.bytes for c in held if c.cold == is_cold) for is_cold in (False, True))
        sites.append(SiteView(site, work, max(length - work, 0.0), sum(rows), hot, frozen, budget))
    return View(now, length, tuple(sites), tuple(found))


def proposed(policy: Policy, seen: View, allowed: bool = True) -> list[Proposal]:
    found = []
    proposals = policy.propose(seen)
    try:
        proposal = next(proposals)
        while True:
            found.append(proposal)
            proposal = proposals.send(Verdict(allowed, ""))
    except StopIteration:
        return found


def moves(policy: Policy, seen: View) -> list[tuple[int, int]]:
    return [(p.action.cell, p.action.site) for p in proposed(policy, seen) if isinstance(p.action, Move)]


def test_flux_pairs_the_most_with_the_least_utilised_and_moves_the_first_cell_that_helps() -> None:
    """Figure 5 of the paper: site 1 with 4, 2 with 3; the busiest cell that does not turn the imbalance round."""
    seen = view({1: [500, 300, 100], 2: [400, 200, 100], 3: [350, 50], 4: [100, 50]})
    assert moves(FluxBalance(), seen) == [(100, 4), (201, 3)]


def test_flux_leaves_alone_what_is_balanced_or_has_a_busy_receiver() -> None:
    assert moves(FluxBalance(), view({0: [300, 300], 1: [260, 260]})) == []
    assert moves(FluxBalance(), view({0: [600, 400], 1: [450, 460]})) == []  # the receiver is above 0.9
    assert moves(FluxBalance(), view({0: [900], 1: [100]})) == []  # the one cell would only move the imbalance


def test_flux_never_over_utilises_the_receiver() -> None:
    """The receiver is slow: what the donor does in 0.4 s would take it 1.6 s."""
    seen = view({0: [400, 300, 200], 1: [100]}, busy={0: 0.9, 1: 0.4})
    for cell, site in moves(FluxBalance(), seen):
        rows = seen.by_key["agg", cell].rows_in
        assert seen.site[site].utilisation + rows * seen.cost(site) <= 1


def test_flux_memory_moves_the_largest_cell_in_memory_that_lowers_the_imbalance() -> None:
    seen = view(
        {0: [1, 1, 1], 1: [1]}, sizes={0: 30 * MB, 1: 20 * MB, 2: 40 * MB, 100: 10 * MB}, budget=50 * MB, cold={2}
    )
    assert moves(FluxMemory(), seen) == [(0, 1)]
    assert moves(FluxMemory(), view({0: [1], 1: [1]}, sizes={0: 10 * MB}, budget=50 * MB)) == []
    assert moves(FluxMemory(), view({0: [1], 1: [1]}, sizes={0: 10 * MB})) == []


def test_the_hybrid_balances_memory_where_something_is_cold_and_work_elsewhere() -> None:
    busy = {0: [500, 400], 1: [100]}
    assert moves(FluxHybrid(), view(busy, budget=MB)) == moves(FluxBalance(), view(busy))
    sizes = {0: 30 * MB, 1: 30 * MB}
    assert moves(FluxHybrid(), view(busy, sizes=sizes, budget=40 * MB, cold={1})) == [(0, 1)]
    assert moves(FluxHybrid(), view(busy, sizes={0: 2 * MB, 1: 2 * MB}, budget=MB)) == []  # no room


def test_a_full_site_keeps_no_donor_from_one_that_has_room() -> None:
    """Site 1 is the least busy and full; the hybrid pairs the busy site with site 2."""
    busy = {0: [500, 400], 1: [100], 2: [200]}
    sizes = {0: 10, 1: 10, 100: 50, 200: 10}
    assert moves(FluxHybrid(), view(busy, sizes=sizes, budget=50)) == [(0, 2)]


def test_the_default_packs_several_cells_in_one_round() -> None:
    seen = view({0: [200] * 8, 1: [100], 2: [100], 3: [100]}, length=2.0)
    places = dict(moves(Balance(), seen))
    loads = {site: sum(c.rows_in for c in seen.cells if places.get(c.cell, c.site) == site) for site in range(4)}
    assert max(loads.values()) <= 500
    assert len(places) <= 6


def test_the_default_gives_a_slow_site_less() -> None:
    seen = view({0: [100] * 10, 1: [100] * 10}, busy={0: 3.0, 1: 1.0}, length=3.0)
    after = [c for c in seen.cells if dict(moves(Balance(), seen)).get(c.cell, c.site) == 0]
    assert len(after) == 5


def test_a_cell_that_is_more_than_a_site_can_carry_is_reported_and_the_others_still_moved() -> None:
    seen = view({0: [1000, 100, 100], 1: [100, 100], 2: [100, 100]}, length=2.0)
    found = proposed(Balance(), seen)
    assert isinstance(found[0].action, Overfull)
    assert found[0].action.cell == 0
    assert {p.action.cell for p in found[1:]} <= {1, 2}


def test_a_refused_cell_is_not_proposed_again() -> None:
    found = [p.action for p in proposed(Balance(), view({0: [200] * 6, 1: [100]}, length=2.0), allowed=False)]
    keys = [a.key for a in found if isinstance(a, Move)]
    assert len(keys) == len(set(keys)) == 6


def controlled(policy: Policy, limits: Limits | None = None, **options: bool) -> Controller:
    return Controller(policy, Guard(limits), FixedPacing(1.0), Journal(), **options)


def test_every_decision_is_in_the_journal_with_what_was_predicted_and_observed() -> None:
    controller = controlled(Balance(), Limits())
    controller.observe(view({0: [300, 300], 1: [100]}))
    actions = controller.decide()
    assert actions == [Move("agg", 1, 1)] or actions == [Move("agg", 0, 1)]
    controller.moved(0.0)
    controller.observe(view({0: [300], 1: [100, 300]}))
    controller.decide()
    entry = controller.journal.entries[0]
    assert entry["verdict"] == "enacted"
    assert entry["predicted"]["gain"] == pytest.approx(0.2 / 700, rel=1e-4)
    assert entry["observed"]["gain"] == pytest.approx(0.2 / 700, rel=1e-4)


def test_refused_proposals_say_why() -> None:
    controller = controlled(Balance(), Limits(moves_per_round=1))
    controller.observe(view({0: [200] * 6, 1: [100], 2: [100]}, length=2.0))
    assert len(controller.decide()) == 1
    reasons = {e["reason"] for e in controller.journal.entries if e["verdict"] == "refused"}
    assert reasons == {"1 moves in one round are enough"}


def test_a_moved_cell_stays_for_a_while() -> None:
    controller = controlled(Balance(), Limits(cool_down_rounds=2))
    controller.observe(view({0: [300, 300], 1: []}))
    first = controller.decide()
    controller.moved(0.0)
    assert len(first) == 1
    back = first[0]
    assert isinstance(back, Move)
    seen = view({0: [50], 1: [200, 300]})
    cells = tuple(replace(c, cell=back.cell) if c.cell == 100 else replace(c, cell=c.cell + 50) for c in seen.cells)
    controller.observe(View(1.0, 1.0, seen.sites, cells))
    assert back.key not in [a.key for a in controller.decide() if isinstance(a, Move)]
    assert any("rounds ago" in e["reason"] for e in controller.journal.entries)


def test_small_gains_and_unsafe_moves_are_refused() -> None:
    @register
    class Wild(Policy):
        name = "test.wild"

        def propose(self, view: View) -> Proposals:
            for move in (
                Move("agg", 99, 0),
                Move("agg", 0, 9),
                Move("agg", 0, 0),
                Move("agg", 1, 2),
                Move("agg", 0, 1),
            ):
                yield Proposal(move, "")

    controller = controlled(Wild(), Limits(least_imbalance=0.05, least_gain=0.2))
    controller.observe(view({0: [300, 10], 1: [200], 2: [305]}))
    assert controller.decide() == []
    reasons = [e["reason"] for e in controller.journal.entries]
    assert reasons == [
        "there is no cell 99 of agg", "there is no site 9", "the cell is there already",
        "the sites it touches are busy alike, as far as can be told: sites differ by 0% anyway",
        "the gain is small against the load of the cell: it would rather move the imbalance",
    ]  # fmt: skip


def test_a_small_cell_may_be_worth_its_move() -> None:
    """One of 128 cells is less than a hundredth of its site's load, whatever it relieves."""
    seen = view({0: [23] * 128, 1: [10] * 128})
    guard = Guard()
    assert guard.judge(seen, Projection(seen), Proposal(Move("agg", 0, 1), ""), 0, []).allowed
    assert len(moves(Balance(), seen)) > 20


def test_a_receiver_without_room_is_refused_unless_the_donor_has_none_either() -> None:
    guard = Guard.paper()
    full = view({0: [9], 1: [1]}, sizes={0: 10, 100: 95}, budget=100)
    assert not guard.judge(full, Projection(full), Proposal(Move("agg", 0, 1), ""), 0, []).allowed
    short = view({0: [9, 9], 1: [1]}, sizes={0: 100, 1: 100, 100: 95}, budget=100)
    assert guard.judge(short, Projection(short), Proposal(Move("agg", 0, 1), ""), 0, []).allowed


def test_advice_is_recorded_and_not_taken() -> None:
    controller = controlled(Balance(), Limits(), advise_only=True)
    controller.observe(view({0: [300, 300], 1: [100]}))
    assert controller.decide() == []
    assert [e["verdict"] for e in controller.journal.entries] == ["advised"]


def test_one_stalled_epoch_is_no_trend() -> None:
    controller = Controller(Balance(), Guard(Limits()), FixedPacing(3.0), Journal())
    even = {0: [100, 100], 1: [100, 100]}
    for busy in ({0: 0.2, 1: 0.2}, {0: 0.9, 1: 0.2}, {0: 0.2, 1: 0.2}):
        controller.observe(view(even, busy))
    assert controller.decide() == []
    assert not controller.journal.entries


def test_sites_that_differ_without_a_reason_are_left_alone_and_a_slow_one_is_not() -> None:
    even = {site: [100] * 16 for site in range(4)}
    noisy = ({0: 1.6, 1: 1.9, 2: 1.6, 3: 2.2}, {0: 2.1, 1: 1.7, 2: 2.0, 3: 2.0})
    controller = Controller(Balance(), Guard(), FixedPacing(2.0), Journal())
    for busy in noisy:
        controller.observe(view(even, busy))
    assert controller.decide() == []
    for busy in noisy:
        controller.observe(view(even, busy | {3: 2.3 * busy[3]}))
    assert {m.key[1] // 100 for m in controller.decide() if isinstance(m, Move)} == {3}


def test_work_of_a_slow_site_goes_to_all_others_and_no_cell_moves_twice() -> None:
    seen = view(
        {site: [10] * 16 for site in range(16)}, busy={site: 0.16 * (2.3 if site == 3 else 1) for site in range(16)}
    )
    found = moves(Balance(), seen)
    assert len(found) == len(dict(found)) == 9  # the least that levels it
    assert len({site for _, site in found}) == 9


def test_a_site_that_can_give_nothing_away_keeps_nobody_from_being_relieved() -> None:
    seen = view({0: [1000], 1: [100] * 6, 2: [100], 3: [100]}, length=2.0)
    assert {cell // 100 for cell, _ in moves(Balance(), seen)} == {1}


def test_the_effect_of_moves_of_one_site_is_shared_out_among_them() -> None:
    controller = controlled(Balance(), Limits())
    controller.observe(view({0: [100] * 8, 1: [100], 2: [100]}))
    actions = [a for a in controller.decide() if isinstance(a, Move)]
    assert len(actions) == 4
    controller.moved(0.0)
    controller.observe(view({0: [100] * 6, 1: [100] * 2, 2: [100] * 2}))  # only half of it came
    controller.decide()
    entries = list(controller.journal.entries)[:4]
    assert sum(e["observed"]["gain"] for e in entries) == pytest.approx(
        sum(e["predicted"]["gain"] for e in entries) / 2
    )


def test_what_cannot_be_seen_any_more_is_said() -> None:
    controller = controlled(Balance(), Limits())
    controller.observe(view({0: [300, 300], 1: [100]}))
    assert controller.decide()
    controller.restart("the number of sites changed")
    assert controller.journal.entries[0]["observed"] == {"why": "the number of sites changed"}


def test_the_phase_follows_fluxs_rule() -> None:
    pacing = FixedPacing(0.1, first=1.0)
    assert pacing.next(Outcome(0, 0.0, None)) == 0.5
    assert pacing.next(Outcome(3, 2.0, None)) == 2.0
    for _ in range(10):
        pacing.next(Outcome(0, 0.0, None))
    assert pacing.length == 0.1


def test_moves_that_do_not_deliver_make_rounds_longer_and_quiet_ones_shorter() -> None:
    pacing = DampedPacing(1.0, 16.0)
    assert [pacing.next(Outcome(2, 0.0, 0.1)) for _ in range(5)] == [2.0, 4.0, 8.0, 16.0, 16.0]
    assert pacing.next(Outcome(2, 0.0, 0.9)) == 12.0
    for _ in range(20):
        pacing.next(Outcome(0, 0.0, None))
    assert pacing.length == 1.0


def test_policies_have_names_and_users_may_bring_their_own() -> None:
    assert isinstance(named("flux.balance"), FluxBalance)
    assert isinstance(named("static"), Static)
    assert isinstance(named("anabranch.control.policies.balance.Balance"), Balance)
    with pytest.raises(SettingError, match="there is no policy"):
        named("flux.balanced")
    with pytest.raises(SettingError, match="not a policy"):
        named("anabranch.control.guard.Guard")

    class Static2(Policy):
        name = "static"

        def propose(self, view: View) -> Proposals:
            yield from ()

    with pytest.raises(SettingError, match="two policies are called static"):
        register(Static2)


def test_a_site_is_slow_when_two_rounds_say_so_and_a_hot_cell_is_hot_at_once() -> None:
    even, slow = {site: [100] * 8 for site in range(4)}, {0: 2.0, 1: 0.8, 2: 0.8, 3: 0.8}
    controller = Controller(Balance(), Guard(), FixedPacing(1.0), Journal(), steady=True)
    controller.observe(view(even, slow))
    assert controller.decide() == []
    controller.observe(view(even, {0: 0.8, 1: 2.0, 2: 0.8, 3: 0.8}))  # another one this time: noise
    assert controller.decide() == []
    controller.observe(view(even, {0: 0.8, 1: 1.9, 2: 0.8, 3: 0.8}))
    assert {a.key[1] // 100 for a in controller.decide() if isinstance(a, Move)} == {1}
    fresh = Controller(Balance(), Guard(), FixedPacing(1.0), Journal(), steady=True)
    fresh.observe(view({0: [400] * 8, 1: [100] * 8, 2: [100] * 8, 3: [100] * 8}))
    assert len([a for a in fresh.decide() if isinstance(a, Move) and a.key[1] // 100 == 0]) >= 4
