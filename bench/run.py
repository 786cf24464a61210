"""Run one engine on one workload in a process of its own, watch it, and turn what it said into one measurement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench import answers, data
from bench.engines import Engine
from bench.engines.job import Epoch, Job, Outcome
from bench.memory import Sampler
from bench.workload import Workload

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Measurement:
    """One run. Rates are over the epochs after the warm-up; DuckDB, which has no epochs, counts everything."""

    workload: str
    engine: str
    rows_per_s: float = 0.0  # rows / sum of epoch times
    wall_rows_per_s: float = 0.0  # rows / time between the first of those epochs and the end of the last
    median_ms: float = 0.0
    epochs: int = 0
    total_s: float = 0.0  # the whole query, warm-up and closing epoch included
    process_s: float = 0.0  # the whole process, start of the JVM included
    peak_mb: float = 0.0
    load: float = 0.0  # the machine's load average when it ended: well above the cores means that others ran too
    answer: str = ""  # "equal", "DIFFERENT …", "ERROR …", or "" when not compared
    error: str = ""
    epoch_ms: list[float] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    memory: list[tuple[float, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Options:
    """How to run, the same for every engine."""

    data: Path = ROOT / "bench" / "data"
    memory: str = "4g"
    rounds: int = 3
    timeout_s: float = 1800.0
    verbose: bool = False


def measure(workload: Workload, engine: Engine, options: Options) -> Measurement:
    """One measured run, results dropped."""
    outcome, sampler, took = spawn(workload, engine, options, epochs=workload.epochs)
    out = Measurement(workload.name, engine.name, error=outcome.error, total_s=outcome.total_s, process_s=took)
    out.peak_mb, out.memory, out.extra = sampler.peak / 1e6, sampler.samples, outcome.extra
    out.load = round(os.getloadavg()[0], 2)
    if outcome.error:
        return out
    if outcome.epochs:
        counted = outcome.epochs[workload.dropped :]
        summarise(out, counted)
        out.epoch_ms = [e.ms for e in outcome.epochs]
        want = workload.rows * workload.epochs
        if outcome.rows != want:
            out.error = f"read {outcome.rows} rows of {want}"
    elif outcome.rows:
        out.rows_per_s = out.wall_rows_per_s = outcome.rows / outcome.total_s
    return out


def summarise(out: Measurement, counted: list[Epoch]) -> None:
    rows = sum(e.rows for e in counted)
    out.epochs = len(counted)
    out.median_ms = median(e.ms for e in counted)
    out.rows_per_s = rows / sum(e.ms for e in counted) * 1000
    wall = counted[-1].started_s + counted[-1].ms / 1000 - counted[0].started_s
    out.wall_rows_per_s = rows / wall


def compare(workload: Workload, engine: Engine, options: Options) -> str:
    """A run of its own that writes parquet files, compared with DuckDB over the same epochs: "equal" or what is not."""
    epochs = min(workload.check_epochs, workload.epochs)
    with tempfile.TemporaryDirectory(prefix="bench-answers-") as output:
        small = workload.resized(epochs=epochs)
        outcome, _, _ = spawn(small, engine, options, epochs=epochs, output=output)
        if outcome.error:
            return f"ERROR {outcome.error}"
        want = answers.expected(small, data.folder(small, options.data), epochs)
        got = answers.written(small, Path(output), epochs)
    if want[0] == 0:
        return "DIFFERENT nothing to compare: the workload has no final rows"
    return "equal" if got == want else f"DIFFERENT {got[0]} rows, expected {want[0]}"


def spawn(
    workload: Workload, engine: Engine, options: Options, *, epochs: int, output: str = ""
) -> tuple[Outcome, Sampler, float]:
    """Start the worker, watch it to its end, read what it says."""
    folder = data.folder(workload, options.data)
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as scratch:
        job_file, result_file = Path(scratch) / "job.json", Path(scratch) / "result.json"
        Job(
            workload=workload.name,
            rows=workload.rows,
            epochs=epochs,
            engine=engine.name,
            data=str(folder),
            scratch=scratch,
            output=output,
            memory=options.memory,
            rounds=options.rounds,
        ).save(job_file)
        began = time.perf_counter()
        log = Path(scratch) / "log.txt"
        with log.open("w") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.worker", str(job_file), str(result_file)],
                cwd=ROOT,
                env=os.environ | {"TZ": "UTC", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
                stdout=sink,
                stderr=sink,
            )
            sampler = Sampler(process.pid)
            sampler.start()
            try:
                process.wait(options.timeout_s)
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
            finally:
                sampler.stop()
        took = time.perf_counter() - began
        if result_file.exists():
            said = json.loads(result_file.read_text())
            outcome = Outcome(**(said | {"epochs": [Epoch(**e) for e in said["epochs"]]}))
        else:
            outcome = Outcome(error=f"ended with code {process.returncode} and no result")
        if options.verbose:
            print(log.read_text(), file=sys.stderr)
        elif outcome.error:
            print(f"{outcome.error}\n--verbose shows what the engine printed", file=sys.stderr)
    return outcome, sampler, took


def middle(runs: list[Measurement]) -> Measurement:
    """Of several runs of one engine, the one with the median rate; failures only when there is nothing else."""
    good = sorted((r for r in runs if not r.error), key=lambda r: r.rows_per_s)
    return good[(len(good) - 1) // 2] if good else runs[0]


def to_json(measurement: Measurement) -> dict[str, Any]:
    return asdict(measurement)
