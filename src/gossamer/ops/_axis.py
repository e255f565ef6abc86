"""An operand that holds one axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context
from gossamer.schema.enums import TensorType
from gossamer.views import View


def axis_within(ctx: Context, axis: Array, rank: int) -> int:
    """The axis, counted from the front. Raises through ``ctx`` unless it is one value from -rank to rank - 1."""
    if axis.size != 1:
        ctx.fail(f"axis must hold 1 value, got {axis.size}")
    value = int(axis.reshape(-1)[0])
    if not -rank <= value < rank:
        ctx.fail(f"axis {value} is not within an input of {rank} dimensions")
    return value % rank


def by_axis(graph: Lowering, axis: View, rank: int, along: Callable[[int], View]) -> View:
    """What there is along the axis, int32, that a run tells; one that is out of range is a fault."""
    if axis.size != 1:
        graph.refuse("axis must hold 1 value")
    zero, one, limit = (graph.array(np.array(number, np.int32)) for number in (0, 1, rank))
    counted = graph.map(("select", ("less", 0, 1), ("add", 0, 2), 0), graph.reshape(axis, ()), zero, limit)
    is_axis = ("and", ("greaterequal", 0, 1), ("less", 0, 2))
    allowed = graph.map(("select", is_axis, 3, 1), counted, zero, limit, one)
    checked = graph.map("mul", counted, graph.kernel("nonzero", allowed, shape=(), type=TensorType.INT32))

    def from_(first: int) -> View:
        if first == rank - 1:
            return along(first)
        is_first = graph.map("equal", checked, graph.array(np.array(first, np.int32)), type=TensorType.BOOL)
        return graph.either(is_first, lambda: along(first), lambda: from_(first + 1))

    return from_(0)
