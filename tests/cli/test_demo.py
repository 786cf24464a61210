"""The demo's second act: its story, what it shows, and a short run of it. The whole demo is in test_verbs."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from anabranch.cli.demo import story
from anabranch.cli.demo.answer import compare
from anabranch.cli.demo.calls import Load, calls_of
from anabranch.cli.demo.race import Race, firsts
from anabranch.cli.demo.sides import Side, Sides, line, sparks
from anabranch.cli.demo.story import Chapter, Story

SHORT = Story(
    (Chapter(0, "alike", "All alike."), Chapter(2, "hot", "Half of all calls are hot.", hot=3)), epochs=4, calls=400
)


def test_a_site_is_slow_in_its_chapter_only() -> None:
    told = story.story()
    chapter = next(c for c in told.chapters if c.slow is not None)
    assert chapter.slow is not None
    site, factor = chapter.slow
    last = told.last(chapter)
    times = [told.pace.row_s(site, epoch) for epoch in range(told.epochs)]
    assert [t / story.SERVICE_US * 1e6 for t in times] == pytest.approx(
        [factor if chapter.first <= n < last else 1.0 for n in range(told.epochs)]
    )
    assert told.pace.row_s(site + 1, chapter.first) == pytest.approx(story.SERVICE_US / 1e6)


def test_chapters_cover_the_story_in_order() -> None:
    told = story.story()
    spans = [(c.first, told.last(c)) for c in told.chapters]
    assert spans[0][0] == 0
    assert spans[-1][1] == told.epochs
    assert all(end == begin for (_, end), (begin, _) in pairwise(spans))
    assert [told.chapter(n).name for n in range(told.epochs)] == [
        c.name for c, span in zip(told.chapters, spans, strict=True) for _ in range(*span)
    ]


def epoch(busy: list[float], ms: float, rows: int = 1000) -> dict[str, Any]:
    sites = [{"site": n, "busyMs": b} for n, b in enumerate(busy)]
    return {"kind": "batch", "numInputRows": rows, "durationMs": {"triggerExecution": ms}, "sites": sites}


def move(at: float, verdict: str = "enacted") -> dict[str, Any]:
    action = {"kind": "move", "operator": "join-1", "cell": 7, "site": 0}
    return {"at": at, "verdict": verdict, "action": action, "why": "site 1 has too much to do"}


def side(name: str, *epochs: dict[str, Any], moves: tuple[dict[str, Any], ...] = ()) -> Side:
    found = Side(name)
    found.follow([{"kind": "flush"}, *epochs], moves)
    return found


def test_rates_are_rows_over_time_and_only_what_was_enacted_counts() -> None:
    run = side("static", epoch([1, 2], 500), epoch([1, 2], 1500), moves=(move(1), move(1, "refused")))
    assert run.rate() == 1000
    assert run.rate(1) == pytest.approx(666.7, abs=0.1)
    assert run.rate(2) == 0
    assert len(run.moves) == 1
    assert sparks([0, 428, 1000], 1000) == "▁▄█"


def test_a_plain_line_fits_and_counts_the_moves_so_far() -> None:
    run = side("adaptive", epoch([1234.4] * 4, 500), epoch([1] * 4, 500), moves=(move(1),))
    assert "2,000 rows/s  ms 1234 1234 1234 1234  moved 0" in line(run, 0)
    assert line(run, 1).endswith("moved 1")
    assert len(line(run, 0)) <= 80


def test_both_runs_are_shown_at_the_same_epoch() -> None:
    static = side("static", epoch([300, 900], 1000), epoch([300, 900], 1000), epoch([1, 1], 1))
    adaptive = side("adaptive", epoch([300, 900], 1000), epoch([600, 500], 500), moves=(move(1),))
    told = io.StringIO()
    console = Console(file=told, width=80, force_terminal=True, color_system=None)
    view = Sides(console, SHORT, static, adaptive)
    console.print(view.panel(adaptive, 1))
    text = told.getvalue()
    assert "epoch 2 of 4" in text
    assert "All alike." in text
    assert [w for w in text.split() if w.endswith("00")] == ["1,000", "2,000", "300", "600", "900", "500"]
    assert "0 cells moved" in text
    assert "1 cells moved" in text
    assert "epoch 1: join-1 cell 7 to site 0, since site 1 has too much to do" in text
    assert max(map(len, text.splitlines())) <= 80


def test_without_a_terminal_an_epoch_is_told_once() -> None:
    told = io.StringIO()
    static = side("static", epoch([1], 500))
    with Sides(Console(file=told, width=80), SHORT, static, Side("adaptive")) as view:
        view.show(static)
        view.show(static)
        static.progress.extend([epoch([1], 500), epoch([1], 500)])
        view.show(static)
    lines = told.getvalue().splitlines()
    assert [lines[0], lines[1][:17], lines[2]] == [
        "static: All alike.", "static   epoch  2", "static: Half of all calls are hot."
    ]  # fmt: skip


def test_the_first_move_of_each_chapter_is_told() -> None:
    run = side("adaptive", moves=(move(0), move(1), move(3), move(3)))
    assert [m["at"] for m in firsts(run, SHORT)] == [0, 3]


def test_hot_numbers_get_half_of_the_calls() -> None:
    import numpy as np

    calls = calls_of(Load(1, 4000), 0)
    hot = np.arange(5)
    phones = story.heated(calls, hot, np.random.default_rng(1))["phone"].to_numpy()
    assert (phones < 5).mean() == pytest.approx(story.HOT_SHARE, abs=0.05)


@pytest.mark.spark
def test_a_short_second_act_is_right_and_tells_where_the_load_was(spark: Any, tmp_path: Path) -> None:
    told = io.StringIO()
    brief = Story((Chapter(0, "alike", "All alike."), Chapter(1, "hot", "Some are hot.", hot=3)), epochs=2, calls=2000)
    race = Race(Console(file=told, width=80), spark, tmp_path, brief)
    assert race.run()
    text = told.getvalue()
    assert text.count("identical to Spark batch: yes") == 2
    assert "the whole run" in text
    told_last = next(found for found in text.splitlines() if found.startswith("static   epoch  2"))
    busy = [float(word) for word in told_last.partition(" ms ")[2].partition("moved")[0].split()]
    assert busy[3] > 1.5 * max(busy[:3])

    answer = spark.read.parquet(str(tmp_path / "static"))
    answer.limit(answer.count() - 1).write.parquet(str(tmp_path / "short"))
    assert not compare(Console(file=told, width=80), spark, tmp_path, "short")
    assert "(1 rows missing, 0 too many)" in told.getvalue()
