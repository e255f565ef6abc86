"""Float activations and stored integers, against what LiteRT's default path makes of them, bit by bit."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.model import read_model
from gossamer.model.writer import write_model
from gossamer.ops._conv_geometry import Window
from gossamer.ops.batch_matmul import op as BATCH_MATMUL
from gossamer.ops.conv_2d import op as CONV_2D
from gossamer.ops.depthwise_conv_2d import op as DEPTHWISE_CONV_2D
from gossamer.ops.fully_connected import op as FULLY_CONNECTED
from gossamer.ops.op_def import OpDef
from gossamer.ops.transpose_conv import op as TRANSPOSE_CONV
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
from tests import qd8
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, machine_code, outputs, reference
from tests.ops.cases import Case, Operand, const, model_of, tensor

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

SHARED = Path(__file__).resolve().parents[4] / "shared"
ZOO = Path(os.environ.get("GOSSAMER_ZOO", SHARED / "zoo"))

ACTIVATIONS = {
    ActivationFunctionType.NONE: (-np.inf, np.inf),
    ActivationFunctionType.RELU: (0, np.inf),
    ActivationFunctionType.RELU6: (0, 6),
}


class Draw:
    """Random operands of an operator and what it is to make of them."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.activation = self.choose.choice(list(ACTIVATIONS))

    def floats(self, *shape: int) -> np.ndarray:
        x = (self.rng.standard_normal(shape) * self.choose.choice([1, 100])).astype(np.float32)
        if self.choose.random() < 0.3:
            x = np.abs(x)
        return x

    def weights(self, *shape: int, bits: int = 8) -> np.ndarray:
        return self.rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), shape).astype(np.int8)

    def scales(self, channels: int, several: bool | None = None) -> np.ndarray:
        several = self.choose.random() < 0.7 if several is None else several
        return (self.rng.random(channels if several else 1) * 0.01 + 1e-3).astype(np.float32)

    def windows(self, kernel: tuple[int, int], image: tuple[int, int], padding: Padding) -> tuple[list[Window], Any]:
        """Over an image, with strides and dilations, of which one is 1."""
        strides = self.choose.choice([(1, 1), (1, 1), (2, 2), (1, 2), (2, 3)])
        dilations = self.choose.choice([(1, 1), (2, 1)]) if strides == (1, 1) else (1, 1)
        found = []
        for size, taps, stride, dilation in zip(image, kernel, strides, dilations, strict=True):
            extent = (taps - 1) * dilation + 1
            if padding == Padding.VALID:
                found.append(Window(size, taps, stride, dilation, (size - extent) // stride + 1, 0))
            else:
                output = -(-size // stride)
                before = max((output - 1) * stride + extent - size, 0) // 2
                found.append(Window(size, taps, stride, dilation, output, before))
        options = {
            "padding": padding,
            "stride_h": strides[0],
            "stride_w": strides[1],
            "dilation_h_factor": dilations[0],
            "dilation_w_factor": dilations[1],
            "fused_activation_function": self.activation,
        }
        return found, options

    def finished(self, y: np.ndarray) -> Operand:
        return tensor(np.clip(y, *ACTIVATIONS[self.activation]).astype(np.float32))


def fully_connected(seed: int) -> tuple[OpDef, Case]:
    draw = Draw(seed)
    rows, depth, units = (draw.choose.choice(sizes) for sizes in ([1, 3, 40], [1, 3, 6, 64, 257], [1, 5, 40, 130]))
    type = draw.choose.choice([TensorType.INT8, TensorType.INT8, TensorType.INT4, TensorType.INT2])
    depth = {TensorType.INT4: depth + depth % 2, TensorType.INT2: -(-depth // 4) * 4}.get(type, depth)
    bits = {TensorType.INT8: 8, TensorType.INT4: 4, TensorType.INT2: 2}[type]
    x, weights = draw.floats(rows, depth), draw.weights(units, depth, bits=bits)
    scales = draw.scales(units, True if type == TensorType.INT2 else None)
    bias = draw.choose.choice([None, draw.floats(units)])
    y = draw.finished(qd8.product(x, weights, scales, bias))
    operands = [
        tensor(x),
        const(weights, np.int8, type=type, scale=scales),
        None if bias is None else const(bias, np.float32),
    ]
    options = FullyConnectedOptions(fused_activation_function=draw.activation, asymmetric_quantize_inputs=seed % 2 > 0)
    return FULLY_CONNECTED, Case(str(seed), operands, [y], options, 14 if bits == 2 else 12)


def batch_matmul(seed: int) -> tuple[OpDef, Case]:
    draw = Draw(seed)
    rows, depth, columns = (draw.choose.choice(sizes) for sizes in ([1, 7], [3, 16, 67], [5, 40]))
    x_batch, y_batch = draw.choose.choice([((), ()), ((3,), ()), ((2, 3), (3,)), ((3,), (3,)), ((1,), (2, 1))])
    x, weights, scales = (
        draw.floats(*x_batch, rows, depth),
        draw.weights(*y_batch, columns, depth),
        draw.scales(columns),
    )
    y = tensor(qd8.product(np.broadcast_to(x, (*x.shape[: len(x_batch)], rows, depth)), weights, scales))
    adj_x, adj_y = draw.choose.choice([(False, False), (True, True), (False, True)])
    lhs = np.ascontiguousarray(np.swapaxes(x, -1, -2)) if adj_x else x
    rhs = weights if adj_y else np.ascontiguousarray(np.swapaxes(weights, -1, -2))
    along = rhs.ndim - (2 if adj_y else 1) if scales.size > 1 else 0
    operands = [tensor(lhs), const(rhs, np.int8, scale=scales, dimension=along)]
    return BATCH_MATMUL, Case(str(seed), operands, [y], BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y), 4)


def conv_2d(seed: int) -> tuple[OpDef, Case]:
    draw = Draw(seed)
    kernel, padding = draw.choose.choice([(1, 1), (1, 1), (3, 3), (2, 4)]), draw.choose.choice(list(Padding))
    groups, depth, share = draw.choose.choice([1, 1, 2]), draw.choose.choice([3, 8, 40]), draw.choose.choice([4, 20])
    images, height, width = draw.choose.choice([1, 1, 2]), 9, draw.choose.choice([7, 12])
    windows, options = draw.windows(kernel, (height, width), padding)
    x, weights = draw.floats(images, height, width, groups * depth), draw.weights(groups * share, *kernel, depth)
    scales, bias = draw.scales(groups * share, True if groups > 1 else None), draw.floats(groups * share)
    y = draw.finished(qd8.convolution(x, weights, scales, bias, (windows[0], windows[1])))
    operands = [tensor(x), const(weights, np.int8, scale=scales), const(bias, np.float32)]
    return CONV_2D, Case(str(seed), operands, [y], Conv2DOptions(**options), 6)


def depthwise_conv_2d(seed: int) -> tuple[OpDef, Case]:
    draw = Draw(seed)
    kernel, padding = draw.choose.choice([(3, 3), (5, 5), (1, 2)]), draw.choose.choice(list(Padding))
    channels, multiplier = draw.choose.choice([(1, 8), (3, 3), (7, 1), (16, 1), (37, 1), (8, 2), (70, 1)])
    images, height, width = draw.choose.choice([1, 1, 2]), 9, draw.choose.choice([7, 12])
    windows, options = draw.windows(kernel, (height, width), padding)
    x, weights = draw.floats(images, height, width, channels), draw.weights(*kernel, channels * multiplier)
    scales, bias = draw.scales(channels * multiplier, True), draw.floats(channels * multiplier)
    y = draw.finished(qd8.depthwise(x, weights, scales, bias, (windows[0], windows[1])))
    operands = [tensor(x), const(weights[None], np.int8, scale=scales, dimension=3), const(bias, np.float32)]
    return DEPTHWISE_CONV_2D, Case(
        str(seed), operands, [y], DepthwiseConv2DOptions(depth_multiplier=multiplier, **options), 6
    )


def transpose_conv(seed: int) -> tuple[OpDef, Case]:
    draw = Draw(seed)
    kernel = draw.choose.choice([(3, 3), (2, 2), (5, 2), (1, 1)])
    strides = draw.choose.choice([(s, t) for s, t in ((1, 1), (2, 2), (3, 2)) if s <= kernel[0] and t <= kernel[1]])
    images, height, width, depth, channels = draw.choose.choice([1, 2]), 5, 4, draw.choose.choice([3, 8]), 9
    size = (height * strides[0], width * strides[1])
    windows = []
    for full, taps, stride, place in zip(size, kernel, strides, (height, width), strict=True):
        windows.append(Window(full, taps, stride, 1, place, max((place - 1) * stride + taps - full, 0) // 2))
    x, weights = draw.floats(images, height, width, depth), draw.weights(channels, *kernel, depth)
    scales, bias = draw.scales(channels), draw.floats(channels)
    y = draw.finished(qd8.transposed(x, weights, scales, bias, (windows[0], windows[1])))
    shape = const([images, *size, channels])
    operands = [shape, const(weights, np.int8, scale=scales), tensor(x), const(bias, np.float32)]
    options = TransposeConvOptions(
        padding=Padding.SAME, stride_h=strides[0], stride_w=strides[1], fused_activation_function=draw.activation
    )
    return TRANSPOSE_CONV, Case(str(seed), operands, [y], options, 4)


OPERATORS = (fully_connected, batch_matmul, conv_2d, depthwise_conv_2d, transpose_conv)


@pytest.mark.parametrize("seed", seeds(6, 24))
@pytest.mark.parametrize("make", OPERATORS, ids=lambda make: make.__name__)
def test_operator(make: Callable[[int], tuple[OpDef, Case]], seed: int) -> None:
    op, case = make(seed)
    fed = next(number for number, operand in enumerate(case.inputs) if operand is not None and not operand.constant)
    x, (want,) = case.inputs[fed], case.outputs
    assert x is not None
    target = TARGETS[seed % len(TARGETS)]
    for threads in (1, 3):
        interpreter, _ = machine_code(model_of(op, case), threads, target)
        (got,) = outputs(interpreter, {interpreter.get_input_details()[0]["index"]: x.value})
        np.testing.assert_array_equal(got, want.value)


@pytest.mark.peer
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", OPERATORS, ids=lambda make: make.__name__)
def test_operator_in_litert(make: Callable[[int], tuple[OpDef, Case]], seed: int) -> None:
    from ai_edge_litert.interpreter import Interpreter

    op, case = make(seed)
    interpreter = Interpreter(model_content=model_of(op, case))
    interpreter.allocate_tensors()
    (x,) = (operand for operand in case.inputs if operand is not None and not operand.constant)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x.value)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(got, case.outputs[0].value)


@pytest.mark.peer
@pytest.mark.parametrize("name", ["mobilenet_v2_dr", "transformer_enc_dr"])
def test_each_operator_of_a_model_is_what_litert_computes(name: str) -> None:
    """One by one, for floats of other operators differ by their order of sums."""
    from ai_edge_litert.interpreter import Interpreter

    model = read_model((ZOO / f"{name}.tflite").read_bytes())
    (subgraph,) = model.subgraphs
    rng, seen = np.random.default_rng(0), 0
    for operator in subgraph.operators:
        computed = [
            at for at in operator.inputs if at >= 0 and not len(model.buffers[subgraph.tensors[at].buffer].data)
        ]
        types = {subgraph.tensors[at].type for at in operator.inputs if at >= 0}
        if TensorType.INT8 not in types or TensorType.FLOAT32 not in types:
            continue
        seen += 1
        alone = subgraph.replace(operators=(operator,), inputs=tuple(computed), outputs=operator.outputs)
        content = write_model(model.replace(subgraphs=(alone,), signature_defs=()))
        results = []
        x = [rng.normal(size=subgraph.tensors[at].shape).astype(np.float32) for at in computed]
        for interpreter in (gossamer.Interpreter(model_content=content), Interpreter(model_content=content)):
            interpreter.allocate_tensors()
            for detail, value in zip(interpreter.get_input_details(), x, strict=True):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
            results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        np.testing.assert_array_equal(*results)
    assert seen


@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=pytest.mark.peer)], ids=["reference", "litert"])
@pytest.mark.parametrize("seed", range(12))
def test_filters_that_xnnpack_does_not_take(seed: int, peer: bool) -> None:
    draw = Draw(seed)
    type = draw.choose.choice([TensorType.INT4, TensorType.UINT8])
    kernel, padding = draw.choose.choice([(1, 1), (3, 3), (2, 4)]), draw.choose.choice(list(Padding))
    groups = 2 if type == TensorType.INT4 and draw.choose.random() < 0.4 else 1
    depth, share, images = draw.choose.choice([3, 40]), draw.choose.choice([4, 20]), draw.choose.choice([1, 3])
    _, options = draw.windows(kernel, (9, 7), padding)
    weights = draw.weights(groups * share, *kernel, depth, bits=4)
    scales = draw.scales(groups * share, True if groups > 1 else False if type == TensorType.UINT8 else None)
    if type == TensorType.UINT8:
        weights = weights.view(np.uint8)
    filter = const(weights, weights.dtype, scale=scales if scales.size > 1 else float(scales[0]), type=type)
    bias = const(draw.floats(groups * share), np.float32)
    x = tensor(draw.floats(images, 9, 7, groups * depth))
    version = 2 if type == TensorType.UINT8 else 7
    case = Case(str(seed), [x, filter, bias], [tensor(np.zeros((1, 1, 1, 1)))], Conv2DOptions(**options), version)
    model = model_of(CONV_2D, case)
    interpreter, _ = machine_code(model, 2, TARGETS[seed % len(TARGETS)])
    other: Any = reference(model)
    if peer:
        from ai_edge_litert.interpreter import Interpreter

        other = Interpreter(model_content=model)
    other.allocate_tensors()
    (got,), (want,) = (outputs(one, {one.get_input_details()[0]["index"]: x.value}) for one in (interpreter, other))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("make", "seed"), [(conv_2d, 0), (conv_2d, 13), (depthwise_conv_2d, 2)])
def test_images_of_any_number_are_each_what_it_is_alone(make: Callable[[int], tuple[OpDef, Case]], seed: int) -> None:
    """Padding is the zero point of its image, also where batches come and go."""
    op, case = make(seed)
    assert case.options.padding == Padding.SAME
    images = Draw(5).floats(40, *case.inputs[0].value.shape[1:])
    interpreter = gossamer.Interpreter(model_content=model_of(op, case))
    x = interpreter.get_input_details()[0]["index"]

    def run(values: np.ndarray) -> np.ndarray:
        interpreter.resize_tensor_input(x, values.shape)
        interpreter.allocate_tensors()
        (kernel,) = interpreter.delegate_kernels()
        assert isinstance(kernel, JitKernel)
        assert kernel.program is not None
        return outputs(interpreter, {x: values})[0]

    alone = np.concatenate([run(images[at : at + 1]) for at in range(40)])
    for count in (2, 17, 40, 3):
        np.testing.assert_array_equal(run(images[:count]), alone[:count])


def test_products_without_depth_are_known() -> None:
    model = model_of(
        FULLY_CONNECTED,
        Case(
            "no depth",
            [tensor(np.zeros((2, 0))), const(np.zeros((3, 0)), np.int8, scale=0.5, zero_point=0)],
            [tensor(np.zeros((2, 3)))],
            FullyConnectedOptions(),
        ),
    )
    interpreter = gossamer.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert not any(claims.refusals for claims in interpreter.delegate_claims())
    np.testing.assert_array_equal(
        interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), np.zeros((2, 3))
    )


