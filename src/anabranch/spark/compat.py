"""The one module that leans on more than PySpark's plainest public API, and the only one to touch `sparkContext`.

Each function says what it needs and what it does where that is missing (Spark Connect).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch.errors import SessionError, UnsupportedQuery

FLOOR = (4, 1)


def check_version(version: str = pyspark.__version__) -> None:
    if tuple(int(p) for p in re.findall(r"\d+", version)[:2]) < FLOOR:
        raise SessionError(f"PySpark {version} is too old", fix="install pyspark 4.1 or newer")


def check_java() -> None:
    """Before a JVM is started: is there one, and is it new enough?"""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    fix = "install a Java 17 or newer runtime and put it on PATH, or set JAVA_HOME to its folder"
    if not java or not os.path.exists(java):
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "no java on PATH, JAVA_HOME is not set"
        raise SessionError("Spark needs Java and none was found", where=where, fix=fix)
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    if found is None:
        said = (told.stderr.strip().splitlines() or ["it says nothing"])[0]
        raise SessionError("Spark needs Java 17 or newer, and this Java does not run", where=f"{java}: {said}", fix=fix)
    if int(found.group(1)) < 17:
        raise SessionError(f"Spark needs Java 17 or newer, this is Java {found.group(1)}", where=java, fix=fix)


def slots(session: SparkSession) -> int:
    """How many tasks run at once."""
    return int(session.sparkContext.defaultParallelism)


def one_executor(session: SparkSession) -> bool:
    """Local mode has a single executor, so nothing has to be anchored."""
    return re.fullmatch(r"local(\[.*\])?", session.sparkContext.master or "") is not None


def on_this_machine(session: SparkSession) -> bool:
    """Whether workers run where we run: any local master, `local-cluster` included."""
    return (session.sparkContext.master or "").startswith("local")


def check_session(session: SparkSession) -> None:
    """What a running session cannot be given any more is named with the line that sets it."""
    check_version()
    locality = session.sparkContext.getConf().get("spark.shuffle.reduceLocality.enabled", "true")
    if not one_executor(session) and locality != "false":
        raise SessionError(
            "sites would not stay on their executors: spark.shuffle.reduceLocality.enabled is on",
            fix='start the session with .config("spark.shuffle.reduceLocality.enabled", "false")',
        )
    check_worker_python(session)


def worker_python(session: SparkSession) -> str:
    """The interpreter for our functions in Spark's workers: the one that was asked for, else ours where it must exist.

    PySpark takes PYSPARK_PYTHON and otherwise whatever `python3` is, and passes over `spark.pyspark.python` when the
    session was started from Python. A local master runs its workers on this machine, so there our own interpreter is
    right; a cluster's machines may not have it at this path.
    """
    asked = os.environ.get("PYSPARK_PYTHON") or session.sparkContext.getConf().get("spark.pyspark.python")
    if asked:
        return asked
    return sys.executable if on_this_machine(session) else str(session.sparkContext.pythonExec)


@contextmanager
def our_python(session: SparkSession, python: str) -> Iterator[None]:
    """Functions made inside run in this interpreter; the user's own are left as they are."""
    context: Any = session.sparkContext
    theirs = context.pythonExec
    context.pythonExec = python
    try:
        yield
    finally:
        context.pythonExec = theirs


_checked: set[str] = set()


def check_worker_python(session: SparkSession) -> None:
    """Workers must be able to import what we import. A path that is not ours is tried once (on this machine only)."""
    python = worker_python(session)
    if python in _checked or not on_this_machine(session):
        return
    found = shutil.which(python)
    fix = (
        f"set PYSPARK_PYTHON={sys.executable} before the session starts, "
        f'or .config("spark.pyspark.python", "{sys.executable}"); ab.session() does that'
    )
    if found is None:
        raise SessionError(f"Spark's workers would run {python!r}, which does not exist", fix=fix)
    if os.path.abspath(found) != os.path.abspath(sys.executable):
        code = "import sys, anabranch, pyarrow, duckdb; print(*sys.version_info[:2], sep='.')"
        tried = subprocess.run([found, "-c", code], capture_output=True, text=True, check=False)
        mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
        if tried.returncode != 0 or tried.stdout.strip() != mine:
            lines = tried.stderr.strip().splitlines()
            why = lines[-1] if lines else f"it is Python {tried.stdout.strip()}, this is Python {mine}"
            raise SessionError(
                "Spark's workers run another Python that cannot run Anabranch", where=f"{found}: {why}", fix=fix
            )
    _checked.add(python)


CHECKPOINT_FILES = "spark.sql.streaming.checkpointFileManagerClass"
_STREAMING = "org.apache.spark.sql.execution.streaming"


