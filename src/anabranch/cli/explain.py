"""`anabranch explain`: the plan of a query over streams that exist by name and columns only."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anabranch as ab
from anabranch.cli.quiet import jvm_log
from anabranch.errors import SettingError
from anabranch.plan.explain import explain
from anabranch.settings import STRATEGIES


def explain_file(file: Path, streams: Sequence[str], tables: Sequence[str], strategy: str, extended: bool) -> str:
    """The plan as text; an error of ours if the query cannot run."""
    named = dict(map(declared, streams))
    static = dict(map(declared, tables))
    if strategy not in STRATEGIES:
        raise SettingError(f"there is no strategy {strategy!r}", fix=f"use one of {', '.join(STRATEGIES)}")
    with tempfile.TemporaryDirectory(prefix="anabranch-explain-") as folder:
        with jvm_log(Path(folder) / "spark.log"):
            spark = ab.session("anabranch-explain")
        try:
            empty = Path(folder) / "empty"
            empty.mkdir()
            relations: dict[str, Any] = {n: source(spark, n, columns, str(empty)) for n, columns in named.items()}
            relations |= {n: spark.createDataFrame([], columns) for n, columns in static.items()}
            return explain(ab.sql(file.read_text(), **relations).plan(strategy), extended=extended)
        finally:
            spark.stop()


def source(spark: Any, name: str, columns: str, folder: str) -> Any:
    try:
        df = spark.readStream.schema(columns).parquet(folder)
    except Exception as error:  # Spark's own, which this package may not know
        why = str(error).strip().splitlines()[0]
        raise SettingError(f"the columns of {name} cannot be read", where=f"({columns}): {why}",
                           fix="write them as in CREATE TABLE, e.g. phone BIGINT, ts TIMESTAMP") from None  # fmt: skip
    times = [c for c, kind in df.dtypes if kind.startswith("timestamp")]
    return ab.stream(df, name, event_time=times[0] if times else None)


def declared(text: str) -> tuple[str, str]:
    """'calls(phone BIGINT, ts TIMESTAMP)' -> its name and its columns."""
    match = re.fullmatch(r"\s*(\w+)\s*\((.+)\)\s*", text, re.DOTALL)
    if not match:
        raise SettingError(
            f"{text!r} does not declare a stream", fix="write it like 'calls(phone BIGINT, ts TIMESTAMP)'"
        )
    return match.group(1), match.group(2)
