"""DuckDB over all files at once: the practical limit of the machine for the same SQL. Rows are read and dropped."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb

from bench import answers
from bench.engines.job import Job, Outcome

CORES = 2


def run(job: Job) -> Outcome:
    workload = job.load()
    with answers.connect() as con:
        con.execute(f"SET threads = {CORES}")
        answers.register(con, workload, Path(job.data), job.epochs)
        began = time.perf_counter()
        reader = con.sql(workload.duckdb_sql).to_arrow_reader(100_000)
        results = sum(batch.num_rows for batch in reader)
        total = time.perf_counter() - began
    rows = workload.rows * job.epochs
    return Outcome([], total, rows, {"results": results}, {"duckdb": duckdb.__version__})
