"""MULTINOMIAL: random class numbers, distributed as the logits of each row say.

``logits`` is float32 [batch, classes], classes > 0; ``num_samples`` an int32 scalar. The output [batch, num_samples] is
int64 or int32, and dynamic unless both inputs are constant. In float64, ``cdf`` are the running sums of
``exp(logit - largest logit)``, logits that are not finite counting as 0; a sample is the number of sums that are at
most ``u * cdf[-1]``. Each u in [0, 1) takes two words of a Philox generator (key ``seed``, high half of the counter
``seed2``), rows one after the other. An invocation advances the generator by batch * num_samples * 512 blocks,
num_samples rounded up to a multiple of 4, however many it used. Both seeds 0: other numbers every time.
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._layout import checked_shape, require_rank
from gossamer.ops._random import seeded_generator
from gossamer.ops._random_bits import PHILOX_WORDS, PhiloxGenerator, pieces, uniform_doubles
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Shape, versions
from gossamer.schema.enums import TensorType
from gossamer.schema.options import RandomOptions

op = OpDef(
    "MULTINOMIAL",
    inputs=("logits", "num_samples"),
    outputs=("output",),
    versions=versions("2.8.0"),
    types={
        "logits": (TensorType.FLOAT32,),
        "num_samples": (TensorType.INT32,),
        "output": (TensorType.INT64, TensorType.INT32),
    },
    options=RandomOptions,
    side_effects=True,
    reference_only="random numbers are drawn one after the other",
)


@op.prepare
def prepare(ctx: PrepareContext) -> PhiloxGenerator:
    """Returns the generator."""
    logits = ctx.input(0)
    require_rank(ctx, "logits", logits, 2)
    require_rank(ctx, "num_samples", ctx.input(1), 0)
    ctx.require(logits.shape[1] > 0, f"logits must have at least one class, got shape {list(logits.shape)}")
    samples = ctx.constant(1)
    if samples is None or not logits.is_constant:
        ctx.set_dynamic(0)
    else:
        ctx.set_shape(0, _shape(ctx, samples))
    return seeded_generator(ctx.options)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    generator: PhiloxGenerator = ctx.data
    logits = ctx.value(0).astype(np.float64)
    batch, samples = _shape(ctx, ctx.value(1))
    drawing = generator.copy()
    generator.skip(batch * (-(-samples // 4) * 4) * 512)
    finite = np.isfinite(logits)
    largest = logits.max(1, keepdims=True, where=finite, initial=np.finfo(np.float32).min)
    sums = np.where(finite, np.exp(logits - largest), 0.0).cumsum(1)
    wanted = ctx.out(0)
    output = np.empty((batch, samples), numpy_dtype(ctx.output().type)) if wanted is None else wanted
    flat = output.reshape(-1)
    for word, words in pieces(2 * flat.size, PHILOX_WORDS):  # two for each sample
        ctx.poll()
        places = uniform_doubles(drawing.draw(words))
        start, stop = word // 2, word // 2 + places.size
        for row in range(start // samples, -(-stop // samples)):
            first, last = max(start, row * samples), min(stop, (row + 1) * samples)
            part = places[first - start : last - start] * sums[row, -1]
            flat[first:last] = np.searchsorted(sums[row], part, "right")
    return output


def _shape(ctx: Context, samples: Array) -> Shape:
    count = int(samples.reshape(-1)[0])
    ctx.require(count >= 0, f"num_samples must not be negative, got {count}")
    return checked_shape(ctx, (ctx.input(0).shape[0], count))
