"""Convolutions and matrix products of bytes, against XNNPACK's formula, and TFLite's where that decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gossamer.codegen.graph import Kernel
from gossamer.ops import batch_matmul, conv_2d, depthwise_conv_2d, fully_connected, transpose_conv
from gossamer.ops._requantization import rounded_once
from gossamer.ops.op_def import OpDef
from gossamer.quantization import QuantizedMultiplier, multiply_by_quantized_multiplier, quantize_multiplier
from gossamer.schema import (
    ActivationFunctionType,
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Padding,
    TensorType,
    TransposeConvOptions,
)
from gossamer.targets import Target
from gossamer.views import Requantization
from tests.delegates.jit.running import TARGETS, Array, machine_code, outputs
from tests.ops.cases import Case, const, model_of, tensor

NONE, RELU, RELU6 = (ActivationFunctionType[name] for name in ("NONE", "RELU", "RELU6"))
BOUNDS = {NONE: (-np.inf, np.inf), RELU: (0, np.inf), RELU6: (0, 6)}


class Numbers:
    """Random scales and zero points of a product of this depth to so many channels, and XNNPACK's formula with them."""

    def __init__(self, rng: np.random.Generator, type: type, channels: int, depth: int, w_zero: bool = True) -> None:
        self.type = type
        self.least, self.greatest = int(np.iinfo(type).min), int(np.iinfo(type).max)
        several = type is np.int8 and bool(rng.integers(2))
        self.x_scale = np.float32(rng.uniform(0.01, 0.05))
        self.w_scales = rng.uniform(0.002, 0.02, channels if several else 1).astype(np.float32)
        self.y_scale = np.float32(self.x_scale * self.w_scales.mean() * np.sqrt(depth) * 130)
        self.x_zero, self.y_zero = (int(n) for n in rng.integers(self.least, self.greatest, 2, endpoint=True))
        self.w_zero = int(rng.integers(100, 150)) if type is np.uint8 and w_zero else 0
        self.bias = rng.integers(-3000, 3000, channels, np.int32)

    def bytes(self, rng: np.random.Generator, *shape: int) -> Array:
        return rng.integers(self.least, self.greatest, shape, self.type, endpoint=True)

    def x(self, value: Array) -> Any:
        return tensor(value, self.type, scale=float(self.x_scale), zero_point=self.x_zero)

    def w(self, value: Array, type: TensorType | None = None) -> Any:
        scales = self.w_scales if self.w_scales.size > 1 else float(self.w_scales[0])
        return const(value, self.type, scale=scales, zero_point=self.w_zero, type=type)

    def b(self) -> Any:
        scales = self.x_scale * self.w_scales
        return const(self.bias, scale=scales if scales.size > 1 else float(scales[0]))

    def y(self, sums: Array, activation: ActivationFunctionType = NONE) -> Any:
        """The output, of sums with their bias."""
        scaled = np.rint(sums.astype(np.int32).astype(np.float32) * (self.x_scale * self.w_scales / self.y_scale))
        low, high = (
            np.rint(np.clip(np.float32(bound) / self.y_scale + np.float32(self.y_zero), self.least, self.greatest))
            for bound in BOUNDS[activation]
        )
        levels = np.clip(scaled + np.float32(self.y_zero), low, high).astype(self.type)
        return tensor(levels, self.type, scale=float(self.y_scale), zero_point=self.y_zero)


def check(op: OpDef, case: Case, targets: Sequence[Target] = TARGETS) -> None:
    """All of it is machine code, and exact, with one thread and with three."""
    model = model_of(op, case)
    for target in targets:
        for threads in (1, 3):
            interpreter, _ = machine_code(model, threads, target)
            fed = [operand.value for operand in case.inputs if operand is not None and not operand.constant]
            indices = [details["index"] for details in interpreter.get_input_details()]
            (got,) = outputs(interpreter, dict(zip(indices, fed, strict=True)))
            np.testing.assert_array_equal(got, case.outputs[0].value, f"{target.name}, {threads} threads")


