"""Quantized models that are out of the ordinary: reference kernels run what machine code and XNNPACK do not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.codegen.build import build
from gossamer.codegen.graph import KernelGraph, Quantized
from gossamer.dtypes import numpy_dtype
from gossamer.errors import CompileError
from gossamer.records import replace
from gossamer.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Padding,
    QuantizationParameters,
    ReducerOptions,
    ResizeBilinearOptions,
    SoftmaxOptions,
    TensorType,
    TransposeConvOptions,
)
from gossamer.views import POINTWISE, Buffer, Requantization
from tests.delegates.jit.running import TARGETS, Array, outputs, reference
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

INT8, UINT8, INT16, INT32 = TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32


def grid(scale: float, zero_point: int) -> dict[str, Any]:
    scales, points = np.array([scale], np.float32), np.array([zero_point], np.int64)
    return {"quantization": QuantizationParameters(scale=scales, zero_point=points)}


def refusal(model: bytes) -> str | None:
    """Why the default path leaves the first operator to its reference kernel, which is what runs then."""
    rng = np.random.default_rng(0)
    interpreter = gossamer.Interpreter(model_content=model, num_threads=2)
    interpreter.allocate_tensors()
    values: dict[int, Array] = {}
    for details in interpreter.get_input_details():
        limits = np.iinfo(details["dtype"])
        values[details["index"]] = rng.integers(limits.min, limits.max, details["shape"], details["dtype"])
    wanted = reference(model)
    wanted.allocate_tensors()
    for got, value in zip(outputs(interpreter, values), outputs(wanted, values), strict=True):
        np.testing.assert_array_equal(got, value)
    (claims,) = interpreter.delegate_claims()
    return claims.refusals.get(0)


@pytest.mark.parametrize(
    ("type", "scale", "zero_point"),
    [
        *((INT8, scale, 0) for scale in (0.0, -1.0, 1e-45, 1e-39, np.inf, np.nan)),
        *((INT8, 1.0, zero_point) for zero_point in (128, -129, -(2**31))),
        *((UINT8, 1.0, zero_point) for zero_point in (-1, 256)),
        *((INT16, 1.0, zero_point) for zero_point in (32768, -32769)),
    ],
)
def test_grids_that_are_none(type: TensorType, scale: float, zero_point: int) -> None:
    make = ModelMaker()
    x, y = make.tensor((6,), type), make.tensor((2, 3), type, **grid(scale, zero_point))
    make.op("RESHAPE", [x, make.constant([2, 3], np.int32, INT32)], [y])
    make.io([x], [y])
    assert refusal(make.model()) == f'the quantization of "t1" is none of {type.name.lower()}'


def test_grids_at_the_edge() -> None:
    for type, scale, zero_point in ((INT8, 1.2e-38, -128), (INT8, 3e38, 127), (UINT8, 1.0, 255), (INT16, 1.0, -32768)):
        make = ModelMaker()
        x, y = make.tensor((6,), type), make.tensor((2, 3), type, **grid(scale, zero_point))
        make.op("RESHAPE", [x, make.constant([2, 3], np.int32, INT32)], [y])
        make.io([x], [y])
        assert refusal(make.model()) is None


@pytest.mark.parametrize(
    ("name", "bias"),
    [
        *((name, np.int64) for name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")),
        *((name, np.int32) for name in ("CONV_2D", "FULLY_CONNECTED")),
    ],
)
def test_channels_without_a_scale(name: str, bias: Any) -> None:
    """TensorFlow gives channels of zeros the scale 0 where activations have 16 bits: they are 0, whatever is in them,
    and the others are what they are beside channels that have a scale."""
    dead = [1, 4, 7]
    alive = [channel for channel in range(8) if channel not in dead]
    results = []
    for scale in (0.02, 0.0):
        scales = np.full(8, 0.02, np.float32)
        scales[dead] = scale
        make = ModelMaker()
        quantization = QuantizationParameters(scale=scales * np.float32(0.1), zero_point=np.zeros(8, np.int64))
        type = INT32 if bias is np.int32 else TensorType.INT64
        layer(
            make, name, INT16, make.constant(np.arange(8) * 1000, bias, type, quantization=quantization), scales=scales
        )
        model = make.model()
        interpreter = gossamer.Interpreter(model_content=model)
        interpreter.allocate_tensors()
        (claims,) = interpreter.delegate_claims()
        assert not claims.refusals
        x = np.random.default_rng(0).integers(-32768, 32768, (1, 4, 4, 8)).astype(np.int16)
        results += outputs(interpreter, {interpreter.get_input_details()[0]["index"]: x})
    np.testing.assert_array_equal(results[0][..., alive], results[1][..., alive])
    assert results[0][..., dead].any()
    assert not results[1][..., dead].any()


def weights(make: ModelMaker, type: TensorType, *shape: int, scales: Array | None = None) -> int:
    """Beside 16 bits of 8; one scale, or one for each of the output's channels."""
    type = INT8 if type == INT16 else type
    limits = np.iinfo(numpy_dtype(type))
    levels = np.random.default_rng(1).integers(limits.min + 1, limits.max, shape)
    how = grid(0.02, 0)
    if scales is not None:
        points, dimension = np.zeros(len(scales), np.int64), 3 if shape[0] == 1 else 0
        how = {"quantization": QuantizationParameters(scale=scales, zero_point=points, quantized_dimension=dimension)}
    return make.constant(levels, numpy_dtype(type), type, **how)


