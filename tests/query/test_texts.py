"""The cuts of text that everything else stands on: tokens, conjuncts, aliases, references, calls, durations."""

from __future__ import annotations

import subprocess
import sys

import pytest

from anabranch.errors import UnsupportedQuery
from anabranch.query import calls, windows
from anabranch.query.references import references
from anabranch.query.tokens import conjoin, conjuncts, same, split_alias, split_text, substitute, tokenise


def test_tokens_are_slices_of_the_text_whatever_the_letters() -> None:
    text = "'ж😀' || é -- c'omment\n + 10L /* x */ >= `a``b`"
    tokens = tokenise(text)
    assert [t.text for t in tokens] == ["'ж😀'", "||", "é", "+", "10L", ">=", "`a``b`"]
    assert all(text[t.start : t.end] == t.text for t in tokens)
    assert tokens[-1].name == "a`b"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = 1 AND b = 2", ["a = 1", "b = 2"]),
        ("a BETWEEN 1 AND 2 AND b", ["a BETWEEN 1 AND 2", "b"]),
        ("a OR b AND c", ["a OR b AND c"]),
        ("(a AND (b AND c))", ["a", "b", "c"]),
        ("(a OR b) AND c", ["a OR b", "c"]),
        ("CASE WHEN a AND b THEN c END AND d", ["CASE WHEN a AND b THEN c END", "d"]),
        ("NOT (a AND b)", ["NOT (a AND b)"]),
        ("x.and = y.or AND 'a AND b' = z", ["x.and = y.or", "'a AND b' = z"]),
        ("NOT a BETWEEN 1 AND CASE WHEN b BETWEEN 1 AND 2 THEN 3 END AND c", None),
    ],
)
def test_a_condition_is_cut_at_its_ands(text: str, parts: list[str] | None) -> None:
    expected = parts or ["NOT a BETWEEN 1 AND CASE WHEN b BETWEEN 1 AND 2 THEN 3 END", "c"]
    assert conjuncts(text) == expected
    assert conjuncts(conjoin(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expression", "alias"),
    [
        ("a AS b", "a", "b"),
        ("a.b c", "a.b", "c"),
        ("count(*) n", "count(*)", "n"),
        ("CASE WHEN a THEN b END", "CASE WHEN a THEN b END", None),
        ("CASE WHEN a THEN b END c", "CASE WHEN a THEN b END", "c"),
        ("a IS NULL", "a IS NULL", None),
        ("ts + INTERVAL 1 DAY", "ts + INTERVAL 1 DAY", None),
        ("ts + INTERVAL '1' DAY later", "ts + INTERVAL '1' DAY", "later"),
        ("t.end", "t.end", None),
        ("a `b c`", "a", "b c"),
        ("date '2020-01-01'", "date '2020-01-01'", None),
        ("- a", "- a", None),
    ],
)
def test_an_item_is_cut_into_expression_and_alias(text: str, expression: str, alias: str | None) -> None:
    assert split_alias(text) == (expression, alias)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a + b.c", {"a", "b", "c"}),
        ("upper(a)", {"a"}),
        ("cast(a AS date)", {"a"}),
        ("a::decimal(10, 2) + date", {"a", "date"}),
        ("date '2020-01-01' > a", {"a"}),
        ("a + INTERVAL 2 days + days", {"a", "days"}),
        ("extract(year FROM a)", {"a"}),
        ("transform(a, x -> x + y)", {"a", "y"}),
        ("aggregate(a, 0, (x, y) -> x + y) + x", {"a", "x"}),
        ("CASE WHEN a THEN b ELSE end END", {"a", "b", "end"}),
        ("a[i].f + 'b' + \"c\"", {"a", "i"}),
        ("named_struct('a', b).a", {"b"}),
    ],
)
def test_references_are_the_words_that_can_be_columns(text: str, names: set[str]) -> None:
    missing = names - references(text)
    # Too many is allowed, too few is not; here even the ones too many are known.
    assert not missing
    assert references(text) - names <= {"end"}


def test_equality_of_texts_ignores_case_and_space_but_not_strings() -> None:
    assert same("Upper( a )||'X'", "upper(`A`) || 'X'")
    assert not same("a || 'X'", "a || 'x'")


def test_a_call_is_read_with_all_that_hangs_behind_it() -> None:
    text = "1 + percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FILTER (WHERE y > f(z)) OVER w"
    (call, inner) = calls.find(text)
    assert (call.name, call.args, call.within, call.where, call.over) == (
        "percentile_cont", ("0.5",), "x", "y > f(z)", "w",
    )  # fmt: skip
    assert text[call.start : call.end] == call.text == text[4:]
    assert inner.text == "f(z)"
    assert calls.exactly(text) is None
    assert [c.name for c in calls.find("a IN (1) AND NOT (b) OR c LIKE ANY ('x')")] == []


def test_ranges_are_replaced_and_the_rest_stays() -> None:
    assert substitute("abcdef", [(4, 5, "-"), (0, 2, "xyz")]) == "xyzcd-f"
    assert split_text("a, f(b, c), [d, e]") == ["a", "f(b, c)", "[d, e]"]


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("60 seconds", 60_000_000),
        ("'1 minute 30 seconds'", 90_000_000),
        ("INTERVAL 1 HOUR", 3_600_000_000),
        ("interval '2' days", 172_800_000_000),
        ("'interval 1 week'", 604_800_000_000),
        ("1.5 seconds", 1_500_000),
        ("-5 minutes", -300_000_000),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", 93_784_500_000),
        ("INTERVAL '02:03' HOUR TO MINUTE", 7_380_000_000),
        ("10 milliseconds 3 microseconds", 10_003),
    ],
)
def test_a_duration_is_a_number_of_microseconds(text: str, length: int) -> None:
    assert windows.micros(text) == length


@pytest.mark.parametrize("text", ["", "soon", "5", "1 month", "1.5 hours", "1 fortnight", "INTERVAL '1' DAY TO SECOND"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedQuery):
        windows.micros(text)


def test_a_shown_duration_reads_back() -> None:
    for length in (0, 1, 1_500, 60_000_000, 86_400_000_000, -3_600_000_000):
        assert windows.micros(windows.show(length)) == length


def test_importing_the_front_end_loads_neither_sqlglot_nor_spark() -> None:
    code = "import sys, anabranch.query.sql; print('sqlglot' in sys.modules, 'pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
