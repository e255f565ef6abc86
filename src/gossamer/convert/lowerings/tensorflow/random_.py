"""Random numbers.

Operators with a state become TFLite's, which have the same generator. Those without one give the same numbers for the
same seed every time: with a constant seed and shape these are constants, the same as TensorFlow's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.elementwise import widened
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.reductions import top
from gossamer.convert.blocks.shapes import cast, size_vector
from gossamer.convert.blocks.special import erfinv
from gossamer.convert.blocks.vectors import as_sizes, elements, int32
from gossamer.convert.graph import Value, refuse
from gossamer.convert.lowerings.tensorflow import Call, lowers
from gossamer.dtypes import numpy_dtype
from gossamer.ops._random_bits import PhiloxGenerator, normal_floats, philox, uniform_floats
from gossamer.schema.enums import TensorType

T = TensorType

Array = NDArray[Any]

# -- with a state


def _drawn(call: Call, op: str, shape: Value) -> Value:
    return call.add(
        op,
        int32(call.graph, shape),
        shape=as_sizes(elements(shape)),
        seed=call.attributes.int("seed", 0),
        seed2=call.attributes.int("seed2", 0),
    )


@lowers("RandomUniform")
def random_uniform(call: Call) -> Value:
    found = _drawn(call, "RANDOM_UNIFORM", call.value(0))
    return cast(call.graph, found, call.attributes.type("dtype", T.FLOAT32))


@lowers("RandomStandardNormal")
def random_standard_normal(call: Call) -> Value:
    found = _drawn(call, "RANDOM_STANDARD_NORMAL", call.value(0))
    return cast(call.graph, found, call.attributes.type("dtype", T.FLOAT32))


@lowers("TruncatedNormal")
def truncated_normal(call: Call) -> Value:
    """Numbers of which the normal distribution has as many below as a uniform one between the shares of the bounds."""
    most = math.erf(math.sqrt(2))
    uniform = _drawn(call, "RANDOM_UNIFORM", call.value(0))
    share = call.add("SUB", call.add("MUL", uniform, 2 * most), most)
    found = call.add("MUL", erfinv(call.graph, share), math.sqrt(2))
    return cast(call.graph, found, call.attributes.type("dtype", T.FLOAT32))


@lowers("RandomUniformInt")
def random_uniform_int(call: Call) -> Value:
    graph, (shape, low, high) = call.graph, call.values()
    uniform = _drawn(call, "RANDOM_UNIFORM", shape)
    span = cast(graph, widened(graph, "SUB", high, low), T.FLOAT32)
    offset = cast(graph, call.add("FLOOR", call.add("MUL", uniform, span)), low.type)
    return widened(graph, "ADD", offset, low)


@lowers("Multinomial")
def multinomial(call: Call) -> Value:
    logits, count = call.values()
    return call.add(
        "MULTINOMIAL",
        cast(call.graph, logits, T.FLOAT32),
        int32(call.graph, count),
        type=call.attributes.type("output_dtype", T.INT64),
        shape=[logits.size(0), *as_sizes(elements(count))],
        seed=call.attributes.int("seed", 0),
        seed2=call.attributes.int("seed2", 0),
    )


@lowers("RandomShuffle")
def random_shuffle(call: Call) -> Value:
    """Rows in the order of random numbers."""
    graph, x = call.graph, call.value(0)
    if not x.rank:
        return x
    first = graph.add("STRIDED_SLICE", size_vector(graph, x), [0], [1], [1])
    numbers = _drawn(call, "RANDOM_UNIFORM", first)
    _, order = top(graph, numbers, None)
    return moved(graph, "GATHER", x, order, axis=0)


# -- without a state


@lowers("StatelessRandomGetAlg")
def algorithm(call: Call) -> Value:
    return call.graph.constant(np.array(PHILOX, np.int32))


PHILOX = 1
"""TensorFlow's number of the algorithm."""

_SCRAMBLE = (0x3EC8F720, 0x02461E29)


def _generator(seed: Array) -> PhiloxGenerator:
    """TensorFlow's generator for a seed of two integers: a block of Philox made of them is its key and counter."""
    words = [int(number) % (1 << 64) >> shift & 0xFFFFFFFF for number in seed.reshape(-1) for shift in (0, 32)]
    mixed = [int(word) for word in philox(_SCRAMBLE, np.array([words], np.uint32))[0]]
    return PhiloxGenerator(mixed[0] | mixed[1] << 32, mixed[2] | mixed[3] << 32)


@lowers("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def key_and_counter(call: Call) -> list[Value]:
    state = _generator(call.constant(0, "the seed")).state
    found = [call.graph.constant(state[:1].copy()), call.graph.constant(state[1:].copy())]
    return [*found, algorithm(call)] if call.op.endswith("Alg") else found


def _uniform(generator: PhiloxGenerator, count: int, dtype: np.dtype[Any], bounds: Sequence[Array]) -> Array:
    return uniform_floats(generator.draw(count))


def _normal(generator: PhiloxGenerator, count: int, dtype: np.dtype[Any], bounds: Sequence[Array]) -> Array:
    return normal_floats(generator.draw(count + count % 2))[:count]


def _integers(generator: PhiloxGenerator, count: int, dtype: np.dtype[Any], bounds: Sequence[Array]) -> Array:
    """What is left of random bits after division by the width of the range."""
    unsigned = np.uint64 if dtype.itemsize == 8 else np.uint32
    words = generator.draw(count * unsigned(0).itemsize // 4)
    bits: Array = words.view(unsigned)
    if not bounds:
        return bits.astype(dtype)
    low, high = (int(bound.reshape(())) for bound in bounds)
    return (low + (bits % unsigned(high - low)).astype(object)).astype(dtype)


STATELESS: dict[str, Callable[..., Array]] = {
    "StatelessRandomNormal": _normal,
    "StatelessRandomNormalV2": _normal,
    "StatelessRandomUniform": _uniform,
    "StatelessRandomUniformFullInt": _integers,
    "StatelessRandomUniformFullIntV2": _integers,
    "StatelessRandomUniformInt": _integers,
    "StatelessRandomUniformIntV2": _integers,
    "StatelessRandomUniformV2": _uniform,
}


@lowers(*STATELESS)
def stateless(call: Call) -> Value:
    """``(shape, seed)`` or ``(shape, key, counter, algorithm)``, and the bounds of integers."""
    shape = [int(size) for size in call.constant(0, "the shape")]
    newer = call.op.endswith("V2")
    if newer:
        if int(call.constant(3, "the algorithm")) not in (PHILOX, 3):
            refuse("its algorithm is not Philox")
        generator = PhiloxGenerator(0, 0)
        generator.state[:1] = call.constant(1, "the key").reshape(-1)[:1]
        generator.state[1:] = call.constant(2, "the counter").reshape(-1)[:2]
    else:
        generator = _generator(call.constant(1, "the seed"))
    first = 4 if newer else 2
    bounds = [call.constant(n, "a bound") for n in range(first, len(call.inputs))]
    type = call.attributes.type("dtype", T.FLOAT32)
    numbers = STATELESS[call.op](generator, math.prod(shape), numpy_dtype(type), bounds)
    return call.graph.constant(numbers.reshape(shape).astype(numpy_dtype(type)), type)
