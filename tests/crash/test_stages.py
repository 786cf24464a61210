"""The cheap complement of SIGKILL: at every stage the query dies of an exception, and starts again in the same session.

What a dying process cannot do is taken from it: after the exception, nothing is cleaned up.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from anabranch.spark.runtime import Runtime
from anabranch.spark.sinks import FileSink
from anabranch.testing import crash
from tests.crash.queries import answer, make_input, output, started

pytestmark = pytest.mark.spark
LONG = os.environ.get("ANABRANCH_LONG") == "1"

# (stage, which time): of batches, a tick, and the flush
PLACES = [
    ("sink.moving", 2), ("sink.entering", 2), ("sink.entered", 1), ("manifest", 2), ("manifest.written", 2),
    ("epoch.done", 1), ("closing", 1), ("sink.entered", 2), ("closed", 1),
]  # fmt: skip
IN_BACKGROUND = {crash.SITES}
REST = [
    (stage, nth)
    for stage in crash.STAGES
    for nth in (1, 2, 3)
    if stage not in IN_BACKGROUND and not stage.startswith("function.") and (stage, nth) not in PLACES
]


class Crash(Exception):
    """The process would be gone."""


def dies(spark: Any, folder: Path, stage: str, nth: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """One start up to its death, or up to its end if it does not come by."""
    reached = []

    def die() -> None:
        reached.append(stage)
        monkeypatch.setattr(FileSink, "stop", lambda self: None)
        monkeypatch.setattr(Runtime, "close", lambda self: self.owner.release())
        raise Crash("here")

    remove = crash.install(stage, nth, die)
    try:
        started(spark, folder, "window", "json").awaitTermination()
    except Exception as error:
        assert "Crash: here" in f"{type(error).__name__}: {error}"  # noqa: PT017
    finally:
        remove()
        monkeypatch.undo()
    return bool(reached)


def lives_and_dies(spark: Any, folder: Path, stage: str, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    make_input(folder, 2)
    reached = dies(spark, folder, stage, nth, monkeypatch)
    started(spark, folder, "window", "json").awaitTermination()
    assert output(spark, folder, "window", "json") == answer(spark, folder, "window"), (stage, nth)
    assert reached or nth > 1, f"{stage} is never reached"


def test_a_query_that_dies_at_a_stage_is_taken_up_there(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in the life of one checkpoint: each start dies a little later in what the one before left."""
    make_input(tmp_path, 6)
    for stage, nth in PLACES:
        assert dies(spark, tmp_path, stage, nth, monkeypatch), (stage, nth)
    started(spark, tmp_path, "window", "json").awaitTermination()
    assert output(spark, tmp_path, "window", "json") == answer(spark, tmp_path, "window")


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="every stage: ANABRANCH_LONG=1")
def test_every_stage_is_survived(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for stage, nth in [*PLACES, *REST]:
        lives_and_dies(spark, tmp_path / f"{stage}-{nth}", stage, nth, monkeypatch)
