"""NumPy broadcasting of shapes, with the operator's name on the error."""

from __future__ import annotations

from gossamer.ops.op_def import Context, Shape


def broadcast_shape(ctx: Context, *shapes: Shape) -> Shape:
    """The shape that all operands broadcast to. Raises through ``ctx`` when they do not fit."""
    rank = max(len(shape) for shape in shapes)
    result = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in shapes if -axis <= len(shape) and shape[axis] != 1] or [1]
        if any(size != sizes[0] for size in sizes[1:]):
            ctx.fail(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast")
        result.append(sizes[0])
    return tuple(result)
