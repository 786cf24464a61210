"""The bars that Anabranch has set itself, each a ratio between measurements of one run.

A bar whose measurements are missing has no value and is neither reached nor missed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench.run import Measurement

Results = dict[tuple[str, str], Measurement]  # (workload, engine), medians of the repeats


@dataclass(frozen=True)
class Bar:
    """`value` against `limit`: at least it, or at most it."""

    name: str
    limit: float
    value: Callable[[Results], float]
    at_most: bool = False
    unit: str = "x"

    def judge(self, results: Results) -> tuple[float | None, bool | None]:
        try:
            value = self.value(results)
        except (KeyError, ValueError, ZeroDivisionError, IndexError):
            return None, None
        return value, value <= self.limit if self.at_most else value >= self.limit


def of(results: Results, workload: str, engine: str) -> Measurement:
    found = results[workload, engine]
    if found.error:
        raise KeyError(f"{workload} failed on {engine}")
    return found


def fastest(results: Results, workload: str, prefix: str = "spark") -> Measurement:
    """The fastest configuration of Spark's own streaming (a KeyError when none ran)."""
    found = [m for (w, e), m in results.items() if w == workload and e.startswith(prefix) and not m.error]
    if not found:
        raise KeyError(f"no {prefix} run of {workload}")
    return max(found, key=lambda m: m.rows_per_s)


def over(workload: str, prefix: str = "spark") -> Callable[[Results], float]:
    def ratio(results: Results) -> float:
        return of(results, workload, "anabranch").rows_per_s / fastest(results, workload, prefix).rows_per_s

    return ratio


def against(workload: str, other: str) -> Callable[[Results], float]:
    def ratio(results: Results) -> float:
        return of(results, workload, "anabranch").rows_per_s / of(results, other, "anabranch").rows_per_s

    return ratio


def rate(workload: str) -> Callable[[Results], float]:
    return lambda results: of(results, workload, "anabranch").rows_per_s / 1000


def scaled_rate(results: Results) -> float:
    """200k rows/s was set where Spark's best interval join does 45-59k: the ratio of the two carries over."""
    best = fastest(results, "interval_join_100k").rows_per_s
    return of(results, "last_100_average", "anabranch").rows_per_s / best


def memory(results: Results) -> float:
    fastest_peak = fastest(results, "interval_join_100k").peak_mb
    return of(results, "interval_join_100k", "anabranch").peak_mb / fastest_peak


def fixed(label: str, below: str) -> Callable[[Results], float]:
    def difference(results: Results) -> float:
        ms: dict[str, float] = of(results, "fixed_cost", "anabranch").extra["median_ms"]
        return ms[label] - ms[below]

    return difference


def steady_time(results: Results) -> float:
    """Median epoch of the last fifth over that of the second."""
    ms = of(results, "steady", "anabranch").epoch_ms
    fifth = len(ms) // 5
    return median(ms[-fifth:]) / median(ms[fifth : 2 * fifth])


def steady_memory(results: Results) -> float:
    sizes = [size for _, size in of(results, "steady", "anabranch").memory]
    fifth = len(sizes) // 5
    return median(sizes[-fifth:]) / median(sizes[fifth : 2 * fifth])


def steady_files(results: Results) -> float:
    counts = [sample[1] for sample in of(results, "steady", "anabranch").extra["checkpoint"]]
    fifth = len(counts) // 5
    return float(median(counts[-fifth:]) / median(counts[fifth : 2 * fifth]))


BARS = (
    Bar("interval join, 100k-row epochs, over the fastest Spark", 3, over("interval_join_100k")),
    Bar("interval join, 100k-row epochs, over Spark with RocksDB", 5, over("interval_join_100k", "spark-rocksdb")),
    Bar("interval join, 800k-row epochs, over the fastest Spark", 8, over("interval_join_800k")),
    Bar("interval join, peak memory against the fastest Spark", 1 / 3, memory, at_most=True),
    Bar("sliding aggregate, 100k-row epochs, over the fastest Spark", 1.7, over("sliding_aggregate_100k")),
    Bar("sliding aggregate, 1M-row epochs, over the fastest Spark", 3, over("sliding_aggregate_1m")),
    Bar("three-way join, 60k-row epochs, over the fastest Spark", 5, over("three_way_join")),
    Bar("drifting Zipf join over the uniform one", 1 / 1.3, against("zipf_join", "uniform_join")),
    Bar("last-100 average, thousand rows/s", 200, rate("last_100_average"), unit="k"),
    Bar("last-100 average over the fastest Spark interval join", 200 / 52, scaled_rate),
    Bar("steady stream: epoch time, end over start", 1.15, steady_time, at_most=True),
    Bar("steady stream: memory, end over start", 1.15, steady_memory, at_most=True),
    Bar("steady stream: files in the checkpoint, end over start", 1.15, steady_files, at_most=True),
    Bar("fixed cost of one subquery", 150, fixed("1 subquery", "empty"), at_most=True, unit="ms"),
    Bar("fixed cost of the second subquery", 80, fixed("2 subqueries", "1 subquery"), at_most=True, unit="ms"),
    Bar("fixed cost of the third subquery", 80, fixed("3 subqueries", "2 subqueries"), at_most=True, unit="ms"),
)
