"""What the operators with a random generator in them share.

Seeds are stored as int64; like TFLite we take the low 32 bits, as a signed number. With both 0 the numbers are
different each time, otherwise they are TFLite's. The generator starts afresh when tensors are allocated and goes on
from one invocation to the next.
"""

from __future__ import annotations

import secrets

import numpy as np

from gossamer.ops._layout import checked_shape, integers, require_rank
from gossamer.ops._random_bits import PHILOX_WORDS, PhiloxGenerator
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import InvokeContext, PrepareContext, Shape
from gossamer.schema.enums import TensorType
from gossamer.schema.options import RandomOptions
from gossamer.views import View


def seeded_generator(options: RandomOptions) -> PhiloxGenerator:
    """A generator with the seeds of an operator."""
    seed, seed2 = _int32(options.seed), _int32(options.seed2)
    if seed == 0 and seed2 == 0:
        return PhiloxGenerator(secrets.randbits(64), secrets.randbits(64))
    return PhiloxGenerator(seed, seed2)


def _int32(seed: int) -> int:
    return (seed + (1 << 31)) % (1 << 32) - (1 << 31)


def prepare_random(ctx: PrepareContext) -> PhiloxGenerator:
    """Prepare an operator whose input is the shape of its output."""
    require_rank(ctx, "shape", ctx.input(0), 1)
    shape = ctx.constant(0)
    if shape is None:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, checked_shape(ctx, integers(shape)))
    return seeded_generator(ctx.options)


def wanted_shape(ctx: InvokeContext) -> Shape:
    """The shape that the input asks for."""
    return checked_shape(ctx, integers(ctx.value(0)))


def lower_words(graph: Lowering, count: int, blocks: int) -> View:
    """The next random words, uint32 [count], of a generator that goes on by so many blocks."""
    generator: PhiloxGenerator = graph.data
    state = graph.state(generator.state)
    words = graph.kernel("random", state, shape=(count,), type=TensorType.UINT32, algorithm="philox")
    graph.copy(graph.map("add", state, graph.array(np.array([0, blocks, 0], np.uint64))), state)
    return words


def lower_uniform(graph: Lowering, count: int) -> View:
    """The next float32 numbers [count] in [0, 1): those of `uniform_floats`."""
    words = lower_words(graph, count, -(-count // PHILOX_WORDS))
    low, least = graph.array(np.array(0x7FFFFF, np.uint32)), graph.array(np.array(2.0**-23, np.float32))
    return graph.map(("mul", ("tof32", ("and", 0, 1)), 2), words, low, least, type=TensorType.FLOAT32)
