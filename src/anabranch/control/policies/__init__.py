"""The policies that have a name, one file each. Importing this makes them known to the registry."""

from anabranch.control.policies.balance import Balance
from anabranch.control.policies.flux_balance import FluxBalance
from anabranch.control.policies.flux_hybrid import FluxHybrid
from anabranch.control.policies.flux_memory import FluxMemory
from anabranch.control.policies.static import Static

__all__ = ["Balance", "FluxBalance", "FluxHybrid", "FluxMemory", "Static"]
