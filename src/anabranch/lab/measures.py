"""Measures: numbers read off traces. Each says what it takes for the paper's word."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from anabranch.lab.experiment import Curve
from anabranch.sim.trace import Trace


def over_time(name: str, trace: Trace, style: str = "-") -> Curve:
    """Throughput per interval, at its start."""
    return Curve(name, tuple((s.start, s.throughput) for s in trace.samples), style)


def latency_over_time(name: str, trace: Trace, style: str = "-") -> Curve:
    """Mean latency per interval in microseconds, where anything was processed."""
    return Curve(name, tuple((s.start, s.mean_latency * 1e6) for s in trace.samples if s.rows), style)


def steady(trace: Trace, share: float = 0.25) -> float:
    """Throughput over the last part of the run."""
    end = trace.samples[-1].end
    return trace.throughput(end * (1 - share), end)


def steady_latency(trace: Trace, share: float = 0.25) -> float:
    end = trace.samples[-1].end
    return trace.latency(end * (1 - share), end)


def first_below(trace: Trace, level: float, after: float = 0.0) -> float:
    """The start of the first interval whose throughput is below the level; infinite if there is none."""
    return next((s.start for s in trace.samples if s.start >= after and s.throughput < level), float("inf"))


def steady_from(trace: Trace, level: float, after: float = 0.0) -> float:
    """The start of the interval from which on throughput stays at or above the level; infinite if it ends below.

    Each interval counts with its neighbours, by the median of the three, so that one short dip is none."""
    rows = [s.throughput for s in trace.samples]
    since = float("inf")
    for n in range(len(rows) - 1, -1, -1):
        start = trace.samples[n].start
        if start < after or median(rows[max(n - 1, 0) : n + 2]) < level:
            break
        since = start
    return since


def line(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Least squares: slope, intercept and R squared."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    mx, my = fmean(xs), fmean(ys)
    sxx = sum((x - mx) ** 2 for x in xs)
    sxy = sum((x - mx) * (y - my) for x, y in points)
    slope = sxy / sxx if sxx else 0.0
    intercept = my - slope * mx
    total = sum((y - my) ** 2 for y in ys)
    rest = sum((y - intercept - slope * x) ** 2 for x, y in points)
    return slope, intercept, 1 - rest / total if total else 1.0
