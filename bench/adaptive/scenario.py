"""What a scenario is, and the field it is played on: a session with many task slots, and every run that was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import anabranch as ab
from anabranch.testing import Load, Pace, Run, run_load, wrong_answer
from anabranch.testing.events import Event

SITES = 16


@dataclass(frozen=True)
class Figure:
    """Something measured; with a limit, a bar: at least it, or at most it."""

    name: str
    value: float
    limit: float | None = None
    at_most: bool = False
    unit: str = ""

    @property
    def reached(self) -> bool | None:
        if self.limit is None:
            return None
        return self.value <= self.limit if self.at_most else self.value >= self.limit


@dataclass
class Field:
    """Where runs are made. Each has a folder of its own, and is kept under its name."""

    folder: Path
    quick: bool
    memory: str = "4g"
    say: Callable[[str], None] = print
    runs: dict[str, Run] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)  # run -> "equal", or what is wrong
    folders: dict[Load, Path] = field(default_factory=dict)

    @contextmanager
    def session(self, slots: int = SITES) -> Iterator[Ground]:
        """A session with so many task slots, warm."""
        session = ab.session(
            "bench", master=f"local[{slots}]", memory=self.memory, spark__python__worker__reuse="true",
            spark__sql__streaming__numRecentProgressUpdates="1000", spark__default__parallelism=str(slots),
            spark__sql__streaming__pollingDelay="1ms",
        )  # fmt: skip
        try:
            ground = Ground(self, session)
            warm = Load(epochs=12, sites=slots, rows=1024)
            run_load(session, warm, self.folder / f"warm-{slots}")
            yield ground
        finally:
            session.stop()

    def folder_of(self, load: Load) -> Path:
        """Runs over one load share its files."""
        return self.folders.setdefault(load, self.folder / f"load-{len(self.folders)}")


@dataclass
class Ground:
    """A session, and the field that it belongs to."""

    field: Field
    session: SparkSession

    @property
    def quick(self) -> bool:
        return self.field.quick

    def run(
        self, name: str, load: Load, *, pace: Pace | None = None, options: Mapping[str, Any] | None = None,
        events: Mapping[int, Event] | None = None, sink: str = "noop",
    ) -> Run:  # fmt: skip
        """A measured run; with the sink `parquet` its answer is compared with Spark batch."""
        folder, label = self.field.folder_of(load), f"{len(self.field.runs):03d}"
        given = {"flushAtEnd": sink != "noop", "roundEpochs": 2} | dict(options or {})
        made = run_load(
            self.session, load, folder, pace=pace, options=given, events=events, name=label, sink=sink
        )  # fmt: skip
        self.field.runs[name] = made
        told = f"{name}: {len(made.ms)} epochs, {made.rate():,.0f} rows/s, {len(made.moves)} moves"
        if sink != "noop":
            self.field.answers[name] = wrong_answer(self.session, load, folder, label) or "equal"
            told += f", answer {self.field.answers[name]}"
        self.field.say(told)
        return made

    def check(
        self, name: str, load: Load, *, pace: Pace, options: Mapping[str, Any] | None = None,
        events: Mapping[int, Event] | None = None,
    ) -> Run:  # fmt: skip
        """The same with busy times that are told and not spent, for its answer."""
        pace = replace(pace, virtual=True)
        return self.run(f"{name}, answer", load, pace=pace, options=options, events=events, sink="parquet")


@dataclass(frozen=True)
class Scenario:
    """`measure` plays it and yields what came of it."""

    name: str
    about: str
    measure: Callable[[Field], Iterator[Figure]]
