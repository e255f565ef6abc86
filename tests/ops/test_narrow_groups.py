"""Convolutions of many groups of few channels: they are depthwise ones, and compute the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.delegates.jit.delegate import JitKernel
from tests.ops.reference import REFERENCE

NUMBERS = np.random.default_rng(0)


def model(type: str, size: tuple[int, int], depth: int, groups: int, filters: int, **how: Any) -> bytes:
    """A convolution [2, *size, groups * depth] with 3 x ``columns`` filters, several for a group."""
    columns = how.pop("columns", 3)
    b, channels, shape = gossamer.Builder(), groups * filters, (2, *size, groups * depth)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, **how}
    weights = NUMBERS.integers(-127, 128, (channels, 3, columns, depth))
    if type == "float32":
        # Small integers, whose sums are exact in any order.
        x, bias = b.input("x", shape), NUMBERS.integers(-9, 9, channels).astype(np.float32)
        y = b.add("CONV_2D", x, weights.astype(np.float32), bias, activation="RELU", **options)
    else:
        of_bytes = type == "int8"
        x = b.input("x", shape, type, scale=0.02, zero_point=-3 if of_bytes else 0)
        scales = NUMBERS.uniform(0.002, 0.01, channels).astype(np.float32)
        filter = b.constant(weights.astype(np.int8), scale=scales, zero_point=np.zeros(channels, int))
        sums = NUMBERS.integers(-999, 999, channels).astype(np.int32 if of_bytes else np.int64)
        bias = b.constant(sums, scale=scales * np.float32(0.02), zero_point=np.zeros(channels, int))
        y = b.add("CONV_2D", x, filter, bias, scale=0.3, zero_point=5 if of_bytes else 0, type=type, **options)
    b.output("y", y)
    return bytes(b.finish())


def run(interpreter: gossamer.Interpreter) -> np.ndarray:
    interpreter.allocate_tensors()
    (x,) = interpreter.get_input_details()
    interpreter.set_tensor(x["index"], np.random.default_rng(1).integers(-99, 99, x["shape"]).astype(x["dtype"]))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def kinds(interpreter: gossamer.Interpreter) -> Counter[str]:
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    assert kernel.built is not None
    return Counter(command.kind for command in kernel.built.graph.kernels)


@pytest.mark.parametrize("type", ["float32", "int8", "int16"])
@pytest.mark.parametrize(
    ("size", "depth", "groups", "filters", "how"),
    [
        ((6, 7), 2, 8, 2, {}),
        ((7, 6), 2, 11, 1, {"stride_h": 2, "stride_w": 2}),
        ((5, 8), 3, 16, 2, {"padding": "VALID", "stride_w": 3}),
        ((9, 5), 2, 17, 3, {"dilation_h_factor": 2, "columns": 1, "dilation_w_factor": 2}),
        ((4, 4), 4, 32, 4, {}),
    ],
)
def test_as_the_reference_kernel(
    size: tuple[int, int], depth: int, groups: int, filters: int, how: dict[str, Any], type: str
) -> None:
    content = model(type, size, depth, groups, filters, **how)
    interpreter = gossamer.Interpreter(model_content=content)
    got, want = run(interpreter), run(REFERENCE(model_content=content))
    # Where halves are rounded, XNNPACK's formula and TFLite's differ by one for bytes.
    np.testing.assert_allclose(got.astype(np.int64), want.astype(np.int64), rtol=0, atol=1 if type == "int8" else 0)
    assert kinds(interpreter)["depthwise" if type == "float32" else "quantized_depthwise"] == filters


@pytest.mark.parametrize(
    ("depth", "groups", "filters", "how"),
    [(2, 4, 2, {}), (3, 12, 1, {}), (2, 8, 5, {}), (2, 8, 2, {"dilation_w_factor": 2})],
)
def test_where_it_does_not_pay(depth: int, groups: int, filters: int, how: dict[str, Any]) -> None:
    content = model("float32", (8, 8), depth, groups, filters, **how)
    interpreter = gossamer.Interpreter(model_content=content)
    np.testing.assert_array_equal(run(interpreter), run(REFERENCE(model_content=content)))
    assert "depthwise" not in kinds(interpreter)


def test_sizes_that_are_resized() -> None:
    content = model("int8", (6, 7), 2, 8, 2)
    results = []
    for make in (gossamer.Interpreter, REFERENCE):
        interpreter = make(model_content=content)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (1, 9, 11, 16))
        results.append(run(interpreter).astype(np.int64))
    np.testing.assert_allclose(*results, rtol=0, atol=1)
