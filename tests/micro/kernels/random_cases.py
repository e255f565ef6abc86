"""Operators of quantized tensors with random scales and values, always the same ones: what rounding depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gossamer.ops import find_op
from gossamer.schema import (
    ActivationFunctionType,
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    CumsumOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    L2NormOptions,
    LeakyReluOptions,
    MulOptions,
    Pool2DOptions,
    ReducerOptions,
    ResizeBilinearOptions,
    SoftmaxOptions,
    SubOptions,
    SVDFOptions,
    Table,
    TransposeConvOptions,
    UnidirectionalSequenceLSTMOptions,
)
from tests.ops.cases import Case, Operand, const, model_of, tensor

SHAPE = (2, 6, 5, 8)
COUNT = 4
"""Cases of each operator."""

Parts = tuple[Sequence[Operand | None], Operand, Table | None]


class Draw:
    """Random operands. `np.random.RandomState` gives the same stream in every version of NumPy."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)
        self.dtype: Any = np.int8 if seed % 2 else np.int16

    def scale(self) -> float:
        return float(np.float32(np.exp(self.random.uniform(-7, -1))))

    def activation(self) -> ActivationFunctionType:
        return ActivationFunctionType([0, 1, 3][self.random.randint(3)])

    def chance(self) -> bool:
        return bool(self.random.randint(2))

    def values(self, shape: tuple[int, ...] = SHAPE, dtype: Any = None, **how: Any) -> Operand:
        """int8 with some zero point, or int16 with none."""
        dtype = dtype or self.dtype
        point = int(self.random.randint(-100, 100)) if dtype == np.int8 else 0
        how = {"scale": self.scale(), "zero_point": point} | how
        return tensor(self.random.randint(-100, 100, shape), dtype, **how)

    def weights(self, shape: tuple[int, ...], dimension: int) -> tuple[Operand, list[float]]:
        """int8 weights with one scale, or one for each channel; and the scales."""
        count = shape[dimension] if self.chance() else 1
        scales = [self.scale() / 10 for _ in range(count)]
        how: dict[str, Any] = {"scale": scales, "zero_point": [0] * count, "dimension": dimension if count > 1 else 0}
        return tensor(self.random.randint(-127, 127, shape), np.int8, constant=True, **how), scales


def _binary(options: type[Table]) -> Callable[[Draw], Parts]:
    def make(draw: Draw) -> Parts:
        y = draw.values(SHAPE if draw.chance() else (8,))
        return [draw.values(), y], draw.values(), options(fused_activation_function=draw.activation())

    return make


def _unary(dtype: Any = None, options: Callable[[Draw], Table] | None = None, **output: Any) -> Callable[[Draw], Parts]:
    def make(draw: Draw) -> Parts:
        x = draw.values(dtype=dtype)
        return [x], draw.values(dtype=dtype, **output), options(draw) if options else None

    return make


def _levels(draw: Draw, small: int) -> dict[str, Any]:
    """The output scale and zero point that logistic functions must have."""
    return {"scale": 1 / 256, "zero_point": small} if draw.dtype == np.int8 else {"scale": 1 / 32768, "zero_point": 0}


def _softmax(draw: Draw) -> Parts:
    return (
        [draw.values()],
        draw.values(**_levels(draw, -128)),
        SoftmaxOptions(beta=[1.0, 0.5, 1.3][draw.random.randint(3)]),
    )


def _logistic(draw: Draw) -> Parts:
    return [draw.values()], draw.values(**_levels(draw, -128)), None


def _tanh(draw: Draw) -> Parts:
    how = _levels(draw, 0)
    return [draw.values()], draw.values(**(how | {"scale": 1 / 128} if draw.dtype == np.int8 else how)), None


def _reduce(draw: Draw) -> Parts:
    axes, keep = [[1, 2], [3], [0, 2], [1]][draw.random.randint(4)], draw.chance()
    shape = np.zeros(SHAPE).sum(axis=tuple(axes), keepdims=keep).shape
    return [draw.values(), const(axes)], draw.values(shape), ReducerOptions(keep_dims=keep)


