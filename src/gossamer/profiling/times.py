"""How long kernels and operators take, and with what work."""

from __future__ import annotations

import math

from gossamer.records import record


class _Rates:
    """Of work in a time."""

    us: float
    flops: float
    read: float
    written: float

    @property
    def bytes(self) -> float:
        """Bytes read and written."""
        return self.read + self.written

    @property
    def flops_per_s(self) -> float:
        """Floating-point operations per second; NaN without time."""
        return 1e6 * self.flops / self.us if self.us else math.nan

    @property
    def bytes_per_s(self) -> float:
        """Bytes read and written per second; NaN without time."""
        return 1e6 * self.bytes / self.us if self.us else math.nan

    @property
    def intensity(self) -> float:
        """Floating-point operations per byte; NaN without bytes."""
        return self.flops / self.bytes if self.bytes else math.nan


@record(frozen=True)
class KernelTime(_Rates):
    """A command of a program of machine code: which kernel it runs, with what work, and how long that takes in a call.

    ``kind``: what it does, as in the kernel graph. ``operators``: those that it comes from, with their node numbers, as
    in ``"CONV_2D 47"``. ``calls``: the kernels that this one calls. ``us``: microseconds in a call, the median of those
    where the program ran; ``first_us``: in the first; ``runs``: how often in a call, more than once in loops and in
    programs that run several times. ``flops``, ``read`` and ``written`` (bytes): the work of all these runs, as
    `gossamer inspect` counts it.
    """

    subgraph: int
    program: int
    command: int
    kernel: str
    kind: str
    calls: tuple[str, ...]
    operators: tuple[str, ...]
    shape: tuple[int, ...]
    us: float
    first_us: float
    runs: float
    flops: float
    read: float
    written: float

    @property
    def multiplies_bytes(self) -> bool:
        """Whether it computes with products of bytes, which have a peak of their own: the name of a kernel begins with
        the type that it computes with."""
        return any(name.split("_")[0] in ("i8", "u8") for name in (self.kernel, *self.calls))


@record(frozen=True)
class OperatorTime(_Rates):
    """Operators that are computed as one, and how long they take in a call.

    ``nodes``: their numbers in the subgraph; ``type``: their names, ``"CONV_2D, RELU6"``; ``name``: of the tensors that
    the last of them writes. ``runs_by``: a delegate, or ``"reference"`` for the reference kernel. ``us``: microseconds
    in a call, the median, without what other operators take that it calls; ``first_us`` and ``start_us``: how long in
    the first call, and how long after its begin. ``runs``: how often in a call; 0 for a node that needs no time, as its
    work is done by others or beforehand. ``flops``, ``read``, ``written``: as in `KernelTime`; 0 where not counted.
    """

    subgraph: int
    nodes: tuple[int, ...]
    type: str
    name: str
    runs_by: str
    us: float
    first_us: float
    start_us: float
    runs: float
    flops: float = 0.0
    read: float = 0.0
    written: float = 0.0
