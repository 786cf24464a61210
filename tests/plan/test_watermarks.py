"""How far each stage may go while stages before it still owe results."""

from __future__ import annotations

from typing import Any

from anabranch.plan.physical import Branch, Plan, Port, Stage
from anabranch.plan.watermarks import marks


def stage(id: str, kind: str, *before: str) -> Stage:
    branches = tuple(Branch((), stage=b) for b in before) or (Branch((), stream="s"),)
    port = Port(branches, "t", "timestamp", None, (), (), (), 0)
    spec: Any = None
    return Stage(id, kind, spec, (port,), (), (), 0)


CHAIN = Plan((stage("a", "join"), stage("b", "frame", "a"), stage("c", "aggregate", "b")), (), (), ("s",))
OUT = {"a": 10, "b": 10, "c": 10}


def marked(behind: dict[str, dict[int, tuple[int | None, int]]], **how: bool) -> dict[str, int | None]:
    return marks(CHAIN, 20, OUT, behind, **({"unhurried": False, "bounded": False} | how))


def test_on_a_plain_day_every_stage_goes_as_far_as_the_flow() -> None:
    assert marked({}) == {"a": 20, "b": 20, "c": 20}


def test_a_cell_that_is_behind_holds_back_the_stages_after_its_own() -> None:
    assert marked({"a": {3: (12, 1), 4: (15, 2)}}) == {"a": 20, "b": 12, "c": 12}
    assert marked({"b": {3: (12, 1)}}) == {"a": 20, "b": 20, "c": 12}
    assert marked({"c": {3: (12, 1)}}) == {"a": 20, "b": 20, "c": 20}
    assert marked({"a": {3: (None, 1)}}) == {"a": 20, "b": None, "c": None}


def test_where_time_is_bounded_a_frame_promises_only_what_it_has_given_out() -> None:
    assert marked({}, bounded=True) == {"a": 20, "b": 20, "c": 10}


def test_an_epoch_without_new_rows_holds_nothing_back() -> None:
    assert marked({"a": {3: (12, 1)}}, unhurried=True, bounded=True) == {"a": 20, "b": 20, "c": 20}
