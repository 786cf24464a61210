"""The public test kit: run a flow over rows in exactly the epochs you give, and compare it with Spark batch.

script    epochs and crashes as data           lateness  which rows count, in plain Python
drive     epochs in-process, in milliseconds   oracle    Spark batch on the same SQL
live      the same as a real streaming query   compare   multisets, and readable differences
"""

from anabranch.testing.compare import assert_same, difference
from anabranch.testing.drive import drive, loaded, opened
from anabranch.testing.lateness import counted
from anabranch.testing.live import live
from anabranch.testing.oracle import BatchOracle
from anabranch.testing.script import ABORT, RESTART, TICK, Abort, Epoch, Restart, Script, Static, Stream, Tick, epochs
from anabranch.testing.sink import Kept
from anabranch.testing.tables import rows_of

__all__ = [
    "ABORT", "RESTART", "TICK", "Abort", "BatchOracle", "Epoch", "Kept", "Restart", "Script", "Static", "Stream",
    "Tick", "assert_same", "counted", "difference", "drive", "epochs", "live", "loaded", "opened", "rows_of",
]  # fmt: skip
