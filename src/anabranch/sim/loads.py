"""Loads: what an external process leaves of a site's CPU.

The operator works row by row and gives up the CPU only between two rows; the process takes it at its next chance
after waking. From one wake-up to the next the operator therefore does at least as many rows as fit into the sleep,
and finishes the one it is at. For 100 us busy, 50 us asleep and rows of 45 us that leaves 47 %; the Flux paper
measured 43 % on its scheduler, and its experiments say so (`CpuLoad.left`).
"""

from __future__ import annotations

import math

from anabranch.sim.scenario import CpuLoad


def share_left(busy: float, asleep: float, service: float) -> float:
    """The share of its time that an operator of such rows gets beside such a process."""
    if busy <= 0:
        return 1.0
    work = max(1, math.ceil(asleep / service)) * service
    return work / (work + busy)


def left_by(load: CpuLoad, service: float) -> float:
    return share_left(load.busy, load.asleep, service) if load.left is None else load.left
