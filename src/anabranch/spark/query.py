"""The handle of a running query; mirrors PySpark's StreamingQuery and adds what is ours.

Spark's own query drives the epochs; a supervisor thread waits for its end, runs the closing epochs of a finite run, and
settles the outcome. Errors of ours that crossed Spark on their way are given back as they were raised.

`stop()` lets the running epoch finish. Spark's own stop would interrupt it: nothing would be lost, but the work of the
epoch, and Spark would log the interruption as an error. So the query is stopped where nothing can be interrupted: while
Spark looks for new rows, or at the end of an epoch, which then waits for the stop to arrive (`Runtime.park`).
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs

from anabranch.control.actions import Move, Resize
from anabranch.errors import AnabranchError, QueryFailed, SettingError
from anabranch.settings import Settings
from anabranch.spark import compat
from anabranch.spark.failures import as_ours, was_interrupted
from anabranch.spark.runtime import Runtime
from anabranch.spark.sinks import Sink
from anabranch.spark.sinks.files import open_folder

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from anabranch.spark.flow import Flow


class Fresh:
    """A checkpoint folder that does not exist yet; `undo` takes it back when the query does not start after all."""

    def __init__(self, location: str) -> None:
        self.fs, self.root, _, _ = open_folder(location)
        self.is_new = self._kind() == pafs.FileType.NotFound

    def _kind(self) -> Any:
        return self.fs.get_file_info(self.root).type

    def undo(self) -> None:
        if self.is_new and self._kind() == pafs.FileType.Directory:
            self.fs.delete_dir(self.root)


class ContinuousQuery:
    """Made by `writeStream.start()`."""

    def __init__(self, flow: Flow, runtime: Runtime, name: str | None, finite: bool, temporary: str | None) -> None:
        self.runId = runtime.run_id
        self.name = name
        self._flow = flow
        self._runtime = runtime
        self._finite = finite
        self._temporary = temporary
        self._done = threading.Event()
        self._stopping = threading.Event()
        self._error: AnabranchError | None = None
        self._spark: StreamingQuery | None = None
        self._interrupted = False  # an epoch outlasted the patience of `stop`

    @classmethod
    def start(
        cls, flow: Flow, sink: Sink, settings: Settings, location: str | None, name: str | None, trigger: dict[str, Any]
    ) -> ContinuousQuery:
        session = flow.session
        compat.check_session(session)
        plan = flow.plan(settings.strategy)
        sink.check(session, flow.schema)
        if name and any(q.name == name for q in session.streams.active):
            raise SettingError(f"a query named {name} is running already", where=".queryName(...)",
                               fix="stop it first, or give this one another name")  # fmt: skip
        temporary = None
        if location is None:
            location = temporary = tempfile.mkdtemp(prefix="anabranch-checkpoint-")
        fresh = Fresh(location)
        finite = bool(trigger.get("availableNow") or trigger.get("once"))
        if trigger.get("once"):
            # Spark's Once, started after a crash, repeats the interrupted batch and leaves the rest unread; with
            # flushAtEnd that rest would be late. The answer does not depend on the cut into epochs, so read all.
            trigger = {"availableNow": True}
        runtime = Runtime(session, plan, flow.inputs, flow.statics, settings, sink, location, flow.schema, name)
        query = cls(flow, runtime, name, finite, temporary)
        try:
            runtime.halves.refuse_foreign()
            runtime.open()
            writer = runtime.streaming().writeStream.foreachBatch(runtime.on_batch)
            writer = writer.option("checkpointLocation", f"{location.rstrip('/')}/spark")
            if trigger:
                writer = writer.trigger(**trigger)
            if name:
                writer = writer.queryName(name)
            query._spark = writer.start()
        except BaseException:
            if runtime.owner.held:  # else the folder may have become another query's in the meantime
                fresh.undo()
            runtime.close()
            if temporary:
                shutil.rmtree(temporary, ignore_errors=True)
            raise
        threading.Thread(target=query._supervise, name=f"anabranch-{name or query.id[:8]}", daemon=True).start()
        if not finite:
            threading.Thread(target=query._beat, name="anabranch-heartbeat", daemon=True).start()
        return query

    # -- what Spark's handle has --------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The checkpoint's: the same after every restart."""
        return self._runtime.id

    @property
    def isActive(self) -> bool:
        return not self._done.is_set()

    @property
    def status(self) -> dict[str, Any]:
        spark = self._spark.status if self._spark is not None and self.isActive else {}
        return {"message": "Stopped", "isDataAvailable": False, "isTriggerActive": False} | dict(spark)

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return self._runtime.recent_progress(self._spark)

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        recent = self.recentProgress
        return recent[-1] if recent else None

    def exception(self) -> AnabranchError | None:
        return self._error

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Wait for the end; raises what ended the query if that was an error. With a timeout: whether it ended."""
        ended = self._done.wait(timeout)
        if self._error is not None:
            raise self._error
        return ended if timeout is not None else None

    def processAllAvailable(self) -> None:
        """Wait until everything that is there has been processed, results that the watermark releases included."""
        assert self._spark is not None
        try:
            self._spark.processAllAvailable()
        except Exception as error:
            self._done.wait(30)
            raise self._error or as_ours(error) from None
        self._runtime.catch_up()

    def stop(self, timeout: float = 60) -> None:
        """Stop after the running epoch; everything committed stays. An epoch that takes longer than `timeout` seconds
        is interrupted, and runs again at the next start."""
        self._stopping.set()
        self._runtime.stopping.set()
        if self._runtime.is_mine():  # called from inside an epoch, which cannot wait for itself
            threading.Thread(target=self.stop, args=(timeout,), name="anabranch-stop", daemon=True).start()
            return
        spark = self._spark
        if spark is not None and not self._done.is_set():
            self._interrupted = not self._runtime.await_gap(spark, timeout)
            spark.stop()
        self._done.wait(timeout)

    def explain(self, extended: bool = False) -> None:
        print(self.plan_text(extended))

    # -- ours ---------------------------------------------------------------------------------------------------

    def plan_text(self, extended: bool = False) -> str:
        from anabranch.plan.explain import explain

        return explain(self._runtime.plan, self._runtime.layout(), extended)

    def journal(self) -> list[dict[str, Any]]:
        """Every decision of this run, newest last: what, why, verdict, predicted and observed effect."""
        return [dict(entry) for entry in self._runtime.adaptation.journal.entries]

    def rescale(self, sites: int) -> None:
        """Run on another number of sites, from the next epoch on."""
        self._runtime.ask(Resize(sites))

    def move(self, cell: int, site: int, operator: str | None = None) -> None:
        """Move a cell, with its state, to a site. `operator` is needed where the flow has several (see `explain`)."""
        leaders = self._runtime.plan.leaders
        if operator is None and len(leaders) != 1:
            raise SettingError("move needs the operator that the cell is of", fix=f"one of {', '.join(leaders)}")
        self._runtime.ask(Move(operator or leaders[0], cell, site))

    def rebalance(self) -> None:
        """Let the policies decide after the next epoch, whatever is left of their round."""
        self._runtime.adaptation.rebalance()

    def pauseAdaptation(self) -> None:
        """Decide nothing until `resumeAdaptation`; what was asked for by hand still happens."""
        self._runtime.adaptation.pause(True)

    def resumeAdaptation(self) -> None:
        self._runtime.adaptation.pause(False)

    def __repr__(self) -> str:
        return f"ContinuousQuery({self.name or self.id}, {'active' if self.isActive else 'stopped'})"

    # -- threads ------------------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        assert self._spark is not None
        try:
            self._spark.awaitTermination()
            if self._finite:
                self._runtime.finish()
        except Exception as error:
            self._error = self._runtime.error or as_ours(error)
        finally:
            self._settle()

    def _settle(self) -> None:
        """Let go of everything; the outcome is known when this is done."""
        try:
            self._runtime.close()
        except Exception as error:
            self._error = self._error or as_ours(error)
        finally:
            self._error = self._error or self._runtime.error
            if self._interrupted or (self._stopping.is_set() and was_interrupted(self._error)):
                self._error = None  # `stop` did that
            if self._temporary:
                shutil.rmtree(self._temporary, ignore_errors=True)
            self._done.set()

    def _beat(self) -> None:
        while not self._done.wait(self._runtime.settings.heartbeat_us / 1e6):
            if self._stopping.is_set():
                return
            try:
                self._runtime.tick()
            except Exception as error:
                self._runtime.error = self._runtime.error or as_ours(error)
                if self._spark is not None:
                    self._spark.stop()
                return


def new_id() -> str:
    return str(uuid.uuid4())


__all__ = ["ContinuousQuery", "QueryFailed", "new_id"]
