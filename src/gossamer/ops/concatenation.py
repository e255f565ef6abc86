"""CONCATENATION: the inputs one after the other along an axis.

All inputs have the same type and rank, and the same sizes except along ``axis`` (negative: from the end). No fused
activation. uint8 inputs of another scale or zero point than the output's are rescaled in float32:
``round(x * s + b) + output_zero_point`` clamped to 0..255, with ``s = scale * (1 / output_scale)``,
``b = -zero_point * s`` and halves rounded away from zero (TFLite's ConcatenationWithScaling). int8 must not need
rescaling, int16 must have zero points 0.

If all inputs are constant, the output is computed when the model is prepared; then scalars are allowed too, with
axis 0, and give a vector.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.affine import Stretch
from gossamer.ops._layout import (
    FLOAT8_TYPES,
    checked_shape,
    elements,
    normalized_axis,
    require_output_type,
    require_same_quantization,
    require_symmetric_int16,
    require_type,
)
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, TensorInfo, Version
from gossamer.ops.op_signature import FLOAT8, input_type
from gossamer.quantization import Quantization, round_half_away
from gossamer.schema.enums import ActivationFunctionType, TensorType
from gossamer.schema.options import ConcatenationOptions
from gossamer.views import View

TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.BOOL,
    TensorType.UINT32,
    TensorType.INT4,
    *FLOAT8_TYPES,
)

op = OpDef(
    "CONCATENATION",
    inputs=("value", "values*"),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", input_type(0, TensorType.INT16)),
        Version(4, "2.14.0", input_type(0, TensorType.UINT32)),
        Version(5, "2.21.0", input_type(0, TensorType.INT4)),
        Version(6, "2.23.0", input_type(0, TensorType.FLOAT16)),
        Version(7, "2.23.0", input_type(0, *FLOAT8)),
    ),
    types={"value": TYPES, "values": TYPES, "output": TYPES},
    options=ConcatenationOptions,
    tells_shapes=True,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> int:
    """Returns the axis."""
    activation = ctx.options.fused_activation_function
    ctx.require(activation == ActivationFunctionType.NONE, "a fused activation is not supported")
    tensors = [ctx.input(position) for position in range(len(ctx.inputs))]
    first, output = tensors[0], ctx.output()
    for tensor in tensors[1:]:
        require_type(ctx, f'input "{tensor.name}"', tensor, first.type)
    require_output_type(ctx)
    known = ctx.all_known(*range(len(tensors)))
    if not first.shape:
        _require_scalars(ctx, tensors, known is not None)
        ctx.set_constant(0, np.concatenate([value.reshape(1) for value in known or ()]))
        return 0
    axis = normalized_axis(ctx, ctx.options.axis, len(first.shape))
    shape = _joined_shape(ctx, tensors, axis)
    if first.type == TensorType.INT8:
        for tensor in tensors:
            require_same_quantization(ctx, tensor, output)
    require_symmetric_int16(ctx, *tensors, output)
    if first.type == TensorType.UINT8 and output.quantization.scale <= 0:
        for tensor in tensors:
            require_same_quantization(ctx, tensor, output)
    if known is not None:
        ctx.set_constant(0, _joined(ctx, known, axis))
    else:
        ctx.set_shape(0, shape)
    return axis


@op.reference
def reference(ctx: InvokeContext) -> Array:
    values = [ctx.value(position) for position in range(len(ctx.inputs))]
    if not values[0].shape:
        return np.concatenate([value.reshape(1) for value in values])
    return _joined(ctx, values, ctx.data)


@op.lower
def lower(graph: Lowering) -> None:
    target, inputs = graph.outputs[0], [graph.input(position) for position in range(len(graph.inputs))]
    pieces: list[View | Stretch] = []
    is_open = any(tensor.is_dynamic for tensor in inputs)
    is_empty = not is_open and not any(elements(tensor.shape) for tensor in inputs)
    for position, tensor in enumerate(inputs):
        if not is_empty and not tensor.is_dynamic and not elements(tensor.shape):
            continue
        piece = graph.piece(position)
        if not _is_alike(tensor.quantization, target.quantization):
            if is_open:
                graph.refuse("inputs of sizes that only the run tells are not rescaled")
            if target.type == TensorType.UINT8 and isinstance(piece, View):
                table = _rescaled(np.arange(256, dtype=np.uint8), tensor.quantization, target.quantization)
                piece = graph.lookup(piece, table)
        pieces.append(piece)
    rank = len(next(piece.view if isinstance(piece, Stretch) else piece for piece in pieces).shape)
    graph.result(graph.concat(pieces, normalized_axis(graph, graph.options.axis, rank)))


def _require_scalars(ctx: Context, tensors: Sequence[TensorInfo], foldable: bool) -> None:
    ctx.require(ctx.options.axis == 0, f"axis of scalars must be 0, got {ctx.options.axis}")
    ctx.require(foldable, "scalars can only be concatenated if all of them are constant")
    ctx.require(tensors[0].type != TensorType.INT4, "int4 scalars are not supported")
    for tensor in tensors:
        ctx.require(
            not tensor.shape, f'input "{tensor.name}" must be a scalar as the first is, got {list(tensor.shape)}'
        )


def _joined_shape(ctx: Context, tensors: Sequence[TensorInfo], axis: int) -> tuple[int, ...]:
    shape = list(tensors[0].shape)
    for tensor in tensors[1:]:
        fits = len(tensor.shape) == len(shape) and all(
            a == b or i == axis for i, (a, b) in enumerate(zip(shape, tensor.shape, strict=True))
        )
        if not fits:
            ctx.fail(
                f'input "{tensor.name}" {list(tensor.shape)} must match the first input {list(tensors[0].shape)} '
                f"except along axis {axis}"
            )
    shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
    return checked_shape(ctx, shape)


def _joined(ctx: Context, values: Sequence[Array], axis: int) -> Array:
    if ctx.output().type == TensorType.UINT8:
        target = ctx.output().quantization
        values = [_rescaled(v, ctx.input(i).quantization, target) for i, v in enumerate(values)]
    return np.concatenate(values, axis)


def _rescaled(value: Array, source: Quantization, target: Quantization) -> Array:
    if _is_alike(source, target):
        return value
    scale = np.float32(source.scale) * (np.float32(1) / np.float32(target.scale))
    bias = np.float32(-source.zero_point) * scale
    levels = round_half_away(value.astype(np.float32) * scale + bias)
    return np.clip(levels.astype(np.float64) + target.zero_point, 0, 255).astype(np.uint8)


def _is_alike(source: Quantization, target: Quantization) -> bool:
    return (source.scale, source.zero_point) == (target.scale, target.zero_point)
