"""500 small epochs of one interval join: do files, memory and epoch time stay flat?"""

from __future__ import annotations

from dataclasses import replace

from bench.workloads.interval_join import BASE

WORKLOADS = (
    replace(
        BASE.resized(rows=4_000, epochs=500),
        name="steady",
        family="steady",
        about="interval join in 500 epochs of 4k rows",
        quick_epochs=60,
        epoch_seconds=5,
        warmup=50,
        check_epochs=20,
        spark=False,
        mode="steady",
    ),
)
