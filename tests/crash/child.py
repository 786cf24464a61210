"""The process that is killed: one start of one query, with a place to die at. `python -m tests.crash.child '{...}'`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

os.environ["TZ"] = "UTC"
time.tzset()

import anabranch as ab  # noqa: E402
from anabranch.testing import crash  # noqa: E402
from tests.crash.queries import started  # noqa: E402


def main() -> None:
    told = json.loads(sys.argv[1])
    folder = Path(told["folder"])
    # The shell's time zone is UTC; so is the session's.
    session = ab.session(
        "crash",
        master="local[2]",
        memory="512m",
        spark__sql__session__timeZone="UTC",
        spark__sql__shuffle__partitions="2",
        spark__sql__warehouse__dir=str(folder / "warehouse"),
        **told["conf"],
    )
    if told["stage"]:
        crash.install(told["stage"], told["nth"], crash.kill)
    if told["seconds"]:
        crash.after(told["seconds"], crash.kill)
    query = started(session, folder, told["query"], told["sink"], **told["options"])
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main()
