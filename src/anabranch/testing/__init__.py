"""The public test kit: run a flow over rows in exactly the epochs you give, and compare it with Spark batch.

script    epochs and crashes as data           lateness  which rows count, in plain Python
drive     epochs in-process, in milliseconds   oracle    Spark batch on the same SQL
live      the same as a real streaming query   compare   multisets, and readable differences
pace      sites that take their time
"""

from anabranch.testing.compare import assert_same, difference
from anabranch.testing.drive import drive, loaded, opened
from anabranch.testing.lateness import counted
from anabranch.testing.live import live
from anabranch.testing.oracle import BatchOracle
from anabranch.testing.pace import Pace, Slow, paced
from anabranch.testing.script import (
    ABORT,
    RESTART,
    TICK,
    Abort,
    Epoch,
    Hurry,
    Memory,
    Rescale,
    Restart,
    Script,
    Shuffle,
    Static,
    Stream,
    Tick,
    epochs,
)
from anabranch.testing.sink import Kept
from anabranch.testing.tables import rows_of

__all__ = [
    "ABORT", "RESTART", "TICK", "Abort", "BatchOracle", "Epoch", "Hurry", "Kept", "Memory", "Pace", "Rescale",
    "Restart", "Script", "Shuffle", "Slow", "Static", "Stream", "Tick", "assert_same", "counted", "difference",
    "drive", "epochs", "live", "loaded", "opened", "paced", "rows_of",
]  # fmt: skip
