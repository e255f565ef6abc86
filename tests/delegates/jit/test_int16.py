"""int16 operators on the default path: random shapes and scales against LiteRT's default path, bit for bit, and against
the reference kernels where they compute the same."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.schema import (
    AbsOptions,
    ActivationFunctionType,
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    DivOptions,
    ExpOptions,
    FullyConnectedOptions,
    GeluOptions,
    LeakyReluOptions,
    MulOptions,
    Padding,
    SoftmaxOptions,
    SubOptions,
    TensorType,
    TransposeConvOptions,
)
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS
from tests.ops.cases import Case, Operand, const, model_of, tensor
from tests.ops.reference import REFERENCE

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64
SEEDS = 8
Shape = tuple[int, ...]


class Draw:
    """Random operands of cases."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def integers(self, shape: Shape, dtype: Any, most: int = 0) -> np.ndarray:
        """Of the whole range, or up to ``most`` in size; sometimes small, sometimes with many extremes."""
        limits = np.iinfo(dtype)
        low, high = (-most, most) if most else (limits.min, limits.max)
        drawn = self.rng.integers(low, high + 1, shape)
        kind = self.rng.integers(4)
        if kind == 0 and not most:
            drawn = np.where(self.rng.random(shape) < 0.2, self.rng.choice([low, high], shape), drawn)
        return (drawn // 64 if kind == 1 else drawn).astype(dtype)

    def scale(self, low: float = -14, high: float = -4) -> float:
        return float(np.float32(2.0 ** self.rng.uniform(low, high)))

    def size(self, *choices: int) -> int:
        return int(self.rng.choice(choices))

    def shape(self) -> Shape:
        return tuple(self.size(1, 2, 3, 5, 17, 40) for _ in range(self.size(1, 2, 3)))

    def other_shape(self, shape: Shape) -> Shape:
        """One that broadcasts to it."""
        kind = self.size(0, 1, 2, 3)
        if kind == 1:
            return tuple([size if self.rng.random() < 0.5 else 1 for size in shape])
        return (shape, (), shape[-1:], ())[kind]

    def operand(self, shape: Shape, scale: float | None = None, dtype: Any = I16, zero_point: int = 0) -> Operand:
        return tensor(
            self.integers(shape, dtype), dtype, scale=self.scale() if scale is None else scale, zero_point=zero_point
        )

    def result(self, shape: Shape, scale: float | None = None, dtype: Any = I16, zero_point: int = 0) -> Operand:
        return tensor(np.zeros(shape), dtype, scale=self.scale() if scale is None else scale, zero_point=zero_point)

    def activation(self) -> ActivationFunctionType:
        return ActivationFunctionType(self.size(0, 0, 1, 2, 3))

    def weights(self, shape: Shape, channels: int, axis: int) -> tuple[Operand, np.ndarray]:
        count = channels if self.rng.random() < 0.7 else 1
        scales = np.array([self.scale(-10, -5) for _ in range(count)], np.float32)
        return const(self.integers(shape, I8, 127), I8, scale=scales, dimension=axis), scales

    def bias(self, channels: int, scales: np.ndarray, dtype: Any = I64) -> Operand:
        return const(self.integers((channels,), dtype, 1 << 20), dtype, scale=scales)

    def sums_scale(self, scale: float, scales: np.ndarray) -> float:
        return float(np.float32(scale * scales.mean() * 2.0 ** self.rng.uniform(2, 9)))


def binary(draw: Draw, options: Any = None) -> Case:
    shape = draw.shape()
    return Case("", [draw.operand(shape), draw.operand(draw.other_shape(shape))], [draw.result(shape)], options)


def add(draw: Draw) -> Case:
    return binary(draw, AddOptions(pot_scale_int16=False, fused_activation_function=draw.activation()))


def add_powers_of_two(draw: Draw) -> Case:
    shape, shift = draw.shape(), draw.size(0, 1, 3, 15)
    operands = [draw.operand(shape, 2.0**-10), draw.operand(shape, 2.0 ** (-10 - shift))]
    return Case("", operands, [draw.result(shape, 2.0**-10)], AddOptions(pot_scale_int16=True))


def sub(draw: Draw) -> Case:
    return binary(draw, SubOptions(pot_scale_int16=False, fused_activation_function=draw.activation()))


def mul(draw: Draw) -> Case:
    return binary(draw, MulOptions(fused_activation_function=draw.activation()))


def div(draw: Draw) -> Case:
    shape = draw.shape()
    zeros = [int(zero) for zero in draw.rng.integers(-99, 100, 3) * draw.size(0, 1)]
    x = draw.operand(shape, zero_point=zeros[0])
    y = draw.operand(draw.other_shape(shape), zero_point=zeros[1])
    y.value[y.value == zeros[1]] += 1
    y.constant = bool(draw.size(0, 1))
    result = draw.result(shape, draw.scale(-14, 4), zero_point=zeros[2])
    return Case("", [x, y], [result], DivOptions(fused_activation_function=draw.activation()), version=2)


def comparison(draw: Draw) -> Case:
    shape = draw.shape()
    operands = [draw.operand(shape), draw.operand(draw.other_shape(shape))]
    return Case("", operands, [tensor(np.zeros(shape), np.bool_)])


def of_one_scale(draw: Draw) -> Case:
    shape, scale = draw.shape(), draw.scale()
    return Case("", [draw.operand(shape, scale), draw.operand(shape, scale)], [draw.result(shape, scale)], version=4)


def unary(options: Any = None, output: float | None = None, low: float = -14, high: float = -4) -> Any:
    def case(draw: Draw) -> Case:
        shape = draw.shape()
        made = options(draw) if options else None
        return Case("", [draw.operand(shape, draw.scale(low, high))], [draw.result(shape, output)], made)

    return case


def of_positive(draw: Draw) -> Case:
    shape = draw.shape()
    x = draw.operand(shape)
    x.value = np.maximum(x.value, 0)
    return Case("", [x], [draw.result(shape)])


def prelu(draw: Draw) -> Case:
    shape = draw.shape()
    alpha = const(draw.integers(shape[-1:], I8), I8, scale=draw.scale())
    return Case("", [draw.operand(shape), alpha], [draw.result(shape)])


def quantize(draw: Draw) -> Case:
    shape, scale = draw.shape(), draw.scale()
    levels = draw.rng.integers(-33000, 33000, shape) + draw.rng.choice([0, 0.5, 0.499], shape)
    return Case("", [tensor((levels * np.float32(scale)).astype(np.float32))], [draw.result(shape, scale)], version=2)


def requantize(draw: Draw) -> Case:
    shape = draw.shape()
    ways: list[tuple[Any, Any]] = [(I16, I16), (I16, I8), (I16, I32), (I8, I16), (np.uint8, I16), (I32, I16)]
    source, target = ways[draw.size(*range(len(ways)))]

    def point(dtype: Any) -> int:
        return 0 if np.iinfo(dtype).bits > 8 else int(np.iinfo(dtype).min + draw.size(0, 100, 255))

    x = draw.operand(shape, dtype=source, zero_point=point(source))
    return Case("", [x], [draw.result(shape, dtype=target, zero_point=point(target))], version=2)


def convolution(draw: Draw) -> Case:
    stride, dilation, padding = draw.size(1, 2), draw.size(1, 1, 2), Padding(draw.size(0, 1))
    kernel, channels, filters = draw.size(1, 3), draw.size(1, 2, 3, 8, 17, 33), draw.size(1, 3, 8, 17, 40)
    height, width = draw.size(5, 8), draw.size(5, 9)
    scale, (weights, scales) = draw.scale(), draw.weights((filters, kernel, kernel, channels), filters, 0)
    kind = draw.size(TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)
    bias = draw.bias(filters, scale * scales, I32 if kind == TensorType.INT32 else I64)
    reach = (kernel - 1) * dilation if padding == Padding.VALID else 0
    output = (2, -(-(height - reach) // stride), -(-(width - reach) // stride), filters)
    options = Conv2DOptions(
        padding=padding,
        stride_h=stride,
        stride_w=stride,
        dilation_h_factor=dilation,
        dilation_w_factor=dilation,
        fused_activation_function=draw.activation(),
        quantized_bias_type=TensorType(kind),
    )
    x = draw.operand((2, height, width, channels), scale)
    return Case("", [x, weights, bias], [draw.result(output, draw.sums_scale(scale, scales))], options, version=8)


def depthwise(draw: Draw) -> Case:
    stride, kernel, channels, multiplier = draw.size(1, 2), draw.size(1, 3), draw.size(1, 3, 16, 37), draw.size(1, 1, 2)
    filters, scale = channels * multiplier, draw.scale()
    weights, scales = draw.weights((1, kernel, kernel, filters), filters, 3)
    options = DepthwiseConv2DOptions(
        padding=Padding.SAME,
        stride_h=stride,
        stride_w=stride,
        dilation_h_factor=1,
        dilation_w_factor=1,
        depth_multiplier=multiplier,
        fused_activation_function=draw.activation(),
    )
    output = draw.result((1, -(-7 // stride), -(-6 // stride), filters), draw.sums_scale(scale, scales))
    operands = [draw.operand((1, 7, 6, channels), scale), weights, draw.bias(filters, scale * scales)]
    return Case("", operands, [output], options, version=4)


def transposed(draw: Draw) -> Case:
    stride, kernel, channels, filters = draw.size(1, 2, 3), draw.size(1, 2, 4), draw.size(1, 3, 8), draw.size(1, 8, 17)
    same = draw.size(0, 1)
    size = 5 * stride if same else 4 * stride + kernel
    scale, (weights, scales) = draw.scale(), draw.weights((filters, kernel, kernel, channels), filters, 0)
    bias = [draw.bias(filters, scale * scales)] if draw.size(0, 1) else []
    padding = Padding.SAME if same else Padding.VALID
    options = TransposeConvOptions(padding=padding, stride_h=stride, stride_w=stride)
    x, shape = draw.operand((1, 5, 5, channels), scale), (1, size, size, filters)
    output = draw.result(shape, draw.sums_scale(scale, scales))
    return Case("", [const(shape), weights, x, *bias], [output], options, version=4)


def fully_connected(draw: Draw) -> Case:
    rows, depth, units = draw.size(1, 2, 5), draw.size(1, 3, 16, 33, 700), draw.size(1, 3, 16, 70)
    scale, (weights, scales) = draw.scale(), draw.weights((units, depth), units, 0)
    if draw.size(0, 0, 1):
        weights = const(draw.integers((units, depth), I8, 7), I8, scale=scales, type=TensorType.INT4)
    kind = draw.size(0, 1, 2, 3)
    bias = None if kind == 0 else draw.bias(units, scale * scales, I32 if kind == 1 else I64)
    stated = {1: TensorType.INT32, 2: TensorType.INT64}.get(kind, TensorType.FLOAT32)
    options = FullyConnectedOptions(fused_activation_function=draw.activation(), quantized_bias_type=stated)
    output = draw.result((rows, units), draw.sums_scale(scale, scales))
    return Case("", [draw.operand((rows, depth), scale), weights, bias], [output], options, version=11)


def matmul(draw: Draw) -> Case:
    rows, depth, columns, batch = draw.size(1, 4, 9), draw.size(1, 8, 31), draw.size(1, 16, 37), draw.size(1, 3)
    adj_x, adj_y = bool(draw.size(0, 1)), bool(draw.size(0, 1))
    options = BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y)
    x = draw.operand((batch, depth, rows) if adj_x else (batch, rows, depth))
    y = draw.operand((batch, columns, depth) if adj_y else (batch, depth, columns))
    scales = [float(operand.quantization.scale[0]) for operand in (x, y) if operand.quantization is not None]
    scale = float(np.float32(scales[0] * scales[1] * 2.0 ** draw.rng.uniform(8, 20)))
    return Case("", [x, y], [draw.result((batch, rows, columns), scale)], options, version=3)


def softmax(draw: Draw) -> Case:
    shape = draw.shape()
    options = SoftmaxOptions(beta=float(draw.rng.choice([0.5, 1, 2])))
    return Case("", [draw.operand(shape)], [draw.result(shape, 2.0**-15)], options, version=3)


FRACTION = 2.0**-15
OPERATORS: dict[str, tuple[str, Callable[[Draw], Case]]] = {
    "add": ("add", add),
    "add_powers_of_two": ("add", add_powers_of_two),
    "sub": ("sub", sub),
    "mul": ("mul", mul),
    "div": ("div", div),
    "equal": ("equal", comparison),
    "less": ("less", comparison),
    "greater_equal": ("greater_equal", comparison),
    "minimum": ("minimum", of_one_scale),
    "maximum": ("maximum", of_one_scale),
    "abs": ("abs", unary(lambda draw: AbsOptions())),
    "relu": ("relu", unary()),
    "relu6": ("relu6", unary()),
    "leaky_relu": ("leaky_relu", unary(lambda draw: LeakyReluOptions(alpha=float(draw.rng.choice([0.1, -0.2, 1.5]))))),
    "prelu": ("prelu", prelu),
    "logistic": ("logistic", unary(None, FRACTION, -15, -8)),
    "tanh": ("tanh", unary(None, FRACTION, -15, -8)),
    "gelu": ("gelu", unary(lambda draw: GeluOptions(approximate=True))),
    "exp": ("exp", unary(lambda draw: ExpOptions(), None, -15, -12)),
    "log": ("log", unary()),
    "rsqrt": ("rsqrt", of_positive),
    "sqrt": ("sqrt", of_positive),
    "quantize": ("quantize", quantize),
    "requantize": ("quantize", requantize),
    "conv_2d": ("conv_2d", convolution),
    "depthwise_conv_2d": ("depthwise_conv_2d", depthwise),
    "transpose_conv": ("transpose_conv", transposed),
    "fully_connected": ("fully_connected", fully_connected),
    "batch_matmul": ("batch_matmul", matmul),
    "softmax": ("softmax", softmax),
}
ROUNDED = ("quantize", "conv_2d", "fully_connected")
"""Where LiteRT's default path rounds otherwise than its reference kernels: to a level."""


def results(make: Any, content: bytes, case: Case) -> np.ndarray:
    interpreter = make(model_content=content)
    interpreter.allocate_tensors()
    if make is gossamer.Interpreter:
        (claims,) = interpreter.delegate_claims()
        assert not claims.refusals, dict(claims.refusals)
    fed = [operand.value for operand in case.inputs if operand is not None and not operand.constant]
    for details, value in zip(interpreter.get_input_details(), fed, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    result: np.ndarray = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


def drawn(name: str, seed: int) -> tuple[bytes, Case]:
    module, make = OPERATORS[name]
    case = make(Draw(seed))
    return model_of(import_module(f"gossamer.ops.{module}").op, case), case


@pytest.mark.parametrize("quarter", seeds(2, 4))
@pytest.mark.parametrize("name", OPERATORS)
def test_as_the_reference_kernel(name: str, quarter: int) -> None:
    for seed in range(quarter, SEEDS, 4):
        content, case = drawn(name, seed)
        got, wanted = results(gossamer.Interpreter, content, case), results(REFERENCE, content, case)
        difference = np.abs(got.astype(np.int64) - wanted.astype(np.int64))
        assert difference.max() <= (name in ROUNDED), (seed, case)


@pytest.mark.peer
@pytest.mark.parametrize("name", OPERATORS)
def test_as_litert(name: str) -> None:
    from ai_edge_litert.interpreter import Interpreter

    for seed in range(5 * SEEDS):
        content, case = drawn(name, seed)
        got, wanted = results(gossamer.Interpreter, content, case), results(Interpreter, content, case)
        np.testing.assert_array_equal(got, wanted, err_msg=f"seed {seed}")


def test_levels_that_int32_does_not_hold_are_the_least() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e9, -1e9, 400, -400, 1, *[np.nan, np.inf, 1e9]], np.float32)
    case = Case("", [tensor(x)], [tensor(np.zeros(11), I16, scale=0.01)], version=2)
    content = model_of(import_module("gossamer.ops.quantize").op, case)
    got = results(gossamer.Interpreter, content, case)
    assert got.tolist() == [-32768, -32768, -32768, -32768, -32768, 32767, -32768, 100, -32768, -32768, -32768]


def test_negative_roots_are_refused_by_the_reference_kernel() -> None:
    for name in ("sqrt", "rsqrt"):
        x = tensor([4, -1], I16, scale=0.5)
        case = Case("", [x], [tensor([0, 0], I16, scale=0.5)])
        with pytest.raises(RuntimeError, match="is only defined for"):
            results(gossamer.Interpreter, model_of(import_module(f"gossamer.ops.{name}").op, case), case)
