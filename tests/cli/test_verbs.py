"""The command line as a user calls it: in a process of its own, by its text and exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import anabranch as ab
from anabranch.routing.layout import Layout
from anabranch.state.manifest import Manifest, ManifestLog
from anabranch.state.meta import open_or_create
from anabranch.state.store import Store

ROOT = Path(__file__).parents[2]
STREAM = "calls(phone BIGINT, ts TIMESTAMP, duration INT)"


def anabranch(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "80", "TERM": "dumb", "PYTHONPATH": str(ROOT / "src"), "TZ": "UTC"}
    command = [sys.executable, "-m", "anabranch.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=240)


def checkpoint(folder: Path) -> Path:
    """A checkpoint with one epoch and no state."""
    store = Store.open(str(folder / "anabranch"))
    open_or_create(store, "f" * 32, "flow over calls", 8)
    log = ManifestLog(store)
    log.commit(
        Manifest(
            epoch=3, batch=2, fingerprint="f" * 32, sites=2, assignment=Layout.initial(["join-1"], 8, 2).to_json(),
            watermark=1_767_225_590_000_000, streams={"calls": {"time": 1_767_225_600_000_000, "active": 0.0}},
        )
    )  # fmt: skip
    return folder


def test_help_lists_the_verbs_and_the_version_is_told() -> None:
    told = anabranch("--help")
    assert told.returncode == 0
    assert all(verb in told.stdout for verb in ("demo", "explain", "checkpoint", "journal", "lab", "--version"))
    assert anabranch("--version").stdout == f"anabranch {ab.__version__}\n"
    assert anabranch().returncode == 2
    assert "No such command" in anabranch("dmo").stderr


def test_every_verb_says_what_it_does() -> None:
    for verb in ("demo", "explain", "checkpoint", "journal"):
        told = anabranch(verb, "--help")
        assert told.returncode == 0
        assert max(map(len, told.stdout.splitlines())) <= 80


def test_a_checkpoint_is_shown(tmp_path: Path) -> None:
    told = anabranch("checkpoint", str(checkpoint(tmp_path / "ckpt")), "--plan")
    assert told.returncode == 0, told.stderr
    for words in ("3 (Spark's batch 2)", "2026-01-01 00:00:00.000Z", "2, 4 to 4 cells each", "flow over calls"):
        assert words in told.stdout
    inside = anabranch("checkpoint", str(tmp_path / "ckpt" / "anabranch"))
    assert "3 (Spark's batch 2)" in inside.stdout


def test_a_missing_checkpoint_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    told = anabranch("checkpoint", str(tmp_path / "nothing"))
    assert told.returncode == 1
    assert told.stderr.splitlines() == [
        "CheckpointError: there is no checkpoint of Anabranch here",
        f"  where: {tmp_path / 'nothing'}",
        "  to do: give the checkpointLocation of a query, or its stateLocation if it has one",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_checkpoint_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "ckpt") / "anabranch"
    manifest = next((folder / "manifests").iterdir())
    manifest.write_text(manifest.read_text()[:-9])
    told = anabranch("checkpoint", str(tmp_path / "ckpt"))
    assert told.returncode == 1
    assert told.stderr.startswith("CheckpointDamaged: ")
    assert manifest.name in told.stderr
    assert "Traceback" not in told.stderr
    (folder / "meta.json").write_text("{}")
    told = anabranch("checkpoint", str(tmp_path / "ckpt"))
    assert told.returncode == 1
    assert "meta.json" in told.stderr
    assert "Traceback" not in told.stderr


def test_a_stream_that_is_not_declared_well_is_an_error_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT 1 FROM calls")
    told = anabranch("explain", str(tmp_path / "q.sql"), "--stream", "calls phone BIGINT")
    assert told.returncode == 1
    assert told.stderr.startswith("SettingError: 'calls phone BIGINT' does not declare a stream")
    assert "Missing option '--stream'" in anabranch("explain", str(tmp_path / "q.sql")).stderr
    told = anabranch("explain", str(tmp_path / "no.sql"), "--stream", STREAM)
    assert "does not exist" in " ".join(told.stderr.replace("│", " ").split())


@pytest.mark.spark
def test_explain_shows_the_plan_of_a_file_or_why_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "q.sql").write_text("SELECT phone, count(*) AS n FROM calls GROUP BY phone, window(ts, '1 minute')")
    told = anabranch("explain", str(tmp_path / "q.sql"), "--stream", STREAM)
    assert told.returncode == 0, told.stderr
    assert "subquery 1: aggregate-1" in told.stdout
    assert "output: phone bigint, n bigint" in told.stdout
    assert told.stderr == ""
    (tmp_path / "q.sql").write_text("SELECT phone, count(*) AS n FROM calls GROUP BY phone")
    told = anabranch("explain", str(tmp_path / "q.sql"), "--stream", STREAM)
    assert told.returncode == 1
    assert told.stderr.startswith("UnsupportedQuery: an aggregate without a window never ends")
    assert len(told.stderr.splitlines()) == 3


@pytest.mark.spark
def test_a_small_demo_is_readable_and_right() -> None:
    """Less load than `make demo`, the path of its first act: live, stopped, restarted, flushed, compared."""
    told = anabranch("demo", "--act", "1", "--seconds", "4", "--rate", "2000", "--sites", "2")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "identical to Spark batch: yes" in told.stdout
    assert "stopped once and restarted from its checkpoint" in told.stdout
    assert told.stderr == ""
    lines = told.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in told.stdout
    status = [line for line in lines if " epoch " in line and " watermark " in line]
    assert len(status) == len(set(status))
    assert not [line for line in lines if line.rstrip().endswith("…") and "Starting" not in line]


def test_make_help_lists_the_verbs() -> None:
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for verb in ("setup", "demo", "test", "test-long", "lint", "bench", "docs"):
        assert f"make {verb} " in told
