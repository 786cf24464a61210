"""FE5, figures 9 and 10: one machine's memory is cut in half; throughput and latency until all is in memory again."""

from __future__ import annotations

from anabranch.lab.experiment import Axes, Claim, Curve, Experiment, Results, Run, Size
from anabranch.lab.flux.common import PAPER, flux, memory_scenario, memory_setup
from anabranch.lab.measures import first_below, latency_over_time, over_time, steady, steady_from, steady_latency

CUT = 5  # which site; any
START = 1.0


def experiment(size: Size, seed: int) -> Experiment:
    seconds = 60.0 * max(size.seconds, 0.8)
    return Experiment(
        "flux.fig9", "FE5", PAPER, "figures 9 and 10",
        "How quickly does the memory policy bring a machine back whose memory was cut from 1 GB to 512 MB?",
        memory_setup(),
        (
            Run("unloaded", None, memory_scenario(size, seconds, seed)),
            Run("static", None, memory_scenario(size, seconds, seed, cuts={CUT: START})),
            Run("flux", None, memory_scenario(size, seconds, seed, cuts={CUT: START}, adaptation=flux("flux.memory"))),
        ),
        (
            Axes("time (s)", "throughput (rows/s)", _throughput),
            Axes("time (s)", "mean latency (µs)", _latency, log_y=True),
        ),
        (
            Claim("static, once steady", "1.6e5 rows/s", lambda r: steady(r["static"], 0.5),
                  1.2e5 * size.sites / 32, 2.0e5 * size.sites / 32, "rows/s"),
            Claim("static begins to process again at t =", "15 s", resumes, 13, 17, "s"),
            Claim("with moves, throughput is steady again at t =", "37 s", again, 29, 45, "s"),
            Claim("with moves, throughput at the end as a share of unloaded", "1",
                  lambda r: steady(r["flux"], 0.15) / steady(r["unloaded"], 0.15), 0.95, 1.02),
            Claim("latency at the end", "45 µs", lambda r: 1e6 * steady_latency(r["flux"], 0.15), 40, 55, "µs"),
            Claim("cells that the machine gave away", "43 do not fit", given, 40, 50),
        ),
    )  # fmt: skip


def resumes(results: Results) -> float:
    """The end of the stall: static has a tenth of its full throughput for the first time."""
    level, trace = 0.1 * steady(results["unloaded"]), results["static"]
    stalled = first_below(trace, level, START)
    return next((s.start for s in trace.samples if s.start > stalled and s.throughput >= level), float("inf"))


def again(results: Results) -> float:
    return steady_from(results["flux"], 0.95 * steady(results["unloaded"]), START)


def given(results: Results) -> float:
    return float(sum((m.donor == CUT) - (m.receiver == CUT) for m in results["flux"].moves))


def _throughput(results: Results) -> list[Curve]:
    return [over_time(name, results[name]) for name in ("unloaded", "flux", "static")]


def _latency(results: Results) -> list[Curve]:
    return [latency_over_time(name, results[name]) for name in ("unloaded", "flux", "static")]
