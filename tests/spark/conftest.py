"""One folder of calls and reports for the tests that only read them, known to Spark batch as views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark import feeds


@pytest.fixture(scope="session")
def feed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return feeds.fill(tmp_path_factory.mktemp("feed"))


@pytest.fixture
def tables(spark: Any, feed: Path) -> Iterator[dict[str, Any]]:
    """The streams and the static table by name, with views of the same names."""
    streams = {name: feeds.stream(spark, feed, name) for name in feeds.TABLES}
    for name in streams:
        feeds.batch(spark, feed, name).createOrReplaceTempView(name)
    prices = feeds.prices(spark)
    prices.createOrReplaceTempView("prices")
    yield {**streams, "prices": prices}
    for name in (*streams, "prices"):
        spark.catalog.dropTempView(name)