# (images, rows, columns, channels), (filters, rows, columns), and what differs from stride 1, SAME and one group.
CONVOLUTIONS: list[tuple[tuple[int, int, int, int], tuple[int, int, int], dict[str, Any]]] = [
    ((1, 7, 9, 3), (32, 3, 3), {"stride": 2}),
    ((2, 9, 27, 3), (8, 3, 3), {"stride": 2}),
    ((1, 6, 5, 5), (6, 3, 3), {"activation": RELU6, "padding": Padding.VALID}),
    ((1, 9, 7, 16), (20, 3, 3), {}),
    ((2, 5, 6, 5), (33, 3, 3), {"activation": RELU}),
    ((1, 6, 7, 24), (70, 1, 1), {"activation": RELU6}),
    ((1, 8, 8, 64), (16, 1, 1), {"stride": 2}),
    ((1, 9, 9, 8), (8, 3, 3), {"dilation": 2}),
    ((1, 9, 9, 2), (5, 2, 3), {"dilation": 3, "padding": Padding.VALID}),
    ((1, 5, 5, 12), (24, 3, 3), {"groups": 3}),
    ((1, 6, 7, 16), (16, 3, 3), {"groups": 8}),
    ((2, 7, 5, 48), (32, 2, 3), {"groups": 16, "stride": 2, "activation": RELU}),
    ((1, 1, 1, 7), (10, 1, 1), {}),
    ((3, 1, 1, 260), (130, 1, 1), {}),
    ((1, 20, 10, 1), (64, 10, 4), {"stride": 2}),
    ((1, 7, 7, 512), (1000, 1, 1), {}),
    ((1, 5, 7, 260), (300, 1, 1), {"activation": RELU}),
    ((1, 8, 12, 16), (32, 3, 3), {}),
    ((2, 7, 15, 32), (16, 3, 3), {"activation": RELU}),
    ((1, 10, 14, 16), (16, 3, 3), {"padding": Padding.VALID}),
    ((1, 8, 8, 64), (64, 3, 3), {"activation": RELU6}),
    ((1, 9, 8, 96), (64, 1, 1), {"activation": RELU6}),
    ((3, 5, 5, 64), (96, 1, 1), {}),
]


