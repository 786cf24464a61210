"""One case: through Anabranch, through Spark batch, and compared."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anabranch as ab
from anabranch.spark.api import Flow
from anabranch.testing import (
    BatchOracle,
    Kept,
    Restart,
    Stream,
    counted,
    difference,
    drive,
    epochs,
    live,
    loaded,
    opened,
    rows_of,
)
from tests.property.cases import Case


@dataclass(frozen=True)
class Outcome:
    """How many rows came out, and what was wrong, if anything."""

    rows: int
    wrong: str | None


def run(session: Any, oracle: BatchOracle, case: Case) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix="property-"))
    try:
        return _run(session, oracle, case, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(session: Any, oracle: BatchOracle, case: Case, folder: Path) -> Outcome:
    flow, columns = _flow(session, case, folder)
    kept = Kept(case.close, case.unordered)
    stateful = {
        t.stream for stage in [flow.plan()] for s in stage.stages for p in s.ports for t in p.branches if t.stream
    }
    if case.live:
        got = live(flow, case.streams, case.script, folder, dict(case.options), kept, case.apart)
    else:
        got = drive(flow, case.streams, case.script, folder / "checkpoint", dict(case.options), kept)
    rows = counted(case.streams, epochs(case.script), stateful)
    want, schema = oracle.answer(case.oracle, case.streams, rows, case.statics)
    promised = [(f.name, f.dataType.simpleString()) for f in columns]
    batch = [(f.name, f.dataType.simpleString()) for f in schema]
    if promised != batch:
        return Outcome(want.num_rows, f"columns {promised}, Spark has {batch}")
    return Outcome(
        want.num_rows, difference(rows_of(got), rows_of(want), want.column_names, case.close, case.unordered)
    )


def _flow(session: Any, case: Case, folder: Path) -> tuple[Flow, Any]:
    tables: dict[str, Any] = dict(opened(session, case.streams, folder))
    if case.cases:
        parts = tables.pop(case.streams[0].name).case(*case.cases)
        tables |= {f"p{i}": part for i, part in enumerate(parts)}
    used = {name: t for name, t in tables.items() if _mentioned(name, case.sql)}
    flow = ab.sql(case.sql, **used, **loaded(session, case.statics))
    return flow, flow.schema


def _mentioned(name: str, sql: str) -> bool:
    return re.search(rf"(FROM|JOIN|,)\s+{name}\b", sql) is not None


def smaller(case: Case, fails: Any, tries: int = 60) -> Case:
    """The case with as few rows, steps and columns as still fail; for reading, not for proof."""
    for step in range(len(case.script) - 1, -1, -1):
        shorter = replace(case, script=(*case.script[:step], *case.script[step + 1 :]))
        if tries > 0 and shorter.script:
            tries -= 1
            case = shorter if fails(shorter) else case
    for size in (8, 4, 2, 1):
        for step, name, start in _chunks(case.script, size):
            if tries <= 0:
                return case
            content = case.script[step] if step < len(case.script) else {}
            rows = content.get(name, ()) if isinstance(content, dict) else ()
            if start >= len(rows):
                continue
            tries -= 1
            fewer = {**content, name: [*rows[:start], *rows[start + size :]]}
            shorter = replace(case, script=(*case.script[:step], fewer, *case.script[step + 1 :]))
            case = shorter if fails(shorter) else case
    return case


def _chunks(script: Sequence[Any], size: int) -> list[tuple[int, str, int]]:
    return [
        (n, name, start)
        for n, step in enumerate(script) if isinstance(step, dict)
        for name, rows in step.items()
        for start in range((len(rows) - 1) // size * size, -1, -size)
    ]  # fmt: skip


__all__ = ["Outcome", "Restart", "Stream", "run", "smaller"]