def layer(
    make: ModelMaker,
    name: str,
    type: TensorType,
    bias: int,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
    scales: Array | None = None,
) -> None:
    """A model of one layer from [1, 4, 4, 8] to the same shape; the bias is an input too if it is no constant."""
    points = (0, 0) if type == INT16 else (3, 5)
    x, y = (make.tensor((1, 4, 4, 8), type, **grid(*how)) for how in zip((0.1, 0.9), points, strict=True))
    fused = {"fused_activation_function": activation}
    if name == "CONV_2D":
        options = Conv2DOptions(stride_h=1, stride_w=1, **fused)
        make.op(name, [x, weights(make, type, 8, 3, 3, 8, scales=scales), bias], [y], options, version=3)
    elif name == "DEPTHWISE_CONV_2D":
        deep = DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1, **fused)
        make.op(name, [x, weights(make, type, 1, 3, 3, 8, scales=scales), bias], [y], deep, version=3)
    elif name == "FULLY_CONNECTED":
        flat = FullyConnectedOptions(keep_num_dims=True, **fused)
        make.op(name, [x, weights(make, type, 8, 8, scales=scales), bias], [y], flat, version=5)
    else:
        shape = make.constant([1, 4, 4, 8], np.int32, INT32)
        back = TransposeConvOptions(stride_h=1, stride_w=1, padding=Padding.SAME, **fused)
        make.op(name, [shape, weights(make, type, 8, 3, 3, 8), x, bias], [y], back, version=4)
    is_constant = make.graphs[-1].tensors[bias].buffer > 0
    make.io([x] if is_constant else [x, bias], [y])


CONVOLUTIONS = ["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"]
LAYERS = [*CONVOLUTIONS, "FULLY_CONNECTED"]


@pytest.mark.parametrize("type", [INT8, UINT8])
@pytest.mark.parametrize("name", LAYERS)
def test_a_bias_that_is_only_known_when_the_model_runs(name: str, type: TensorType) -> None:
    make = ModelMaker()
    layer(make, name, type, make.tensor((8,), INT32, **grid(0.002, 0)))
    assert refusal(make.model()) is None


BAD = [{}, grid(0.0, 0), grid(-1.0, 0), grid(1e-40, 0), grid(np.inf, 0)]


@pytest.mark.parametrize(
    ("name", "levels"), [("FULLY_CONNECTED", {}), *((name, levels) for name in CONVOLUTIONS for levels in BAD)]
)
def test_a_bias_without_a_scale(name: str, levels: dict[str, Any]) -> None:
    """TFLite's optimized kernel decides: within one of the reference."""
    make = ModelMaker()
    layer(make, name, INT8, make.constant(np.arange(8), np.int32, INT32, **levels))
    assert_within_one(make.model())


@pytest.mark.parametrize("activation", [ActivationFunctionType.TANH, ActivationFunctionType.SIGN_BIT])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_activations_that_are_no_clamps(name: str, activation: ActivationFunctionType) -> None:
    make = ModelMaker()
    layer(make, name, UINT8, make.constant(np.arange(8), np.int32, INT32, **grid(0.002, 0)), activation)
    assert_within_one(make.model())


@pytest.mark.parametrize("type", [INT8, UINT8])
def test_a_depthwise_convolution_without_bias(type: TensorType) -> None:
    """LiteRT's default path does not survive it."""
    make = ModelMaker()
    x, y = make.tensor((1, 4, 4, 8), type, **grid(0.1, 3)), make.tensor((1, 4, 4, 8), type, **grid(0.9, 5))
    options = DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1)
    make.op("DEPTHWISE_CONV_2D", [x, weights(make, type, 1, 3, 3, 8)], [y], options, version=3)
    make.io([x], [y])
    assert_within_one(make.model())


def assert_within_one(model: bytes) -> None:
    """Machine code takes it, and computes what the reference kernel does, but for halves."""
    assert refusal(model) is None
    results = []
    for interpreter in (gossamer.Interpreter(model_content=model), reference(model)):
        interpreter.allocate_tensors()
        (details,) = interpreter.get_input_details()
        image = np.random.default_rng(0).integers(0, 256, details["shape"]).astype(np.uint8).view(details["dtype"])
        results.append(outputs(interpreter, {details["index"]: image})[0].astype(int))
    assert np.abs(results[0] - results[1]).max() <= 1