def _quantize(draw: Draw) -> Parts:
    pairs = [(np.int8, np.int8), (np.int16, np.int8), (np.int8, np.int16), (np.int8, np.int32)]
    source, target = pairs[draw.random.randint(len(pairs))]
    return [draw.values(dtype=source)], draw.values(dtype=target), None


def _cumsum(draw: Draw) -> Parts:
    options = CumsumOptions(exclusive=draw.chance(), reverse=draw.chance())
    return [draw.values(dtype=np.int8), const(int(draw.random.randint(-4, 4)))], draw.values(dtype=np.int8), options


def _add_n(draw: Draw) -> Parts:
    how: dict[str, Any] = {"scale": draw.scale(), "zero_point": 7}
    return [draw.values(dtype=np.int8, **how) for _ in range(3)], draw.values(dtype=np.int8), None


def _matmul(draw: Draw) -> Parts:
    x, y = draw.chance(), draw.chance()
    left, right = (3, 7, 5) if x else (3, 5, 7), (3, 6, 7) if y else (3, 7, 6)
    return (
        [draw.values(left), draw.values(right)],
        draw.values((3, 5, 6), scale=0.9),
        BatchMatMulOptions(adj_x=x, adj_y=y),
    )


def _contraction(
    shape: tuple[int, ...], weights: tuple[int, ...], dimension: int, output: tuple[int, ...], options: Table
) -> Callable[[Draw], Parts]:
    def make(draw: Draw) -> Parts:
        x, (filter_, scales) = draw.values(shape), draw.weights(weights, dimension)
        assert x.quantization is not None
        bias_scales = [float(x.quantization.scale[0]) * scale for scale in scales]
        bias = tensor(
            draw.random.randint(-9999, 9999, output[-1]),
            np.int32 if draw.dtype == np.int8 else np.int64,
            scale=bias_scales,
            zero_point=[0] * len(scales),
            constant=True,
        )
        y = draw.values(output, scale=draw.scale() * 4)
        if isinstance(options, TransposeConvOptions):
            return [const(output), filter_, x, bias], y, options
        return [x, filter_, bias], y, options.replace(fused_activation_function=draw.activation())

    return make


def _pool(draw: Draw) -> Parts:
    how: dict[str, Any] = {"scale": draw.scale(), "zero_point": 3 if draw.dtype == np.int8 else 0}
    options = Pool2DOptions(stride_w=1, stride_h=1, filter_width=3, filter_height=2)
    return [draw.values(**how)], draw.values(**how), options.replace(fused_activation_function=draw.activation())


def _resize(draw: Draw) -> Parts:
    how: dict[str, Any] = {"scale": draw.scale(), "zero_point": -5}
    y = draw.values((2, 11, 13, 8), np.int8, **how)
    return (
        [draw.values(dtype=np.int8, **how), const([11, 13])],
        y,
        ResizeBilinearOptions(half_pixel_centers=draw.chance()),
    )


