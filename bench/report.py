"""Show and save results: one table of measurements, one of bars, one JSON file a run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import machine
from bench.bars import BARS, Results, fastest
from bench.run import ROOT, Measurement, to_json


def show(results: Results, console: Console) -> None:
    console.print(measurements(results))
    for (workload, engine), m in results.items():
        for problem in filter(None, (m.error, "" if m.answer == "equal" else m.answer)):
            console.print(f"{workload} on {engine}: [red]{escape(problem)}[/red]")
    if any(judged is not None for _, judged in (bar.judge(results) for bar in BARS)):
        console.print(bars(results))


def measurements(results: Results) -> Table:
    table = Table(title="Rows per second after the warm-up", title_justify="left")
    for heading in ("workload", "engine"):
        table.add_column(heading)
    for heading in ("rows/s", "of best Spark", "median epoch", "peak memory", "query", "process", "load"):
        table.add_column(heading, justify="right")
    table.add_column("answer")
    last = ""
    for (workload, engine), m in results.items():
        if last and workload != last:
            table.add_section()
        figures = ("[red]failed[/red]", *[""] * 6) if m.error else row(m, results)
        answer = m.answer if m.answer in ("", "equal") else f"[red]{m.answer.split()[0]}[/red]"
        table.add_row("" if workload == last else workload, engine, *figures, answer)
        last = workload
    return table


def row(m: Measurement, results: Results) -> tuple[str, ...]:
    if "median_ms" in m.extra:
        ms = ", ".join(f"{label} {value:.0f} ms" for label, value in m.extra["median_ms"].items())
        return ms, "", "", f"{m.peak_mb:,.0f} MB", "", f"{m.process_s:.0f} s", f"{m.load:.1f}"
    try:
        ratio = f"{m.rows_per_s / fastest(results, m.workload).rows_per_s:.2f}x"
    except KeyError:
        ratio = "-"
    epoch = f"{m.median_ms:,.0f} ms" if m.median_ms else "-"
    peak = f"{m.peak_mb:,.0f} MB"
    return f"{m.rows_per_s:,.0f}", ratio, epoch, peak, f"{m.total_s:.1f} s", f"{m.process_s:.0f} s", f"{m.load:.1f}"


def bars(results: Results) -> Table:
    table = Table(title="Bars", title_justify="left")
    table.add_column("what")
    for heading in ("bar", "measured"):
        table.add_column(heading, justify="right")
    table.add_column("reached")
    for bar in BARS:
        value, reached = bar.judge(results)
        if value is None:
            continue
        sign = "<=" if bar.at_most else ">="
        verdict = "[green]yes[/green]" if reached else "[red]no[/red]"
        table.add_row(bar.name, f"{sign} {bar.limit:.3g} {bar.unit}", f"{value:.3g} {bar.unit}", verdict)
    return table


def save(
    runs: list[Measurement], results: Results, parameters: dict[str, Any], before: dict[str, Any], out: Path
) -> Path:
    judged = [(bar, *bar.judge(results)) for bar in BARS]
    bars = [{"name": b.name, "limit": b.limit, "at_most": b.at_most, "value": v, "reached": r} for b, v, r in judged]
    return write(parameters, before, bars, [to_json(m) for m in runs], out)


def write(
    parameters: dict[str, Any], before: dict[str, Any], bars: list[dict[str, Any]], runs: list[dict[str, Any]],
    out: Path,
) -> Path:  # fmt: skip
    """Everything that was measured, with what it was measured on."""
    revision = machine.revision(ROOT)
    content = {
        "revision": revision,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": before,
        "parameters": parameters,
        "bars": bars,
        "runs": runs,
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{revision.rstrip('+')}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path
