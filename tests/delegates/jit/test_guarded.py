"""Operators of bytes between pages that may not be touched: what is read and written ends where tensors end, and begins
where they begin. Whoever goes beyond does not survive the test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gossamer.schema import Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions, TensorType
from gossamer.targets import Target
from tests.codegen.kernels.harness import guarded
from tests.conftest import seeds, thinned
from tests.delegates.jit import test_quantized_depthwise, test_quantized_reductions
from tests.delegates.jit.running import TARGETS, Array, machine_code, outputs
from tests.delegates.jit.test_bad_quantization import grid
from tests.ops.cases import model_of
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

INT8, UINT8, FLOAT = TensorType.INT8, TensorType.UINT8, TensorType.FLOAT32


def check(model: bytes, targets: Sequence[Target] = TARGETS) -> None:
    """The program computes between guards what it computes elsewhere."""
    rng = np.random.default_rng(0)
    for target in targets:
        for threads in (1, 3):
            interpreter, kernel = machine_code(model, threads, target)
            values: dict[int, Array] = {}
            for details in interpreter.get_input_details():
                if details["dtype"] == np.float32:
                    values[details["index"]] = rng.standard_normal(details["shape"]).astype(np.float32)
                else:
                    limits = np.iinfo(details["dtype"])
                    drawn = rng.integers(limits.min, limits.max, details["shape"], details["dtype"], endpoint=True)
                    values[details["index"]] = drawn
            wanted = outputs(interpreter, values)
            program = kernel.program
            assert program is not None
            at = {details["index"]: details for details in interpreter.get_tensor_details()}
            held = {}
            for tensor, base, _ in kernel._tensors:
                shape, dtype = at[tensor.index]["shape"], at[tensor.index]["dtype"]
                held[tensor.index] = guarded(values.get(tensor.index, np.zeros(shape, dtype)))
                program.bind(base, held[tensor.index].ctypes.data)
            program.run(threads)
            for details, value in zip(interpreter.get_output_details(), wanted, strict=True):
                np.testing.assert_array_equal(held[details["index"]], value)


@pytest.mark.parametrize("seed", seeds(2, 6))
@pytest.mark.parametrize("name", [*test_quantized_reductions.EXACT, *test_quantized_reductions.ROUNDED])
def test_reductions(name: str, seed: int) -> None:
    check(test_quantized_reductions.net(name, 500 + seed).model)


@pytest.mark.parametrize("type", [np.int8, np.uint8])
@pytest.mark.parametrize("channels", thinned([1, 2, 3, 5, 8, 13, 31, 65], kept=(1, 13, 65)))
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise(stride: int, channels: int, type: type) -> None:
    for filter in ((3, 3), (5, 5), (1, 2)):
        case = test_quantized_depthwise.layer(channels, type, (1, 5, 6, channels), filter, stride=stride)
        check(model_of(test_quantized_depthwise.op, case))


def one_layer(name: str, type: TensorType, channels: int, taps: int, stride: int, depth: int) -> bytes:
    """A layer on an image [1, 5, 7, depth]; float32 is hybrid."""
    make, rng, floats = ModelMaker(), np.random.default_rng(1), type == FLOAT
    weights_type, levels = (INT8, {}) if floats else (type, grid(0.05, 7))
    rows, columns = -(-5 // stride), -(-7 // stride)
    deep = name == "DEPTHWISE_CONV_2D"
    shape = {"CONV_2D": (channels, taps, taps, depth), "FULLY_CONNECTED": (channels, depth)}.get(
        name, (1, taps, taps, depth)
    )
    channels = depth if deep else channels
    if name == "FULLY_CONNECTED":
        rows, columns = 5, 7
    dtype: Any = np.uint8 if weights_type == UINT8 else np.int8
    scales = grid(0.02, 128 if weights_type == UINT8 else 0)
    if floats and deep:
        each = np.full(channels, 0.02, np.float32)
        scales["quantization"] = scales["quantization"].replace(
            scale=each, zero_point=np.zeros(channels, np.int64), quantized_dimension=3
        )
    x = make.tensor((1, 5, 7, depth), type, **levels)
    y = make.tensor((1, rows, columns, channels), type, **({} if floats else grid(0.2, 9)))
    limits = np.iinfo(dtype)
    weights = make.constant(rng.integers(limits.min + 1, limits.max, shape), dtype, weights_type, **scales)
    if floats:
        bias = make.constant(np.ones(channels), np.float32, FLOAT)
    else:
        bias = make.constant(np.arange(channels), np.int32, TensorType.INT32, **grid(0.001, 0))
    strides = {"stride_w": stride, "stride_h": stride}
    options: Any = {
        "CONV_2D": Conv2DOptions(**strides),
        "DEPTHWISE_CONV_2D": DepthwiseConv2DOptions(depth_multiplier=1, **strides),
        "FULLY_CONNECTED": FullyConnectedOptions(keep_num_dims=True),
    }[name]
    make.op(name, [x, weights, bias], [y], options, version=6 if deep else 5)
    make.io([x], [y])
    return make.model()


@pytest.mark.parametrize("type", [INT8, UINT8, FLOAT], ids=["int8", "uint8", "hybrid"])
@pytest.mark.parametrize("depth", thinned([1, 2, 3, 5, 8, 19, 64, 67], kept=(1, 3, 67)))
@pytest.mark.parametrize("name", ["CONV_2D", "FULLY_CONNECTED", "DEPTHWISE_CONV_2D"])
def test_layers(name: str, depth: int, type: TensorType) -> None:
    for channels, taps, stride in ((1, 1, 1), (5, 3, 2), (17, 3, 1), (70, 1, 2)):
        if name == "CONV_2D" or stride == 1:
            check(one_layer(name, type, channels, taps, stride, depth))
