"""Random numbers: TensorFlow's streams of Philox4x32-10, bit for bit up to the last bit of logarithm and sine.

Operators with seeds keep their generator from one run to the next, and every run takes `RESERVED` blocks for each
element, whether it needs them or not; without seeds the numbers are others each time. The stateless ones begin where
their operands say. How bits become numbers: tensorflow/core/lib/random/random_distributions.h; where each output of a
rejection begins: its own `RESERVED` blocks (random_op_cpu.h, random_op.cc, random_poisson_op.cc).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.flex.kernels import Array, Call, kernel
from gossamer.flex.kernels._checks import checked_shape
from gossamer.ops._random_bits import (
    PHILOX_WORDS,
    PhiloxGenerator,
    normal_floats,
    philox,
    uniform_doubles,
    uniform_floats,
)

Words = NDArray[np.uint32]
Doubles = NDArray[np.float64]
_Made = Callable[[Words], Doubles]

RESERVED = 256
"""Blocks of four words for each output."""

AT_ONCE = 1 << 15
"""Outputs of rejections that are made at once."""

PHILOX, AUTO = 1, 3
"""Numbers of algorithms: what a CPU chooses is Philox."""

CUT = 2.0
"""Where normal numbers are cut off."""

_MASK = 0xFFFFFFFF


@kernel("RandomUniform")
def uniform(call: Call, shape: Array) -> Array:
    """Numbers in [0, 1)."""
    sizes = checked_shape(call, shape)
    return _uniform(_stateful(call, math.prod(sizes)), math.prod(sizes), call.dtype("dtype")).reshape(sizes)


@kernel("RandomStandardNormal")
def normal(call: Call, shape: Array) -> Array:
    """Normally distributed numbers."""
    sizes = checked_shape(call, shape)
    return _normal(_stateful(call, math.prod(sizes)), math.prod(sizes), call.dtype("dtype")).reshape(sizes)


@kernel("TruncatedNormal")
def truncated_normal(call: Call, shape: Array) -> Array:
    """Normally distributed numbers, but for those that are 2 or more away from 0."""
    sizes = checked_shape(call, shape)
    return _truncated(call, _stateful(call, math.prod(sizes)), math.prod(sizes), call.dtype("dtype")).reshape(sizes)


@kernel("RandomUniformInt")
def uniform_int(call: Call, shape: Array, minval: Array, maxval: Array) -> Array:
    """Integers in [minval, maxval)."""
    sizes = checked_shape(call, shape)
    return _integers(call, _stateful(call, math.prod(sizes)), sizes, minval, maxval)


@kernel("StatelessRandomUniform", "StatelessRandomUniformV2")
def stateless_uniform(call: Call, shape: Array, *where: Array) -> Array:
    """Numbers in [0, 1)."""
    sizes = checked_shape(call, shape)
    return _uniform(_stateless(call, where), math.prod(sizes), call.dtype("dtype")).reshape(sizes)


@kernel("StatelessRandomNormal", "StatelessRandomNormalV2")
def stateless_normal(call: Call, shape: Array, *where: Array) -> Array:
    """Normally distributed numbers."""
    sizes = checked_shape(call, shape)
    return _normal(_stateless(call, where), math.prod(sizes), call.dtype("dtype")).reshape(sizes)


@kernel("StatelessTruncatedNormal", "StatelessTruncatedNormalV2")
def stateless_truncated_normal(call: Call, shape: Array, *where: Array) -> Array:
    """Normally distributed numbers, but for those that are 2 or more away from 0."""
    sizes = checked_shape(call, shape)
    return _truncated(call, _stateless(call, where), math.prod(sizes), call.dtype("dtype")).reshape(sizes)


@kernel("StatelessRandomUniformInt", "StatelessRandomUniformIntV2")
def stateless_uniform_int(call: Call, shape: Array, *operands: Array) -> Array:
    """Integers in [minval, maxval)."""
    *where, minval, maxval = operands
    return _integers(call, _stateless(call, where), checked_shape(call, shape), minval, maxval)


@kernel("StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2")
def stateless_uniform_full_int(call: Call, shape: Array, *where: Array) -> Array:
    """Integers of all that there are."""
    sizes = checked_shape(call, shape)
    bits = _bits(_stateless(call, where), math.prod(sizes), call.dtype("dtype"))
    return bits.view(call.dtype("dtype")).reshape(sizes)


@kernel("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def key_counter(call: Call, seed: Array) -> tuple[Array, ...]:
    """Where the stream of a seed begins."""
    key, low, high = _stateless(call, [seed]).state
    where = np.array([key]), np.array([low, high])
    return (*where, np.array(PHILOX)) if call.op.endswith("Alg") else where


@kernel("StatelessRandomGetAlg")
def algorithm(call: Call) -> Array:
    """The algorithm that a CPU chooses."""
    return np.array(PHILOX)


@kernel("Multinomial")
def multinomial(call: Call, logits: Array, num_samples: Array) -> Array:
    """Classes drawn by their logits, for each row."""
    count = checked_shape(call, [*logits.shape[:1], num_samples.item()])
    return _classes(call, _stateful(call, 2 * count[0] * -(-count[-1] // 4) * 4), logits, count)


@kernel("StatelessMultinomial")
def stateless_multinomial(call: Call, logits: Array, num_samples: Array, seed: Array) -> Array:
    """Classes drawn by their logits, for each row."""
    count = checked_shape(call, [*logits.shape[:1], num_samples.item()])
    return _classes(call, _stateless(call, [seed]), logits, count)


@kernel("RandomGamma")
def gamma(call: Call, shape: Array, alpha: Array) -> Array:
    """Numbers of gamma distributions: as many of each as ``shape`` says."""
    sizes = checked_shape(call, [*shape.tolist(), *alpha.shape])
    return _per_parameter(call, _stateful(call, math.prod(sizes)), sizes, alpha, _gamma)


@kernel("StatelessRandomGammaV2", "StatelessRandomGammaV3")
def stateless_gamma(call: Call, shape: Array, *operands: Array) -> Array:
    """Numbers of gamma distributions: ``shape`` ends as that of ``alpha`` does."""
    *where, alpha = operands
    return _per_parameter(call, _stateless(call, where), checked_shape(call, shape), alpha, _gamma)


@kernel("RandomPoisson", "RandomPoissonV2")
def poisson(call: Call, shape: Array, rate: Array) -> Array:
    """Numbers of Poisson distributions: as many of each as ``shape`` says."""
    sizes = checked_shape(call, [*shape.tolist(), *rate.shape])
    return _per_parameter(call, _stateful(call, math.prod(sizes)), sizes, rate, _poisson)


@kernel("StatelessRandomPoisson")
def stateless_poisson(call: Call, shape: Array, seed: Array, lam: Array) -> Array:
    """Numbers of Poisson distributions: ``shape`` ends as that of ``lam`` does."""
    return _per_parameter(call, _stateless(call, [seed]), checked_shape(call, shape), lam, _poisson)


@kernel("RandomShuffle")
def shuffle(call: Call, value: Array) -> Array:
    """The slices along the first dimension in another order (Fisher and Yates, from the front)."""
    if value.size <= 1 or value.shape[0] <= 1:
        return value
    count = value.shape[0]
    words = _stateful(call, 0, -(-(count - 1) // PHILOX_WORDS)).draw(count - 1)
    places = (words.astype(np.int64) % np.arange(count, 1, -1)).tolist()
    order = list(range(count))
    for at, further in enumerate(places):
        order[at], order[at + further] = order[at + further], order[at]
    shuffled: Array = value[np.array(order)]
    return shuffled


@kernel("SampleDistortedBoundingBox")
def distorted_box(call: Call, image_size: Array, bounding_boxes: Array) -> tuple[Array, ...]:
    """A box within an image that covers enough of one of the boxes: begin, size, and its corners, relative."""
    covered = np.float32(call.attributes.float("min_object_covered"))
    return _distorted(
        call, _stateful(call, 0, call.attributes.int("max_attempts")), image_size, bounding_boxes, covered
    )


@kernel("SampleDistortedBoundingBoxV2")
def distorted_box_v2(call: Call, image_size: Array, bounding_boxes: Array, covered: Array) -> tuple[Array, ...]:
    """The same."""
    generator = _stateful(call, 0, call.attributes.int("max_attempts"))
    return _distorted(call, generator, image_size, bounding_boxes, np.float32(covered.item()))


@kernel("StatelessSampleDistortedBoundingBox")
def stateless_distorted_box(
    call: Call, image_size: Array, bounding_boxes: Array, covered: Array, seed: Array
) -> tuple[Array, ...]:
    """The same."""
    return _distorted(call, _stateless(call, [seed]), image_size, bounding_boxes, np.float32(covered.item()))


def _stateful(call: Call, outputs: int, blocks: int | None = None) -> PhiloxGenerator:
    """The generator of an operator that remembers, as this run has it; ``blocks`` are how many this run takes."""
    generator: PhiloxGenerator | None = call.state.get("generator")
    if generator is None:
        seeds = call.attributes.int("seed"), call.attributes.int("seed2")
        generator = PhiloxGenerator(*(seeds if any(seeds) else (secrets.randbits(64), secrets.randbits(64))))
        call.state["generator"] = generator
    copy = generator.copy()
    generator.skip(RESERVED * outputs if blocks is None else blocks)
    return copy


def _stateless(call: Call, where: Sequence[Array]) -> PhiloxGenerator:
    """The generator that a seed [2] means, or a key [1], a counter [2 or more] and an algorithm."""
    if len(where) == 1:
        (seed,) = where
        call.require(seed.shape == (2,), f"seed must have shape [2], got {list(seed.shape)}")
        low, high = [int(number) % (1 << 64) for number in seed]
        scrambled = philox(
            (0x3EC8F720, 0x02461E29),
            np.array([[low & _MASK, low >> 32, high & _MASK, high >> 32]], np.uint32),
        )
        state = scrambled.view(np.uint64)[0]
        return _generator(int(state[0]), 0, int(state[1]))
    key, counter, alg = where
    call.require(alg.size == 1 and alg.item() in (PHILOX, AUTO), f"alg must be {PHILOX} or {AUTO}, got {alg.tolist()}")
    call.require(
        key.shape == (1,) and counter.ndim == 1 and counter.size >= 2,
        f"key must have shape [1] and counter [2], got {list(key.shape)} and {list(counter.shape)}",
    )
    return _generator(int(key[0]), int(counter[0]), int(counter[1]))


def _generator(key: int, low: int, high: int) -> PhiloxGenerator:
    made = PhiloxGenerator(key, high)
    made.state[1] = low
    return made


def _blocks(generator: PhiloxGenerator, offsets: NDArray[np.uint64], each: int = 1) -> Words:
    """The words [offsets, 4 * each] of blocks that begin so many blocks behind where the generator is."""
    key, low, high = [int(word) for word in generator.state]
    places = (offsets[:, None] + np.arange(each, dtype=np.uint64)).reshape(-1)
    lows = np.uint64(low) + places
    highs = np.uint64(high) + (lows < places).astype(np.uint64)
    counters = np.stack([lows, highs], 1).view(np.uint32)
    return philox((key & _MASK, key >> 32), counters).reshape(len(offsets), -1)


def _pieces(call: Call, count: int) -> Iterator[slice]:
    for start in range(0, count, AT_ONCE):
        call.poll()
        yield slice(start, min(start + AT_ONCE, count))


def _drawn(generator: PhiloxGenerator, count: int, words_each: int) -> Words:
    """The words of so many numbers: whole blocks."""
    return generator.draw(-(-count * words_each // PHILOX_WORDS) * PHILOX_WORDS)


def _uniform(generator: PhiloxGenerator, count: int, dtype: np.dtype[Any]) -> Array:
    if dtype == np.float64:
        return uniform_doubles(_drawn(generator, count, 2))[:count]
    words = _drawn(generator, count, 1)[:count]
    if dtype == np.float32:
        return uniform_floats(words)
    mantissa, one = (0x3FF, 0x3C00) if dtype == np.float16 else (0x7F, 0x3F80)
    from_one = (words.astype(np.uint16) & np.uint16(mantissa) | np.uint16(one)).view(dtype)
    numbers: Array = from_one - dtype.type(1)
    return numbers


def _normal(generator: PhiloxGenerator, count: int, dtype: np.dtype[Any]) -> Array:
    if dtype == np.float64:
        return _normal_doubles(_drawn(generator, count, 2))[:count]
    return normal_floats(_drawn(generator, count, 1))[:count]


def _normal_doubles(words: Words) -> Doubles:
    """Two numbers from each four words, by Box and Muller."""
    uniforms = uniform_doubles(words.reshape(-1)).reshape(-1, 2)
    radius = np.sqrt(-2.0 * np.log(np.maximum(uniforms[:, 0], 1e-7)))
    angle = 2 * np.pi * uniforms[:, 1]
    return (np.stack([np.sin(angle), np.cos(angle)], 1) * radius[:, None]).reshape(-1)


def _truncated(call: Call, generator: PhiloxGenerator, count: int, dtype: np.dtype[Any]) -> Array:
    """Each group of outputs, which is what a block makes, has its own blocks, and takes as many as it needs."""
    make, each = (_normal_doubles, 2) if dtype == np.float64 else (normal_floats, 4)
    result = np.empty((-(-count // each), each), np.float64 if dtype == np.float64 else np.float32)
    for piece in _pieces(call, len(result)):
        groups = np.arange(piece.start, piece.stop)
        have, used = np.zeros(len(groups), np.int64), 0
        while groups.size:
            words = _blocks(generator, (groups * (each * RESERVED // PHILOX_WORDS) + used).astype(np.uint64), 3)
            numbers = make(words.reshape(-1)).reshape(len(groups), -1)
            inside = np.abs(numbers) < CUT
            places = have[:, None] + np.cumsum(inside, 1) - 1
            rows, columns = np.nonzero(inside & (places < each))
            result[groups[rows], places[rows, columns]] = numbers[rows, columns]
            have, used = have + inside.sum(1), used + 3
            groups, have = groups[have < each], have[have < each]
    return result.reshape(-1)[:count]


def _bits(generator: PhiloxGenerator, count: int, dtype: np.dtype[Any]) -> Array:
    """Unsigned numbers of the size of a type."""
    if dtype.itemsize == 4:
        return generator.draw(count)
    return _drawn(generator, count, 2).view(np.uint64)[:count]


def _integers(call: Call, generator: PhiloxGenerator, sizes: Sequence[int], minval: Array, maxval: Array) -> Array:
    call.require(not minval.ndim and not maxval.ndim, "minval and maxval must be scalars")
    low, high = int(minval), int(maxval)
    call.require(low < high or 0 in sizes, f"minval must be less than maxval, got {low} and {high}")
    dtype = minval.dtype
    bits = _bits(generator, math.prod(sizes), dtype)
    unsigned = bits.dtype.type
    numbers: Array = bits % unsigned(max(high - low, 1)) + unsigned(low % (1 << 8 * dtype.itemsize))
    return numbers.view(dtype).reshape(tuple(sizes))


def _classes(call: Call, generator: PhiloxGenerator, logits: Array, sizes: Sequence[int]) -> Array:
    call.require(logits.ndim == 2, f"logits must have 2 dimensions, got shape {list(logits.shape)}")
    rows, count = sizes
    call.require(logits.shape[1] or not rows * count, "there must be a class")
    result = np.empty((rows, count), np.int64)
    if not result.size:
        return result
    uniforms = uniform_doubles(_drawn(generator, rows * count, 2))[: rows * count].reshape(rows, count)
    finite = np.isfinite(logits.astype(np.float64))
    for row in range(rows):
        call.poll()
        # TensorFlow computes in float64, from the largest logit.
        given = logits[row].astype(np.float64)
        largest = given[finite[row]].max(initial=float(_lowest(logits.dtype)))
        totals = np.cumsum(np.where(finite[row], np.exp(given - largest), 0.0))
        result[row] = np.searchsorted(totals, uniforms[row] * totals[-1], side="right")
    return result


def _lowest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return np.finfo(dtype).min if dtype.kind == "f" else -3.3895313892515355e38  # bfloat16


class _Lanes:
    """Uniform and normal float64 numbers for outputs that each have blocks of their own: what a block makes, they take
    from behind."""

    def __init__(self, generator: PhiloxGenerator, outputs: slice) -> None:
        count = outputs.stop - outputs.start
        self._generator = generator
        self._blocks = np.arange(outputs.start, outputs.stop, dtype=np.uint64) * np.uint64(RESERVED)
        made = (uniform_doubles, _normal_doubles)
        self._made: dict[_Made, Any] = {make: (np.empty((count, 2)), np.zeros(count, np.int64)) for make in made}

    def uniform(self, lanes: NDArray[np.int64]) -> Doubles:
        """The next number in [0, 1) of each of these outputs."""
        return self._next(uniform_doubles, lanes)

    def normal(self, lanes: NDArray[np.int64]) -> Doubles:
        """The next normally distributed number."""
        return self._next(_normal_doubles, lanes)

    def _next(self, make: _Made, lanes: NDArray[np.int64]) -> Doubles:
        numbers, left = self._made[make]
        empty = lanes[left[lanes] == 0]
        if empty.size:
            numbers[empty] = make(_blocks(self._generator, self._blocks[empty]).reshape(-1)).reshape(-1, 2)
            self._blocks[empty] += np.uint64(1)
            left[empty] = 2
        left[lanes] -= 1
        taken: Doubles = numbers[lanes, left[lanes]]
        return taken


def _per_parameter(
    call: Call,
    generator: PhiloxGenerator,
    sizes: Sequence[int],
    parameters: Array,
    sample: Callable[[Call, _Lanes, Doubles, Any], Doubles],
) -> Array:
    """Samples for parameters, which are the last dimensions of the result; a parameter's samples are neighbours in the
    order in which they are drawn."""
    rank = parameters.ndim
    call.require(
        rank <= len(sizes) and tuple(sizes)[len(sizes) - rank :] == parameters.shape,
        f"shape {list(sizes)} must end with that of the parameter, {list(parameters.shape)}",
    )
    dtype = call.node.outputs[0].types[0]
    each = math.prod(sizes[: len(sizes) - rank])
    flat = parameters.reshape(-1).astype(np.float64)
    result = np.empty(flat.size * each)
    for piece in _pieces(call, result.size):
        result[piece] = sample(call, _Lanes(generator, piece), flat[np.arange(piece.start, piece.stop) // each], dtype)
    return result.reshape(flat.size, each).T.reshape(tuple(sizes))


def _gamma(call: Call, lanes: _Lanes, alpha: Doubles, type: Any) -> Doubles:
    """Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): of ``alpha`` below 1, the sample of
    ``alpha + 1`` times a uniform number to the power of ``1 / alpha``."""
    call.require((alpha >= 0).all() and np.isfinite(alpha).all(), "alpha must be 0 or more, and finite")
    result = np.empty(alpha.size)
    exponential = np.flatnonzero(alpha == 1)
    if exponential.size:
        result[exponential] = -np.log1p(-lanes.uniform(exponential))
    small = alpha < 1
    d = alpha + np.where(small, 2.0 / 3, -1.0 / 3)
    c = 1.0 / 3 / np.sqrt(d)
    left = np.flatnonzero(alpha != 1)
    while left.size:
        call.poll()
        x = lanes.normal(left)
        v = 1 + c[left] * x
        inside = v > 0
        tried, x, v = left[inside], x[inside], v[inside] ** 3
        u = lanes.uniform(tried)
        squeezed = u < 1 - 0.0331 * (x * x) * (x * x)
        accepted = squeezed | (np.log(u) < 0.5 * x * x + d[tried] * (1 - v + np.log(v)))
        taken = tried[accepted]
        result[taken] = d[taken] * v[accepted]
        below = taken[small[taken]]
        if below.size:
            result[below] *= lanes.uniform(below) ** (1 / alpha[below])
        left = np.setdiff1d(left, taken, assume_unique=True)
    return result


def _poisson(call: Call, lanes: _Lanes, rate: Doubles, type: Any) -> Doubles:
    """Knuth's method for rates below 10, else Hörmann, "The transformed rejection method for generating Poisson random
    variables" (1993)."""
    dtype = call.dtype("dtype")
    highest = float(np.iinfo(dtype).max if dtype.kind in "iu" else np.finfo(dtype).max)
    finite = np.isfinite(rate)
    call.require(
        not np.isnan(rate).any() and (rate[finite] <= highest).all() and (finite.all() or dtype.kind == "f"),
        f"rates must be numbers that {dtype} has",
    )
    result = np.full(rate.size, np.inf)
    left = np.flatnonzero(rate < 10)
    product, count = np.ones(rate.size), 0
    while left.size:
        call.poll()
        product[left] *= lanes.uniform(left)
        done = product[left] <= np.exp(-rate[left])
        result[left[done]] = count
        left, count = left[~done], count + 1
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    left = np.flatnonzero((rate >= 10) & finite)
    log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])
    while left.size:
        call.poll()
        u, v = lanes.uniform(left) - 0.5, lanes.uniform(left)
        shifted = 0.5 - np.abs(u)
        mean = rate[left]
        k = np.floor((2 * a[left] / shifted + b[left]) * u + mean + 0.43)
        fits = k <= highest
        accepted = fits & (shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (b[left] - 2))
        open_ = fits & ~accepted & (k >= 0) & ~((shifted < 0.013) & (v > shifted))
        s = np.log(v * inverse[left] / (a[left] / (shifted * shifted) + b[left]))
        t = np.full(left.size, -np.inf)
        t[open_] = -mean[open_] + k[open_] * np.log(mean[open_]) - log_gamma(k[open_] + 1) if open_.any() else 0
        accepted |= open_ & (s <= t)
        result[left[accepted]] = k[accepted]
        left = left[~accepted]
    return result


