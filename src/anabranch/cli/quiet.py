"""What a JVM writes to the terminal goes into a file instead: start-up notices, and Spark's own log of an error that we
tell in our words anyway."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def jvm_log(path: Path) -> Iterator[None]:
    """A process that is started in here keeps writing its errors to the file."""
    sys.stderr.flush()
    ours = os.dup(2)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
        os.close(file)
