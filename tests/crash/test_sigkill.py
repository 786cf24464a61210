"""The driver is killed with SIGKILL, anywhere, many times: in the end the output is Spark's answer, each row once."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from anabranch.testing import crash
from tests.crash.harness import Crashing
from tests.crash.queries import answer, make_input, output

pytestmark = pytest.mark.spark
LONG = os.environ.get("ANABRANCH_LONG") == "1"


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    yield
    left = [p for p in psutil.process_iter(["cmdline"]) if "tests.crash.child" in " ".join(p.info["cmdline"] or ())]
    assert not left


def crashed(tmp_path: Path, query: str, sink: str, epochs: int = 3, **more: Any) -> Crashing:
    make_input(tmp_path, epochs)
    return Crashing(tmp_path, query, sink, **more)


def check(spark: Any, it: Crashing) -> None:
    want = answer(spark, it.folder, it.query)
    assert len(want) > 20
    log = (it.folder / "log.txt").read_text()
    assert output(spark, it.folder, it.query, it.sink) == want, log[:40] + log[-2000:]


@pytest.mark.parametrize(
    ("query", "sink", "deaths"),
    [
        ("chain", "parquet", [("sites", 2), ("sink.moving", 2), ("manifest.written", 2), ("batch.done", 1)]),
        ("window", "function", [("function.after", 2), ("closing", 1)]),
    ],
)
def test_a_query_that_is_killed_again_and_again_gives_each_row_once(
    spark: Any, tmp_path: Path, query: str, sink: str, deaths: list[tuple[str, int]]
) -> None:
    it = crashed(tmp_path, query, sink)
    for stage, nth in deaths:
        assert not it.run(stage, nth), f"{stage} was not reached"
    it.finish()
    assert len(it.kills) == len(deaths)
    check(spark, it)


SINKS = {"parquet": "chain", "table": "window", "csv": "frame", "function": "join"}
FILE_STAGES = [s for s in crash.STAGES if not s.startswith("function.")]
FUNCTION_STAGES = [s for s in crash.STAGES if not s.startswith(("sink.", "clos")) and s != "start.marked"]  # a join
ONCE = {"start", "start.sweep", "start.swept", "start.marked", "started", "finish", "finished"}
LATE = {"retaining": 2, "sites": 2}


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="an hour of kills: ANABRANCH_LONG=1")
@pytest.mark.parametrize("sink", SINKS)
def test_a_query_may_die_at_every_stage(spark: Any, tmp_path: Path, sink: str) -> None:
    """Every stage once in an early epoch and once in a closing one, all in the life of few checkpoints."""
    stages = FUNCTION_STAGES if sink == "function" else FILE_STAGES
    left = [(s, n) for s in stages for n in ((1,) if s in ONCE else (LATE.get(s, 1), 4))]
    random.Random(sink).shuffle(left)
    life = 0
    while left:
        life += 1
        (tmp_path / str(life)).mkdir()
        it = crashed(tmp_path / str(life), SINKS[sink], sink, epochs=5)
        missed = []
        while left:
            stage, nth = left.pop()
            if it.run(stage, nth):  # it came to its end without passing there
                missed.append((stage, nth))
                break
        it.finish()
        check(spark, it)
        if it.kills:
            left = missed + left
        elif missed[0][1] > 1:
            left.append((missed[0][0], missed[0][1] - 1))
        else:
            pytest.fail(f"{missed[0][0]} is never reached")


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="an hour of kills: ANABRANCH_LONG=1")
@pytest.mark.parametrize("orphans", [False, True], ids=["clean", "orphans"])
@pytest.mark.parametrize(
    ("query", "sink"), [("join", "parquet"), ("chain", "json"), ("frame", "orc"), ("window", "table")]
)
def test_a_query_may_die_at_any_time(spark: Any, tmp_path: Path, query: str, sink: str, orphans: bool) -> None:
    seed = int(os.environ.get("ANABRANCH_SEED") or random.randrange(1 << 30))
    (tmp_path / "log.txt").write_text(f"ANABRANCH_SEED={seed}")
    draw = random.Random(seed)
    it = crashed(tmp_path, query, sink, epochs=8, orphans=orphans)
    for _ in range(12):
        if it.run(seconds=draw.uniform(0.2, 9)):
            break
    it.finish()
    check(spark, it)
