"""How sites tell the driver what they did: short texts that travel with the results of Spark's tasks.

An accumulator of PySpark's, one for each Spark context: a task that succeeds hands in what its sites posted, before the
action that it belongs to returns. A task that Spark tries again posts again, so whoever reads must expect doubles.

PySpark carries these values by its own pickle, from a worker it started to the driver over the connections with which
it also sends the function; nothing of ours is loaded from there but strings.
"""

from __future__ import annotations

import threading
from typing import Any

from pyspark import AccumulatorParam, SparkContext
from pyspark.sql import SparkSession

Letter = tuple[str, str]  # to whom, what


_lock = threading.Lock()  # PySpark delivers in a thread of its own


class Letters(AccumulatorParam[list[Letter]]):
    def zero(self, value: list[Letter]) -> list[Letter]:
        return []

    def addInPlace(self, value1: list[Letter], value2: list[Letter]) -> list[Letter]:
        with _lock:
            value1 += value2
        return value1


class Post:
    """The sites' end: what one query's sites post."""

    def __init__(self, box: Any, name: str) -> None:
        self.box = box
        self.name = name

    def __call__(self, text: str) -> None:
        self.box.add([(self.name, text)])


class Mail:
    """The driver's end."""

    _of: tuple[SparkContext, Mail] | None = None

    def __init__(self, context: SparkContext) -> None:
        self.box: Any = context.accumulator([], Letters())

    @classmethod
    def of(cls, session: SparkSession) -> Mail:
        """The one of the running context: PySpark keeps every accumulator for the life of the process."""
        context = session.sparkContext
        with _lock:
            if cls._of is None or cls._of[0] is not context:
                cls._of = context, Mail(context)
            return cls._of[1]

    def take(self, name: str) -> list[str]:
        """What has come for this name since it was asked for last."""
        with _lock:
            letters = self.box.value
            mine = [text for to, text in letters if to == name]
            letters[:] = [letter for letter in letters if letter[0] != name]
        return mine
