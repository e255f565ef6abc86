"""aeq.hadamard_rotation: the Walsh-Hadamard transform of consecutive runs of elements.

The input is float32 (or int32 that holds float32 bits), [features, size] or [batch, features, size]. Custom options:
``hadamard_size``, a power of two h; ``random_binary_vector`` is stored but plays no part. As many runs of h elements
are transformed as fit, ``size // h`` for each feature, one after the other from the first element on; the rest is
copied. A run x becomes ``H x / sqrt(h)`` with H[i, j] = (-1)**popcount(i & j), by butterflies in float32: neighbours
first, then elements 2, 4, ... apart.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer.ops._layout import require_output_type, require_rank
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType

TYPES = (TensorType.FLOAT32, TensorType.INT32)

op = OpDef(
    "aeq.hadamard_rotation",
    inputs=("input",),
    outputs=("output",),
    versions=versions("2.21.0"),
    types={"input": TYPES, "output": TYPES},
    reference_version=0,
    custom=True,
    reference_only="rare: there is no kernel of butterflies",
)


@op.prepare
def prepare(ctx: PrepareContext) -> int:
    """Returns the size of a run."""
    source = ctx.input(0)
    require_rank(ctx, "input", source, 2, 3)
    require_output_type(ctx)
    size = ctx.attributes().get("hadamard_size")
    if type(size) is not int or size < 1 or size & (size - 1):
        ctx.fail(f"hadamard_size must be a power of two, got {size}")
    ctx.set_shape(0, source.shape)
    return size


@op.reference
def reference(ctx: InvokeContext) -> Array:
    size: int = ctx.data
    output: Array = ctx.value(0).copy()
    *features, width = output.shape
    runs = math.prod(features) * (width // size)
    rotated: Array = output.view(np.float32).reshape(-1)[: runs * size].reshape(runs, size)
    apart = 1
    while apart < size:
        pairs = rotated.reshape(runs, size // (2 * apart), 2, apart)
        rotated = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], 2)
        apart *= 2
    rotated = rotated * np.float32(1 / math.sqrt(size))
    output.view(np.float32).reshape(-1)[: runs * size] = rotated.reshape(-1)
    return output