@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize(("shape", "filter", "more"), CONVOLUTIONS)
def test_convolutions(shape: Any, filter: Any, more: dict[str, Any], type: type) -> None:
    rng = np.random.default_rng(0)
    stride, dilation, groups = (more.get(name, 1) for name in ("stride", "dilation", "groups"))
    padding, activation = more.get("padding", Padding.SAME), more.get("activation", NONE)
    channels, *taps = filter
    depth = shape[3] // groups
    numbers = Numbers(rng, type, channels, depth * taps[0] * taps[1])
    x, w = numbers.bytes(rng, *shape), numbers.bytes(rng, channels, *taps, depth)
    output, pads = [], []
    for size, count in zip(shape[1:3], taps, strict=True):
        reach = (count - 1) * dilation + 1
        places = -(-size // stride) if padding == Padding.SAME else (size - reach) // stride + 1
        pad = max(0, (places - 1) * stride + reach - size) if padding == Padding.SAME else 0
        output.append(places)
        pads.append((pad // 2, pad - pad // 2))
    centred = np.pad(x.astype(np.int64) - numbers.x_zero, ((0, 0), *pads, (0, 0)))
    weights = w.astype(np.int64) - numbers.w_zero
    sums = np.zeros((shape[0], *output, channels), np.int64) + numbers.bias
    share = channels // groups
    for i in range(taps[0]):
        for j in range(taps[1]):
            met = centred[:, i * dilation :: stride, j * dilation :: stride][:, : output[0], : output[1]]
            for group in range(groups):
                filters = slice(group * share, (group + 1) * share)
                seen = met[..., group * depth : (group + 1) * depth]
                sums[..., filters] += np.einsum("nyxc,oc->nyxo", seen, weights[filters, i, j])
    options = Conv2DOptions(
        padding=padding,
        stride_h=stride,
        stride_w=stride,
        dilation_h_factor=dilation,
        dilation_w_factor=dilation,
        fused_activation_function=activation,
    )
    inputs = [numbers.x(x), numbers.w(w), numbers.b()]
    check(conv_2d.op, Case("", inputs, [numbers.y(sums, activation)], options, version=6 if groups > 1 else 3))


@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("rows", "depth", "units"), [(1, 3, 4), (1, 640, 128), (4, 7, 10), (20, 257, 33), (49, 64, 200)]
)
def test_fully_connected(rows: int, depth: int, units: int, type: type) -> None:
    rng = np.random.default_rng(0)
    numbers = Numbers(rng, type, units, depth)
    x, w = numbers.bytes(rng, rows, depth), numbers.bytes(rng, units, depth)
    sums = (x.astype(np.int64) - numbers.x_zero) @ (w.astype(np.int64) - numbers.w_zero).T
    for bias in (numbers.b(), None):
        y = numbers.y(sums + (numbers.bias if bias else 0))
        case = Case("", [numbers.x(x), numbers.w(w), bias], [y], FullyConnectedOptions(), version=12)
        check(fully_connected.op, case)


def test_int4_weights() -> None:
    rng = np.random.default_rng(0)
    numbers = Numbers(rng, np.int8, 17, 10)
    x, w = numbers.bytes(rng, 3, 10), rng.integers(-8, 7, (17, 10), np.int8, endpoint=True)
    y = numbers.y((x.astype(np.int64) - numbers.x_zero) @ w.T.astype(np.int64))
    inputs = [numbers.x(x), numbers.w(w, TensorType.INT4), None]
    check(fully_connected.op, Case("", inputs, [y], FullyConnectedOptions(), version=12))


@pytest.mark.parametrize(("depth", "several"), [(64, True), (64, False), (7, True), (10, False)])
@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=pytest.mark.peer)], ids=["bytes", "litert"])
def test_int2_weights(depth: int, several: bool, peer: bool) -> None:
    """As int8 weights: constant ones where XNNPACK takes them, of a depth of fours and a scale for each unit; else
    computed ones, which TFLite's kernel multiplies."""
    rng = np.random.default_rng(depth)
    units, rows = 9, 40
    x, w = rng.integers(-128, 128, (rows, depth), np.int8), rng.integers(-2, 2, (units, depth), np.int8)
    scales: Any = rng.uniform(0.01, 0.1, units if several else 1).astype(np.float32)
    scale = scales if several else float(scales[0])
    bias = const(rng.integers(-300, 300, units), scale=scales * np.float32(0.07) if several else 0.07 * scale)
    y = tensor(np.zeros((rows, units)), np.int8, scale=0.05, zero_point=-3)
    given = tensor(x, np.int8, scale=0.07, zero_point=5)
    of_bytes = const if several and depth % 4 == 0 else tensor
    found = []
    for weights in (const(w, np.int8, scale=scale, type=TensorType.INT2), of_bytes(w, np.int8, scale=scale)):
        model = model_of(fully_connected.op, Case("", [given, weights, bias], [y], FullyConnectedOptions(), version=14))
        interpreter, _ = machine_code(model)
        fed = {details["index"]: value for details, value in zip(interpreter.get_input_details(), (x, w), strict=False)}
        found.append(outputs(interpreter, fed)[0])
        if peer and len(found) == 1:
            from ai_edge_litert.interpreter import Interpreter

            theirs = Interpreter(model_content=model)
            theirs.allocate_tensors()
            found.append(outputs(theirs, fed)[0])
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("bias_type", [None, np.int32, np.int64])
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize(("depth", "units"), [(40, 17), (5, 3)])
@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=pytest.mark.peer)], ids=["formula", "litert"])
def test_weights_of_bytes_for_int16(
    depth: int, units: int, is_constant: bool, bias_type: type | None, peer: bool
) -> None:
    """int8 weights, constant or computed, with activations of 16 bits: sums have 64 bits where a bias has as many."""
    rng = np.random.default_rng(depth)
    x, w = rng.integers(-30_000, 30_000, (4, depth), np.int16), rng.integers(-128, 128, (units, depth), np.int8)
    sums = x.astype(np.int64) @ w.T.astype(np.int64)
    inputs = [tensor(x, np.int16, scale=2e-4), tensor(w, np.int8, scale=0.01, constant=is_constant)]
    if bias_type is not None:
        bias = rng.integers(-(10**6), 10**6, units).astype(bias_type)
        sums += bias
        inputs.append(const(bias, bias_type, scale=2e-4 * 0.01))
    multiplier, shift = quantize_multiplier(float(np.float32(2e-4) * np.float32(0.01)) / float(np.float32(5e-4)))
    if bias_type is np.int64:
        wanted = sums * multiplier + (1 << 30 - shift) >> 31 - shift
    else:  # ruy: halves are rounded upwards, twice
        wanted = (sums * multiplier + (1 << 30) >> 31) + (1 << -shift - 1) >> -shift
    y = tensor(np.clip(wanted, -(2**15), 2**15 - 1).astype(np.int16), np.int16, scale=5e-4)
    case = Case("", inputs, [y], FullyConnectedOptions(), version=11 if bias_type is None else 4)
    model = model_of(fully_connected.op, case)
    interpreter, _ = machine_code(model)
    fed = {details["index"]: value for details, value in zip(interpreter.get_input_details(), (x, w), strict=False)}
    np.testing.assert_array_equal(outputs(interpreter, fed)[0], y.value)
    if peer:
        from ai_edge_litert.interpreter import Interpreter

        theirs = Interpreter(model_content=model)
        theirs.allocate_tensors()
        np.testing.assert_array_equal(outputs(theirs, fed)[0], y.value)


