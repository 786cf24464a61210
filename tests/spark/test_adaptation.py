"""A running query that adapts: what moves, what is held, what goes cold, and that the answer is Spark batch's.

Sites are paced without sleeping: their busy times are told, not spent, so that these tests are quick and repeatable.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.spark.adaptation import read_entries
from anabranch.state.store import Store
from anabranch.testing import Load, Pace, Run, Slow, move, rescale, run_load, several, shrink
from anabranch.testing.load import JOIN

pytestmark = pytest.mark.spark
SITES = 4
COUNTED = Load(epochs=24, sites=SITES, cells=64, rows=1280)
JOINED = Load(epochs=16, sites=SITES, cells=32, rows=320, query=JOIN, seconds=3, payload=200)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The input of each load is written once."""
    return {name: tmp_path_factory.mktemp(name) for name in ("counted", "joined")}


def ran(spark: Any, folder: Path, load: Load, name: str, **how: Any) -> Run:
    """A run to its end, compared with Spark batch."""
    options = {"flushAtEnd": True, "roundEpochs": 2} | how.pop("options", {})
    run = run_load(spark, load, folder, name=name, sink="parquet", options=options, **how)
    own = spark.newSession()
    ddl = "k BIGINT, ts TIMESTAMP" + (", v STRING" if load.payload else "")
    for stream in load.streams:
        own.read.schema(ddl).parquet(str(folder / "input" / stream)).createOrReplaceTempView(stream)
    want = Counter(map(tuple, own.sql(load.query.format(seconds=load.seconds)).collect()))
    got = Counter(map(tuple, own.read.parquet(str(folder / f"{name}-out")).collect()))
    assert want.total() > 0
    assert got == want, f"{(want - got).total()} missing, {(got - want).total()} too many"
    return run


def busy(run: Run, epoch: int) -> list[float]:
    return [s["busyMs"] for s in run.progress[epoch]["sites"]]


@pytest.mark.parametrize(("policy", "within"), [("flux.balance", 1.25), ("balance", 1.15)])
def test_a_slow_site_gives_away_cells_until_it_keeps_up(
    spark: Any, folders: dict[str, Path], policy: str, within: float
) -> None:
    pace = Pace(1000, slow=(Slow(1, 2.3, first=4),), virtual=True)
    run = ran(spark, folders["counted"], COUNTED, f"slow-{policy}", pace=pace, options={"policies": policy})
    fair = sum(busy(run, 3)) / (SITES - 1 + 1 / 2.3)
    assert max(busy(run, 5)) == pytest.approx(2.3 * max(busy(run, 3)), rel=0.05)
    assert max(busy(run, -1)) <= within * fair
    assert len(run.moves) == run.progress[-1]["assignment"]["moves"] <= 14  # of 16 cells, 9 have to go


def test_every_move_has_a_predicted_and_an_observed_effect_and_every_refusal_a_reason(
    spark: Any, folders: dict[str, Path]
) -> None:
    pace = Pace(1000, slow=(Slow(1, 2.3, first=4),), virtual=True)
    run = ran(spark, folders["counted"], COUNTED, "told", pace=pace, options={"policies": "flux.balance"})
    assert json.loads(json.dumps(run.journal)) == run.journal
    assert run.moves
    for entry in run.moves[:-1]:  # of the last one nothing may have been seen yet
        assert entry["predicted"]["gain"] > 0
        assert entry["observed"]["gain"] == pytest.approx(entry["predicted"]["gain"], rel=0.3)
        assert entry["why"]
    assert all(e["reason"] for e in run.journal)
    store = Store.open(str(folders["counted"] / "told" / "anabranch"))
    assert [e["id"] for e in read_entries(store)] == [e["id"] for e in run.journal]


def test_nothing_moves_under_a_uniform_load(spark: Any, folders: dict[str, Path]) -> None:
    run = ran(
        spark, folders["counted"], COUNTED, "even", pace=Pace(1000, virtual=True), options={"policies": "balance"}
    )
    assert run.moves == []


def test_advice_moves_nothing(spark: Any, folders: dict[str, Path]) -> None:
    pace = Pace(1000, slow=(Slow(1, 2.3),), virtual=True)
    options = {"policies": "balance", "adviseOnly": True}
    run = ran(spark, folders["counted"], COUNTED, "advised", pace=pace, options=options)
    assert run.moves == []
    assert {e["verdict"] for e in run.journal} >= {"advised"}
    assert {p["assignment"]["version"] for p in run.progress} == {0}


def test_a_hot_set_that_one_cell_cannot_carry_is_reported(spark: Any, tmp_path: Path) -> None:
    load = Load(epochs=8, sites=SITES, cells=16, rows=1600, weights=lambda epoch: [40.0] + [1.0] * 15)
    run = ran(spark, tmp_path, load, "hot", pace=Pace(1000, virtual=True), options={"policies": "balance"})
    found = [e for e in run.journal if e["action"]["kind"] == "overfull"]
    assert found
    assert found[0]["action"]["cell"] == 0
    assert "splitting" in found[0]["reason"]
    assert len({s for s, c in enumerate(busy(run, -1)) if c > 0}) > 1


@pytest.mark.parametrize("load", [COUNTED, JOINED], ids=["aggregate", "join"])
def test_the_number_of_sites_changes_while_the_query_runs(spark: Any, folders: dict[str, Path], load: Load) -> None:
    folder = folders["counted" if load is COUNTED else "joined"]
    run = ran(spark, folder, load, "rescaled", events={3: rescale(7), 9: rescale(2), 12: rescale(3)})
    sites = [p["assignment"]["sites"] for p in run.progress]
    assert sites[:5] == [4, 4, 4, 4, 7]
    assert sites[10] == 2
    assert sites[-1] == 3
    assert [len(p["sites"]) for p in run.progress] == sites


