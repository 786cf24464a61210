"""Runs: what the command line does with experiments. Run them, show and keep what came out; report on what is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.status import Status

from anabranch.errors import SettingError
from anabranch.lab import agreement
from anabranch.lab.experiment import PAPER, SIZES, Experiment, Size
from anabranch.lab.machine import MACHINE
from anabranch.lab.page import page
from anabranch.lab.plot import png
from anabranch.lab.registry import built, matching
from anabranch.lab.report import show, summary
from anabranch.lab.results import Outcome, keep, kept, outcome
from anabranch.lab.simulate import simulated

PAGE = "report.html"


def run_simulated(console: Console, name: str, size: str, seed: int, out: Path, processes: int) -> bool:
    """Whether every claim is settled. What is done when somebody interrupts is kept."""
    experiments = [_sized(built(n, SIZES[size], seed), SIZES[size]) for n in matching(name)]
    done: list[Outcome] = []
    with console.status("") as status:
        began = time.perf_counter()
        of_runs = simulated(experiments, processes, lambda n, of: status.update(f"{n} of {of} runs"))
        for experiment, results in zip(experiments, of_runs, strict=True):
            now = time.perf_counter()
            done.append(_keep(console, outcome(experiment, results, f"{size} size", seed, now - began), out))
            began = now
    return _told(console, done, out)


def _sized(experiment: Experiment, size: Size) -> Experiment:
    """With its size among the parameters, where that is not the paper's."""
    if size == PAPER:
        return experiment
    less = {"here": f"{size.sites} sites, runs {size.seconds:g} times as long as at the paper's size"}
    return replace(experiment, parameters={**experiment.parameters, **less})


def run_compared(console: Console, name: str, seed: int, out: Path, start: Callable[[int], Any]) -> bool:
    """The same experiments on Spark and simulated: whether the two agree. `start` gives a session with so many slots,
    and is not called before it is needed."""
    names = agreement.comparable(matching(name))
    done: list[Outcome] = []
    with console.status("starting Spark") as status:
        session = start(MACHINE.sites)
        try:
            for one in names:
                done.append(_keep(console, agreement.compare(one, session, seed, Telling(console, status)), out))
        finally:
            session.stop()
    return _told(console, done, out)


class Telling:
    """What is being done: a line that changes where somebody can see it, and else one line per run."""

    def __init__(self, console: Console, status: Status) -> None:
        self.console = console
        self.status = status
        self.last = ""

    def __call__(self, what: str, how_far: str) -> None:
        if self.console.is_terminal:
            self.status.update(what + how_far)
        elif what != self.last:
            self.console.print(what)
        self.last = what


def report_kept(console: Console, out: Path) -> None:
    outcomes = kept(out)
    if not outcomes:
        raise SettingError("there are no results here", where=str(out), fix="make some: anabranch lab run flux")
    for one in outcomes:
        show(console, one)
    console.print(f"\n{summary(outcomes)}")
    images = {one.file: png(one) for one in outcomes}
    for file, image in images.items():
        (out / f"{file}.png").write_bytes(image)
    (out / PAGE).write_text(page(outcomes, images), encoding="utf-8")
    console.print(f"{len(images)} figures and {out / PAGE}")


def _keep(console: Console, one: Outcome, out: Path) -> Outcome:
    keep(one, out)
    show(console, one)
    return one


def _told(console: Console, done: list[Outcome], out: Path) -> bool:
    console.print(f"\n{summary(done)}. Kept in {out}; anabranch lab report shows it with figures")
    return all(o.settled for o in done)
