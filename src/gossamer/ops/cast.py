"""CAST: numbers of one type as numbers of another, element by element.

Floats become integers by truncation, saturated; NaN becomes the greatest integer. Integers wrap in narrower types.
bool is whether a number is not 0. Complex numbers lose their imaginary part, unless they stay complex. Types of 16 and
8 bits round float32 to nearest even, so float64 and int64 are rounded twice. int4, int2 and uint4 are cast to and from
float32 and float8 only. The types of the tensors count; the options repeat them and are not read.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import is_packed, numpy_dtype, type_name, unpacked_type
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import FLOAT8, in_or_out, input_type, output_type
from gossamer.quantization import integer_range
from gossamer.schema.enums import TensorType
from gossamer.schema.options import CastOptions

_TYPES = tuple(
    sorted(
        set(TensorType)
        - {
            TensorType.STRING,
            TensorType.COMPLEX128,
            TensorType.UINT64,
            TensorType.RESOURCE,
            TensorType.VARIANT,
        }
    )
)
_PARTNERS_OF_PACKED = (TensorType.FLOAT32, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)

op = OpDef(
    "CAST",
    inputs=("x",),
    outputs=("output",),
    versions=(
        Version(1, "1.5.0"),
        Version(2, "2.7.0", in_or_out(TensorType.UINT32)),
        Version(3, "2.8.0", in_or_out(TensorType.INT8)),
        Version(4, "2.9.0", in_or_out(TensorType.UINT16)),
        Version(5, "2.12.0", in_or_out(TensorType.FLOAT16, TensorType.FLOAT64)),
        Version(6, "2.15.0", input_type(0, TensorType.INT4) & output_type(0, TensorType.FLOAT32)),
        Version(7, "2.17.0", in_or_out(TensorType.BFLOAT16)),
        Version(8, "2.21.0", in_or_out(TensorType.INT2, TensorType.UINT4)),
        Version(9, "2.23.0", in_or_out(*FLOAT8)),
    ),
    types={"x": _TYPES, "output": _TYPES},
    options=CastOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    x, output = ctx.input(0), ctx.output()
    for one, other in ((x.type, output.type), (output.type, x.type)):
        ctx.require(
            not is_packed(one) or other in _PARTNERS_OF_PACKED,
            f"cannot cast {type_name(x.type)} to {type_name(output.type)}: "
            f"{type_name(one)} is cast to and from float32 and float8 only",
        )
    ctx.set_shape(0, x.shape)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    x, output_type = ctx.value(0), ctx.output().type
    dtype = numpy_dtype(output_type)
    if x.dtype == object and dtype.kind == "i":  # sizes that are open
        return x
    if x.dtype == dtype and ctx.input(0).type == output_type:
        return x
    if x.dtype.kind == "c":
        x = x.real
    small_float = x.dtype.kind in "fV" and x.dtype.itemsize <= 2
    if small_float:
        x = x.astype(np.float32)
    if dtype == np.bool_:
        return np.not_equal(x, 0)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return _saturated(x, *integer_range(output_type)).astype(dtype)
    if dtype.itemsize <= 2 and dtype.kind not in "iu":
        x = x.astype(np.float32)
    return x.astype(dtype)


def _saturated(x: Array, low: int, high: int) -> Array:
    """Floats as int64 or uint64 between the bounds. The bound above is compared one higher: that is a power of two,
    which every float type holds."""
    whole = np.where((x > low - 1) & (x < high + 1), x, 0).astype(np.int64)
    whole = np.where(x <= low, low, whole)
    return np.where((x >= high + 1) | np.isnan(x), high, whole)


@op.lower
def lower(graph: Lowering) -> None:
    given, wanted = graph.input(0).type, graph.output().type
    if given == wanted:
        graph.result(graph.value(0))
        return
    x = graph.value(0)
    if is_packed(wanted):
        wide = graph.cast(x, TensorType.INT32)
        bounds = (graph.scalar(bound, wide) for bound in integer_range(wanted))
        graph.result(graph.map(("min", ("max", 0, 1), 2), wide, *bounds, type=unpacked_type(wanted)))
        return
    graph.result(graph.cast(x, wanted))
