"""A checkpoint that has gone through two epochs, to be copied and mistreated."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash.queries import make_input, started


@pytest.fixture(scope="session")
def two_epochs(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two_epochs")
    make_input(folder, 2)
    query = started(spark, folder, "chain", "noop", flushAtEnd=False)
    query.awaitTermination()
    assert query.lastProgress["epoch"] >= 1
    return folder


@pytest.fixture
def copied(two_epochs: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Copies in new places: no process has opened their segments before."""

    def copy(name: str) -> Path:
        shutil.copytree(two_epochs / "checkpoint", tmp_path / name / "checkpoint")
        (tmp_path / name / "source").write_text(str(two_epochs))  # the offsets name the input by its path
        return tmp_path / name

    return copy