@pytest.mark.parametrize("bias_type", [np.int32, np.int64])
@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=pytest.mark.peer)], ids=["formula", "litert"])
def test_computed_filters_for_int16(bias_type: type, peer: bool) -> None:
    """As those that are constant."""
    rng = np.random.default_rng(0)
    x, w = rng.integers(-30_000, 30_000, (2, 9, 8, 3), np.int16), rng.integers(-128, 128, (5, 3, 2, 3), np.int8)
    bias = const(rng.integers(-(10**6), 10**6, 5), bias_type, scale=2e-4 * 0.01)
    options = Conv2DOptions(
        padding=Padding.SAME, stride_h=2, stride_w=1, dilation_w_factor=2, quantized_bias_type=bias.type
    )
    found = []
    for is_constant in (True, False):
        inputs = [tensor(x, np.int16, scale=2e-4), tensor(w, np.int8, scale=0.01, constant=is_constant), bias]
        y = tensor(np.zeros((2, 5, 8, 5)), np.int16, scale=5e-4)
        model = model_of(conv_2d.op, Case("", inputs, [y], options, version=8))
        interpreter, _ = machine_code(model)
        fed = {details["index"]: value for details, value in zip(interpreter.get_input_details(), (x, w), strict=False)}
        found.append(outputs(interpreter, fed)[0])
        if peer:
            from ai_edge_litert.interpreter import Interpreter

            theirs = Interpreter(model_content=model)
            theirs.allocate_tensors()
            found.append(outputs(theirs, fed)[0])
    assert np.abs(found[0]).max() > 1000
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


BIASED: list[tuple[OpDef, tuple[int, ...], tuple[int, ...], tuple[int, ...], Any, int]] = [
    (fully_connected.op, (4, 300), (5, 300), (4, 5), FullyConnectedOptions(), 4),
    (conv_2d.op, (2, 9, 8, 30), (5, 3, 3, 30), (2, 9, 8, 5), None, 8),
    (depthwise_conv_2d.op, (1, 9, 8, 3), (1, 3, 3, 6), (1, 9, 8, 6),
     DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=2), 5),
    (transpose_conv.op, (1, 4, 5, 3), (6, 1, 3, 3), (1, 8, 10, 6), TransposeConvOptions(stride_h=2, stride_w=2), 3),
]  # fmt: skip


