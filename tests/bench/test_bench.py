"""The benchmark itself: its data are deterministic, its answers check can fail, and a small run of it works."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench import __main__ as cli
from bench import answers, data, workloads
from bench.bars import BARS, Results
from bench.engines import engine
from bench.run import Measurement, Options, compare, measure
from bench.workload import Workload

TINY = {"rows": 300, "epochs": 3}


def tiny(name: str) -> Workload:
    return workloads.named(name).resized(**TINY)


@pytest.mark.parametrize("workload", workloads.ALL, ids=lambda w: w.name)
def test_files_are_the_same_each_time_and_no_row_is_late(workload: Workload, tmp_path: Path) -> None:
    small = workload.resized(**TINY)
    first, second = data.folder(small, tmp_path / "a"), data.folder(small, tmp_path / "b")
    for stream in small.streams:
        before = None
        for one, two in zip(*(data.files(small, f, stream.name, small.epochs) for f in (first, second)), strict=True):
            table = pq.read_table(one)
            assert table.equals(pq.read_table(two))
            assert table.num_rows == stream.rows
            times = table["ts"].cast(pa.int64()).to_pylist()
            assert before is None or min(times) > before
            before = max(times)


@pytest.mark.parametrize("workload", [w for w in workloads.ALL if w.mode == "drain"], ids=lambda w: w.name)
def test_the_answer_is_the_files_answer_and_a_changed_value_is_noticed(workload: Workload, tmp_path: Path) -> None:
    small = workload.resized(rows=20_000, epochs=9)  # long enough for windows to end
    folder = data.folder(small, tmp_path)
    want = answers.expected(small, folder, small.epochs)
    assert want[0] > 0
    with answers.connect() as con:
        answers.register(con, small, folder, small.epochs)
        result = con.sql(small.duckdb_sql).to_arrow_table()
    output = tmp_path / "out"
    output.mkdir()
    half = result.num_rows // 2
    pq.write_table(result.slice(half), output / "part-0.parquet")  # another order, in two files
    pq.write_table(result.slice(0, half), output / "part-1.parquet")
    assert answers.written(small, output, small.epochs) == want

    last = result.column_names[-1]
    changed = result.set_column(result.num_columns - 1, last, pc.add(result[last], 0.25))
    pq.write_table(changed.slice(half), output / "part-0.parquet")
    assert answers.written(small, output, small.epochs)[0] == want[0]
    assert answers.written(small, output, small.epochs) != want


def test_a_larger_epoch_is_a_longer_piece_of_the_same_stream() -> None:
    base = workloads.named("interval_join_100k")
    large = base.resized(rows=800_000)
    assert large.rows / large.epoch_seconds == base.rows / base.epoch_seconds


def test_a_bar_without_its_measurement_is_neither_reached_nor_missed() -> None:
    assert all(bar.judge({}) == (None, None) for bar in BARS)


def test_a_bar_compares_with_the_fastest_spark() -> None:
    name = "interval_join_100k"
    rates = {"spark-heap": 50.0, "spark-rocksdb": 25.0, "spark-rocksdb-v4": 30.0, "anabranch": 155.0}
    results: Results = {(name, e): Measurement(name, e, rows_per_s=r, peak_mb=r) for e, r in rates.items()}
    assert BARS[0].judge(results) == (pytest.approx(3.1), True)
    assert BARS[1].judge(results) == (pytest.approx(155 / 30), True)
    results[name, "anabranch"] = replace(results[name, "anabranch"], error="lost")
    assert BARS[0].judge(results) == (None, None)


def test_an_unknown_workload_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["interval_jion"]) == 2
    assert "interval_join_100k" in capsys.readouterr().out


def test_duckdb_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    m = measure(tiny("interval_join_100k"), engine("duckdb"), Options(data=tmp_path))
    assert m.error == ""
    assert m.rows_per_s > 0
    assert m.peak_mb > 10


@pytest.mark.spark
def test_spark_and_duckdb_agree_and_the_figures_are_saved(tmp_path: Path) -> None:
    small = workloads.named("interval_join_100k").resized(rows=3000, epochs=4)
    options = Options(data=tmp_path / "data", memory="1g")
    m = measure(small, engine("spark-heap"), options)
    assert m.error == ""
    assert m.epochs == 1  # the others are its warm-up
    assert len(m.epoch_ms) == 4
    assert m.peak_mb > 100
    assert compare(small, engine("spark-heap"), options) == "equal"


def test_a_run_is_saved_with_revision_and_machine(tmp_path: Path) -> None:
    args = ["interval_join_100k", "--engines", "duckdb", "--rows", "300", "--epochs", "3", "--out", str(tmp_path)]
    assert cli.main(args) == 0
    (saved,) = tmp_path.glob("*.json")
    content = json.loads(saved.read_text())
    assert content["runs"][0]["rows_per_s"] > 0
    assert content["machine"]["cores"] >= 1
    assert content["revision"]
    assert content["parameters"]["rows"] == 300
