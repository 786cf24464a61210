"""Statements and what they become, operators or errors, as data in `golden/`.

A case is SQL, a line `---`, and the dump or the error; cases are cut by lines of `===`. With ANABRANCH_GOLDEN=write
the expected halves are written anew: read the diff before you keep it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from anabranch.errors import AnabranchError
from anabranch.query.relation import Relation
from anabranch.query.show import describe
from anabranch.query.sql import parse

GOLDEN = Path(__file__).parent / "golden"
KINDS = {"UnsupportedQuery", "UnknownColumn", "MissingEventTime"}
WRITE = os.environ.get("ANABRANCH_GOLDEN") == "write"


def cases(file: str) -> list[tuple[str, str]]:
    result = []
    for block in (GOLDEN / file).read_text().split("\n===\n"):
        sql, _, expected = block.strip("\n").partition("\n---")
        result.append((sql, expected.strip("\n")))
    return result


def everything() -> Iterator[object]:
    for file in ("queries.txt", "errors.txt"):
        for i, (sql, expected) in enumerate(cases(file)):
            yield pytest.param(file, i, sql, expected, id=f"{file[:-4]}-{i}-{' '.join(sql.split())[:50]}")


def outcome(sql: str, streams: dict[str, Relation], statics: dict[str, list[str]]) -> str:
    try:
        return describe(parse(sql, streams, statics).operator)
    except AnabranchError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.skipif(WRITE, reason="the golden files are being written")
@pytest.mark.parametrize(("file", "number", "sql", "expected"), list(everything()))
def test_a_statement_becomes_what_its_golden_case_says(
    file: str, number: int, sql: str, expected: str, streams: dict[str, Relation], statics: dict[str, list[str]]
) -> None:
    result = outcome(sql, streams, statics)
    assert result == expected
    assert (result.split(":")[0] in KINDS) == (file == "errors.txt")


@pytest.mark.skipif(not WRITE, reason="set ANABRANCH_GOLDEN=write")
def test_write_the_golden_files(streams: dict[str, Relation], statics: dict[str, list[str]]) -> None:
    for file in ("queries.txt", "errors.txt"):
        blocks = [f"{sql}\n---\n{outcome(sql, streams, statics)}" for sql, _ in cases(file)]
        (GOLDEN / file).write_text("\n===\n".join(blocks) + "\n")
