"""Where the time of a model goes: what `gossamer.profile` gives, in tables, as a trace, beside the machine's limits."""

from gossamer.profiling.profile import KernelTime, OperatorTime, Profile, profile
from gossamer.profiling.roofline import Roofline
from gossamer.profiling.tables import Table

__all__ = ["KernelTime", "OperatorTime", "Profile", "Roofline", "Table", "profile"]
