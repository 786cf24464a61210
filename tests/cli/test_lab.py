"""`anabranch lab` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

from anabranch.lab.registry import BUILDERS
from tests.cli.test_verbs import anabranch


def test_every_verb_of_the_lab_says_what_it_does() -> None:
    told = anabranch("lab", "--help")
    assert all(verb in told.stdout for verb in ("list", "run", "report"))
    for verb in ("list", "run", "report"):
        told = anabranch("lab", verb, "--help")
        assert told.returncode == 0
        assert max(map(len, told.stdout.splitlines())) <= 80


def test_all_experiments_are_listed() -> None:
    told = anabranch("lab", "list")
    assert told.returncode == 0, told.stderr
    assert [name for name in BUILDERS if name not in told.stdout] == []
    assert max(map(len, told.stdout.splitlines())) <= 80


def test_an_experiment_runs_is_kept_and_is_reported_on(tmp_path: Path) -> None:
    out = tmp_path / "results"
    told = anabranch("lab", "run", "flux.fig6", "--size", "small", "--seed", "5", "--out", str(out))
    assert told.stderr == ""
    kept = json.loads((out / "flux.fig6.json").read_text())
    assert (kept["size"], kept["seed"], kept["driver"]) == ("small size", 5, "simulator")
    assert told.returncode == (0 if all(f["reproduced"] or f["explained"] for f in kept["findings"]) else 1)
    assert f"{len(kept['findings'])} claims: " in told.stdout
    again = anabranch("lab", "report", "--out", str(out))
    assert again.returncode == 0, again.stderr
    assert sorted(p.name for p in out.iterdir()) == ["flux.fig6.json", "flux.fig6.png", "report.html"]
    for finding in kept["findings"]:
        assert finding["text"].split()[0] in again.stdout
        assert finding["text"].split()[0] in told.stdout


def test_what_is_not_there_is_an_error_with_a_way_on(tmp_path: Path) -> None:
    told = anabranch("lab", "run", "flux.fig66", "--out", str(tmp_path))
    assert told.returncode == 1
    assert told.stderr.startswith("SettingError: there is no experiment 'flux.fig66'")
    told = anabranch("lab", "run", "flux.fig8", "--spark", "--out", str(tmp_path))
    assert told.returncode == 1
    assert told.stderr.startswith("SettingError: flux.fig8 cannot run on Spark")
    told = anabranch("lab", "report", "--out", str(tmp_path))
    assert told.returncode == 1
    assert "anabranch lab run" in told.stderr
    assert list(tmp_path.iterdir()) == []
