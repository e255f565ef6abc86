"""Models compared, tensor by tensor: `gossamer.diff` and ``gossamer diff``."""

from gossamer.compare.comparison import Comparison, Result, diff
from gossamer.compare.difference import Difference, Tolerance
from gossamer.compare.paths import PATHS
from gossamer.compare.shrink import Reproduction

__all__ = ["PATHS", "Comparison", "Difference", "Reproduction", "Result", "Tolerance", "diff"]
