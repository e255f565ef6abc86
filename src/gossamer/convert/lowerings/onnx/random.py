"""Numbers at random. They are others than those of the source: only how they are distributed is the same."""

from __future__ import annotations

import numpy as np

from gossamer.convert.blocks.shapes import cast, size_vector
from gossamer.convert.graph import Value
from gossamer.convert.lowerings.onnx import CARRIERS, Call, lowers
from gossamer.convert.messages.onnx import DataType
from gossamer.schema.enums import TensorType as T


def _shape(call: Call) -> Value:
    if call.op.endswith("Like"):
        return size_vector(call.graph, call.value(0))
    return call.graph.constant(np.array(call.ints("shape"), np.int32))


def _typed(call: Call, x: Value) -> Value:
    kind = DataType(call.int("dtype", DataType.FLOAT))
    if call.op.endswith("Like") and not call.has("dtype"):
        kind = call.source_type(0)
    call.gives(kind)
    return cast(call.graph, x, CARRIERS[kind])


@lowers("RandomNormal", "RandomNormalLike")
def random_normal(call: Call) -> Value:
    x = call.add("RANDOM_STANDARD_NORMAL", _shape(call), **_seed(call))
    x = call.add("ADD", call.add("MUL", x, call.float("scale", 1.0)), call.float("mean"))
    return _typed(call, x)


@lowers("RandomUniform", "RandomUniformLike")
def random_uniform(call: Call) -> Value:
    low, high = call.float("low"), call.float("high", 1.0)
    x = call.add("RANDOM_UNIFORM", _shape(call), **_seed(call))
    return _typed(call, call.add("ADD", call.add("MUL", x, high - low), low))


@lowers("Bernoulli")
def bernoulli(call: Call) -> Value:
    x = call.value(0)
    chance = call.add("RANDOM_UNIFORM", size_vector(call.graph, x), **_seed(call))
    kind = DataType(call.int("dtype")) if call.has("dtype") else call.source_type(0)
    call.gives(kind)
    return cast(call.graph, call.add("LESS", chance, x), CARRIERS[kind])


@lowers("Multinomial")
def multinomial(call: Call) -> Value:
    kind = T.INT64 if call.int("dtype", DataType.INT32) == DataType.INT64 else T.INT32
    return call.add("MULTINOMIAL", call.value(0), call.int("sample_size", 1), type=kind, **_seed(call))


def _seed(call: Call) -> dict[str, int]:
    """Two numbers; without a seed zeros, by which TFLite takes one by chance."""
    return {"seed": int(call.float("seed")), "seed2": 0}
