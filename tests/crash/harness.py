"""Starts a query in a process of its own, lets it be killed, and starts it again until it is done.

A killed driver leaves a JVM and Python workers behind for a while. By default the harness kills them too, as the end of
a container would. With `orphans` it does not wait: the next start meets a JVM that still works for a dead driver.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240


@dataclass
class Crashing:
    folder: Path
    query: str
    sink: str
    options: dict[str, Any] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    orphans: bool = False
    kills: list[str] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)

    def run(self, stage: str = "", nth: int = 1, seconds: float = 0.0) -> bool:
        """One start; whether it ended by itself. An error of the query's is an error here."""
        what = f"{stage or 'after'} {nth if stage else f'{seconds:.2f} s'}"
        told = {
            "folder": str(self.folder), "query": self.query, "sink": self.sink, "options": self.options,
            "conf": self.conf, "stage": stage, "nth": nth, "seconds": seconds,
        }  # fmt: skip
        env = {**os.environ, "TZ": "UTC", "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        log = self.folder / "log.txt"
        with log.open("a") as file:
            file.write(f"\n--- {what}\n")
            file.flush()
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.child", json.dumps(told)],
                cwd=self.folder, env=env, stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            self.groups.append(child.pid)
            try:
                code = child.wait(PATIENCE_S)
            finally:
                if not self.orphans or child.poll() is None:
                    self.clean()
        if code == -signal.SIGKILL:
            self.kills.append(what)
            return False
        assert code == 0, f"the query failed ({code}) at {what}:\n{log.read_text()[-4000:]}"
        return True

    def finish(self) -> None:
        """Start until it ends by itself."""
        while not self.run():
            pass
        self.clean()

    def clean(self) -> None:
        """Every process of every start is gone."""
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self.groups.clear()