def _svdf(draw: Draw) -> Parts:
    batch, inputs, filters, rank, memory = 2, 10, 8, 2, 6
    time = np.int16 if draw.chance() else np.int8
    of_time, of_state = draw.scale(), draw.scale()
    operands = [
        draw.values((batch, inputs), np.int8),
        tensor(draw.random.randint(-127, 127, (filters, inputs)), np.int8, scale=draw.scale(), constant=True),
        tensor(draw.random.randint(-127, 127, (filters, memory)), time, scale=of_time, constant=True),
        tensor(draw.random.randint(-9, 9, filters // rank), np.int32, scale=of_time * of_state, constant=True),
        tensor(np.zeros((batch, memory * filters)), time, scale=of_state, variable=True),
    ]
    y = draw.values((batch, filters // rank), np.int8, scale=draw.scale() * 4)
    return (
        operands,
        y,
        SVDFOptions(rank=rank, fused_activation_function=ActivationFunctionType([0, 1][draw.random.randint(2)])),
    )


def _prelu(draw: Draw) -> Parts:
    return (
        [draw.values(dtype=np.int8), draw.values((1, 1, 8), np.int8, constant=True)],
        draw.values(dtype=np.int8),
        None,
    )


def _squared_difference(draw: Draw) -> Parts:
    return [draw.values(), draw.values()], draw.values(), None


def _lstm(draw: Draw) -> Parts:
    major, narrow = draw.chance(), draw.dtype == np.int8
    steps, batch, inputs, cells = 3, 2, 4, 5
    x = draw.values((steps, batch, inputs) if major else (batch, steps, inputs), scale=0.05 if narrow else 0.0005)
    assert x.quantization is not None
    scales = [draw.scale() for _ in range(8)]

    def weights(shape: tuple[int, int], scale: float) -> Operand:
        return tensor(draw.random.randint(-127, 127, shape), np.int8, scale=scale, constant=True)

    def bias(scale: float) -> Operand:
        values = draw.random.randint(-3000, 3000, cells)
        return tensor(values, np.int32 if narrow else np.int64, scale=scale, constant=True)

    hidden: dict[str, Any] = {"scale": 0.01, "zero_point": -9} if narrow else {"scale": 0.0001}
    state = 2.0 ** draw.random.randint(-15, -8)
    operands: list[Operand | None] = [
        x,
        *(weights((cells, inputs), scale) for scale in scales[:4]),
        *(weights((cells, cells), scale) for scale in scales[4:]),
        *[None] * 3,
        *(bias(float(x.quantization.scale[0]) * scale) for scale in scales[:4]),
        *[None] * 2,
        tensor(np.zeros((batch, cells)), draw.dtype, variable=True, **hidden),
        tensor(np.zeros((batch, cells)), np.int16, scale=state, variable=True),
        *[None] * 4,
    ]
    options = UnidirectionalSequenceLSTMOptions(
        fused_activation_function=ActivationFunctionType.TANH, time_major=major, cell_clip=[0.0, 1.0][draw.chance()]
    )
    return operands, draw.values((*x.value.shape[:2], cells), **hidden), options


MAKERS: dict[str, Callable[[Draw], Parts]] = {
    "ABS": _unary(),
    "ADD": _binary(AddOptions),
    "ADD_N": _add_n,
    "AVERAGE_POOL_2D": _pool,
    "BATCH_MATMUL": _matmul,
    "CONV_2D": _contraction(SHAPE, (5, 3, 3, 8), 0, (2, 6, 5, 5), Conv2DOptions(stride_w=1, stride_h=1)),
    "CUMSUM": _cumsum,
    "DEPTHWISE_CONV_2D": _contraction(
        SHAPE, (1, 3, 3, 8), 3, SHAPE, DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    ),
    "ELU": _unary(np.int8),
    "FULLY_CONNECTED": _contraction((12, 40), (9, 40), 0, (12, 9), FullyConnectedOptions()),
    "HARD_SWISH": _unary(np.int8),
    "L2_NORMALIZATION": _unary(np.int8, lambda draw: L2NormOptions(), scale=1 / 128, zero_point=0),
    "LEAKY_RELU": _unary(options=lambda draw: LeakyReluOptions(alpha=float(draw.random.uniform(-1, 2)))),
    "LOGISTIC": _logistic,
    "MEAN": _reduce,
    "MUL": _binary(MulOptions),
    "PRELU": _prelu,
    "QUANTIZE": _quantize,
    "RELU": _unary(),
    "RELU6": _unary(),
    "RESIZE_BILINEAR": _resize,
    "SOFTMAX": _softmax,
    "SQUARED_DIFFERENCE": _squared_difference,
    "SUB": _binary(SubOptions),
    "SUM": _reduce,
    "SVDF": _svdf,
    "TANH": _tanh,
    "TRANSPOSE_CONV": _contraction(
        SHAPE, (5, 3, 3, 8), 0, (2, 12, 10, 5), TransposeConvOptions(stride_w=2, stride_h=2)
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}


def random_cases() -> Iterator[tuple[str, bytes, list[Operand]]]:
    """An id, a model of one operator, and the operands that are fed to it."""
    for number, (name, make) in enumerate(MAKERS.items()):
        for i in range(COUNT):
            inputs, output, options = make(Draw(100 * number + i))
            op = find_op(name)
            assert op is not None
            case = Case(name, inputs, [output], options, version=op.max_version)
            yield f"{name}/{i}", model_of(op, case), [x for x in inputs if x and not x.constant and not x.variable]
