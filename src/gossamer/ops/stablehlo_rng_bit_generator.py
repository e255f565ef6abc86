"""STABLEHLO_RNG_BIT_GENERATOR: random bits from a state, and the state to go on with.

``state`` is a uint64 vector: the key, then the counter. THREEFRY takes two elements, PHILOX (the DEFAULT) two or three.
Output 1, of the shape stored in the model, is int32, uint32, int64 or uint64; its memory is filled with 32-bit words
block by block. Threefry's counter is the second element. Philox's 128-bit counter is the second and the third element,
or the second and the key again. Each block adds 1 to the second element, modulo 2**64. Output 0 is the state with the
advanced counter.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._layout import checked_shape, elements, require_rank, require_shape
from gossamer.ops._random_bits import PHILOX_WORDS, THREEFRY_WORDS, counted, philox, pieces, threefry
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.enums import RngAlgorithm, TensorType
from gossamer.schema.options import StablehloRngBitGeneratorOptions

STATE = (TensorType.UINT64,)

op = OpDef(
    "STABLEHLO_RNG_BIT_GENERATOR",
    inputs=("state",),
    outputs=("next_state", "output"),
    versions=versions("2.15.0"),
    types={
        "state": STATE,
        "next_state": STATE,
        "output": (TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64),
    },
    options=StablehloRngBitGeneratorOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    state, algorithm = ctx.input(0), ctx.options.algorithm
    require_rank(ctx, "state", state, 1)
    require_shape(ctx, "next_state", ctx.output(0), state.shape)
    if algorithm == RngAlgorithm.THREEFRY:
        ctx.require_shapes(state.shape == (2,), f"state must have 2 elements for THREEFRY, got {state.shape[0]}")
    elif algorithm in (RngAlgorithm.PHILOX, RngAlgorithm.DEFAULT):
        ctx.require_shapes(
            state.shape[0] in (2, 3), f"state must have 2 or 3 elements for PHILOX, got {state.shape[0]}"
        )
    else:
        ctx.fail(f"algorithm must be DEFAULT, PHILOX or THREEFRY, got {algorithm}")
    ctx.set_shape(0, state.shape)
    ctx.set_shape(1, checked_shape(ctx, ctx.output(1).shape))


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    state = [int(word) for word in ctx.value(0)]
    key = (state[0] & 0xFFFFFFFF, state[0] >> 32)
    is_threefry = ctx.options.algorithm == RngAlgorithm.THREEFRY
    block = THREEFRY_WORDS if is_threefry else PHILOX_WORDS
    output = np.empty(ctx.output(1).shape, numpy_dtype(ctx.output(1).type))
    words = output.reshape(-1).view(np.uint32)
    for start, size in pieces(words.size, block):
        low, high = counted((state[1] + start // block) % (1 << 64), -(-size // block))
        if is_threefry:
            made = threefry(key, np.stack([low, high], 1))
        else:
            top = state[-1] if len(state) == 3 else state[0]
            third, fourth = (np.full_like(low, top >> shift & 0xFFFFFFFF) for shift in (0, 32))
            made = philox(key, np.stack([low, high, third, fourth], 1))
        words[start : start + size] = made.reshape(-1)[:size]
    state[1] = (state[1] + -(-words.size // block)) % (1 << 64)
    return np.array(state, np.uint64), output


@op.lower
def lower(graph: Lowering) -> None:
    state, output = graph.value(0), graph.output(1)
    is_threefry = graph.options.algorithm == RngAlgorithm.THREEFRY
    words = elements(output.shape) * numpy_dtype(output.type).itemsize // 4
    key, counter, upper = state.slice(0, 0, 1), state.slice(0, 1, 1), state.slice(0, 2 * (state.size > 2), 1)
    algorithm = "threefry" if is_threefry else "philox"
    whole = graph.concat([key, counter, upper], 0)
    random = graph.kernel("random", whole, shape=(words,), type=TensorType.UINT32, algorithm=algorithm)
    blocks = np.zeros(state.shape, np.uint64)
    blocks[1] = -(-words // (THREEFRY_WORDS if is_threefry else PHILOX_WORDS))
    graph.result(graph.map("add", state, graph.array(blocks)))
    random = graph.reshape(random, (*output.shape, 2) if words > elements(output.shape) else output.shape)
    graph.result(graph.kernel("bitcast", random, shape=output.shape, type=output.type), 1)