@pytest.mark.parametrize("type", [np.int32, np.int64])
@pytest.mark.parametrize("computes_weights", [False, True])
@pytest.mark.parametrize(
    ("op", "x_shape", "w_shape", "shape", "options", "version"), BIASED, ids=lambda v: getattr(v, "name", "")
)
@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=pytest.mark.peer)], ids=["constant", "litert"])
def test_computed_biases_for_int16(
    op: OpDef,
    x_shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    shape: tuple[int, ...],
    options: Any,
    version: int,
    computes_weights: bool,
    type: type,
    peer: bool,
) -> None:
    """As those that are constant."""
    is_transposed = op is transpose_conv.op
    if computes_weights and op in (depthwise_conv_2d.op, transpose_conv.op):
        pytest.skip("the reference kernels multiply by weights that are computed")
    if type is np.int32 and (op is depthwise_conv_2d.op or (peer and is_transposed)):
        pytest.skip("TFLite takes int64 alone")
    rng = np.random.default_rng(0)
    x, w = rng.integers(-30_000, 30_000, x_shape, np.int16), rng.integers(-128, 128, w_shape, np.int8)
    b = rng.integers(-(10**6), 10**6, shape[-1]).astype(type)
    found = []
    for is_constant in (True, False):
        bias = tensor(b, type, scale=2e-4 * 0.01, constant=is_constant)
        weights = tensor(w, np.int8, scale=0.01, constant=not computes_weights)
        inputs = [tensor(x, np.int16, scale=2e-4), weights, bias]
        if is_transposed:
            inputs = [const(shape), weights, inputs[0], bias]
        if op is conv_2d.op:
            options = Conv2DOptions(stride_h=1, stride_w=1, quantized_bias_type=bias.type)
        model = model_of(op, Case("", inputs, [tensor(np.zeros(shape), np.int16, scale=5e-4)], options, version))
        interpreter, _ = machine_code(model)
        fed = [one.value for one in inputs if one is not None and not one.constant]
        engines: list[Any] = [interpreter]
        if peer:
            from ai_edge_litert.interpreter import Interpreter

            engines.append(Interpreter(model_content=model))
            engines[-1].allocate_tensors()
        for one in engines:
            by_index = {d["index"]: value for d, value in zip(one.get_input_details(), fed, strict=True)}
            found.append(outputs(one, by_index)[0])
    assert np.abs(found[0]).max() > 1000
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("depth", [64, 100, 300])
def test_products_that_are_rounded_twice_round_once(depth: int) -> None:
    """In one kernel, where a nudge is found that makes it exact; scales as small as this one have none."""
    rng = np.random.default_rng(depth)
    x, y = (rng.integers(-128, 128, sides, np.int8) for sides in ((5, depth), (depth, 40)))
    sums = ((x.astype(np.int64) - 11) @ (y.astype(np.int64) + 7)).astype(np.int32)
    for scale, kernels in ((0.15, ["nudged"]), (600.0, ["sums", "scaleout"])):
        multiplier = quantize_multiplier(float(np.float32(0.02) * np.float32(0.03)) / np.float32(scale))
        wanted = np.clip(multiply_by_quantized_multiplier(sums, *multiplier) - 3, -128, 127).astype(np.int8)
        inputs = [
            tensor(x, np.int8, scale=0.02, zero_point=11),
            tensor(y, np.int8, scale=0.03, zero_point=-7),
        ]
        result = tensor(wanted, np.int8, scale=scale, zero_point=-3)
        case = Case("", inputs, [result], BatchMatMulOptions(), version=3)
        check(batch_matmul.op, case)
        _, kernel = machine_code(model_of(batch_matmul.op, case))
        assert kernel.program is not None
        names = " ".join(kernel.program.plan.kernels)
        assert all(name in names for name in kernels), names
        assert ("scaleout" in names) == ("scaleout" in kernels)


def test_what_is_rounded_once_is_what_is_rounded_twice() -> None:
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(300):
        multiplier, shift = int(rng.integers(1 << 30, 1 << 31)), int(rng.integers(-12, 1))
        zero_point = int(rng.integers(-128, 128))
        numbers = Requantization(3, 5, np.ones(1, np.float32), zero_point, -128, 127)
        once = rounded_once(QuantizedMultiplier(multiplier, shift), numbers)
        if once is None:
            continue
        found += 1
        (scale,) = once.scales.astype(np.float64)
        # All of those that do not saturate, and some that do.
        span = min(int(300 / scale), 1 << 20)
        sums = np.arange(-span, span + 1)
        nudged = (sums.astype(np.float64) * scale + np.copysign(once.nudge, sums)).astype(np.float32)
        wanted = multiply_by_quantized_multiplier(sums, multiplier, shift)
        got, wanted = (np.clip(levels + zero_point, -128, 127) for levels in (np.rint(nudged), wanted))
        np.testing.assert_array_equal(got, wanted)
    assert found > 200


@pytest.mark.parametrize("zero_point", [0, -7])
@pytest.mark.parametrize("transposed", [(False, False), (True, True)])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("shape", [(2, 5, 8, 33), (1, 1, 3, 4), (3, 20, 70, 16)])
def test_batch_matmul(shape: Any, constant: bool, transposed: tuple[bool, bool], zero_point: int) -> None:
    rng = np.random.default_rng(0)
    batch, rows, depth, columns = shape
    x, y = (rng.integers(-128, 128, (batch, *sides), np.int8) for sides in ((rows, depth), (depth, columns)))
    scales = np.array([0.02, 0.03, 0.02 * 0.03 * np.sqrt(depth) * 100], np.float32)
    sums = (x.astype(np.int64) - 11) @ (y.astype(np.int64) - zero_point)
    if zero_point == 0:
        levels = np.rint(sums.astype(np.float32) * (scales[0] * scales[1] / scales[2]))
    else:
        multiplier = quantize_multiplier(float(scales[0] * scales[1]) / float(scales[2]))
        levels = multiply_by_quantized_multiplier(sums.astype(np.int32), *multiplier)
    wanted = np.clip(levels - 3, -128, 127).astype(np.int8)
    x, y = (value.swapaxes(1, 2) if swap else value for value, swap in zip((x, y), transposed, strict=True))
    inputs = [
        tensor(x, np.int8, scale=float(scales[0]), zero_point=11),
        tensor(y, np.int8, scale=float(scales[1]), zero_point=zero_point, constant=constant),
    ]
    result = tensor(wanted, np.int8, scale=float(scales[2]), zero_point=-3)
    options = BatchMatMulOptions(adj_x=transposed[0], adj_y=transposed[1])
    check(batch_matmul.op, Case("", inputs, [result], options, version=3))


