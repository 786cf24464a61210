"""Every Python and SQL block of every page runs, in order, in one namespace per page.

An `sql` block is given to `ab.sql` with the dict `tables` that an earlier Python block of the page has made.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from tests.docs import pages

WITH_CODE = tuple(p for p in pages.NAMES if any(b.language in ("python", "sql") for b in pages.blocks(p)))
KNOWN = {"python", "sql", "", "markdown"}


@pytest.fixture
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> Iterator[Path]:
    """A working directory and a temporary folder of its own; no views are left behind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    yield tmp_path
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
        else:
            spark.sql(f"DROP TABLE {table.name}")


def run(block: pages.Block, names: dict[str, Any]) -> str:
    """What the block prints. A traceback shows the page and its lines."""
    where = f"{block.page}:{block.line}"
    if block.language == "sql":
        try:
            flow = ab.sql(block.text, **names["tables"])
        except Exception as error:
            raise AssertionError(f"{where}: {error}") from error
        names["flow"] = flow
        return ""
    source = "\n" * (block.line - 1) + block.text
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(pages.ROOT / block.page), "exec"), names)
    return printed.getvalue()


@pytest.mark.spark
@pytest.mark.parametrize("page", WITH_CODE)
def test_every_example_of_a_page_runs(page: str, spark: Any, away: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in pages.blocks(page):
        if block.language in ("python", "sql"):
            run(block, names)


@pytest.mark.spark
def test_the_readme_prints_what_it_says(spark: Any, away: Path) -> None:
    first = next(b for b in pages.blocks("README.md") if b.language == "python")
    assert run(first, {}).strip().endswith("rows, the same as Spark batch")


def test_every_block_has_a_language_that_is_run_or_plain() -> None:
    assert [(b.page, b.line, b.language) for p in pages.NAMES for b in pages.blocks(p) if b.language not in KNOWN] == []


def test_a_block_that_fails_tells_its_line() -> None:
    block = pages.Block("README.md", 7, "python", "x = 1\nraise ValueError(x)")
    with pytest.raises(ValueError, match="1") as failed:
        run(block, {})
    assert failed.traceback[-1].lineno == 7  # counted from 0


@pytest.mark.spark
def test_everything_that_the_query_page_calls_refused_is(spark: Any, away: Path) -> None:
    """The tables of that section: a statement, and what to write instead."""
    names: dict[str, Any] = {"__name__": "__main__"}
    run(next(b for b in pages.blocks("docs/queries.md") if b.language == "python"), names)
    taken = []
    rows = pages.rows(pages.section("docs/queries.md", "What is refused"))
    for refused, *_ in rows:
        for statement in pages.code(refused):
            if not statement.upper().startswith(("SELECT", "WITH")):
                continue
            with contextlib.suppress(ab.errors.QueryError):
                ab.sql(statement, **names["tables"])
                taken.append(statement)
    assert len(rows) > 20
    assert not taken, taken
