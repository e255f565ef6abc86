"""An operand that holds one axis."""

from __future__ import annotations

from gossamer.ops.op_def import Array, Context


def axis_within(ctx: Context, axis: Array, rank: int) -> int:
    """The axis, counted from the front. Raises through ``ctx`` unless it is one value from -rank to rank - 1."""
    if axis.size != 1:
        ctx.fail(f"axis must hold 1 value, got {axis.size}")
    value = int(axis.reshape(-1)[0])
    if not -rank <= value < rank:
        ctx.fail(f"axis {value} is not within an input of {rank} dimensions")
    return value % rank
