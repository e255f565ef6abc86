"""RANDOM_STANDARD_NORMAL: normally distributed float32 numbers, mean 0, deviation 1, of a given shape.

``shape`` is an int32 vector; the output is dynamic if it is not constant. Each two words of a Philox generator (key
``seed``, high half of the counter ``seed2``) make two numbers (Box and Muller, see `normal_floats`). Both seeds 0:
other numbers every time.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._layout import elements
from gossamer.ops._random import lower_uniform, prepare_random, wanted_shape
from gossamer.ops._random_bits import PhiloxGenerator, normal_floats
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import RandomOptions

op = OpDef(
    "RANDOM_STANDARD_NORMAL",
    inputs=("shape",),
    outputs=("output",),
    versions=versions("2.8.0"),
    types={"shape": (TensorType.INT32,), "output": (TensorType.FLOAT32,)},
    options=RandomOptions,
    side_effects=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> PhiloxGenerator:
    """Returns the generator."""
    return prepare_random(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    generator: PhiloxGenerator = ctx.data
    shape = wanted_shape(ctx)
    count = elements(shape)
    return normal_floats(generator.draw(count + count % 2))[:count].reshape(shape)


@op.lower
def lower(graph: Lowering) -> None:
    shape = graph.output().shape
    count = elements(shape)
    pairs = -(-count // 2)
    uniform = graph.reshape(lower_uniform(graph, 2 * pairs), (pairs, 2))
    u, v = (uniform.slice(1, at, 1) for at in (0, 1))
    least, minus_two = (graph.array(np.array(value, np.float32)) for value in (1e-7, -2))
    radius = graph.map(("sqrt", ("mul", ("log", ("max", 0, 1)), 2)), u, least, minus_two)
    turn = graph.array(np.array(2 * np.pi))
    angle = graph.map(("tof32", ("mul", ("tof64", 0), 1)), v, turn, type=TensorType.FLOAT32)
    numbers = [graph.map(("mul", (function, 0), 1), angle, radius) for function in ("sin", "cos")]
    graph.result(graph.reshape(graph.reshape(graph.concat(numbers, 1), (2 * pairs,)).slice(0, 0, count), shape))
