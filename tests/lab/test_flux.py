"""The Flux experiments: the same question at any size; at the paper's size their claims hold, or differ as they say."""

from __future__ import annotations

import pytest

from anabranch.lab.experiment import PAPER, SMALL, Experiment, Results, Size
from anabranch.lab.flux import fig8
from anabranch.lab.registry import BUILDERS, built
from anabranch.lab.simulate import simulate
from anabranch.sim.trace import Moved, Trace

# What is known to come out otherwise than in the paper. The claim says why, and the reason is checked.
DIFFERENT = {
    "flux.fig8": {
        "at the smallest δ_min Flux has this share of static",
        "δ_min from which on Flux is ahead of static",
        "loaded: δ_min from which on Flux is ahead of static unloaded",
    },
}


def verdicts(experiment: Experiment, results: Results) -> dict[str, bool]:
    return {c.says: c.low <= float(c.ours(results)) <= c.high for c in experiment.claims}


@pytest.mark.parametrize("name", list(BUILDERS))
def test_an_experiment_is_the_same_question_at_every_size(name: str) -> None:
    large, small = built(name, PAPER), built(name, SMALL)
    assert [a.y for a in large.axes] == [a.y for a in small.axes]
    assert [c.says for c in large.claims] == [c.says for c in small.claims]
    assert {r.variant for r in large.runs} == {r.variant for r in small.runs}
    assert {len(r.scenario.sites) for r in large.runs} == {32}
    assert len({r.scenario for r in small.runs}) > 1


def test_the_time_a_cell_stood_still_is_read_off_its_moves() -> None:
    trace = Trace()
    for start in (0.0, 2.0):
        trace.moves.append(Moved(start, start + 0.5, start + 1.0, "groupby", 7, 0, 1))
    trace.moves.append(Moved(0.0, 0.1, 2.0, "groupby", 8, 0, 1))
    trace.rounds += [(0.0, 1.0, 2), (1.0, 1.0, 0), (2.0, 1.0, 1), (3.0, 1.0, 0)]
    trace.sample(4.0)
    assert fig8.still(trace) == pytest.approx(0.25)
    assert fig8.again(trace) == pytest.approx(0.5)


@pytest.mark.long
@pytest.mark.parametrize("name", list(BUILDERS))
def test_the_claims_hold_at_the_papers_size(name: str) -> None:
    experiment = built(name)
    results = simulate([experiment], processes=2)[0]
    wrong = {says for says, holds in verdicts(experiment, results).items() if not holds}
    assert wrong == DIFFERENT.get(name, set())
    for claim in experiment.claims:
        if claim.says in wrong:
            assert claim.differs is not None
            assert claim.differs.true(results)


@pytest.mark.long
def test_the_quantum_does_not_change_the_answer_at_the_papers_size() -> None:
    experiments = [built("flux.fig6", PAPER), built("flux.fig6", Size(quantum=1e-3))]
    coarse, fine = simulate(experiments, processes=2)
    for claim in experiments[0].claims:
        assert float(claim.ours(coarse)) == pytest.approx(float(claim.ours(fine)), rel=0.1, abs=1.0)
