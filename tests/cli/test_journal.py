"""`anabranch journal` over a journal that the controller itself wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anabranch.cli import journal as verb
from anabranch.control.actions import Move, Overfull, Proposal, Resize, Verdict
from anabranch.control.controller import Controller
from anabranch.control.guard import Guard
from anabranch.control.journal import Journal
from anabranch.control.pacing import DampedPacing
from anabranch.control.policy import Policy
from anabranch.control.view import CellView, SiteView, View
from anabranch.state.journal import JournalFiles
from anabranch.state.meta import open_or_create
from anabranch.state.store import Store
from tests.cli.test_verbs import anabranch


class Fixed(Policy):
    name = "fixed"

    def propose(self, view: View) -> Any:
        yield Proposal(Move("join-1", 0, 1), "site 0 has more", {"rows": 600})
        yield Proposal(Move("join-1", 0, 1), "once more")
        yield Proposal(Overfull("join-1", 1, 0), "one cell is 1.5 times a site's fair share", {"share": 1.5})


def view(now: float, first: int) -> View:
    """Cell 0 wherever it is `first`, cell 1 at site 0, cell 2 at site 1."""
    rows, places = (600, 400, 200), (first, 0, 1)
    cells = tuple(CellView("join-1", n, s, r, bytes=1000) for n, (s, r) in enumerate(zip(places, rows, strict=True)))
    busy = [sum(c.rows_in for c in cells if c.site == s) for s in (0, 1)]
    sites = tuple(SiteView(s, n / 1000, (1200 - n) / 1000, n) for s, n in enumerate(busy))
    return View(now, 1.0, sites, cells)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Decisions after epoch 7, their effect seen after epoch 8, one by hand after epoch 9."""
    folder = tmp_path_factory.mktemp("checkpoint")
    store = Store.open(str(folder / "anabranch"))
    open_or_create(store, "f" * 32, "flow over calls", 8)
    entries = Journal()
    files = JournalFiles(store)
    controller = Controller(Fixed(), Guard(), DampedPacing(1, 16), entries)
    controller.observe(view(7, 0))
    controller.decide()
    controller.moved(0)
    files.write(7, entries.take(), entries.next_id)
    controller.paused = True
    controller.observe(view(8, 1))
    controller.decide()
    files.write(8, entries.take(), entries.next_id)
    entries.asked(now=9, round=-1, action=Resize(4), allowed=True, reason="asked for")
    files.write(9, entries.take(), entries.next_id)
    return folder


def test_what_was_done_is_a_table_with_reasons_and_effects(decided: Path) -> None:
    told = anabranch("journal", str(decided))
    assert told.returncode == 0, told.stderr
    text = " ".join(told.stdout.split())
    assert "7 move join-1 cell 0 to site 1" in text
    assert "resize to 4 sites" in text
    assert "833.3 → 666.7" in text
    assert "seen: 666.7" in text
    assert "site 0 has more" in text
    assert "2 refused: --refused" in text
    assert "fair share" not in text
    assert max(map(len, told.stdout.splitlines())) <= 80
    assert "\x1b" not in told.stdout


def test_what_was_refused_is_told_with_the_reason(decided: Path) -> None:
    told = " ".join(anabranch("journal", str(decided), "--refused").stdout.split())
    assert "cell 1 at site 0 is too much" in told
    assert "splitting a cell is not available" in " ".join(told.split())
    assert "resize" not in told
    everything = anabranch("journal", str(decided), "--all", "--last", "3").stdout
    assert "1 earlier ones: --last 4" in everything
    assert "others" not in everything


def test_one_decision_is_told_in_sentences(decided: Path) -> None:
    told = anabranch("journal", str(decided), "--id", "0").stdout.splitlines()
    assert told == [
        "Decision 0, after epoch 7: move join-1 cell 0 to site 1.",
        "Policy fixed proposed it in round 0, because site 0 has more.",
        "It was judged by:",
        "  rows             600",
        "The guard allowed it, and it was enacted.",
        "Expected, in µs of work per row of the operator's input: "
        "site 0 from 833.3 to 333.3 and site 1 from 166.7 to 666.7.",
        "The busier of the two would have 20% less to do.",
        "Seen a round later, with all that moved beside it: site 0 at 333.3, site 1 at 666.7.",
    ]
    assert "It was refused: the cell is there already." in anabranch("journal", str(decided), "--id", "1").stdout
    assert "Somebody asked for it.\nIt was enacted.\n" in anabranch("journal", str(decided), "--id", "3").stdout


def test_json_has_every_field(decided: Path) -> None:
    told = json.loads(anabranch("journal", str(decided), "--json", "--all").stdout)
    assert [e["id"] for e in told] == [0, 1, 2, 3]
    assert told[0]["predicted"]["gain"] == pytest.approx(1 / 6000, rel=1e-4)
    assert json.loads(anabranch("journal", str(decided), "--json", "--id", "2").stdout) == told[2]


def test_no_checkpoint_no_journal_and_no_such_decision_are_errors_that_say_what_to_do(
    decided: Path, tmp_path: Path
) -> None:
    told = anabranch("journal", str(tmp_path / "nothing"))
    assert told.returncode == 1
    assert told.stderr.startswith("CheckpointError: there is no checkpoint of Anabranch here")
    open_or_create(Store.open(str(tmp_path / "quiet" / "anabranch")), "f" * 32, "flow over calls", 8)
    told = anabranch("journal", str(tmp_path / "quiet"))
    assert told.returncode == 1
    assert told.stderr.startswith("CheckpointError: nothing has been decided here")
    assert "policies=static" in told.stderr
    told = anabranch("journal", str(decided), "--id", "99")
    assert told.returncode == 1
    assert "the journal has 0 to 3" in told.stderr


def test_a_move_that_is_advised_or_not_seen_yet_says_so() -> None:
    verdict = Verdict(True, "allowed")
    advised = Journal().record(
        now=1, round=0, policy="p", proposal=Proposal(Move("a", 0, 1), "so"), verdict=verdict, advise_only=True
    )
    assert "advise-only" in verb.story(advised)
    assert verb.effect(advised) == []


def test_no_engine_is_loaded() -> None:
    code = "import sys, anabranch.cli.journal; print(*{'pyspark', 'py4j', 'duckdb'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
