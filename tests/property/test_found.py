"""What the property test has found, each once more with as little as shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from anabranch.testing import RESTART, BatchOracle, Static, Stream
from tests.property.cases import Case
from tests.property.run import run

pytestmark = pytest.mark.spark
NAN = float("nan")
SECOND = 1_000_000


@pytest.fixture(scope="module")
def oracle(spark: Any) -> BatchOracle:
    return BatchOracle(spark)


def stream(name: str, *columns: tuple[str, str]) -> Stream:
    return Stream(name, (("id", "bigint"), ("ts", "timestamp"), *columns), "ts", 0)


def rows(*values: Any, begin: int = 0) -> list[tuple[Any, ...]]:
    """One row a second, with an id."""
    return [(begin + n, (begin + n) * SECOND, *(v if isinstance(v, tuple) else (v,))) for n, v in enumerate(values)]


def same(
    spark: Any,
    oracle: BatchOracle,
    sql: str,
    streams: Sequence[Stream],
    script: Sequence[Any],
    statics: Sequence[Static] = (),
    **options: Any,
) -> None:
    settings = {"sites": 2, "cells": 8} | options
    case = Case(tuple(streams), tuple(statics), tuple(script), sql, sql, options=tuple(settings.items()))
    outcome = run(spark, oracle, case)
    assert outcome.rows > 0
    assert outcome.wrong is None, outcome.wrong


@pytest.mark.parametrize("combine", ["always", "never"])
def test_the_variance_of_one_nan_or_infinity_is_nan(spark: Any, oracle: BatchOracle, combine: str) -> None:
    a = stream("a", ("v", "double"))
    script = [{"a": rows(NAN, float("inf"), 1.0, None, -float("inf"), 2.5)}]
    calls = "var_pop(v) AS p, stddev_samp(v) AS s"
    same(spark, oracle, f"SELECT {calls}, window FROM a GROUP BY window(ts, '1 second')", [a], script, combine=combine)
    over = "OVER (ORDER BY ts, id ROWS BETWEEN 0 PRECEDING AND CURRENT ROW)"
    same(spark, oracle, f"SELECT id, var_pop(v) {over} AS p, stddev_samp(v) {over} AS s FROM a", [a], script)


def test_a_join_with_an_empty_static_table_does_not_stop_the_sites_below_it(spark: Any, oracle: BatchOracle) -> None:
    a, b = stream("a", ("k", "int")), stream("b", ("k", "int"))
    nothing = Static("st", (("k", "int"), ("x", "int")), ())
    script = [{"a": rows(1, 2, 3), "b": rows(1, 1)}, {"a": rows(1, 1, begin=3)}]
    sql = """SELECT n, 0 AS x FROM (SELECT k, count(*) AS n FROM a GROUP BY k, window(ts, '2 seconds'))
             UNION ALL SELECT m.n, st.x FROM (SELECT k, count(*) AS n FROM b GROUP BY k, window(ts, '2 seconds')) m
             JOIN st ON m.k = st.k"""
    same(spark, oracle, sql, [a, b], script, [nothing])


@pytest.mark.parametrize("sites", [1, 3])
def test_an_aggregate_without_keys_over_another_stays_together(spark: Any, oracle: BatchOracle, sites: int) -> None:
    a = stream("a", ("k", "int"))
    inner = "SELECT k, window AS w, count(*) AS n FROM a GROUP BY k, window(ts, '2 seconds')"
    sql = f"SELECT sum(n) AS n, window FROM ({inner}) GROUP BY window(w.start, '4 seconds')"
    for strategy in ("subquery-cluster", "operator-cluster"):
        same(spark, oracle, sql, [a], [{"a": rows(1, 2, 3, 4, 5, 6)}, RESTART, {"a": rows(1, 1, begin=6)}],
             combine="always", sites=sites, strategy=strategy)  # fmt: skip


def test_inputs_that_share_a_key_may_be_bounded_through_a_third(spark: Any, oracle: BatchOracle) -> None:
    streams = [stream(n, ("k", "int"), ("m", "int")) for n in "abc"]
    sql = """SELECT a.id AS x, b.id AS y, c.id AS z FROM a, b, c
             WHERE b.k = c.k AND b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts AND c.ts >= a.ts
             AND c.ts < a.ts + INTERVAL 3 SECONDS"""
    script = [{n: rows((1, 1), (2, 1), (1, 2)) for n in "abc"}, {"b": rows((1, 1), (2, 1), begin=2)},
              {"a": rows((1, 1), (2, 1), begin=1), "c": rows((1, 1), (2, 2), begin=2)}]  # fmt: skip
    same(spark, oracle, sql, streams, script)


def test_every_time_of_a_join_in_steps_can_be_grouped_by(spark: Any, oracle: BatchOracle) -> None:
    streams = [stream(n, ("k", "int"), ("m", "int")) for n in "abcd"]
    near = "{1}.ts BETWEEN {0}.ts - INTERVAL 2 SECONDS AND {0}.ts + INTERVAL 1 SECOND"
    bounds = " AND ".join(near.format(x, y) for x, y in ("ab", "bc", "cd"))
    script = [{n: rows((1, 1), (2, 1), (1, 2)) for n in "abcd"}, {"b": rows((1, 1), (2, 1), begin=2)},
              {n: rows((1, 1), (2, 2), begin=2) for n in "acd"}]  # fmt: skip
    for time in ("a", "d"):
        sql = f"""SELECT count(*) AS n, window FROM a, b, c, d WHERE a.k = b.k AND b.m = c.m AND c.k = d.k AND {bounds}
                  GROUP BY window({time}.ts, '2 seconds')"""
        same(spark, oracle, sql, streams, script)


def test_a_frame_over_a_frame_is_ordered_by_the_same_start_of_a_window(spark: Any, oracle: BatchOracle) -> None:
    a = stream("a", ("k", "int"))
    inner = "SELECT window AS w, k, count(*) AS n FROM a GROUP BY k, window(ts, '2 seconds')"
    over = "OVER (PARTITION BY k ORDER BY w.start ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
    sql = f"SELECT k, m, sum(m) {over} AS s FROM (SELECT *, sum(n) {over} AS m FROM ({inner}))"
    same(spark, oracle, sql, [a], [{"a": rows(1, 2, 1, 1)}, {"a": rows(2, 2, 1, begin=4)}])


@pytest.mark.parametrize("part", ["start", "end"])
def test_a_window_over_the_start_or_end_of_a_window_that_was_grouped_by(
    spark: Any, oracle: BatchOracle, part: str
) -> None:
    """Case 1934430132."""
    a = stream("a", ("k", "int"))
    inner = "SELECT window AS w, k, count(*) AS n FROM a GROUP BY k, window(ts, '2 seconds')"
    middle = f"SELECT w.{part} AS t, sum(n) AS m FROM ({inner}) GROUP BY w.{part}"
    sql = f"SELECT sum(m) AS s, window FROM ({middle}) GROUP BY window(t, '6 seconds')"
    same(spark, oracle, sql, [a], [{"a": rows(1, 2, 1, 1)}, RESTART, {"a": rows(2, 2, 1, begin=4)}])