@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("shape", "filter", "stride"),
    [((1, 3, 4, 8), (5, 3, 3), 2), ((2, 2, 3, 1), (1, 2, 4), 1), ((1, 4, 4, 20), (16, 2, 2), 2)],
)
def test_transposed_convolutions(shape: Any, filter: Any, stride: int, type: type) -> None:
    rng = np.random.default_rng(0)
    channels, height, width = filter
    numbers = Numbers(rng, type, channels, height * width * shape[3] // stride**2)
    x, w = numbers.bytes(rng, *shape), numbers.bytes(rng, channels, height, width, shape[3])
    size = (shape[1] - 1) * stride + height, (shape[2] - 1) * stride + width
    sums = np.zeros((shape[0], *size, channels), np.int64) + numbers.bias
    products = np.einsum("nyxc,oijc->nyxijo", x.astype(np.int64) - numbers.x_zero, w.astype(np.int64) - numbers.w_zero)
    for row in range(shape[1]):
        for column in range(shape[2]):
            at = row * stride, column * stride
            sums[:, at[0] : at[0] + height, at[1] : at[1] + width] += products[:, row, column]
    options = TransposeConvOptions(padding=Padding.VALID, stride_h=stride, stride_w=stride)
    inputs = [const([shape[0], *size, channels]), numbers.w(w), numbers.x(x), numbers.b()]
    check(transpose_conv.op, Case("", inputs, [numbers.y(sums)], options, version=3))


def test_kernels_are_shared_between_layers() -> None:
    names = []
    for channels in (96, 192):
        rng = np.random.default_rng(channels)
        numbers = Numbers(rng, np.int8, channels, 64)
        x, w = numbers.bytes(rng, 1, 14, 14, 64), numbers.bytes(rng, channels, 1, 1, 64)
        case = Case(
            "",
            [numbers.x(x), numbers.w(w), numbers.b()],
            [numbers.y(np.zeros((1, 14, 14, channels)))],
            Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1),
            version=3,
        )
        _, kernel = machine_code(model_of(conv_2d.op, case), 1, TARGETS[0])
        assert kernel.built is not None
        names.append({step.calls for step in kernel.built.steps if isinstance(step.node, Kernel)})
    assert names[0] == names[1]


@pytest.mark.parametrize(("rows", "channels", "depth", "suits"), [
    (8, 16, 16, True),
    (7, 64, 32, True),
    (8, 16, 224, True),
    (8, 16, 240, True),
    (16, 64, 256, True),
    (8, 64, 256, "without dots"),  # with them, weights are too large for so few tiles
    (8, 16, 3648, False),  # sums may be too large
    (8, 20, 16, False),  # channels are not whole vectors
    (5, 16, 16, False),  # less than half of the pixels of tiles are there
])  # fmt: skip
def test_where_winograd_suits(rows: int, channels: int, depth: int, suits: bool | str) -> None:
    rng = np.random.default_rng(0)
    numbers = Numbers(rng, np.int8, channels, 9 * depth)
    x, w = numbers.bytes(rng, 1, rows, rows, depth), numbers.bytes(rng, channels, 3, 3, depth)
    case = Case(
        "",
        [numbers.x(x), numbers.w(w), numbers.b()],
        [numbers.y(np.zeros((1, rows, rows, channels)))],
        Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1),
        version=3,
    )
    for target in TARGETS:
        _, kernel = machine_code(model_of(conv_2d.op, case), 1, target)
        assert kernel.built is not None
        multiplies_bytes_quickly = target.dot == "signed" or target.tiles or (suits == "without dots" and target.dot)
        is_used = "x8_winograd__" + target.plain.name in kernel.built.specs
        assert is_used == (bool(suits) and not multiplies_bytes_quickly)


