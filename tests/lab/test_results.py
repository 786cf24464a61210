"""What is kept of an experiment, and read again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from anabranch.errors import SettingError
from anabranch.lab.results import keep, kept, outcome, written
from anabranch.lab.simulate import simulate, simulated
from tests.lab.samples import CALM, halved, halved_outcome


def test_a_claim_is_held_against_its_bounds_and_its_reason_against_the_results() -> None:
    one, two, three = halved_outcome().findings
    assert (one.reproduced, one.why, one.explained) == (True, "", False)
    assert one.ours == pytest.approx(0.5, abs=0.03)
    assert (two.reproduced, two.why, two.explained) == (False, "it never ends here & now", True)
    assert (three.reproduced, three.why, three.explained) == (False, "(not so in this run: it is untrue)", False)
    experiment = halved(low=0.55)
    assert not outcome(experiment, simulate([experiment])[0], "small", 1, 0.5).findings[0].reproduced


def test_an_outcome_is_settled_when_every_claim_is_reproduced_or_explained() -> None:
    whole = halved_outcome()
    assert not whole.settled
    assert replace(whole, findings=whole.findings[:2]).settled


def test_what_is_kept_is_what_is_read(tmp_path: Path) -> None:
    first = halved_outcome()
    on_spark = replace(first, driver="Spark", against="simulator")
    keep(on_spark, tmp_path)
    keep(first, tmp_path / "deeper")
    keep(first, tmp_path)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["deeper", "test.halved.json", "test.halved.spark.json"]
    assert kept(tmp_path) == [first, on_spark]
    assert kept(tmp_path / "deeper") == [first]
    text = (tmp_path / "test.halved.json").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_a_new_run_replaces_the_one_before(tmp_path: Path) -> None:
    keep(halved_outcome(), tmp_path)
    keep(replace(halved_outcome(), seed=7), tmp_path)
    assert [o.seed for o in kept(tmp_path)] == [7]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"format": 0}'])
def test_a_file_that_is_no_result_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "flux.fig7.spark.json").write_text(text)
    with pytest.raises(SettingError) as told:
        kept(tmp_path)
    assert told.value.where == str(tmp_path / "flux.fig7.spark.json")
    assert told.value.fix is not None
    assert told.value.fix.endswith("anabranch lab run flux.fig7 --spark")


@pytest.mark.parametrize(
    ("value", "text"), [(0.4312, "0.431 s"), (5, "5 s"), (689000.0, "6.89e+05 s"), (float("inf"), "inf s")]
)
def test_numbers_are_written_shortly(value: float, text: str) -> None:
    assert written(value, "s") == text


def test_results_come_one_by_one_and_a_shared_run_is_made_once() -> None:
    told: list[tuple[int, int]] = []
    one, two = halved(), replace(halved(), runs=halved().runs[:1])
    coming = simulated([two, one], progress=lambda done, of: told.append((done, of)))
    first = next(coming)
    assert told == [(1, 2)]
    second = next(coming)
    assert told == [(1, 2), (2, 2)]
    assert second["calm"] is first["calm"]
    assert set(first.traces) == {("calm", None)}


def test_the_number_of_processes_changes_nothing() -> None:
    longer = replace(halved(), runs=tuple(replace(r, scenario=replace(r.scenario, seed=3)) for r in halved().runs))
    experiments = [halved(), longer]
    alone, together = simulate(experiments, 1), simulate(experiments, 2)
    for one, two in zip(alone, together, strict=True):
        assert {k: t.digest() for k, t in one.traces.items()} == {k: t.digest() for k, t in two.traces.items()}
    assert CALM.seed == 1
    assert alone[0]["calm"].digest() != alone[1]["calm"].digest()
