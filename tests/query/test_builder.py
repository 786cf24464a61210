"""The builder makes the operators that the same SQL makes, and its own steps mean what they say."""

from __future__ import annotations

import pytest

from anabranch.errors import MissingEventTime, UnknownColumn, UnsupportedQuery
from anabranch.query.operators import Join, Select, Source, Union, Where
from anabranch.query.relation import Relation
from anabranch.query.show import describe
from anabranch.query.sql import parse
from anabranch.query.windows import window

Streams = dict[str, Relation]
WITHIN = "suspects.ts BETWEEN calls.ts - INTERVAL '1 minute' AND calls.ts + INTERVAL '0 seconds'"


def same(built: Relation, sql: str, streams: Streams, statics: dict[str, list[str]]) -> None:
    written = parse(sql, streams, statics)
    assert describe(built.output().operator) == describe(written.operator)
    assert built.output().operator == written.operator


def test_the_query_of_the_design_is_the_same_built_and_written(streams: Streams, statics: dict[str, list[str]]) -> None:
    built = (
        streams["calls"]
        .join(streams["suspects"], using="phone", within=("60 seconds", "0 seconds"))
        .group("phone", window("calls.ts", "60 seconds", "10 seconds"))
        .agg("count(*) AS calls", "avg(duration / 60) AS minutes")
    )
    assert built.columns == ("phone", "window", "calls", "minutes")
    sql = f"""SELECT phone, window, count(*) AS calls, avg(duration / 60) AS minutes
        FROM calls JOIN suspects USING (phone) WHERE {WITHIN}
        GROUP BY phone, window(calls.ts, '60 seconds', '10 seconds')"""
    same(built, sql, streams, statics)


def test_joins_in_a_chain_become_one_join(streams: Streams, statics: dict[str, list[str]]) -> None:
    built = (
        streams["calls"]
        .join(streams["suspects"], using="phone", within=("1 minute", "0 seconds"))
        .join(streams["alarms"], "alarms.at = calls.ts", using="phone")
        .where("duration > 3 AND kind <> level")
        .select(["phone", "kind"])
    )
    sql = f"""SELECT phone, kind FROM calls JOIN suspects USING (phone) JOIN alarms USING (phone)
        WHERE {WITHIN} AND alarms.at = calls.ts AND duration > 3 AND kind <> level"""
    # The conditions come in another order; everything else is the same.
    left, right = built.operator, parse(sql, streams, statics).operator
    assert isinstance(left, Select)
    assert isinstance(right, Select)
    assert isinstance(left.child, Join)
    assert isinstance(right.child, Join)
    assert left.child.inputs == right.child.inputs
    assert len(left.child.inputs) == 3
    assert sorted(left.child.conditions) == sorted(right.child.conditions)


def test_a_stream_joins_itself_under_two_aliases_over_one_source(
    streams: Streams, statics: dict[str, list[str]]
) -> None:
    a, b = streams["calls"].alias("a"), streams["calls"].alias("b")
    assert a.operator == b.operator
    built = a.join(b, ["a.phone = b.phone", "b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR"]).select(
        ["a.phone", "b.city"]
    )
    sql = """SELECT a.phone, b.city FROM calls a JOIN calls b
        ON a.phone = b.phone AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR"""
    same(built, sql, streams, statics)


def test_a_static_join_is_the_same_built_and_written(streams: Streams, statics: dict[str, list[str]]) -> None:
    built = streams["calls"].static_join(
        "cities", statics["cities"], "x", "left", "calls.city = x.city AND country > 'a'"
    )
    same(
        built.select(["phone", "country"]),
        "SELECT phone, country FROM calls LEFT JOIN cities x ON calls.city = x.city AND country > 'a'",
        streams,
        statics,
    )


def test_a_frame_is_the_same_built_and_written(streams: Streams, statics: dict[str, list[str]]) -> None:
    built = streams["calls"].frame(
        ["avg(duration) AS recent", "lag(city, 1) AS before"], partition="phone", order=["ts", "city DESC"], preceding=9
    )
    sql = """SELECT *, avg(duration) OVER (PARTITION BY phone ORDER BY ts, city DESC ROWS 9 PRECEDING) AS recent,
        lag(city, 1) OVER (PARTITION BY phone ORDER BY ts, city DESC) AS before FROM calls"""
    same(built, sql, streams, statics)


