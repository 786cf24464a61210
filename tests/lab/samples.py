"""Small experiments for the tests of the lab: real ones on the simulator, and traces by hand."""

from __future__ import annotations

from dataclasses import replace

from anabranch.lab.experiment import Axes, Claim, Curve, Difference, Experiment, Results, Run
from anabranch.lab.measures import over_time, steady
from anabranch.lab.results import Outcome, outcome
from anabranch.lab.simulate import simulate
from anabranch.sim.scenario import CpuLoad, Exchange, Operator, Scenario, Site
from anabranch.sim.trace import Sample, Trace

CALM = Scenario(
    (Site(), Site()), 4.0, operator=Operator(service=1e-3, deviation=2e-4, groups=64, cells_per_site=8),
    exchange=Exchange(connection=40, buffer=0), quantum=1e-2,
)  # fmt: skip
LOADED = replace(CALM, loads=(CpuLoad(1, 0.0, left=0.5),))


def share(results: Results) -> float:
    return steady(results["loaded"]) / steady(results["calm"])


def never(results: Results) -> float:
    return float("inf")


def lines(results: Results) -> list[Curve]:
    return [over_time(name, results[name]) for name in ("calm", "loaded")]


def halved(low: float = 0.4, high: float = 0.6) -> Experiment:
    return Experiment(
        "test.halved", "T1", "A paper <on> halves & wholes", "figure 1", "What does a loaded site cost?",
        {"sites": "2", "load": "half of one"},
        (Run("calm", None, CALM), Run("loaded", None, LOADED)),
        (Axes("time (s)", "throughput (rows/s)", lines), Axes("time (s)", "again", lines, "a title", log_y=True)),
        (
            Claim("one loaded site costs", "half [of all]", share, low, high),
            Claim("the time it takes <to end>", "12 s", never, 0, 20, "s",
                  differs=Difference("it never ends here & now", lambda r: True)),
            Claim("something else", "1", share, 0.9, 1.1, differs=Difference("it is untrue", lambda r: False)),
        ),
        notes=("Read off the last quarter.",),
    )  # fmt: skip


def halved_outcome() -> Outcome:
    experiment = halved()
    return outcome(experiment, simulate([experiment])[0], "small", 1, 0.5)


def flat(rows: int, seconds: int = 8, latency: float = 1e-3) -> Trace:
    return Trace([Sample(float(n), n + 1.0, rows, rows * latency) for n in range(seconds)])
