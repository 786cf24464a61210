"""A query on three executors, one of which dies in the middle of an epoch. `python -m tests.cluster.child folder`.

Writes to `told.json` where every site of every epoch ran, and whether the answer was Spark's.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

os.environ["TZ"] = "UTC"
time.tzset()

import anabranch as ab  # noqa: E402
from anabranch.testing import crash  # noqa: E402
from tests.crash.queries import answer, make_input, output, started  # noqa: E402

LONG = os.environ.get("ANABRANCH_LONG") == "1"
SITES = 6 if LONG else 3
BEFORE, AFTER = (25, 25) if LONG else (6, 6)  # epochs before and after the death


def spark_home(folder: Path) -> str:
    """Executors of a local cluster start from SPARK_HOME and work in it: the installed one, but with a folder of ours
    to work in."""
    import pyspark

    installed, home = Path(pyspark.__file__).parent, folder / "home"
    home.mkdir()
    for entry in installed.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return str(home)


def main() -> None:
    folder, query = Path(sys.argv[1]), sys.argv[2]
    os.environ["SPARK_HOME"] = spark_home(folder)
    session = ab.session(
        "cluster",
        master="local-cluster[3,1,1024]",
        memory="1g",
        spark__sql__session__timeZone="UTC",
        spark__sql__shuffle__partitions="3",
        spark__sql__warehouse__dir=str(folder / "warehouse"),
    )
    make_input(folder, BEFORE + AFTER)
    died: dict[str, Any] = {}
    handle: Any = None

    def execute() -> None:
        """Site 0's executor."""
        if died:
            return
        last = handle.lastProgress
        died.update(epoch=last["epoch"] + 1, where=last["sites"][0]["where"][0])
        os.kill(int(died["where"].partition("/")[2]), signal.SIGKILL)

    crash.install(crash.SITES, BEFORE, execute)
    handle = started(session, folder, query, "parquet", sites=SITES)
    handle.awaitTermination()
    seen = [{"epoch": p["epoch"], "where": [s["where"] for s in p["sites"]]} for p in handle.recentProgress]
    want, got = answer(session, folder, query), output(session, folder, query, "parquet")
    told = {"died": died, "epochs": seen, "rows": len(want), "same": got == want}
    (folder / "told.json").write_text(json.dumps(told))
    session.stop()


if __name__ == "__main__":
    main()
