"""Agreement: the same experiment on Spark and on the simulator, at this machine's size. Do the two say the same?

Compared is what each run comes to once steady, relative to the run in which nothing is disturbed, each on its own
driver; and the order of the variants. What that is, and when two drivers agree on it, is a `Yardstick`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.errors import SettingError
from anabranch.lab.experiment import Curve, Experiment, Results, Run
from anabranch.lab.machine import MACHINE, Emulation, machine_sized
from anabranch.lab.measures import steady, steady_latency
from anabranch.lab.registry import built
from anabranch.lab.results import Finding, Outcome, Plot, made, written
from anabranch.lab.simulate import simulate
from anabranch.sim.trace import Trace

if TYPE_CHECKING:
    from anabranch.lab.on_spark import OnSpark

LEVEL = 0.05  # shares closer than that, of the larger one, have no order


@dataclass(frozen=True)
class Yardstick:
    of: str  # what is measured
    measure: Callable[[Trace], float]
    agree: Callable[[float, float], bool]  # relative to the undisturbed run, the simulator's and Spark's


THROUGHPUT = Yardstick("throughput", steady, lambda a, b: abs(a - b) <= 0.10)
# How long rows wait for memory depends on the disk, which is real on Spark and the paper's in the simulator; that they
# wait at all does not.
LATENCY = Yardstick("latency", steady_latency, lambda a, b: (a > 2) == (b > 2))


@dataclass(frozen=True)
class Comparison:
    emulation: Emulation = field(default_factory=Emulation)
    yardstick: Yardstick = THROUGHPUT


COMPARED = {
    "flux.fig6": Comparison(),
    "flux.fig7": Comparison(),
    "flux.fig9": Comparison(Emulation(epoch=1.0, epochs=20, slow_motion=1.0, cells_per_site=16), LATENCY),
}

Key = tuple[str, float | None]
Say = Callable[[str, str], None]


def comparable(names: Sequence[str]) -> list[str]:
    found = [n for n in names if n in COMPARED]
    if not found:
        raise SettingError(f"{' and '.join(names)} cannot run on Spark", fix=f"use one of {', '.join(COMPARED)}")
    return found


def compare(name: str, session: Any, seed: int, say: Say) -> Outcome:
    """Run an experiment on both. `say` hears what is being done, and how far it is."""
    from anabranch.lab.on_spark import OnSpark

    comparison = COMPARED[name]
    experiment = selected(built(name, MACHINE, seed), comparison.emulation)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="anabranch-lab-") as folder:
        spark = run_all(OnSpark(session, comparison.emulation, Path(folder)), experiment, say)
    say(f"{name}: simulating", "")
    simulated = simulate([experiment])[0]
    return compared(experiment, simulated, spark, comparison, seed, time.perf_counter() - began)


def selected(experiment: Experiment, emulation: Emulation) -> Experiment:
    """The runs that are compared: one in which nothing is disturbed, and of each variant those at the first two, the
    middle and the last point of the x axis."""
    calm = next(r for r in experiment.runs if undisturbed(r))
    runs = [calm]
    for variant in dict.fromkeys(r.variant for r in experiment.runs):
        mine = sorted((r for r in experiment.runs if r.variant == variant), key=lambda r: r.x or 0.0)
        wanted = sorted({0, min(1, len(mine) - 1), len(mine) // 2, len(mine) - 1})
        runs += [mine[n] for n in wanted if not undisturbed(mine[n])]
    return replace(experiment, runs=tuple(replace(r, scenario=machine_sized(r.scenario, emulation)) for r in runs))


def undisturbed(run: Run) -> bool:
    return not run.scenario.loads and not run.scenario.cuts


def run_all(runner: OnSpark, experiment: Experiment, say: Say) -> Results:
    """The undisturbed run, which is the measure of all others, comes last: a young JVM is slow."""
    say(f"{experiment.name}: warming up", "")
    runner.warm_up(experiment.runs[0].scenario)
    traces = {}
    for number, run in enumerate(reversed(experiment.runs), 1):
        what = f"{experiment.name} on Spark, run {number} of {len(experiment.runs)}: {called(*_key(run))}"
        say(what, "")
        traces[_key(run)] = runner.run(run.scenario, partial(_epoch, say, what))
    return Results(traces)


def _epoch(say: Say, what: str, epoch: int, of: int) -> None:
    say(what, f", epoch {epoch} of {of}")


def compared(
    experiment: Experiment, simulated: Results, spark: Results, comparison: Comparison, seed: int, seconds: float
) -> Outcome:
    return made(
        experiment, agreement(experiment, simulated, spark, comparison.yardstick),
        overlaid(experiment, simulated, spark),
        f"{MACHINE.sites} sites", seed, seconds, driver="Spark", against="simulator",
        parameters=told(experiment, comparison.emulation), notes=(),
    )  # fmt: skip


def agreement(experiment: Experiment, simulated: Results, spark: Results, yardstick: Yardstick) -> list[Finding]:
    calm = _key(experiment.runs[0])
    theirs, ours = (shares(experiment, results, yardstick.measure) for results in (simulated, spark))
    found = [
        Finding(
            f"{called(*key)}: {yardstick.of} relative to {called(*calm)}", written(theirs[key], digits=2), ours[key],
            written(ours[key], digits=2), yardstick.agree(theirs[key], ours[key]),
        )
        for key in theirs if key != calm
    ]  # fmt: skip
    pairs = [(a, b) for a, b in combinations(theirs, 2) if a[1] == b[1] and not _level(theirs[a], theirs[b])]
    turned = sum((theirs[a] > theirs[b]) != (ours[a] > ours[b]) for a, b in pairs)
    found.append(Finding("pairs of variants in another order", "0", turned, f"{turned} of {len(pairs)}", turned == 0))
    return found


def _level(one: float, two: float) -> bool:
    return abs(one - two) <= LEVEL * max(one, two)


def shares(experiment: Experiment, results: Results, measure: Callable[[Trace], float]) -> dict[Key, float]:
    """Relative to the first run, in which nothing is disturbed."""
    keys = [_key(run) for run in experiment.runs]
    return {key: float(measure(results[key]) / measure(results[keys[0]])) for key in keys}


def _key(run: Run) -> Key:
    return run.variant, run.x


def called(variant: str, x: float | None) -> str:
    return variant if x is None else f"{variant} at {x:g}"


def overlaid(experiment: Experiment, simulated: Results, spark: Results) -> list[Plot]:
    """The paper's axes, both drivers in them: the simulator's lines broken, Spark's whole."""
    drivers = ((simulated, "simulated", "--"), (spark, "Spark", "-"))
    return [
        Plot(
            axes.x, axes.y,
            tuple(Curve(f"{c.name}, {driver}", c.points, ("o" if "o" in c.style else "") + style, c.name)
                  for results, driver, style in drivers for c in axes.curves(results)),
            axes.title, axes.log_y,
        )
        for axes in experiment.axes
    ]  # fmt: skip


def told(experiment: Experiment, emulation: Emulation) -> dict[str, str]:
    """The parameters that are other ones than in the paper."""
    operator = experiment.runs[0].scenario.operator
    return {
        "sites": f"{MACHINE.sites} on this machine, whose rows take their time asleep",
        "operator": f"{operator.service * 1e6:g} µs a row, {operator.cells_per_site} cells a site; on Spark a count "
        "per key and window, or a join where memory is the point",
        "epoch": f"{emulation.epoch:g} s of the experiment at full speed, in {emulation.rows} rows a site, which each "
        f"stand for {emulation.epoch / emulation.rows / operator.service:.0f}",
        "slow motion": f"{emulation.slow_motion:g} s on Spark are one second of the experiment",
        "policy": "guard and pacing as in a query on Spark, rounds of one epoch at least, in the simulator too",
        "external load": experiment.parameters.get("external load", "none"),
    }
