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
from gossamer.ops._random import lower_words, seeded_generator
from gossamer.ops._random_bits import PHILOX_WORDS, PhiloxGenerator, pieces, uniform_doubles
from gossamer.ops._search import place_of
from gossamer.ops.lowering import Lowering
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
    tells_shapes=True,
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
    generator.skip(_blocks(batch, samples))
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
            flat[first:last] = place_of(sums[row], part)
    return output


def _shape(ctx: Context, samples: Array) -> Shape:
    count = int(samples.reshape(-1)[0])
    ctx.require(count >= 0, f"num_samples must not be negative, got {count}")
    return checked_shape(ctx, (ctx.input(0).shape[0], count))


def _blocks(batch: int, samples: int) -> int:
    """How far an invocation advances the generator."""
    return batch * (-(-samples // 4) * 4) * 512


@op.lower
def lower(graph: Lowering) -> None:
    logits, (batch, samples) = graph.value(0), _shape(graph, graph.known(1))
    f64 = TensorType.FLOAT64
    words = graph.reshape(lower_words(graph, 2 * batch * samples, _blocks(batch, samples)), (batch, samples, 2))
    # The low 20 bits of the first and the second are the bits of a number in [0, 1) behind the point.
    high, low = (graph.reshape(words.slice(2, at, 1), (batch, samples)) for at in (0, 1))
    numbers = [graph.array(np.array(number)) for number in (np.uint32(0xFFFFF), 2.0**-20, 2.0**-52)]
    mantissa = ("add", ("mul", ("tof64", ("and", 0, 2)), 3), ("mul", ("tof64", 1), 4))
    places = graph.map(mantissa, high, low, *numbers, type=f64)

    infinity, lowest, zero = (graph.array(np.array(n)) for n in (np.float32(np.inf), np.finfo(np.float32).min, 0.0))
    is_finite = ("less", ("abs", 0), 1)
    largest = graph.reduce("max", graph.map(("select", is_finite, 0, 2), logits, infinity, lowest), [1])
    above = ("select", is_finite, ("exp", ("sub", ("tof64", 0), ("tof64", 2))), 3)
    chances = graph.map(above, logits, infinity, largest, zero, type=f64)
    sums = graph.kernel("scan", chances, shape=logits.shape, type=f64, axis=1, exclusive=False, reverse=False)
    places = graph.map("mul", places, sums.slice(1, logits.shape[1] - 1, 1))
    classes = graph.kernel("search", sums, places, shape=places.shape, type=TensorType.INT32, rule="upper")
    graph.result(graph.cast(classes, graph.output().type))
