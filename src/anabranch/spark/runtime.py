"""The life of a running query: epochs one after another, each made real by its manifest.

An epoch comes from Spark (`on_batch`), or is one of our own with no new rows (`tick`, `catch_up`, `finish`): Spark runs
nothing when no rows arrive, but windows still close. A lock keeps them apart. Order within an epoch: the sink writes,
the manifest is committed, Spark commits its offsets when we return.

An epoch's number stands for its content, so what an epoch will be is written down (`pending.json`) before it starts:
after a crash the same epoch is run again, and not another one under its number.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from anabranch.control.actions import Action, Resize
from anabranch.errors import AnabranchError, CheckpointDamaged, QueryFailed
from anabranch.plan.explain import explain
from anabranch.plan.physical import Plan
from anabranch.plan.watermarks import marks
from anabranch.routing.layout import Layout
from anabranch.settings import Settings
from anabranch.site.holds import FOLDER as HOLDS
from anabranch.site.holds import path_of as note_of
from anabranch.site.ticket import Behind, Bounds, Report
from anabranch.spark import compat
from anabranch.spark.adaptation import Adaptation
from anabranch.spark.anchors import Anchors
from anabranch.spark.epoch import Built, EpochBuilder, Inputs
from anabranch.spark.failures import as_ours
from anabranch.spark.halves import SparkHalf
from anabranch.spark.progress import Phases, ProgressLine, entry
from anabranch.spark.sinks import Sink
from anabranch.spark.taps import StreamInput, unified, wire_schema
from anabranch.state.manifest import Manifest, ManifestLog
from anabranch.state.meta import open_or_create
from anabranch.state.owner import Owner
from anabranch.state.pending import Pending, interrupted
from anabranch.state.segments import Segment
from anabranch.state.store import Store

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

RECENT = 1000
PATIENCE_S = 30  # for the stop that was announced to an epoch; Spark's thread is held meanwhile


class Runtime:
    def __init__(
        self, session: SparkSession, plan: Plan, inputs: Mapping[str, StreamInput], statics: Mapping[str, DataFrame],
        settings: Settings, sink: Sink, location: str, schema: StructType, name: str | None,
    ) -> None:  # fmt: skip
        import uuid

        self.session = session
        self.plan = plan
        self.inputs = inputs
        self.statics = statics
        self.settings = settings
        self.sink = sink
        self.schema = schema
        self.name = name
        self.run_id = str(uuid.uuid4())
        self.id = self.run_id
        self.error: AnabranchError | None = None
        self.location = location
        self.sites = settings.sites or compat.slots(session)
        self.store = Store.open(settings.state_location or f"{location.rstrip('/')}/anabranch")
        self.owner = Owner(self.store, self.run_id)
        self.halves = SparkHalf(location)
        self.log = ManifestLog(self.store)
        self.anchors = Anchors(session)
        self.builder = EpochBuilder(
            plan, inputs, statics, settings.cells, self.store.uri, self.anchors, settings.combine
        )
        self.line = ProgressLine(settings.progress)
        self.manifest: Manifest
        self.stopping = threading.Event()  # no epoch may begin that need not
        self._parked = threading.Event()
        self._spark: StreamingQuery | None = None
        self._lock = threading.RLock()
        self._closed = False
        self._epoch_thread: int | None = None
        self._began = False  # whether the sink was told to start
        self._broken = False  # an epoch failed, and what it left is not known
        self._replaying: int | None = None  # the batch that an interrupted epoch belongs to
        self._interrupted: Pending | None = None  # its note, until it has run again
        self.memory: dict[int, int | None] = {}  # hot bytes of a site where it is not `stateMemory`
        self._last_end = time.monotonic()
        self._own_session: SparkSession | None = None
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._stateful = tuple(sorted({t.stream or "" for t in self.builder.sources if t.stage is not None}))
        self._waits = any(s.kind != "join" for s in plan.stages)

    # -- begin and end -----------------------------------------------------------------------------------------

    def open(self) -> None:
        """Find out where the query stands; nothing is written before everything has been checked."""
        fingerprint = self.plan.fingerprint()
        meta = open_or_create(self.store, fingerprint, explain(self.plan), self.settings.cells)
        self.id = meta.id
        self.owner.take()
        found = self.log.latest()
        if found is None:
            first = Layout.initial(self.plan.leaders, self.settings.cells, self.sites)
            found = Manifest(-1, -1, fingerprint, self.sites, first.to_json())
        elif found.fingerprint != fingerprint:
            raise CheckpointDamaged("the newest manifest is of another query", where=self.store.uri)
        self.halves.check(found)
        pending = interrupted(self.store, found)
        self.log.sweep()
        self.adaptation = Adaptation(self.plan, self.settings, self.store, self.settings.cells)
        layout = Layout.from_json(found.assignment).over(self.plan.leaders, self.settings.cells)
        if pending is None:
            layout = layout.resized(self.sites)
            self.store.delete(self.store.list(HOLDS))
        elif layout.sites != self.sites:  # the interrupted epoch runs as it was; the sites change behind it
            self.adaptation.ask(Resize(self.sites))
        self._interrupted = pending
        self.manifest = replace(found, sites=layout.sites, assignment=layout.to_json())
        self._began = True
        self.sink.start(self.session, self.schema, self.manifest.epoch + 1, self.id)
        # An epoch that was under way when the process died is the one to come next.
        if pending is not None and pending.kind == "batch":
            self._replaying = pending.batch
        elif pending is not None:
            self.own_epoch(pending.kind)

    def streaming(self) -> DataFrame:
        return unified(self.builder.taps, self.inputs, self.statics, self.settings.cells)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self.line.close()
            try:
                self.anchors.release()
                self.builder.mail.take(self.builder.post.name)  # of an epoch that failed
                if self._began:
                    self.sink.stop()
            finally:
                self.owner.release()

    # -- where epochs come from --------------------------------------------------------------------------------

    def on_batch(self, df: DataFrame, batch: int) -> None:
        """Spark's next micro-batch. One that is in the manifest already was committed before Spark could note it."""
        with self._lock:
            try:
                self.halves.check_next(batch, self.manifest)
                if batch > self.manifest.batch:
                    self.run_epoch(df, "batch", batch)
            except Exception as error:
                self.error = self.error or as_ours(error)
                raise
            if self._replaying is not None and batch >= self._replaying:
                self._replaying = None
        self._park()

    # -- the end of a running query ----------------------------------------------------------------------------

    def await_gap(self, spark: StreamingQuery, timeout: float) -> bool:
        """Wait until nothing of Spark's can be interrupted: no trigger is at work, or its epoch has ended and waits
        here. False if it took too long."""
        self._spark = spark
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not spark.isActive or not spark.status["isTriggerActive"] or self._parked.wait(0.005):
                return True
        return False

    def _park(self) -> None:
        """An epoch is over and the query is to stop: go back to Spark only once it knows that."""
        if not self.stopping.is_set():
            return
        self._parked.set()
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and (self._spark is None or self._spark.isActive):
            time.sleep(0.002)

    def is_mine(self) -> bool:
        """Whether this thread is running an epoch."""
        return self._epoch_thread == threading.get_ident()

    # -- epochs of our own -------------------------------------------------------------------------------------

    def own_epoch(self, kind: str) -> None:
        """An epoch without new rows: `tick`, or `flush` (as if all input had ended)."""
        if self._own_session is None:
            self._own_session = compat.plain_session(self.session)
        columns = [F.lit(None).cast(type).alias(name) for name, type in wire_schema(self.builder.taps).items()]
        nothing = self._own_session.range(1).where("id < 0").select(*columns)
        self.run_epoch(nothing, kind, self.manifest.batch)

    def tick(self) -> None:
        """Release what the watermark allows, if nothing else will; let silent streams no longer hold it."""
        if not self._lock.acquire(blocking=False):
            return  # an epoch is running
        try:
            if self._closed or self._replaying is not None or self.manifest.epoch < 0:
                return
            if time.monotonic() - self._last_end < self.settings.heartbeat_us / 1e6 and not self.adaptation.wanted:
                return  # rows keep coming
            if self.waiting() or self._idle_would_release() or self.adaptation.wanted:
                self.own_epoch("tick")
        finally:
            self._lock.release()

    def waiting(self) -> bool:
        """Whether rows are held, or results are due that no epoch has given out."""
        m = self.manifest
        if any(segments for port, segments in m.state.items() if is_held(port)):
            return True
        if not self._waits or m.watermark is None:
            return False
        levels = [m.released.get(s.id) for s in self.plan.stages if s.kind != "join"]
        levels += [level for cells in m.behind.values() for level, _ in cells.values()]
        return any(level is None or level < m.watermark for level in levels)

    def _idle_would_release(self) -> bool:
        if not self._waits or self.settings.idle_after_us is None:
            return False
        mark = self._watermark(self.manifest.streams)
        return mark is not None and mark > (
            self.manifest.watermark if self.manifest.watermark is not None else mark - 1
        )

    def catch_up(self) -> None:
        """Run what is waiting now."""
        with self._lock:
            while not self._closed and not self.stopping.is_set() and self.waiting():
                self.own_epoch("tick")

    def finish(self) -> None:
        """The end of a finite run."""
        self.catch_up()
        if self.settings.flush_at_end and self.manifest.epoch >= 0 and self._waits:
            with self._lock:
                if not self.stopping.is_set():
                    self.own_epoch("flush")

    # -- one epoch ---------------------------------------------------------------------------------------------

    def run_epoch(self, df: DataFrame, kind: str, batch: int) -> None:
        if self._broken:
            raise QueryFailed("an epoch failed before: the query must start again from its checkpoint")
        self._broken = True  # until this epoch is committed: nothing else may run under its number
        self._epoch_thread = threading.get_ident()
        begin = time.perf_counter()
        epoch = self.manifest.epoch + 1
        self.owner.check()
        memory, patience = self._bounds()
        Pending(epoch, kind, batch, memory, patience).write(self.store)
        given = self._given(kind, memory, patience)
        built = self.builder.build(df, given)
        planned = time.perf_counter()
        try:
            self._write(built, epoch)
            ran = time.perf_counter()
            after = self._after(built, given, kind, batch)
        finally:
            self._epoch_thread = None
            built.release()
        self.owner.check()
        self.adaptation.write_journal(epoch)
        self.log.commit(after)
        self.manifest = after
        self._interrupted = None
        self._broken = False
        self.log.retain()
        self.store.delete(note_of(r.stage, epoch, r.site) for r in built.reports if r.noted)
        self._last_end = time.monotonic()
        end = time.perf_counter()
        phases = Phases((planned - begin) * 1e3, (ran - planned) * 1e3, (end - ran) * 1e3, (end - begin) * 1e3)
        self._tell(built, given, kind, batch, phases)

    def _bounds(self) -> tuple[list[int | None], float | None]:
        """Hot bytes per site, and the time a site may take; an epoch that was interrupted has those it had."""
        if self._interrupted is not None:
            return self._interrupted.memory, self._interrupted.patience_ms
        budget = self.settings.state_memory_bytes
        memory = [self.memory.get(site, budget) for site in range(self.manifest.sites)]
        time_us = self.settings.time_budget_us
        return [] if all(m is None for m in memory) else memory, None if time_us is None else time_us / 1000

    def _given(self, kind: str, memory: list[int | None], patience_ms: float | None) -> Inputs:
        m = self.manifest
        watermark = self._flushed() if kind == "flush" else m.watermark
        unhurried = kind != "batch"
        behind: dict[str, dict[int, Behind]] = {
            stage: {int(c): (level, since) for c, (level, since) in cells.items()} for stage, cells in m.behind.items()
        }
        mark = marks(
            self.plan, watermark, m.released, behind, unhurried=unhurried, bounded=patience_ms is not None
        )  # fmt: skip
        shares = self._shares()
        bounds = {
            s.id: Bounds(
                tuple(None if b is None else int(b * shares[s.id]) for b in memory), patience_ms,
                self.settings.held_bytes, unhurried,
            )
            for s in self.plan.stages
        }  # fmt: skip
        coming: dict[str, dict[int, int]] = {}
        for stage in self.plan.stages:
            leader = self.plan.leader(stage.id)
            coming[stage.id] = {c: site for (o, c), site in self.adaptation.coming.items() if o == leader}
        state = {port: tuple(m.segments(port)) for port in m.state}
        return Inputs(m.epoch + 1, watermark, mark, m.released, behind, self.layout(), state, bounds, coming)

    def _shares(self) -> dict[str, float]:
        """How the stages share the memory of a site: by the state they have, a twentieth for each at least."""
        size = {s.id: 0 for s in self.plan.stages}
        for port, segments in self.manifest.state.items():
            if not is_held(port):
                size[port.partition("/")[0]] += sum(int(s["nbytes"]) for s in segments)
        whole = max(sum(size.values()), 1)
        weight = {id: max(n / whole, 0.05) for id, n in size.items()}
        return {id: w / sum(weight.values()) for id, w in weight.items()}

    def _flushed(self) -> int | None:
        """A watermark past everything that the input so far can still give."""
        times = [s["time"] for s in self.manifest.streams.values() if s["time"] is not None]
        if not times:
            return self.manifest.watermark
        end: int = max(times) + self.plan.extent + 1
        return end if self.manifest.watermark is None else max(end, self.manifest.watermark)

    def _write(self, built: Built, epoch: int) -> None:
        if self.sink.reads_often:
            rows = built.rows.persist()
            built.persisted.append(rows)
            rows.write.format("noop").mode("overwrite").save()
            self.sink.write(rows, epoch)
        else:
            self.sink.write(built.rows, epoch)

    def _after(self, built: Built, given: Inputs, kind: str, batch: int) -> Manifest:
        """The manifest that the epoch's reports add up to."""
        reports = built.reports
        expected = {(s.id, site) for s in self.plan.stages for site in range(given.sites)}
        missing = expected - {(r.stage, r.site) for r in reports}
        if missing:
            raise QueryFailed(
                f"{len(missing)} sites did not report, so the epoch's state is not known",
                where=f"epoch {given.epoch}, e.g. site {min(missing)[1]} of {min(missing)[0]}",
                fix="start the query again from its checkpoint",
            )
        streams = self._streams(built)
        watermark = given.watermark if kind == "flush" else self._watermark(streams)
        if given.watermark is not None:
            watermark = given.watermark if watermark is None else max(watermark, given.watermark)
        rows = {n: int(built.seen.get(f"rows_{n}") or 0) for n in self.plan.streams} if kind == "batch" else None
        budgets = {o: self._budget(o, given) for o in self.plan.leaders}
        layout = self.adaptation.next_layout(given.layout, given.epoch, reports, rows, budgets)
        behind: dict[str, dict[str, Any]] = {}
        for report in reports:
            for cell, level in report.behind.items():
                behind.setdefault(report.stage, {})[str(cell)] = list(level)
        return replace(
            self.manifest,
            epoch=given.epoch,
            batch=batch,
            sites=layout.sites,
            assignment=layout.to_json(),
            watermark=watermark,
            released=dict(given.marks),
            behind=behind,
            streams=streams,
            state=next_state(given, reports),
            extra=self.manifest.extra | {"offsets": self.halves.offsets(batch)},
        )

    def _budget(self, operator: str, given: Inputs) -> list[int | None]:
        """Hot bytes per site of an operator with the stages that run behind it at the same sites."""
        stages = [s.id for s in self.plan.stages if self.plan.leader(s.id) == operator]
        parts = [[given.bounds[id].budget(site) for id in stages] for site in range(given.sites)]
        return [None if None in part else sum(b for b in part if b is not None) for part in parts]

    def _streams(self, built: Built) -> dict[str, dict[str, Any]]:
        now = time.time()
        known = self.manifest.streams
        seen = built.seen
        streams = {}
        for name in self.plan.streams:
            old = known.get(name, {"time": None, "active": now})
            rows = int(seen.get(f"rows_{name}") or 0)
            newest = seen.get(f"time_{name}")
            times = [t for t in (old["time"], newest) if t is not None]
            streams[name] = {"time": max(times, default=None), "active": now if rows else old["active"]}
        return streams

    def _watermark(self, streams: Mapping[str, Mapping[str, Any]]) -> int | None:
        """The least over the streams that are not idle; unknown while one of them has not been seen."""
        marks = []
        for name in self._stateful:
            stream = streams[name]
            if self.idle(stream):
                continue
            if stream["time"] is None:
                return None
            marks.append(stream["time"] - self.inputs[name].delay_us)
        return min(marks, default=None)

    def idle(self, stream: Mapping[str, Any]) -> bool:
        after = self.settings.idle_after_us
        return after is not None and time.time() - stream["active"] > after / 1e6

    # -- telling -----------------------------------------------------------------------------------------------

    def layout(self) -> Layout:
        return Layout.from_json(self.manifest.assignment)

    def ask(self, action: Action) -> None:
        """A move or another number of sites, from the next epoch on."""
        self.adaptation.check(action, self.layout())
        self.adaptation.ask(action)

    def _tell(self, built: Built, given: Inputs, kind: str, batch: int, phases: Phases) -> None:
        seen = built.seen
        streams = {
            name: {
                "rows": int(seen.get(f"rows_{name}") or 0),
                "late": int(seen.get(f"late_{name}") or 0),
                "time": self.manifest.streams[name]["time"],
                "idle": self.idle(self.manifest.streams[name]),
            }
            for name in self.plan.streams
        }
        reports = built.reports
        self.builder.learn(built)
        progress = entry(
            id=self.id, run_id=self.run_id, name=self.name, epoch=given.epoch, batch=batch, kind=kind, phases=phases,
            streams=streams, rows_out=self.builder.rows_out(built), watermark=given.watermark,
            next_watermark=self.manifest.watermark, reports=reports,
            state={port: self.manifest.segments(port) for port in self.manifest.state},
            sites=given.sites, assignment=given.layout.version, sink=self.sink.describe(),
            moves=self.adaptation.moves, policy=self.adaptation.policy,
        )  # fmt: skip
        self._recent.append(progress)
        self.line.show(progress)

    def recent_progress(self, spark: StreamingQuery | None) -> list[dict[str, Any]]:
        """Ours, with the time that Spark spent around each batch once it tells."""
        told: dict[int, Any] = {}
        if spark is not None:
            try:
                told = {p["batchId"]: p for p in map(as_dict, spark.recentProgress)}
            except Exception:
                told = {}
        found = []
        for progress in list(self._recent):
            theirs = told.get(progress["batchId"]) if progress["kind"] == "batch" else None
            if theirs:
                durations = dict(theirs["durationMs"])
                progress = progress | {"durationMs": progress["durationMs"] | durations}
            found.append(progress)
        return found


def as_dict(progress: Any) -> dict[str, Any]:
    return dict(json.loads(progress.json))


def is_held(port: str) -> bool:
    """Whether a "stage/port" is of rows that have not been processed."""
    return port.rpartition("/")[2].startswith("held-")


def next_state(given: Inputs, reports: list[Report]) -> dict[str, list[dict[str, Any]]]:
    """Live segments after the epoch: what was, without what sites dropped for their cells, with what they wrote."""
    state: dict[str, list[Segment]] = {port: list(segments) for port, segments in given.state.items()}
    gone: dict[str, int] = {}
    for report in reports:
        for path, cells in report.dropped:
            gone[path] = gone.get(path, 0) | int(cells, 16)
        for port, data in report.written:
            state.setdefault(f"{report.stage}/{port}", []).append(Segment.from_json(data))
    result = {}
    for name, segments in state.items():
        kept = [rest for s in segments if (rest := s.minus(gone[s.path]) if s.path in gone else s) is not None]
        result[name] = [s.to_json() for s in kept]
    return result
