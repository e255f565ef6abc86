"""Where the time of a model goes: what `gossamer.profile` gives, in tables, as a trace, beside the machine's limits."""

from gossamer.profiling.profile import Profile, profile
from gossamer.profiling.roofline import Roofline
from gossamer.profiling.tables import Table
from gossamer.profiling.times import KernelTime, OperatorTime

__all__ = ["KernelTime", "OperatorTime", "Profile", "Roofline", "Table", "profile"]
