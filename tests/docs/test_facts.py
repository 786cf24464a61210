"""Facts that pages repeat from the code: options, aggregates, functions over rows, progress, commands."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from anabranch.query import frames, functions
from anabranch.query.checks import RANKING
from anabranch.settings import OPTIONS, Settings, parse
from tests.docs import pages


def option_rows() -> list[list[str]]:
    return pages.rows(pages.section("docs/settings.md", "Options of a query"))


def test_the_table_of_options_has_every_option_once_in_order() -> None:
    assert [pages.code(row[0])[0] for row in option_rows()] == list(OPTIONS)
    assert {field for field, _ in OPTIONS.values()} == {f.name for f in fields(Settings)}


@pytest.mark.parametrize("row", option_rows(), ids=lambda row: row[0])
def test_the_default_of_an_option_is_the_one_of_the_code(row: list[str]) -> None:
    """Setting an option to the default that the page names changes nothing."""
    name, default = pages.code(row[0])[0], row[1]
    field = OPTIONS[name][0]
    if default.startswith("not set"):
        assert getattr(Settings(), field) is None
    else:
        settings, rest = parse({name: pages.code(default)[0]}, {})
        assert (settings, rest) == (Settings(), {})


def test_every_aggregate_is_in_its_table() -> None:
    table = {name for row in pages.rows(pages.section("docs/functions.md", "Aggregates")) for name in called(row[0])}
    assert table == set(functions.CANONICAL)


def test_every_refused_aggregate_is_in_its_table() -> None:
    lines = pages.section("docs/functions.md", "Aggregates that are refused")
    assert {name for row in pages.rows(lines) for name in pages.code(row[0])} == set(functions.REFUSED)


def test_every_function_over_rows_is_in_its_table() -> None:
    lines = pages.section("docs/functions.md", "Functions over rows")
    table = {functions.CANONICAL.get(n, n) for row in pages.rows(lines) for n in called(row[0])}
    assert table == {*frames._FUNCTIONS, "lag"}
    refused = pages.section("docs/functions.md", "Functions over rows that are refused")
    assert set(RANKING) <= {name for row in pages.rows(refused) for name in pages.code(row[0])}


def called(cell: str) -> list[str]:
    """`sum(x)`, `count(*)` -> their names."""
    return [text.partition("(")[0].lower() for text in pages.code(cell)]


@pytest.mark.spark
def test_the_table_of_progress_has_every_field(spark: Any, tmp_path: Any) -> None:
    import anabranch as ab

    spark.range(10).selectExpr("id", "timestamp_seconds(id) AS ts").write.parquet(str(tmp_path / "in"))
    df = spark.readStream.schema("id BIGINT, ts TIMESTAMP").parquet(str(tmp_path / "in"))
    flow = ab.sql("SELECT count(*) AS n FROM s GROUP BY window(ts, '5 seconds')", s=ab.stream(df, "s", "ts"))
    query = flow.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination()
    told: set[str] = set()
    for progress in query.recentProgress:
        told |= set(flat(progress))
    told = {name for name in told if not name.startswith("durationMs.") or name.split(".")[1] in OURS}
    lines = pages.section("docs/operations.md", "Progress")
    assert {name for row in pages.rows(lines) for name in pages.code(row[0])} == told


OURS = ("plan", "run", "commit", "triggerExecution")


def flat(value: Any, prefix: str = "") -> list[str]:
    """Dotted names of the leaves; lists are looked into, and their items share names."""
    if isinstance(value, dict):
        return [n for k, v in value.items() for n in flat(v, f"{prefix}.{k}" if prefix else k)]
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [n for item in value for n in flat(item, prefix)]
    return [prefix]


def test_every_command_is_documented() -> None:
    from anabranch.cli.app import app

    text = (pages.ROOT / "docs/operations.md").read_text(encoding="utf-8")
    commands = [c.name or c.callback.__name__ for c in app.registered_commands if c.callback is not None]
    assert commands
    assert [c for c in commands if f"anabranch {c}" not in text] == []


def test_the_commands_of_the_readme_are_verbs_of_the_makefile() -> None:
    verbs = set(re.findall(r"^([a-z-]+):.*## ", (pages.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {w for p in pages.NAMES for b in pages.blocks(p) for w in re.findall(r"^make ([a-z-]+)", b.text, re.M)}
    named |= {w for p in pages.NAMES for _, s in pages.spans(p) for w in re.findall(r"^make ([a-z-]+)", s)}
    assert named <= verbs, named - verbs


def test_the_table_of_experiments_has_every_one_in_order() -> None:
    from anabranch.lab.registry import BUILDERS, built

    table = pages.rows(pages.section("docs/lab.md", "The experiments"))
    shown = [(pages.code(row[0])[0], row[1], row[2]) for row in table]
    experiments = [built(name) for name in BUILDERS]
    assert shown == [(e.name, e.number, f"{e.figure}: {e.asks}") for e in experiments]
