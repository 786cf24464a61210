"""What the runtime expects of a sink."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


class Sink(ABC):
    """Writes each epoch once.

    An epoch's number stands for its content: after a crash the same number comes again with the same rows (as a
    multiset), and writing it again must have no effect.
    """

    name: ClassVar[str]
    reads_often: ClassVar[bool] = False  # whether `write` may run several actions: the rows are persisted before

    def check(self, session: SparkSession, schema: StructType) -> None:
        """Refuse what cannot work, before anything is written anywhere; raise SinkError."""

    def start(self, session: SparkSession, schema: StructType, first_epoch: int, checkpoint: str) -> None:
        """Check everything that can be checked before the first epoch; raise SinkError. `first_epoch` comes next.

        `checkpoint` is the identity of the checkpoint: epoch n of another one is another epoch.
        """

    @abstractmethod
    def write(self, rows: DataFrame, epoch: int) -> None: ...

    def stop(self) -> None:
        """The query has ended."""

    def describe(self) -> str:
        return self.name
