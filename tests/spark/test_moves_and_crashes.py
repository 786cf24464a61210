"""Cells that move while they are cold or have held rows, and crashes around the move: all is given, and once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

import anabranch as ab
from anabranch.spark.runtime import Runtime
from anabranch.testing import (
    Abort,
    BatchOracle,
    Hurry,
    Memory,
    Shuffle,
    Stream,
    assert_same,
    befalls,
    drive,
    opened,
    rows_of,
)

pytestmark = pytest.mark.spark
SECOND = 1_000_000
BEGIN = 1_767_225_600 * SECOND
COLUMNS = (("k", "bigint"), ("ts", "timestamp"), ("v", "bigint"))
STREAMS = (Stream("a", COLUMNS), Stream("b", COLUMNS))
QUERIES = {
    "join": "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts",
    "aggregate": "SELECT k, window.start AS t, count(*) AS n, sum(v) AS v FROM a GROUP BY k, window(ts, '3 seconds')",
    "chain": """SELECT a.v % 5 AS g, window.start AS t, count(*) AS n FROM a JOIN b
                ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts
                GROUP BY a.v % 5, window(a.ts, '3 seconds')""",
}


def rows(epoch: int) -> dict[str, list[tuple[Any, ...]]]:
    """Every key in every epoch, a second of event time."""
    begin = BEGIN + epoch * SECOND
    return {s: [(k, begin + k * 1000 + n, 10 * epoch + k) for k in range(24)] for n, s in enumerate("ab")}


@pytest.fixture
def oracle(spark: Any) -> Iterator[BatchOracle]:
    spark.sparkContext.setLogLevel("OFF")  # crashes are wanted here
    yield BatchOracle(spark)
    spark.sparkContext.setLogLevel("ERROR")


@pytest.mark.parametrize("waits", ["cold", "held"])
@pytest.mark.parametrize(
    ("query", "at"),
    [("join", "commit"), ("aggregate", "commit"), ("chain", "write"), ("chain", "commit"), ("chain", "offsets")],
)
def test_cells_that_wait_move_and_the_query_dies_around_it(
    spark: Any, oracle: BatchOracle, tmp_path: Path, query: str, at: Literal["write", "commit", "offsets"], waits: str
) -> None:
    owners: list[tuple[Any, set[tuple[str, int]]]] = []

    def watch(runtime: Runtime) -> None:
        behind = {(runtime.plan.leader(s), int(c)) for s, cells in runtime.manifest.behind.items() for c in cells}
        owners.append((runtime.layout(), behind))

    short = Memory(400) if waits == "cold" else Hurry(12)
    script: list[Any] = [rows(0), short, rows(1)]
    for epoch in (2, 4, 6):  # cells move, and the first epoch in the new places, behind which others move, dies
        script += [Shuffle(epoch, 1.0), rows(epoch), Abort(at), Shuffle(epoch + 1, 1.0), rows(epoch + 1)]
    script.append(rows(8))
    named = re.compile(rf"(FROM|JOIN) ({'|'.join(x.name for x in STREAMS)})\b").findall(QUERIES[query])
    tables = opened(spark, STREAMS, tmp_path)
    streams = {name: tables[name] for _, name in named}
    with befalls(dict.fromkeys(range(64), watch)):
        flow = ab.sql(QUERIES[query], **streams)
        got = drive(flow, STREAMS, script, tmp_path / "checkpoint", {"sites": 3, "cells": 8})
    given = {s: [row for step in script if isinstance(step, dict) for row in step[s]] for s in "ab"}
    want, _ = oracle.answer(QUERIES[query], STREAMS, given)
    assert want.num_rows > 0
    assert_same(rows_of(got), rows_of(want), want.column_names)
    moved = [
        (operator, cell)
        for (before, _), (after, behind) in pairwise(owners)
        for operator, cell in behind
        if before.owner(operator)[cell] != after.owner(operator)[cell]
    ]
    assert moved, "no cell moved while it waited: the test tests nothing"