def _distorted(
    call: Call, generator: PhiloxGenerator, image_size: Array, boxes: Array, covered: np.float32
) -> tuple[Array, Array, Array]:
    call.require(image_size.shape == (3,), f"image_size must have shape [3], got {list(image_size.shape)}")
    height, width = int(image_size[0]), int(image_size[1])
    call.require(0 < height < 1 << 31 and 0 < width < 1 << 31, f"image of {height} x {width} pixels")
    call.require(
        boxes.size == 0 or (boxes.ndim == 3 and boxes.shape[2] == 4),
        f"bounding_boxes must have shape [batch, boxes, 4], got {list(boxes.shape)}",
    )
    ratios, areas = call.attributes.floats("aspect_ratio_range"), call.attributes.floats("area_range")
    for name, pair in (("aspect_ratio_range", ratios), ("area_range", areas)):
        call.require(len(pair) == 2 and 0 < pair[0] <= pair[1], f"{name} must be two growing positive numbers: {pair}")
    call.require(areas[1] <= 1, f"area_range must be within (0, 1], got {areas}")
    attempts = call.attributes.int("max_attempts")
    call.require(attempts > 0, f"max_attempts must be positive, got {attempts}")
    call.require(covered >= 0, f"min_object_covered must not be negative, got {covered}")
    given = boxes.reshape(-1, 4)
    call.require(
        bool(((given >= 0) & (given <= 1)).all()) and bool((given[:, :2] < given[:, 2:]).all()),
        "bounding boxes must be [y_min, x_min, y_max, x_max] within [0, 1]",
    )
    if not len(given):
        call.require(
            call.attributes.bool("use_image_if_no_bounding_boxes"),
            "there are no bounding boxes, and the image is not to be used instead",
        )
        given = np.array([[0, 0, 1, 1]], np.float32)
    scale = np.array([height, width, height, width], np.float32)
    objects = (given.astype(np.float32) * scale).astype(np.int64)
    draws = _singles(generator)
    crop = (0, 0, height, width)
    low, high = map(np.float32, ratios)
    for _ in range(attempts):
        call.poll()
        ratio = uniform_floats(np.array([next(draws)], np.uint32))[0] * (high - low) + low
        made = _crop(width, height, np.float32(areas[0]), np.float32(areas[1]), ratio, draws)
        if made is not None and _covers(made, objects, covered):
            crop = made
            break
    top, left, bottom, right = crop
    corners = np.array([top / height, left / width, bottom / height, right / width], np.float32)
    begin, size = np.array([top, left, 0]), np.array([bottom - top, right - left, -1])
    return begin, size, corners.reshape(1, 1, 4)


