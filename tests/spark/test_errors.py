"""Every mistake a user can make, and the message it gets, as data in `golden/errors.txt`.

All of them are met when a flow is built or started, before anything is written: no checkpoint and no output appears.
With ANABRANCH_GOLDEN=write the golden file is written anew: read the diff before you keep it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import anabranch as ab
from anabranch import errors
from tests.spark import feeds

pytestmark = pytest.mark.spark
GOLDEN = Path(__file__).parent / "golden" / "errors.txt"
WRITE = os.environ.get("ANABRANCH_GOLDEN") == "write"
JOIN = "calls.ts BETWEEN reports.ts AND reports.ts + INTERVAL 1 MINUTE"


class Mistakes:
    """One method per mistake; its name, with spaces, is the case's."""

    def __init__(self, spark: Any, folder: Path, out: Path) -> None:
        self.spark, self.folder, self.out = spark, folder, out
        self.calls, self.reports = feeds.stream(spark, folder, "calls"), feeds.stream(spark, folder, "reports")
        self.raw = self.calls.inputs["calls"].df

    def sql(self, text: str) -> Any:
        return ab.sql(text, calls=self.calls, reports=self.reports)

    def writer(self, flow: Any = None, **options: Any) -> Any:
        writer = (flow or self.calls.select("phone", "city")).writeStream.format("parquet")
        where = {"path": str(self.out / "out"), "checkpointLocation": str(self.out / "checkpoint")}
        return writer.options(**where).options(**options)

    # -- streams -----------------------------------------------------------------------------------------------

    def a_batch_dataframe_as_a_stream(self) -> None:
        ab.stream(self.spark.range(3), "calls")

    def a_list_as_a_stream(self) -> None:
        ab.stream([1, 2], "calls")  # type: ignore[arg-type]

    def an_event_time_that_does_not_exist(self) -> None:
        ab.stream(self.raw, "calls", event_time="tss")

    def an_event_time_of_a_wrong_type(self) -> None:
        ab.stream(self.raw, "calls", event_time="duration")

    def a_delay_that_is_no_length_of_time(self) -> None:
        ab.stream(self.raw, "calls", event_time="ts", delay="soon")

    def a_negative_delay(self) -> None:
        ab.stream(self.raw, "calls", event_time="ts", delay="-3 seconds")

    def a_column_of_ours(self) -> None:
        ab.stream(self.raw.withColumn("_cell", F.lit(1)), "calls")

    def two_columns_of_one_name(self) -> None:
        ab.stream(self.raw.select("phone", "phone"), "calls")

    def two_streams_of_one_name(self) -> None:
        self.calls.join(ab.stream(self.raw.where("phone > 1"), "calls", event_time="ts").alias("x"), "calls.ts = x.ts")

    # -- names and expressions ---------------------------------------------------------------------------------

    def a_wrong_column_in_sql(self) -> None:
        self.sql("SELECT phnoe FROM calls")

    def a_wrong_column_of_an_alias(self) -> None:
        self.sql("SELECT c.durations FROM calls c")

    def a_wrong_stream_in_sql(self) -> None:
        self.sql("SELECT phone FROM cals")

    def a_wrong_column_in_the_builder(self) -> None:
        self.calls.where(F.col("phnoe") > 1)

    def a_wrong_field_of_a_struct(self) -> None:
        self.calls.select("info.c")

    def a_function_that_does_not_exist(self) -> None:
        self.calls.select("phone", "uper(city) AS c")

    def types_that_do_not_go_together(self) -> None:
        self.calls.select("phone", "duration + info AS x")

    def a_condition_that_is_no_condition(self) -> None:
        self.calls.where("duration")

    def an_expression_that_does_not_parse(self) -> None:
        self.calls.select("phone +")

    def sql_that_does_not_parse(self) -> None:
        self.sql("SELEC phone FROM calls")

    def a_python_function_in_a_column(self) -> None:
        self.calls.select(F.udf(lambda x: x)("phone"))

    def one_item_that_becomes_two_columns(self) -> None:
        self.calls.select(F.col("city").alias("a", "b"))

    def an_ambiguous_column(self) -> None:
        self.sql(f"SELECT phone FROM calls JOIN reports ON {JOIN}")

    # -- what is not supported ---------------------------------------------------------------------------------

    def a_join_without_time_bounds(self) -> None:
        self.calls.join(self.reports, on="phone").select("phone", "level").where("level > 1")

    def a_join_bounded_on_one_side_only(self) -> None:
        self.sql("SELECT level FROM calls JOIN reports ON calls.phone = reports.phone AND reports.ts >= calls.ts")

    def a_join_without_an_event_time(self) -> None:
        self.calls.join(ab.stream(self.raw, "x"), on="phone", within=("1 minute", "1 minute"))

    def an_outer_join_of_streams(self) -> None:
        self.calls.join(self.reports, on="phone", within=("1 minute", "1 minute"), how="left")

    def a_semi_join_of_streams(self) -> None:
        self.sql(f"SELECT city FROM calls LEFT SEMI JOIN reports ON calls.phone = reports.phone AND {JOIN}")

    def an_anti_join_of_streams(self) -> None:
        self.sql(f"SELECT city FROM calls LEFT ANTI JOIN reports ON calls.phone = reports.phone AND {JOIN}")

    def order_by_at_the_top(self) -> None:
        self.sql("SELECT phone FROM calls ORDER BY phone")

    def limit_at_the_top(self) -> None:
        self.sql("SELECT phone FROM calls LIMIT 10")

    def row_number(self) -> None:
        self.sql("SELECT row_number() OVER (PARTITION BY phone ORDER BY ts) AS n FROM calls")

    def except_of_two_streams(self) -> None:
        self.sql("SELECT phone FROM calls EXCEPT SELECT phone FROM reports")

    def a_correlated_subquery(self) -> None:
        self.sql("SELECT phone FROM calls c WHERE EXISTS (SELECT 1 FROM reports r WHERE r.phone = c.phone)")

    def group_by_without_a_window(self) -> None:
        self.calls.groupBy("phone").agg("count(*) AS n")

    def a_window_without_an_event_time(self) -> None:
        ab.stream(self.raw, "calls").groupBy(ab.window("ts", "1 minute")).count()

    def a_session_window(self) -> None:
        self.calls.groupBy("phone", F.session_window("ts", "1 minute")).agg("count(*) AS n")

    def a_map_as_a_key(self) -> None:
        self.calls.groupBy("map(phone, city)", ab.window("ts", "1 minute")).count()

    def a_key_with_a_collation(self) -> None:
        self.calls.withColumn("city", "city COLLATE UTF8_LCASE").groupBy("city", ab.window("ts", "1 minute")).count()

    def keys_of_types_that_do_not_go_together(self) -> None:
        self.calls.join(self.reports, on="calls.city = reports.phone", condition=JOIN)

    def the_least_of_a_struct(self) -> None:
        self.calls.groupBy(ab.window("ts", "1 minute")).agg("min(info) AS least")

    def a_frame_without_an_event_time_first(self) -> None:
        self.calls.frame("avg(duration) AS x", partitionBy="phone", orderBy="duration", rows=3)

    def a_stream_where_a_static_table_belongs(self) -> None:
        ab.sql("SELECT c.phone FROM calls c, r WHERE c.phone = r.phone", calls=self.calls, r=self.raw)

    def a_list_where_a_dataframe_belongs(self) -> None:
        self.calls.join([1], on="phone")  # type: ignore[arg-type]

    def a_query_without_a_stream(self) -> None:
        ab.sql("SELECT 1 AS x FROM prices", prices=feeds.prices(self.spark))

    # -- options and outputs -----------------------------------------------------------------------------------

    def two_output_columns_of_one_name(self) -> None:
        self.writer(self.calls.join(self.reports, condition=JOIN)).start()

    def an_output_mode_other_than_append(self) -> None:
        self.writer().outputMode("update").start()

    def the_complete_output_mode(self) -> None:
        self.writer().start(outputMode="complete")

    def a_trigger_that_is_no_length_of_time(self) -> None:
        self.writer().trigger(processingTime="soon").start()

    def a_trigger_of_nothing(self) -> None:
        self.writer().trigger().start()

    def a_continuous_trigger(self) -> None:
        self.writer().trigger(continuous="1 second").start()

    def sites_that_are_no_number(self) -> None:
        self.writer(sites="many").start()

    def cells_that_are_no_power_of_two(self) -> None:
        self.writer(cells=100).start()

    def a_strategy_that_does_not_exist(self) -> None:
        self.writer(strategy="fastest").start()

    def a_switch_that_is_neither_on_nor_off(self) -> None:
        self.writer(flushAtEnd="yes").start()

    def a_heartbeat_of_no_time(self) -> None:
        self.writer(heartbeat="0 seconds").start()

    def an_option_of_ours_misspelt(self) -> None:
        self.writer(stateLocaton="elsewhere").start()

    def sites_in_the_singular(self) -> None:
        self.writer(site=8).start()

    def the_checkpoint_misspelt(self) -> None:
        self.writer(checkpointLocaton="elsewhere").start()

    def an_option_that_the_sink_has_not(self) -> None:
        self.calls.select("phone").writeStream.format("console").option("rows", 5).start()

    def an_unknown_configuration_key(self) -> None:
        self.spark.conf.set("spark.anabranch.site", "8")
        try:
            self.writer().start()
        finally:
            self.spark.conf.unset("spark.anabranch.site")

    def an_unknown_format(self) -> None:
        self.writer().format("parket").start()

    def a_format_that_only_foreachBatch_can_write(self) -> None:
        self.writer().format("kafka").start()

    def no_folder_for_the_files(self) -> None:
        self.calls.select("phone").writeStream.format("parquet").start()

    def a_file_in_place_of_the_folder(self) -> None:
        self.calls.select("phone").writeStream.start(str(self.folder / "calls" / "000000.parquet"))

    def a_partition_column_that_the_output_lacks(self) -> None:
        self.writer().partitionBy("region").start()

    def a_struct_in_a_csv_file(self) -> None:
        self.writer(self.calls.select("phone", "info")).format("csv").start()

    def a_column_of_no_type(self) -> None:
        self.writer(self.calls.select("phone", "NULL AS nothing")).start()

    def a_memory_sink_without_a_name(self) -> None:
        self.calls.select("phone").writeStream.format("memory").start()

    def a_memory_sink_with_an_odd_name(self) -> None:
        self.calls.select("phone").writeStream.format("memory").queryName("my results").start()

    def a_table_in_a_format_that_does_not_exist(self) -> None:
        self.calls.select("phone").writeStream.format("parket").toTable("results")

    def a_table_that_is_a_view(self) -> None:
        self.spark.range(1).createOrReplaceTempView("only_a_view")
        self.calls.select("phone").writeStream.toTable("only_a_view")