def test_a_group_by_an_aggregates_window_is_the_same_built_and_written(
    streams: Streams, statics: dict[str, list[str]]
) -> None:
    built = (
        streams["calls"]
        .group("phone", window("ts", "1 minute"))
        .agg("count(*) AS n")
        .group("window")
        .agg("max(n) AS m")
    )
    sql = """SELECT window, max(n) AS m FROM (SELECT phone, window, count(*) AS n FROM calls
        GROUP BY phone, window(ts, '1 minute')) GROUP BY window"""
    same(built, sql, streams, statics)


def test_a_case_gives_one_relation_per_predicate_and_one_for_the_rest(streams: Streams) -> None:
    long, dear, rest = streams["calls"].case(["calls.duration > 60", "city = 'x'"])
    conditions = [r.operator.condition for r in (long, dear, rest) if isinstance(r.operator, Where)]
    assert streams["calls"].where(" ts > 1 -- late\n").operator.condition == "ts > 1"  # type: ignore[attr-defined]
    choice = "CASE WHEN duration > 60 THEN 0 WHEN city = 'x' THEN 1 ELSE 2 END"
    assert conditions == [f"{choice} = 0", f"{choice} = 1", f"{choice} = 2"]


def test_a_union_renames_to_the_first_and_loses_an_event_time_that_not_all_have(streams: Streams) -> None:
    calls = streams["calls"].select(["phone", "ts"])
    union = calls.union(streams["alarms"].select(["phone", "kind"]))
    assert isinstance(union.operator, Union)
    assert union.columns == ("phone", "ts")
    assert all(child.fields[1].column == "ts" for child in union.operator.children)
    assert [f.lag for f in union.operator.fields] == [None, None]
    assert len(union.union(calls).operator.children) == 3  # type: ignore[attr-defined]


def test_the_callers_output_names_replace_ours_by_position(streams: Streams, statics: dict[str, list[str]]) -> None:
    sql = "SELECT phone, count(*) FROM calls GROUP BY phone, window(ts, '1 minute')"
    relation = parse(sql, streams, statics, ["phone", "count(1)"])
    assert isinstance(relation.operator, Select)
    assert [item.column for item in relation.operator.items] == ["phone", "count(1)"]
    assert [item.text for item in relation.operator.items] == ["phone", "agg_1"]
    bare = parse("SELECT * FROM untimed", streams, statics, ["a", "b"])
    assert bare.columns == ("a", "b")
    assert isinstance(parse("SELECT * FROM untimed", streams, statics, ["phone", "note"]).operator, Source)


def test_a_column_whose_name_is_no_plain_word_is_quoted() -> None:
    odd = Relation.source("odd", ["my key", "end", "select"], None).alias("o")
    relation = odd.where("o.end > 1 AND o.select = `my key`").select(["o.`my key`", "o.end AS x"])
    assert isinstance(relation.operator, Select)
    assert [i.text for i in relation.operator.items] == ["`my key`", "`end`"]
    assert isinstance(relation.operator.child, Where)
    assert relation.operator.child.condition == "`end` > 1 AND `select` = `my key`"


def test_what_the_builder_cannot_do_is_an_error_that_says_so(streams: Streams) -> None:
    calls = streams["calls"]
    with pytest.raises(UnknownColumn, match="did you mean `phone`"):
        calls.where("phoen = 1")
    with pytest.raises(UnknownColumn, match="no column `when`"):
        Relation.source("s", ["a"], "when")
    with pytest.raises(MissingEventTime, match="within="):
        calls.join(streams["untimed"], using="phone", within=("1 minute", "1 minute"))
    with pytest.raises(UnsupportedQuery, match="used twice"):
        calls.join(calls, using="phone")
    with pytest.raises(UnsupportedQuery, match="right join"):
        calls.static_join("cities", ["city"], how="right", using="city")
    with pytest.raises(UnsupportedQuery, match="two columns `A`"):
        Relation.source("s", ["a", "A"])


def test_a_join_condition_with_an_or_is_kept_in_brackets_beside_others(streams: Streams) -> None:
    joined = streams["calls"].join(streams["alarms"], ["duration = 1 OR duration = 2", "duration < 9 AND city = kind"])
    assert isinstance(joined.operator, Join)
    first = joined.operator.inputs[0]
    assert isinstance(first, Select)
    assert isinstance(first.child, Where)
    assert first.child.condition == "(duration = 1 OR duration = 2) AND duration < 9"
    assert joined.operator.conditions == ("city = kind",)
