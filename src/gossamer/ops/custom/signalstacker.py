"""SignalStacker (TFLite Micro): several frames, one after the other, as one.

``input`` int16 [c], a frame; custom options: ``num_channels`` (c), ``stacker_left_context`` (l),
``stacker_right_context`` (r) and ``stacker_step`` (1 to l + r + 1). Outputs: int16 [(l + r + 1) c], a frame with l
frames before it and r after it, and bool []: whether there is one. It goes on by ``stacker_step`` frames; in between
the stack is 0, where TFLite Micro leaves what was in the arena. Before the first frame there are l copies of it.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import require_shape
from gossamer.ops._signal import MAX_ELEMENTS, integers, sizes
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

INT16 = (TensorType.INT16,)

op = OpDef(
    "SignalStacker",
    inputs=("input",),
    outputs=("output", "output_valid"),
    versions=versions(""),
    types={"input": INT16, "output": INT16, "output_valid": (TensorType.BOOL,)},
    side_effects=True,
    custom=True,
    reference_only="operators for signals have no machine code",
)


class Stack:
    """The custom options, and the samples that wait."""

    def __init__(self, ctx: Context) -> None:
        self.channels, step = sizes(ctx, "num_channels", "stacker_step")
        self.left, right = integers(ctx, "stacker_left_context", "stacker_right_context")
        frames = self.left + right + 1
        ctx.require(min(self.left, right) >= 0, f"contexts must not be negative, got {self.left} and {right}")
        ctx.require(step <= frames, f"stacker_step must be in [1, {frames}], got {step}")
        ctx.require(self.channels * frames <= MAX_ELEMENTS, f"{frames} frames of {self.channels} are too many")
        self.size, self.step = self.channels * frames, self.channels * step
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self.waiting = np.zeros(0, np.int16)
        self.is_first = True


@op.prepare
def prepare(ctx: PrepareContext) -> Stack:
    """Returns the stack."""
    stack = Stack(ctx)
    require_shape(ctx, "input", ctx.input(0), (stack.channels,))
    ctx.set_shape(0, (stack.size,))
    ctx.set_shape(1, ())
    return stack


@op.reset
def reset(data: Stack) -> None:
    data.clear()


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    stack: Stack = ctx.data
    frame = ctx.value(0)
    copies = 1 + stack.left if stack.is_first else 1
    stack.is_first = False
    stack.waiting = np.concatenate([stack.waiting, np.tile(frame, copies)])
    is_valid = stack.waiting.size >= stack.size
    output = np.zeros(stack.size, np.int16)
    if is_valid:
        output[:] = stack.waiting[: stack.size]
        stack.waiting = stack.waiting[stack.step :]
    return output, np.array(is_valid)