@pytest.mark.parametrize("levels", [grid(0.2, 0), grid(0.1, 1), {}])
def test_images_that_change_their_grid_when_they_are_resized(levels: dict[str, Any]) -> None:
    make = ModelMaker()
    x, y = make.tensor((1, 3, 4, 5), INT8, **grid(0.1, 0)), make.tensor((1, 7, 9, 5), INT8, **levels)
    make.op("RESIZE_BILINEAR", [x, make.constant([7, 9], np.int32, INT32)], [y], ResizeBilinearOptions(), version=2)
    make.io([x], [y])
    assert refusal(make.model()) == "XNNPACK resizes images of one quantization only"


def test_levels_that_leave_32_bits_when_they_are_rescaled() -> None:
    """They wrap, as in TFLite's kernels."""
    make = ModelMaker()
    x, y = make.tensor((4, 40), UINT8, **grid(0.0235, 0)), make.tensor((4, 40), INT8, **grid(1e-10, -105))
    make.op("QUANTIZE", [x], [y], version=2)
    make.io([x], [y])
    assert refusal(make.model()) is None


@pytest.mark.parametrize(("scale", "levels"), [(1e-45, [-128, -127, 127]), (3e38, [7, 7, 7])])
def test_clamps_beyond_all_levels(scale: float, levels: list[int]) -> None:
    make = ModelMaker()
    x, y = make.tensor((3,), INT8, **grid(scale, 7)), make.tensor((3,), INT8, **grid(scale, 7))
    make.op("RELU_N1_TO_1", [x], [y], version=1)
    make.io([x], [y])
    for interpreter in (gossamer.Interpreter(model_content=make.model()), reference(make.model())):
        interpreter.allocate_tensors()
        (got,) = outputs(interpreter, {x: np.array([-128, -127, 127], np.int8)})
        assert got.tolist() == levels


def test_what_is_only_known_in_a_run_is_not_packed() -> None:
    """Whatever an operator's lowering lets through: at that time there is nothing at the address."""
    graph = KernelGraph()
    x, weights, bias = (
        Buffer(shape, type, tensor, array)
        for tensor, (shape, type, array) in enumerate(
            [
                ((1, 1, 2, 4), INT8, None),
                ((4, 1, 1, 4), INT8, np.ones((4, 1, 1, 4), np.int8)),
                ((4,), INT32, None),
            ]
        )
    )
    graph.inputs.update({0: x, 2: bias})
    numbers = Requantization(0, 0, np.ones(1, np.float32), 0, -128, 127)
    settings = Quantized(replace(POINTWISE, output=(1, 2)), numbers)
    y = graph.add("quantized_contract", [one.view() for one in (x, weights, bias)], (1, 1, 2, 4), INT8, settings)
    y.buffer.tensor = 3
    graph.outputs[3] = y.buffer
    with pytest.raises(CompileError, match=r"packs, but bias is in .*, which is only known in a run"):
        build(graph, TARGETS[0])


@pytest.mark.parametrize(("zero_point", "level"), [(-3, -3), (300, 44), (-200, 56)])
def test_a_variable_begins_with_the_low_byte_of_its_zero_point(zero_point: int, level: int) -> None:
    make = ModelMaker()
    x, y = make.tensor((2, 2), INT8, is_variable=True, **grid(1.0, zero_point)), make.tensor((4,), INT8)
    make.op("RESHAPE", [x, make.constant([4], np.int32, INT32)], [y])
    make.io([], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    (got,) = outputs(interpreter, {})
    assert got.tolist() == [level] * 4


@pytest.mark.parametrize("name", ["SUM", "SOFTMAX"])
def test_scales_that_float32_does_not_hold_the_ratio_of(name: str) -> None:
    make = ModelMaker()
    x = make.tensor((1, 4), INT8, **grid(3.4e38, 0))
    if name == "SUM":
        y = make.tensor((1, 1), INT8, **grid(0.05, 0))
        make.op(name, [x, make.constant([1], np.int32, INT32)], [y], ReducerOptions(keep_dims=True), version=2)
    else:
        y = make.tensor((1, 4), INT8, **grid(1 / 256, -128))
        make.op(name, [x], [y], SoftmaxOptions(beta=1.0), version=2)
    make.io([x], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals
    (got,) = outputs(interpreter, {x: np.array([[-128, 5, 2, -3]], np.int8)})
    assert got.tolist() == ([[-128]] if name == "SUM" else [[-128, 127, -128, -128]])


@pytest.mark.parametrize("points", [(3, 0, 0), (0, 3, 0), (0, 0, 3)])
def test_a_slope_of_int16_with_a_zero_point(points: tuple[int, int, int]) -> None:
    make = ModelMaker()
    x, y = make.tensor((2, 5), INT16, **grid(0.1, points[0])), make.tensor((2, 5), INT16, **grid(0.2, points[2]))
    alpha = make.constant([-7, 0, 3, 9, 100], np.int8, INT8, **grid(0.01, points[1]))
    make.op("PRELU", [x, alpha], [y])
    make.io([x], [y])
    assert refusal(make.model()) == "a zero point is not 0"
