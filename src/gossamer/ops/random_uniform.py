"""RANDOM_UNIFORM: float32 numbers in [0, 1), all equally likely, of a given shape.

``shape`` is an int32 vector; the output is dynamic if it is not constant. The words of a Philox generator (key
``seed``, high half of the counter ``seed2``) become numbers one by one, through their low 23 bits. Both seeds 0: other
numbers every time.
"""

from __future__ import annotations

from gossamer.ops._layout import elements
from gossamer.ops._random import lower_uniform, prepare_random, wanted_shape
from gossamer.ops._random_bits import PhiloxGenerator, uniform_floats
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import RandomOptions

op = OpDef(
    "RANDOM_UNIFORM",
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
    return uniform_floats(generator.draw(elements(shape))).reshape(shape)


@op.lower
def lower(graph: Lowering) -> None:
    shape = graph.output().shape
    graph.result(graph.reshape(lower_uniform(graph, elements(shape)), shape))
