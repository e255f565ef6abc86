"""Models compared, tensor by tensor: `gossamer.diff` and ``gossamer diff``."""

from gossamer.compare.comparison import Comparison, Reproduction, diff
from gossamer.compare.difference import Difference, Tolerance
from gossamer.compare.paths import PATHS
from gossamer.compare.running import Result

__all__ = ["PATHS", "Comparison", "Difference", "Reproduction", "Result", "Tolerance", "diff"]