def checkpoint_files(session: SparkSession) -> dict[str, str]:
    """The setting with which Spark writes its offsets and commits through Hadoop's file systems, if it has that.

    On a local folder Spark's own choice starts a process for every file that it renames (`readlink`, as Hadoop's native
    library is not there): 20 ms each and three or more in an epoch, measured. Both rename and neither syncs.
    """
    context: Any = session.sparkContext
    for package in (f"{_STREAMING}.checkpointing", _STREAMING):  # of Spark 4.3, and before
        name = f"{package}.FileSystemBasedCheckpointFileManager"
        try:
            context._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
        except Py4JError:
            continue
        return {CHECKPOINT_FILES: name}
    return {}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Spark takes rows of this schema back."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def plain_session(session: SparkSession) -> SparkSession:
    """A session of our own beside the user's, with the same SQL settings, for epochs that Spark did not start."""
    own = session.newSession()
    theirs: Any = session.conf.getAll
    mine: Any = own.conf.getAll
    for key, value in theirs.items():
        if key.startswith("spark.sql.") and mine.get(key) != value and own.conf.isModifiable(key):
            own.conf.set(key, value)
    return own


EPOCH_CONF = {
    "spark.sql.adaptive.enabled": "false",  # our exchange is not Spark's to coalesce
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",  # few hand-overs to the workers, wide rows in bounds
    # This very number means no limit; below it, Spark measures the whole batch after each row.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}


# A join with an empty table, or a filter that is never true, makes Spark drop everything below it: sites, that must
# close windows and report, would not run, and what `observe` counts would be lost.
EXCLUDED = "spark.sql.optimizer.excludedRules"
RULES = "org.apache.spark.sql.catalyst.optimizer"
PRUNING = (f"{RULES}.PropagateEmptyRelation", f"{RULES}.PruneFilters")


def ready(df: DataFrame, sites: int) -> None:
    """Set what an epoch needs in the session it runs in (inside foreachBatch: a clone that is the query's own)."""
    conf = df.sparkSession.conf
    # Spark's own shuffles of an epoch (pre-aggregation) are small and feed the sites.
    for key, value in (EPOCH_CONF | {"spark.sql.shuffle.partitions": str(sites)}).items():
        if conf.get(key) != value:
            conf.set(key, value)
    excluded = [rule for rule in (conf.get(EXCLUDED, "") or "").split(",") if rule]
    if not set(PRUNING) <= set(excluded):
        conf.set(EXCLUDED, ",".join(dict.fromkeys([*excluded, *PRUNING])))


# -- plans in few calls to the JVM -------------------------------------------------------------------------------------
# An epoch of small rows spends much of its time on these. Classic sessions only.

_SEPARATOR = "\0"


def select(df: DataFrame, texts: Sequence[str]) -> DataFrame:
    """`df.selectExpr(*texts)` as one call (measured: nine columns in 1.1 ms; PySpark's, a call for each, 2.8 ms)."""
    context: Any = SparkContext._active_spark_context
    array = context._jvm.java.util.regex.Pattern.compile(_SEPARATOR).split(_SEPARATOR.join(texts))
    inner: Any = df
    return DataFrame(inner._jdf.selectExpr(array), df.sparkSession)


def map_in_arrow(df: DataFrame, columns: Sequence[Column], function: Any, schema: StructType) -> DataFrame:
    """`df.mapInArrow(function, schema)`, without asking the JVM for each of the columns, which we know.

    Columns are worth keeping from one epoch to the next: each costs half a millisecond to make."""
    from pyspark.sql.pandas.functions import pandas_udf
    from pyspark.util import PythonEvalType

    make: Any = pandas_udf
    made = make(function, schema, functionType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    inner: Any = df
    return DataFrame(inner._jdf.mapInArrow(made(*columns)._jc, False, None), df.sparkSession)


def partitions(df: DataFrame) -> int | None:
    """How many tasks read the rows of a micro-batch; None if that is not plain to see."""
    inner: Any = df
    try:
        return int(inner._jdf.queryExecution().logical().rdd().getNumPartitions())
    except (Py4JError, AttributeError):
        return None  # of our own epochs, whose plan is not one of rows that are there


def column_node(column: Any) -> Any:
    """The tree that a Column is (classic sessions only: over Spark Connect the server keeps it)."""
    try:
        return column._jc.node()
    except AttributeError:
        raise UnsupportedQuery(
            f"neither text nor a Column with a text (over Spark Connect no Column has one): {column}",
            fix="write the expression as a string",
        ) from None


def literal(node: Any) -> tuple[str, Any, str]:
    """A literal's type, Catalyst's value of it, and Catalyst's own SQL for it."""
    context: Any = SparkContext._active_spark_context
    classic = context._jvm.org.apache.spark.sql.classic
    expression = getattr(getattr(classic, "ColumnNodeToExpressionConverter$"), "MODULE$").apply(node)
    return str(expression.dataType().simpleString()), expression.value(), str(expression.sql())
