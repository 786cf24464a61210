"""Importing the package costs next to nothing: every command line starts with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"
HEAVY = ("pyspark", "py4j", "duckdb", "pandas", "pyarrow", "numpy", "sqlglot", "rich", "typer")
IMPORT = f"""
import sys, threading, time
began = time.perf_counter()
import anabranch
took = time.perf_counter() - began
names = [n for n in {HEAVY!r} if n in sys.modules]
print(took, threading.active_count(), *names)
dir(anabranch), anabranch.errors, anabranch.__version__
assert not [n for n in {HEAVY!r} if n in sys.modules]
"""


def test_importing_takes_no_time_and_loads_nothing_heavy() -> None:
    """Best of five, as another process may be in the way; without pyspark no JVM can have started."""
    runs = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", IMPORT], cwd=SRC, capture_output=True, text=True, check=True)
        runs.append(done.stdout.split())
    assert {tuple(rest) for _, *rest in runs} == {("1",)}
    assert min(float(took) for took, *_ in runs) <= 0.3
