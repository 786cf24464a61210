"""The demo's query, and whether an answer is that of Spark batch with the same SQL over the same files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import anabranch as ab
from anabranch.cli.demo.calls import CALLS, DISORDER_S, REPORTS

if TYPE_CHECKING:
    from anabranch import Flow

FRAUD = """
SELECT window.start AS minute,
       CASE WHEN c.duration < 60 THEN 'under 1 min' WHEN c.duration < 300 THEN '1 to 5 min'
            WHEN c.duration < 900 THEN '5 to 15 min' ELSE 'over 15 min' END AS length,
       count(*) AS calls, count(DISTINCT c.phone) AS phones, max(c.duration) AS longest
FROM calls c JOIN reports r
  ON c.phone = r.phone AND r.ts BETWEEN c.ts - INTERVAL 60 SECONDS AND c.ts
GROUP BY window(c.ts, '60 seconds', '10 seconds'),
         CASE WHEN c.duration < 60 THEN 'under 1 min' WHEN c.duration < 300 THEN '1 to 5 min'
              WHEN c.duration < 900 THEN '5 to 15 min' ELSE 'over 15 min' END
"""


def flow_over(spark: Any, folder: Path, files: int | None = None) -> Flow:
    """The query over the files of a folder, at most so many an epoch."""
    delay = f"{DISORDER_S + 1} seconds"

    def stream(name: str, schema: str) -> Flow:
        reader = spark.readStream.schema(schema)
        if files is not None:
            reader = reader.option("maxFilesPerTrigger", files)
        return ab.stream(reader.parquet(str(folder / name)), name, event_time="ts", delay=delay)

    return ab.sql(FRAUD, calls=stream("calls", CALLS), reports=stream("reports", REPORTS))


def compare(console: Console, spark: Any, folder: Path, out: str) -> bool:
    """Tell whether the rows in the folder's `out` are Spark's."""
    for name, schema in (("calls", CALLS), ("reports", REPORTS)):
        spark.read.schema(schema).parquet(str(folder / name)).createOrReplaceTempView(name)
    want = Counter(map(tuple, spark.sql(FRAUD).collect()))
    got = Counter(map(tuple, spark.read.parquet(str(folder / out)).collect()))
    what = f"{out}: identical to Spark batch: "
    if got == want:
        console.print(f"{what}[bold green]yes[/] ({sum(want.values()):,} rows)")
    else:
        console.print(
            f"{what}[bold red]no[/] ({(want - got).total():,} rows missing, {(got - want).total():,} too many)"
        )
    return got == want
