"""Operators whose results are known when the model is prepared: no kernel computes them, and they part no program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.schema import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    GatherOptions,
    ShapeOptions,
    TensorType,
)
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs
from tests.delegates.jit.test_bad_quantization import grid
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

FLOAT, INT8, INT32 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT32


def test_a_program_is_not_parted_by_them() -> None:
    """sum = x + x, y = the sum broadcast to its own shape; that shape and its rank come out too."""
    make = ModelMaker()
    x, total, shape, rank, y = (
        *(make.tensor((2, 3)), make.tensor((2, 3))),
        *(make.tensor((2,), INT32), make.tensor((), INT32), make.tensor((2, 3))),
    )
    make.op("ADD", [x, x], [total], AddOptions())
    make.op("SHAPE", [total], [shape], ShapeOptions(out_type=INT32))
    make.op("RANK", [shape], [rank])
    make.op("BROADCAST_TO", [total, shape], [y], version=2)
    make.io([x], [y, shape, rank])
    interpreter, kernel = machine_code(make.model())
    assert kernel.program is not None
    assert len(kernel.program.plan.commands) == 1
    for size in (3, 5):
        interpreter.resize_tensor_input(x, [2, size])
        interpreter.allocate_tensors()
        value = np.arange(2 * size, dtype=np.float32).reshape(2, size)
        broadcast, found, dimensions = outputs(interpreter, {x: value})
        np.testing.assert_array_equal(broadcast, 2 * value)
        assert found.tolist() == [2, size]
        assert dimensions == 1


def test_a_program_may_have_nothing_to_do() -> None:
    make = ModelMaker()
    x, shape = make.tensor((2, 3)), make.tensor((2,), INT32)
    make.op("SHAPE", [x], [shape], ShapeOptions(out_type=INT32))
    make.io([x], [shape])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    assert not interpreter.delegate_claims()[0].refusals
    (found,) = outputs(interpreter, {x: np.zeros((2, 3), np.float32)})
    assert found.tolist() == [2, 3]


@pytest.mark.parametrize("type", [FLOAT, INT8], ids=["float32", "int8"])
@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_an_image_that_is_known_has_its_border(name: str, type: TensorType) -> None:
    """y = a convolution with padding of an image that is computed of constants, z = x + x."""
    make, rng = ModelMaker(), np.random.default_rng(0)
    levels: Any = grid if type == INT8 else lambda scale, zero_point: {}

    def constant(*shape: int, scale: float, zero_point: int) -> int:
        values = rng.integers(-100, 100, shape) if type == INT8 else rng.standard_normal(shape)
        return make.constant(values, np.int8 if type == INT8 else np.float32, type, **levels(scale, zero_point))

    x, z = make.tensor((1, 5, 6, 4), type, **levels(0.1, 3)), make.tensor((1, 5, 6, 4), type, **levels(0.2, 3))
    a, image = constant(1, 5, 6, 4, scale=0.1, zero_point=3), make.tensor((1, 5, 6, 4), type, **levels(0.2, 3))
    weights = constant(4 if name == "CONV_2D" else 1, 3, 3, 4, scale=0.01, zero_point=0)
    bias_type, dtype = (INT32, np.int32) if type == INT8 else (FLOAT, np.float32)
    bias = make.constant(np.arange(4), dtype, bias_type, **levels(0.002, 0))
    y = make.tensor((1, 5, 6, 4), type, **levels(0.3, 1))
    make.op("ADD", [a, a], [image], AddOptions())
    options: Any = {
        "CONV_2D": Conv2DOptions(stride_h=1, stride_w=1),
        "DEPTHWISE_CONV_2D": DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1),
    }[name]
    make.op(name, [image, weights, bias], [y], options, version=3)
    make.op("ADD", [x, x], [z], AddOptions())
    make.io([x], [y, z])
    value = np.full((1, 5, 6, 4), 7, np.int8 if type == INT8 else np.float32)
    check(make.model(), {x: value}, within=1e-6 if type == FLOAT else 0.0, least=1.0 if type == INT8 else 0.0)


def test_no_slices() -> None:
    make = ModelMaker()
    x, y = make.tensor((2, 0), FLOAT), make.tensor((0, 0), FLOAT)
    make.op("GATHER", [x, make.constant(np.zeros(0), np.int32, INT32)], [y], GatherOptions(axis=0))
    make.io([x], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    assert not interpreter.delegate_claims()[0].refusals
    (found,) = outputs(interpreter, {x: np.zeros((2, 0), np.float32)})
    assert found.shape == (0, 0)
