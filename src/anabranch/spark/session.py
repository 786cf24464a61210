"""`ab.session()`: a local Spark session for people who have none. An existing session is never reconfigured."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from anabranch.errors import SessionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
    "spark.log.level": "ERROR",
}


def session(app: str = "anabranch", *, master: str | None = None, memory: str = "2g", **conf: str) -> SparkSession:
    """Get the running session, or start a local one that has what Anabranch needs.

    `conf` takes Spark settings with dots as double underscores: `session(spark__sql__shuffle__partitions="4")`.
    """
    from pyspark.sql import SparkSession

    from anabranch.spark import compat

    running = SparkSession.getActiveSession()
    if running is not None:
        asked = [k for k in (master and "master", *conf) if k]
        if asked:
            raise SessionError(
                f"a Spark session is running already, so {', '.join(map(str, asked))} cannot be set",
                fix="call session.stop() first, or use the running session as it is",
            )
        return running
    compat.check_version()
    compat.check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app).master(master or "local[*]")
    builder = builder.config("spark.driver.memory", memory).config("spark.pyspark.python", sys.executable)
    for key, value in DEFAULTS.items():
        builder = builder.config(key, value)
    wanted = {key.replace("__", "."): value for key, value in conf.items()}
    for key, value in wanted.items():
        builder = builder.config(key, value)
    started = builder.getOrCreate()
    for key, value in compat.checkpoint_files(started).items():
        if key not in wanted:
            started.conf.set(key, value)
    return started
