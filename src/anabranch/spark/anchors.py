"""Anchors keep a site on its executor.

The anchor is a cached DataFrame with one row per site, placed by `repartitionById`. Joining an exchange with it by a
shuffled-hash join moves nothing (both sides are partitioned alike) but gives each task a preferred executor: where the
site's anchor block lives. An executor that dies takes its anchor blocks along; they are computed again elsewhere, and
its sites follow. With a single executor there is nothing to hold, and no join.

Known limit: Spark treats the place as a preference; a task that waits longer than spark.locality.wait runs elsewhere.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.spark import compat


class Anchors:
    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.needed = not compat.one_executor(session)
        self._sites: int | None = None
        self._anchor: DataFrame | None = None

    def anchored(self, rows: DataFrame, sites: int) -> DataFrame:
        """`rows` is partitioned by `_site`; the result is the same rows, each partition drawn to its anchor."""
        if not self.needed:
            return rows
        anchor = self._for(sites)
        return rows.join(anchor.hint("shuffle_hash"), rows["_site"] == anchor["_anchor"], "inner").drop("_anchor")

    def _for(self, sites: int) -> DataFrame:
        if self._anchor is None or self._sites != sites:
            self.release()
            frame = self.session.range(sites).select(F.col("id").cast("int").alias("_anchor"))
            self._anchor = frame.repartitionById(sites, F.col("_anchor")).persist()
            self._anchor.count()
            self._sites = sites
        return self._anchor

    def release(self) -> None:
        if self._anchor is not None:
            self._anchor.unpersist()
            self._anchor = None
