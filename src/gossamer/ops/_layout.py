"""What the operators that move elements have in common: the types they take, checks of axes, shapes and operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.dtypes import numpy_dtype, type_name
from gossamer.limits import require_memory
from gossamer.ops.op_def import Context, PrepareContext, Shape, TensorInfo
from gossamer.quantization import INT32_MAX
from gossamer.schema.enums import TensorType
from gossamer.sizes import is_open

INDEX_TYPES = (TensorType.INT32, TensorType.INT64)
FLOAT8_TYPES = (TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)

WHOLE_BYTE_TYPES = (
    *(TensorType.UINT8, TensorType.INT8, TensorType.BOOL, *FLOAT8_TYPES),
    *(TensorType.INT16, TensorType.UINT16, TensorType.FLOAT16, TensorType.BFLOAT16),
    *(TensorType.FLOAT32, TensorType.INT32, TensorType.UINT32),
    *(TensorType.INT64, TensorType.UINT64, TensorType.FLOAT64, TensorType.COMPLEX64),
)
"""Types of 8, 16, 32 and 64 bits: what kernels take that only look at the size of an element."""

NUMBER_TYPES = (*WHOLE_BYTE_TYPES, TensorType.COMPLEX128, TensorType.INT4, TensorType.UINT4, TensorType.INT2)
"""Types of a fixed size."""

ANY_TYPES = (*NUMBER_TYPES, TensorType.STRING)
"""What kernels take that copy whole tensors."""

MAX_RANK = 32

_FEW = 64
"""Below so many numbers, Python has found the least and the greatest before NumPy begins."""

QUANTIZED_TYPES = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)


def require_type(ctx: Context, name: str, tensor: TensorInfo, expected: int) -> None:
    """Raise unless the tensor has this type."""
    ctx.require(tensor.type == expected, f"{name} must be {type_name(expected)} here, got {type_name(tensor.type)}")


def require_output_type(ctx: Context, position: int = 0) -> None:
    """Raise unless every output has the type of the input at ``position``."""
    expected = ctx.input(position).type
    for output in ctx.outputs:
        require_type(ctx, "output", output, expected)


def set_output_type(ctx: PrepareContext, position: int = 0) -> None:
    """Give every output the type of the input at ``position``."""
    for output in range(len(ctx.outputs)):
        ctx.set_type(output, ctx.input(position).type)


def require_same_quantization(ctx: Context, a: TensorInfo, b: TensorInfo) -> None:
    """Raise unless two tensors have one scale and zero point: the operator copies integers and cannot rescale."""
    p, q = a.quantization, b.quantization
    if (p.scale, p.zero_point) != (q.scale, q.zero_point):
        ctx.fail(
            f'"{a.name}" and "{b.name}" must have the same scale and zero point, '
            f"got ({p.scale:g}, {p.zero_point}) and ({q.scale:g}, {q.zero_point})"
        )


def require_symmetric_int16(ctx: Context, *tensors: TensorInfo) -> None:
    """Raise for an int16 tensor whose zero point is not 0."""
    for tensor in tensors:
        if tensor.type == TensorType.INT16 and tensor.quantization.zero_point:
            ctx.fail(f'int16 "{tensor.name}" must have zero point 0, got {tensor.quantization.zero_point}')


def require_rank(ctx: Context, name: str, tensor: TensorInfo, low: int, high: int | None = None) -> None:
    """Raise unless the tensor has ``low`` dimensions, or ``low`` to ``high``."""
    rank = len(tensor.shape)
    allowed = str(low) if high is None else f"{low} to {high}"
    if not low <= rank <= (low if high is None else high):
        ctx.fail(f"{name} must have {allowed} dimensions, got {rank} {list(tensor.shape)}")


def require_shape(ctx: Context, name: str, tensor: TensorInfo, shape: Shape) -> None:
    """Raise unless the tensor has exactly this shape."""
    ctx.require_shapes(tensor.shape == shape, f"{name} must have shape {list(shape)}, got {list(tensor.shape)}")


def elements(shape: Sequence[int]) -> int:
    """Number of elements of a shape."""
    count = 1
    for size in shape:
        count *= size
    return count


def require_single(ctx: Context, name: str, tensor: TensorInfo) -> None:
    """Raise unless the tensor has one element."""
    ctx.require_shapes(elements(tensor.shape) == 1, f"{name} must have one element, got shape {list(tensor.shape)}")


def normalized_axis(ctx: Context, axis: int, rank: int, name: str = "axis") -> int:
    """The axis counted from the front. Raises for one outside -rank .. rank - 1."""
    if not -rank <= axis < rank:
        allowed = f"in [{-rank}, {rank - 1}]" if rank else "absent: the tensor is a scalar"
        ctx.fail(f"{name} {axis} is out of range, must be {allowed}")
    return axis + rank if axis < 0 else axis


def integers(values: NDArray[Any]) -> list[int]:
    """The elements as Python integers, which neither wrap nor overflow."""
    numbers: list[int] = values.reshape(-1).tolist()
    return numbers


def vector(sizes: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Sizes as a vector of this dtype; of objects if one is open (`gossamer.sizes`)."""
    return np.array(sizes, object if is_open(sizes) else dtype)


def checked_shape(ctx: Context, shape: Sequence[int]) -> Shape:
    """The shape as a tuple. Raises for a negative dimension, for more dimensions than NumPy arrays have everywhere, for
    more elements than TFLite can count, and for more bytes than are given."""
    if len(shape) > MAX_RANK:
        ctx.fail(f"output shape has {len(shape)} dimensions, at most {MAX_RANK} are possible")
    size = 1
    for dimension in shape:
        if dimension < 0:
            ctx.fail(f"output shape {list(shape)} has a negative dimension")
        size *= max(dimension, 1)
    if size > INT32_MAX:
        ctx.fail(f"output shape {list(shape)} is too large: more than {INT32_MAX} elements")
    if not is_open(shape):
        try:
            require_memory(size * numpy_dtype(ctx.outputs[0].type).itemsize)
        except MemoryError as error:
            ctx.fail(f"output shape {list(shape)}: {error}")
    return tuple(shape)


def require_indices_in_range(ctx: Context, name: str, indices: NDArray[Any], size: int) -> None:
    """Raise for an index outside [0, size): TFLite does not count from the end."""
    if not indices.size:
        return
    numbers = indices.ravel().tolist() if indices.size < _FEW else [indices.min(), indices.max()]
    if min(numbers) < 0 or max(numbers) >= size:
        bad = indices[(indices < 0) | (indices >= size)].reshape(-1)[0]
        ctx.fail(f"{name} {int(bad)} is out of range [0, {size})")


def add_at(target: NDArray[Any], indices: Any, updates: NDArray[Any]) -> None:
    """``target[indices] += updates`` where indices repeat: in order, integers wrapping, booleans as OR."""
    np.add.at(target, indices, updates)
