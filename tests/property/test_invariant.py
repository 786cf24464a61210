"""The one invariant: whatever the query, the cut into epochs, the crashes and restarts, the answer is Spark batch's.

Each case is drawn from one number. A failure prints that number and the case, with as few rows as still fail;
ANABRANCH_SEED=<number> runs it alone. Most cases drive the runtime in-process, some run as real streaming queries.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st

from anabranch.testing import BatchOracle
from tests.property import cases
from tests.property.run import run, smaller

SEED = 20240229
ONE = os.environ.get("ANABRANCH_SEED")
LONG = bool(os.environ.get("ANABRANCH_LONG"))
seeds = st.integers(0, 2**32 - 1).map(lambda n: n * 2654435761 % 2**32)  # small numbers are as good as large ones


def sample(size: int) -> settings:
    return settings(
        max_examples=1 if ONE else size, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@pytest.fixture(scope="module")
def oracle(spark: Any) -> Iterator[BatchOracle]:
    spark.sparkContext.setLogLevel("OFF")  # crashes are wanted here
    yield BatchOracle(spark)
    spark.sparkContext.setLogLevel("ERROR")


def check(spark: Any, oracle: BatchOracle, number: int, live: bool) -> None:
    number = int(ONE) if ONE else number
    case = cases.draw(number, live)
    wrong = _wrong(spark, oracle, case)
    if wrong is None:
        return
    note(f"sample {SEED}, case {number}; run it alone with ANABRANCH_SEED={number}")
    fewer = smaller(case, lambda c: (w := _wrong(spark, oracle, c)) is not None and w[:20] == wrong[:20])
    raise AssertionError(f"{wrong}\n\ncase {number}, reduced:\n{fewer.shown()}\n{_wrong(spark, oracle, fewer)}")


def _wrong(spark: Any, oracle: BatchOracle, case: cases.Case) -> str | None:
    try:
        return run(spark, oracle, case).wrong
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:2000]}"


@pytest.mark.spark
@seed(SEED)
@sample(45)
@given(number=seeds)
def test_any_query_over_any_cut_gives_the_answer_of_spark_batch(spark: Any, oracle: BatchOracle, number: int) -> None:
    check(spark, oracle, number, live=False)


@pytest.mark.spark
@seed(SEED)
@sample(5)
@given(number=seeds)
def test_a_streaming_query_gives_the_answer_of_spark_batch(spark: Any, oracle: BatchOracle, number: int) -> None:
    check(spark, oracle, number, live=True)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="only in make test-long")
@seed(SEED + 1)
@sample(3000)
@given(number=seeds)
def test_thousands_of_queries_give_the_answers_of_spark_batch(spark: Any, oracle: BatchOracle, number: int) -> None:
    check(spark, oracle, number, live=number % 10 == 0)


def test_every_operator_and_function_is_drawn() -> None:
    seen = Counter(f for n in range(1500) for f in cases.draw(n).features)
    wanted = {
        "where", "select", "case", "union", "union after a stateful operator", "self join", "join keys", "join chain",
        "join none", "join with a further comparison", "join after a stateful operator", "frame", "aggregate",
        "frame after a stateful operator", "aggregate after a stateful operator", "filter", "having", "keys", "sliding",
        "offset", *(f"join of {n}" for n in (2, 3, 4, 5)), *(f"aggregate {c}" for c in cases.stateful.CALLS),
        *(f"frame {c}" for c in cases.stateful.OVER),
        *(f"group by {form}" for form in ("window", "time", "struct", "window of window")),
        *(f"static {how} {when} a stateful operator" for how in ("join", "left join") for when in ("before", "after")),
    }  # fmt: skip
    assert {w for w in wanted if seen[w] < 5} == set()


def test_a_case_is_the_same_whenever_it_is_drawn() -> None:
    assert [cases.draw(n).shown() for n in range(20)] == [cases.draw(n).shown() for n in range(20)]
