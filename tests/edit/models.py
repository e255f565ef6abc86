"""Small networks to change, and how they are run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gossamer
from gossamer import Builder, OpResolverType
from gossamer.model import Model, read_model

Array = NDArray[Any]


def reread(model: Model) -> Model:
    """The model as its file has it."""
    return read_model(bytes(model))


def run(model: Model | bytes, *inputs: Any, key: str | None = None) -> list[Array]:
    """The outputs of the first subgraph for inputs in their order, by the reference kernels: the same bits whatever is
    fused elsewhere."""
    interpreter = gossamer.Interpreter(
        model_content=bytes(model),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    details = interpreter.get_input_details()
    for detail, value in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != np.shape(value):
            interpreter.resize_tensor_input(detail["index"], np.shape(value))
    interpreter.allocate_tensors()
    for detail, value in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], np.asarray(value))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def weights(*shape: int, seed: int = 0) -> Array:
    """Quarters, of which float32 adds up products without rounding: in any order the same bits."""
    return (np.random.default_rng(seed).integers(-8, 9, shape) / 4).astype(np.float32)


def picture_net(**settings: Any) -> Model:
    """A picture, float32 [1, 8, 8, 3], through convolutions with a shortcut past one; scores [1, 10]."""
    b = Builder(**settings)
    x = b.input("x", (1, 8, 8, 3))
    y = b.add(
        "CONV_2D", x, weights(16, 3, 3, 3), weights(16), padding="SAME", stride_w=1, stride_h=1, activation="RELU6",
        name="first",
    )  # fmt: skip
    z = b.add(
        "CONV_2D", y, weights(16, 3, 3, 16, seed=1), weights(16), padding="SAME", stride_w=1, stride_h=1, name="second"
    )
    z = b.add("ADD", y, z, activation="RELU", name="sum")
    z = b.add("MEAN", z, np.int32([1, 2]), keep_dims=True, name="mean")
    z = b.add("RESHAPE", z, np.int32([1, 16]), new_shape=(1, 16), name="flat")
    b.output("scores", b.add("FULLY_CONNECTED", z, weights(10, 16, seed=2), weights(10)))
    return reread(b.finish())


def integer_net() -> Model:
    """int8 [1, 4] through a product and a softmax; between a QUANTIZE and a DEQUANTIZE."""
    b = Builder()
    x = b.input("x", (1, 4))
    x = b.add("QUANTIZE", x, type="int8", scale=0.1, zero_point=-3, name="x_int8")
    filter = b.constant(np.arange(-10, 10, dtype=np.int8).reshape(5, 4), scale=0.05, name="filter")
    bias = b.constant(np.zeros(5, np.int32), scale=0.005, name="bias")
    y = b.add("FULLY_CONNECTED", x, filter, bias, scale=0.2, zero_point=5, name="product")
    y = b.add("SOFTMAX", y, beta=1.0, name="y_int8")
    b.output("y", b.add("DEQUANTIZE", y))
    return reread(b.finish())


def loop_net() -> Model:
    """2 * x, then doubled until i reaches 3, then plus 1: a WHILE between two operators."""
    b = Builder()
    x, i = b.input("x", (2,)), b.input("i", (), "int32")
    twice = b.add("MUL", x, 2.0, name="twice")
    condition, body = b.graph("condition"), b.graph("body")
    taken = [(inner.input("i", (), "int32"), inner.input("x", (2,))) for inner in (condition, body)]
    condition.output("less", condition.add("LESS", taken[0][0], 3))
    body.output("next", body.add("ADD", taken[1][0], 1))
    body.output("more", body.add("ADD", taken[1][1], taken[1][1]))
    _, end = b.add("WHILE", i, twice, cond_subgraph_index=condition, body_subgraph_index=body, name="loop")
    b.output("y", b.add("ADD", end, 1.0))
    return reread(b.finish())


def counter_net() -> Model:
    """A resource variable, 0 at first: each run adds 2 * x to it and gives the sum."""
    b = Builder()
    x = b.input("x", (1,))
    first = b.graph("first")
    first.add("ASSIGN_VARIABLE", first.add("VAR_HANDLE", type="resource", shared_name="sum", shape=()), np.float32([0]))
    b.add("CALL_ONCE", init_subgraph_index=first)
    handle = b.add("VAR_HANDLE", type="resource", shared_name="sum", shape=())
    before = b.add("READ_VARIABLE", handle, type="float32", shape=(1,), name="before")
    after = b.add("ADD", before, b.add("MUL", x, 2.0, name="twice"), name="after")
    b.add("ASSIGN_VARIABLE", handle, after)
    b.output("sum", b.add("ADD", after, 0.0))
    return reread(b.finish())
