"""Compare answers: a count and a checksum that does not depend on the order of rows or on the engine.

Every column becomes an integer first (doubles in millionths, times in microseconds); DuckDB hashes and adds up.
Only rows that are final before the last epoch are compared (`Workload.decided`), so that an engine is neither blamed
nor praised for how far its watermark gets after the last row; an inner join has no others.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from bench import data
from bench.workload import Kind, Workload

Answer = tuple[int, str]

AS_INTEGER: dict[Kind, str] = {
    "int": "CAST({c} AS BIGINT)",
    "double": "CAST(round({c} * 1000000) AS BIGINT)",
    "time": "epoch_us({c})",
}


def expected(workload: Workload, folder: Path, epochs: int) -> Answer:
    """What DuckDB says over all files at once."""
    with connect() as con:
        register(con, workload, folder, epochs)
        return digest(con, workload, f"({workload.duckdb_sql})", epochs)


def written(workload: Workload, output: Path, epochs: int) -> Answer:
    """What an engine wrote as parquet files."""
    found = [str(p) for p in sorted(output.rglob("*.parquet")) if not p.name.startswith(("_", "."))]
    if not found:
        return 0, "no files"
    with connect() as con:
        con.from_parquet(found, union_by_name=True).create_view("written")
        return digest(con, workload, "written", epochs)


def digest(con: duckdb.DuckDBPyConnection, workload: Workload, source: str, epochs: int) -> Answer:
    values = ", ".join(AS_INTEGER[kind].format(c=f'"{name}"') for name, kind in workload.output)
    decided = workload.decided.format(cut=workload.cut_us(epochs))
    row = con.execute(f"SELECT count(*), sum(hash({values})) FROM {source} AS q WHERE {decided}").fetchone()
    assert row is not None
    return int(row[0]), str(row[1])


def connect() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    return con


def register(con: duckdb.DuckDBPyConnection, workload: Workload, folder: Path, epochs: int) -> None:
    """One view for each stream over its first epochs; times as plain UTC timestamps, as bucketing them is cheaper."""
    for stream in workload.streams:
        name = f"{stream.name}_files"
        con.from_parquet(data.files(workload, folder, stream.name, epochs)).create_view(name)
        con.execute(f"CREATE VIEW {stream.name} AS SELECT * REPLACE (ts::TIMESTAMP AS ts) FROM {name}")
