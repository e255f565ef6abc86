"""BITCAST: the bytes of a tensor as elements of another type.

Types of one size keep the shape; a smaller type adds a last dimension, [n] int32 -> [n, 4] int8; a larger one takes it
away, and it must have just the size that makes one element. Integers of 4 and 2 bits only turn into one another.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import element_bits, is_packed, numpy_dtype, type_name, unpacked_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InPlace, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import BitcastOptions

_TYPES = tuple(sorted(set(TensorType) - {TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT}))

op = OpDef(
    "BITCAST",
    inputs=("x",),
    outputs=("output",),
    versions=versions("2.13.0"),
    types={"x": _TYPES, "output": _TYPES},
    options=BitcastOptions,
    in_place=InPlace.INPUT_0 | InPlace.DATA_UNMODIFIED,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    x, output = ctx.input(0), ctx.output()
    old, new = element_bits(x.type), element_bits(output.type)
    shape = x.shape
    ctx.require(
        old == new or (old and new and not (is_packed(x.type) or is_packed(output.type))),
        f"cannot turn {type_name(x.type)} into {type_name(output.type)}: their bits differ",
    )
    if old > new:
        shape = (*shape, old // new)
    elif old < new:
        ctx.require(
            shape[-1:] == (new // old,),
            f"last dimension must be {new // old} to make {type_name(output.type)} of {type_name(x.type)}, "
            f"got shape {list(shape)}",
        )
        shape = shape[:-1]
    ctx.set_shape(0, shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, output = ctx.value(0), ctx.output()
    if is_packed(output.type):
        return _sign_extended(x, output.type)
    return np.ascontiguousarray(x).reshape(-1).view(numpy_dtype(output.type)).reshape(output.shape)


@op.lower
def lower(graph: Lowering) -> None:
    x, output = graph.input(0), graph.output()
    if is_packed(output.type):  # and x of as many bits
        graph.result(graph.kernel("bitcast", graph.value(0), shape=x.shape, type=unpacked_type(output.type)))
        return
    if element_bits(output.type) > 64:
        graph.refuse(f"no kernels for {type_name(output.type)}")
    graph.result(graph.kernel("bitcast", graph.value(0), shape=output.shape, type=output.type))


def _sign_extended(x: Array, output_type: TensorType) -> Array:
    """The low bits of unpacked integers in the range of another type."""
    bits = element_bits(output_type)
    low = x.astype(np.int16) & ((1 << bits) - 1)
    if output_type != TensorType.UINT4:
        low = (low ^ (1 << (bits - 1))) - (1 << (bits - 1))
    return low.astype(numpy_dtype(output_type))