@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=pytest.mark.peer)], ids=["reference", "litert"])
@pytest.mark.parametrize("seed", range(6))
def test_computed_weights(seed: int, peer: bool) -> None:
    """XNNPACK does not take them, TFLite's kernel does."""
    draw = Draw(seed)
    rows, units, depth = (draw.choose.choice(sizes) for sizes in ([1, 3, 8], [1, 17, 40], [5, 33, 64]))
    weights = np.maximum(draw.weights(units, depth), -127)
    if seed % 2:
        weights = weights.view(np.uint8)
    bias = None if seed % 3 == 0 else tensor(draw.floats(units), constant=seed % 3 == 1)
    options = FullyConnectedOptions(asymmetric_quantize_inputs=seed % 4 > 1, fused_activation_function=draw.activation)
    operands = [tensor(draw.floats(rows, depth)), tensor(weights, weights.dtype, scale=0.03), bias]
    model = model_of(FULLY_CONNECTED, Case("", operands, [tensor(np.zeros((rows, units)))], options, 9))
    interpreter, _ = machine_code(model, 1, TARGETS[seed % len(TARGETS)])
    other: Any = reference(model)
    if peer:
        from ai_edge_litert.interpreter import Interpreter

        other = Interpreter(model_content=model)
    other.allocate_tensors()
    fed = [operand.value for operand in operands if operand is not None and not operand.constant]
    got, want = (
        outputs(one, {d["index"]: value for d, value in zip(one.get_input_details(), fed, strict=True)})[0]
        for one in (interpreter, other)
    )
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("peer", [False, pytest.param(True, marks=pytest.mark.peer)], ids=["reference", "litert"])
@pytest.mark.parametrize("op", [FULLY_CONNECTED, CONV_2D, DEPTHWISE_CONV_2D], ids=lambda op: op.name)
@pytest.mark.parametrize("is_constant", [True, False], ids=["weights", "computed weights"])
def test_computed_biases(op: OpDef, is_constant: bool, peer: bool) -> None:
    """LiteRT leaves products with such a bias to its own kernels, too."""
    if op is DEPTHWISE_CONV_2D and not is_constant:
        pytest.skip("the reference kernels multiply by filters that are computed")
    draw = Draw(7)
    shapes: dict[OpDef, Any] = {
        FULLY_CONNECTED: ((3, 20), (6, 20), (3, 6), FullyConnectedOptions(), 9, 0),
        CONV_2D: ((2, 7, 6, 5), (6, 3, 3, 5), (2, 7, 6, 6), Conv2DOptions(stride_h=1, stride_w=1), 5, 0),
        DEPTHWISE_CONV_2D: (
            (2, 7, 6, 6), (1, 3, 3, 6), (2, 7, 6, 6),
            DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1), 6, 3,
        ),
    }  # fmt: skip
    x_shape, w_shape, shape, options, version, dimension = shapes[op]
    weights = np.maximum(draw.weights(*w_shape), -127)
    scales = [0.03] if op is FULLY_CONNECTED else [0.01 * number for number in range(1, 7)]
    quantized = tensor(weights, np.int8, scale=scales, dimension=dimension, constant=is_constant)
    operands = [tensor(draw.floats(*x_shape)), quantized, tensor(draw.floats(6))]
    model = model_of(op, Case("", operands, [tensor(np.zeros(shape))], options, version))
    interpreter, _ = machine_code(model)
    other: Any = reference(model)
    if peer:
        from ai_edge_litert.interpreter import Interpreter

        other = Interpreter(model_content=model)
    other.allocate_tensors()
    fed = [operand.value for operand in operands if not operand.constant]
    got, want = (
        outputs(one, {d["index"]: value for d, value in zip(one.get_input_details(), fed, strict=True)})[0]
        for one in (interpreter, other)
    )
    if peer:
        np.testing.assert_array_equal(got, want)
    else:  # which multiplies by the scales in another order
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