def _singles(generator: PhiloxGenerator) -> Iterator[int]:
    while True:
        yield from generator.draw(PHILOX_WORDS).tolist()


def _crop(
    width: int, height: int, least: np.float32, most: np.float32, ratio: np.float32, draws: Iterator[int]
) -> tuple[int, int, int, int] | None:
    """A box of this ratio of width to height and of an area between two parts of the image, somewhere in it; ``None``
    if it does not fit. All in float32, as sample_distorted_bounding_box_op.cc has it."""
    low, high = (part * np.float32(width) * np.float32(height) for part in (least, most))

    def wide(tall: int) -> int:
        return int(np.rint(np.float32(tall) * ratio))

    tall, tallest = (int(np.rint(np.sqrt(area / ratio))) for area in (low, high))
    if wide(tallest) > width:
        tallest = int(np.float32(width + 0.5 - np.float64(np.float32(0.0000001))) / ratio)
        tallest -= wide(tallest) > width
    tallest = min(tallest, height)
    tall = min(tall, tallest)
    if tall < tallest:
        tall += next(draws) % (tallest - tall + 1)
    across = wide(tall)
    if np.float32(tall * across) < low:
        tall += 1
        across = wide(tall)
    if np.float32(tall * across) > high:
        tall -= 1
        across = wide(tall)
    if not low <= np.float32(tall * across) <= high or not 0 < across <= width or not 0 < tall <= height:
        return None
    top = next(draws) % (height - tall) if tall < height else 0
    left = next(draws) % (width - across) if across < width else 0
    return top, left, top + tall, left + across


def _covers(crop: tuple[int, int, int, int], objects: Array, covered: np.float32) -> bool:
    """Whether a box covers enough of one of the objects that have a pixel."""
    top, left, bottom, right = crop
    area = (objects[:, 2] - objects[:, 0]) * (objects[:, 3] - objects[:, 1])
    tall = np.maximum(np.minimum(objects[:, 2], bottom) - np.maximum(objects[:, 0], top), 0)
    across = np.maximum(np.minimum(objects[:, 3], right) - np.maximum(objects[:, 1], left), 0)
    shares = (tall * across).astype(np.float32) / np.maximum(area, 1).astype(np.float32)
    return bool(((area >= 1) & (shares >= covered)).any())