def test_cells_move_by_hand_and_answers_stay(spark: Any, folders: dict[str, Path]) -> None:
    moves = {e: several(*(move("join-1", c, (c + e) % SITES) for c in range(32))) for e in range(2, 12)}
    run = ran(spark, folders["joined"], JOINED, "by-hand", events=moves)
    assert run.progress[-1]["assignment"]["version"] == 10
    assert all(e["policy"] == "manual" and e["verdict"] == "enacted" for e in run.journal)


@pytest.mark.parametrize("load", [COUNTED, JOINED], ids=["aggregate", "join"])
def test_hot_state_stays_within_the_memory_and_cold_cells_take_turns(
    spark: Any, folders: dict[str, Path], load: Load
) -> None:
    folder = folders["counted" if load is COUNTED else "joined"]
    free = ran(spark, folder, load, "roomy", options={"stateMemory": "1g"})
    state = max(s["hotBytes"] for p in free.progress for s in p["sites"])
    assert all(s["coldBytes"] == 0 for p in free.progress for s in p["sites"])
    budget = max(state // 3, 1 << 16) if load is JOINED else state // 3
    events = {0: several(*(shrink(s, budget) for s in range(SITES)))}
    run = ran(spark, folder, load, "short", events=events)
    assert max(s["hotBytes"] for p in run.progress for s in p["sites"]) <= budget
    assert any(s["coldBytes"] for p in run.progress for s in p["sites"])
    assert any(o["numHeldRows"] for p in run.progress for o in p["stateOperators"])


def test_memory_that_is_short_on_one_site_is_found_on_the_others(spark: Any, folders: dict[str, Path]) -> None:
    free = ran(spark, folders["joined"], JOINED, "measured", options={"stateMemory": "1g"})
    state = max(s["hotBytes"] for p in free.progress for s in p["sites"])
    events = {6: shrink(1, state // 2)}
    static = ran(spark, folders["joined"], JOINED, "stuck", options={"stateMemory": state * 2}, events=events)
    assert static.progress[-1]["sites"][1]["coldBytes"] > 0
    for policy in ("flux.memory", "balance"):
        options = {"policies": policy, "stateMemory": state * 2, "roundEpochs": 1}
        run = ran(spark, folders["joined"], JOINED, f"relieved-{policy}", options=options, events=events)
        assert all(s["coldBytes"] == 0 for s in run.progress[-1]["sites"]), policy
        assert max(p["sites"][1]["hotBytes"] for p in run.progress[6:]) <= state // 2


@pytest.mark.parametrize("load", [COUNTED, JOINED], ids=["aggregate", "join"])
def test_a_site_that_runs_out_of_time_holds_rows_and_gives_everything_in_the_end(
    spark: Any, folders: dict[str, Path], load: Load
) -> None:
    folder = folders["counted" if load is COUNTED else "joined"]
    rows = load.rows * len(load.streams) / SITES
    pace = Pace(1000, slow=(Slow(1, 3.0, first=2, until=6),), virtual=True)
    budget = f"{round(rows * 1.3)} milliseconds"
    run = ran(spark, folder, load, "hurried", pace=pace, options={"timeBudget": budget})
    waiting = [p["sites"][1]["heldRows"] for p in run.progress]
    assert waiting[1] == 0
    assert max(waiting[2:7]) > 0
    assert waiting[-1] == 0
    assert all(p["sites"][0]["heldRows"] == 0 for p in run.progress)
    assert max(busy(run, e)[1] for e in range(2, 12)) <= 1.6 * rows
    assert not Store.open(str(folder / "hurried" / "anabranch")).list("holds")


def test_no_more_is_held_than_may_be(spark: Any, folders: dict[str, Path]) -> None:
    pace = Pace(1000, slow=(Slow(1, 3.0, first=2),), virtual=True)
    options = {"timeBudget": "100 milliseconds", "heldBytes": "20k"}
    run = ran(spark, folders["joined"], JOINED, "bounded", pace=pace, options=options)
    assert 0 < max(s["heldRows"] for p in run.progress for s in p["sites"]) < 200


def test_what_cannot_be_asked_for_is_refused(spark: Any, folders: dict[str, Path], tmp_path: Path) -> None:
    run_load(spark, Load(epochs=1, sites=2, cells=8, rows=64), tmp_path, name="first")
    df = spark.readStream.schema("k BIGINT, ts TIMESTAMP").parquet(str(tmp_path / "input" / "a"))
    flow = ab.sql("SELECT k, count(*) AS n FROM a GROUP BY k, window(ts, '5 seconds')", a=ab.stream(df, "a", "ts"))
    query = flow.writeStream.format("noop").option("sites", 2).option("cells", 8).start()
    try:
        query.processAllAvailable()
        for wrong in (lambda: query.move(8, 0), lambda: query.move(0, 2), lambda: query.move(0, 0, "join-9")):
            with pytest.raises(ab.errors.SettingError):
                wrong()
        with pytest.raises(ab.errors.SettingError, match="cannot share 8 cells"):
            query.rescale(9)
        query.rescale(3)
        query.move(0, 2)  # a site that is only just to come
        query.processAllAvailable()
        deadline = 100
        while query.lastProgress["assignment"]["sites"] != 3 and deadline:
            deadline -= 1
            query.awaitTermination(0.1)
        assert [e["action"]["kind"] for e in query.journal()] == ["resize", "move"]
    finally:
        query.stop()
    with pytest.raises(ab.errors.SettingError, match="no policy"):
        flow.writeStream.format("noop").option("policies", "flux.balanced").start()