CASES = [name for name in vars(Mistakes) if name not in ("sql", "writer") and not name.startswith("_")]


def expected() -> dict[str, str]:
    blocks = GOLDEN.read_text().split("\n===\n") if GOLDEN.exists() else []
    return {name: message.strip("\n") for name, _, message in (b.strip("\n").partition("\n---\n") for b in blocks)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return feeds.fill(tmp_path_factory.mktemp("streams"), 4, 4)


def message_of(make: Callable[[], None], *hidden: Path) -> str:
    with pytest.raises(errors.AnabranchError) as caught:
        make()
    text = f"{type(caught.value).__name__}: {caught.value}"
    for path in hidden:
        text = text.replace(str(path), "…")
    return text


@pytest.mark.skipif(WRITE, reason="the golden file is being written")
@pytest.mark.parametrize("case", CASES)
def test_a_mistake_gets_its_message_and_leaves_nothing_behind(
    spark: Any, folder: Path, tmp_path: Path, case: str
) -> None:
    mistakes = Mistakes(spark, folder, tmp_path)
    assert message_of(getattr(mistakes, case), tmp_path, folder) == expected()[case.replace("_", " ")]
    assert list(tmp_path.iterdir()) == []
    assert not spark.catalog.tableExists("results")


def test_every_golden_case_is_tried() -> None:
    assert WRITE or list(expected()) == [case.replace("_", " ") for case in CASES]


@pytest.mark.skipif(not WRITE, reason="set ANABRANCH_GOLDEN=write")
def test_write_the_golden_file(spark: Any, folder: Path, tmp_path: Path) -> None:
    mistakes = Mistakes(spark, folder, tmp_path)
    texts = [(case.replace("_", " "), message_of(getattr(mistakes, case), tmp_path, folder)) for case in CASES]
    GOLDEN.write_text("\n===\n".join(f"{case}\n---\n{text}" for case, text in texts) + "\n")
