"""What the machine lacks is said before a JVM is started: Java, the workers' Python, a PySpark that is new enough."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import anabranch as ab
from anabranch.errors import SessionError
from anabranch.spark import compat


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def java(home: Path, version: str) -> None:
    script(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2020-01-01' >&2")


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


class FakeSession:
    """As much of a session as the checks look at."""

    def __init__(self, master: str, **conf: str) -> None:
        settings = {key.replace("__", "."): value for key, value in conf.items()}
        told = SimpleNamespace(get=lambda key, default=None: settings.get(key, default))
        self.sparkContext = SimpleNamespace(master=master, getConf=lambda: told, pythonExec="python3")


def test_no_java_at_all_is_said_and_how_to_get_it(no_java: None) -> None:
    with pytest.raises(SessionError) as caught:
        compat.check_java()
    assert str(caught.value).splitlines() == [
        "Spark needs Java and none was found",
        "  where: no java on PATH, JAVA_HOME is not set",
        "  to do: install a Java 17 or newer runtime and put it on PATH, or set JAVA_HOME to its folder",
    ]


def test_a_wrong_java_home_is_named(no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(SessionError, match="nowhere, which has no bin/java"):
        compat.check_java()


@pytest.mark.parametrize(("version", "shown"), [("1.8.0_392", "8"), ("11.0.22", "11"), ("16", "16")])
def test_an_old_java_is_refused(
    no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, shown: str
) -> None:
    java(tmp_path / "jdk", version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(SessionError, match=f"Spark needs Java 17 or newer, this is Java {shown}\n") as caught:
        compat.check_java()
    assert caught.value.where == str(tmp_path / "jdk" / "bin" / "java")


def test_a_java_that_does_not_run_is_said(no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "jdk" / "bin" / "java", "echo 'Error: could not find libjava.so' >&2; exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(SessionError, match="this Java does not run") as caught:
        compat.check_java()
    assert "libjava.so" in str(caught.value.where)


@pytest.mark.parametrize("version", ["17", "17.0.9", "21.0.1", "25-ea"])
def test_a_new_java_passes(no_java: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    java(tmp_path / "jdk", version)
    monkeypatch.setenv("PATH", str(tmp_path / "jdk" / "bin") + os.pathsep + os.defpath)
    compat.check_java()


def test_a_session_is_not_even_tried_without_java(no_java: None) -> None:
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        pytest.skip("a session is running, and is used as it is")
    with pytest.raises(SessionError, match="none was found"):
        ab.session()


@pytest.mark.parametrize("version", ["3.5.1", "4.0.0"])
def test_an_old_pyspark_is_refused(version: str) -> None:
    with pytest.raises(SessionError) as caught:
        compat.check_version(version)
    assert str(caught.value) == f"PySpark {version} is too old\n  to do: install pyspark 4.1 or newer"


@pytest.mark.parametrize("version", ["4.1.0", "4.3.0", "4.10.2", "5.0.0.dev1"])
def test_versions_are_compared_as_numbers(version: str) -> None:
    compat.check_version(version)


def test_a_cluster_without_the_locality_setting_is_told_the_line_that_sets_it() -> None:
    session: Any = FakeSession("spark://host:7077")
    with pytest.raises(SessionError) as caught:
        compat.check_session(session)
    assert caught.value.fix == 'start the session with .config("spark.shuffle.reduceLocality.enabled", "false")'
    compat.check_session(FakeSession("spark://host:7077", spark__shuffle__reduceLocality__enabled="false"))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["/nowhere/python3", "python-that-does-not-exist"])
def test_a_worker_python_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", wrong)
    session: Any = FakeSession("local[2]")
    with pytest.raises(SessionError, match="which does not exist") as caught:
        compat.check_session(session)
    assert wrong in str(caught.value)
    assert f"PYSPARK_PYTHON={sys.executable}" in str(caught.value.fix)


def test_a_worker_python_without_our_packages_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bare = script(tmp_path / "python", f'exec {sys.executable} -S -I "$@"')
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare))
    session: Any = FakeSession("local[2]")
    with pytest.raises(SessionError, match="another Python that cannot run Anabranch") as caught:
        compat.check_session(session)
    assert "No module named" in str(caught.value.where)


def test_a_worker_python_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(script(tmp_path / "python", "echo 3.9")))
    session: Any = FakeSession("local[2]")
    with pytest.raises(SessionError) as caught:
        compat.check_session(session)
    assert "it is Python 3.9, this is Python" in str(caught.value.where)


def test_our_own_python_passes_without_being_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    session: Any = FakeSession("local[2]")
    compat.check_session(session)
    assert compat.worker_python(session) == sys.executable
