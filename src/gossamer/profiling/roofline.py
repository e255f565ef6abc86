"""What a machine attains at most: the roofline model (Williams, Waterman and Patterson, 2009)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gossamer.errors import CompileError

if TYPE_CHECKING:
    from gossamer.targets import Target


class Measured(Protocol):
    """Work, and the time that it took: microseconds, floating-point operations, bytes."""

    @property
    def us(self) -> float: ...

    @property
    def flops(self) -> float: ...

    @property
    def bytes(self) -> float: ...

    @property
    def multiplies_bytes(self) -> bool: ...


class Roofline(NamedTuple):
    """Floating-point operations, bytes read from memory, and operations of products of bytes, per second: the most that
    kernels made for that reach."""

    flops: float
    bytes: float
    byte_flops: float

    def attainable(self, intensity: float, *, multiplies_bytes: bool = False) -> float:
        """Operations per second at so many operations per byte: ``min(peak, intensity * bytes)``."""
        return min(self.byte_flops if multiplies_bytes else self.flops, intensity * self.bytes)

    def share(self, work: Measured) -> float:
        """What work reaches of what is attainable at its intensity; NaN without work or time.

        That is the time which the roofline allows, divided by the time that it took: so work of moving bytes alone has
        one, too. More than 1 where bytes come from caches, or an algorithm multiplies less than is counted.
        """
        peak = self.byte_flops if work.multiplies_bytes else self.flops
        least = max(work.flops / peak, work.bytes / self.bytes)
        return 1e6 * least / work.us if work.us and least else math.nan


def measured(target: Target, num_threads: int) -> Roofline | None:
    """That of this machine, measured in some tens of milliseconds; ``None`` if no archive has the kernels for that, and
    there is no compiler."""
    from gossamer.codegen import peak

    try:
        return Roofline(*peak.measure_peak(target, num_threads))
    except CompileError:
        return None
