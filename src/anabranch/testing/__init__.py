"""The public test kit: run a flow over rows in exactly the epochs you give, and compare it with Spark batch.

script    epochs and crashes as data           lateness  which rows count, in plain Python
drive     epochs in-process, in milliseconds   oracle    Spark batch on the same SQL
live      the same as a real streaming query   compare   multisets, and readable differences
pace      sites that take their time             events    what befalls a query, by epoch
load      a saturating load on many sites
"""

from anabranch.testing.compare import assert_same, difference
from anabranch.testing.drive import drive, loaded, opened
from anabranch.testing.events import befalls, kill_executor, move, rescale, several, shrink
from anabranch.testing.lateness import counted
from anabranch.testing.live import live
from anabranch.testing.load import Load, Run, run_load, wrong_answer
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
    "ABORT",
    "RESTART",
    "TICK",
    "Abort",
    "BatchOracle",
    "Epoch",
    "Hurry",
    "Kept",
    "Load",
    "Memory",
    "Pace",
    "Rescale",
    "Restart",
    "Run",
    "Script",
    "Shuffle",
    "Slow",
    "Static",
    "Stream",
    "Tick",
    "assert_same",
    "befalls",
    "counted",
    "difference",
    "drive",
    "epochs",
    "kill_executor",
    "live",
    "loaded",
    "move",
    "opened",
    "paced",
    "rescale",
    "rows_of",
    "run_load",
    "several",
    "shrink",
    "wrong_answer",
]  # fmt: skip