def targets_with(kernel: str, rows: int, depth: int, channels: int, type: type) -> list[str]:
    """The targets for which a layer of bytes has such a kernel."""
    numbers = Numbers(np.random.default_rng(0), type, channels, depth)
    x, w = (numbers.bytes(np.random.default_rng(0), count, depth) for count in (rows, channels))
    y = numbers.y(np.zeros((rows, channels)))
    case = Case("", [numbers.x(x), numbers.w(w), None], [y], FullyConnectedOptions())
    found = []
    for target in TARGETS:
        _, made = machine_code(model_of(fully_connected.op, case), 1, target)
        assert made.built is not None
        found += [target.name] * (kernel in made.built.specs)
    return found


@pytest.mark.parametrize(("rows", "depth", "channels", "type", "suits"), [
    (4, 16, 24, np.int8, True),
    (49, 259, 9, np.uint8, True),
    (3, 64, 24, np.int8, False),  # weights of 16 bits are not worth reading
    (49, 64, 8, np.int8, False),  # one vector of sums
])  # fmt: skip
def test_where_half_of_the_multiplications_suit(rows: int, depth: int, channels: int, type: type, suits: bool) -> None:
    assert targets_with("x8_contract_groups__avx2", rows, depth, channels, type) == [
        target.name for target in TARGETS if suits and target.name == "avx2"
    ]


@pytest.mark.parametrize(("columns", "depth", "filter", "suits"), [
    (9, 3, (8, 3, 3), True),
    (9, 4, (3, 2, 2), True),
    (9, 3, (16, 3, 3), False),  # half of the multiplications
    (9, 8, (8, 1, 1), False),  # every byte belongs to one pixel
    (300, 8, (8, 3, 3), False),  # too large to be written once more
])  # fmt: skip
def test_where_images_are_widened(columns: int, depth: int, filter: tuple[int, int, int], suits: bool) -> None:
    numbers = Numbers(np.random.default_rng(0), np.int8, filter[0], depth)
    x, w = np.zeros((1, columns, columns, depth), np.int8), np.ones((*filter, depth), np.int8)
    y = numbers.y(np.zeros((1, columns, columns, filter[0])))
    options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    model = model_of(conv_2d.op, Case("", [numbers.x(x), numbers.w(w), numbers.b()], [y], options, version=3))
    for target in TARGETS:
        _, made = machine_code(model, 1, target)
        assert made.built is not None
        assert ("i8_widen__avx2" in made.built.specs) == (suits and target.name == "avx2")


@pytest.mark.parametrize(("rows", "depth", "channels", "type", "suits"), [
    (64, 96, 64, np.int8, True),
    (65, 64, 96, np.int8, True),
    (63, 96, 64, np.int8, False),  # sums of weights are not worth reading
    (64, 64, 64, np.int8, False),  # nor making
    (64, 96, 72, np.int8, False),  # no halves of whole panels
    (64, 104, 64, np.int8, False),
    (64, 96, 64, np.uint8, False),  # weights have a zero point
])  # fmt: skip
def test_where_seven_eighths_of_the_multiplications_suit(
    rows: int, depth: int, channels: int, type: type, suits: bool
) -> None:
    assert targets_with("x8_strassen__avx2_widened", rows, depth, channels, type) == [
        target.name for target in TARGETS if suits and target.name == "avx2"
    ]


@pytest.mark.parametrize(("rows", "type", "suits"), [(1, np.int8, True), (2, np.int8, False), (1, np.uint8, False)])
def test_where_magnitudes_are_multiplied(rows: int, type: type, suits: bool) -> None:
    for target in TARGETS:
        numbers = Numbers(np.random.default_rng(0), type, 64, 40)
        x, w = (numbers.bytes(np.random.default_rng(0), count, 40) for count in (rows, 64))
        y = numbers.y(np.zeros((rows, 64)))
        case = Case("", [numbers.x(x), numbers.w(w), None], [y], FullyConnectedOptions())
        _, kernel = machine_code(model_of(fully_connected.op, case), 1, target)
        assert kernel.built is not None
        assert ("i8_gemm_1x8__avx2_by_sign" in kernel.built.specs) == (suits and target.name == "avx2")
