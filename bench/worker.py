"""The process of one run: `python -m bench.worker job.json result.json`. It leaves at once when it is done."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from dataclasses import asdict
from pathlib import Path

from bench.engines import engine
from bench.engines.job import Job, Outcome


def main(job_file: str, result_file: str) -> int:
    job = Job(**json.loads(Path(job_file).read_text()))
    try:
        outcome: Outcome = importlib.import_module(f"bench.engines.{engine(job.engine).adapter}").run(job)
    except Exception as error:  # reported by the parent, which goes on with the other engines
        traceback.print_exc()
        outcome = Outcome(error=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}")
    Path(result_file).write_text(json.dumps(asdict(outcome)))
    return 1 if outcome.error else 0


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    sys.exit(main(*sys.argv[1:]))
