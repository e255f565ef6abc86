"""What the operators with a random generator in them share.

Seeds are stored as int64; like TFLite we take the low 32 bits, as a signed number. With both 0 the numbers are
different each time, otherwise they are TFLite's. The generator starts afresh when tensors are allocated and goes on
from one invocation to the next.
"""

from __future__ import annotations

import secrets

from gossamer.ops._layout import checked_shape, integers, require_rank
from gossamer.ops._random_bits import PhiloxGenerator
from gossamer.ops.op_def import InvokeContext, PrepareContext, Shape
from gossamer.schema.options import RandomOptions


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
