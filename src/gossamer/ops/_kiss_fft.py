"""Fourier transforms of real samples, bit for bit as kissfft 1.3.0 computes them, which TFLite Micro's operators use.

A transform of n complex values takes the factors of n apart, fours before twos, threes and fives. A stage joins r
transforms of m values each to one of r m values: the q-th values of all r, turned by the q-th powers of a root of 1,
go through the transform of length r. In integers every stage first divides by r, so that nothing can overflow: the
result is that of floats divided by the number of values. Real samples are the real and imaginary parts of half as many
complex values; one more stage takes their two spectra apart.

Integers are fractions of 15 or 31 bits. A product is rounded to the nearest, halves up; a division by r is a product
with the fraction 1 / r, rounded down. Sums wrap around.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from gossamer.arrays import NDArray

Array = NDArray[Any]

MAX_SAMPLES = 1 << 20

_WIDE = {2: np.int32, 4: np.int64}


class _Numbers:
    """Arithmetic on complex values of one real type: arrays [2, ...], real parts first."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.is_float = dtype.kind == "f"
        self.bits = dtype.itemsize * 8 - 1
        self.one = 1 if self.is_float else (1 << self.bits) - 1
        self.wide = np.dtype(np.float32) if self.is_float else np.dtype(_WIDE[dtype.itemsize])

    def roots(self, phases: list[float]) -> Array:
        """``e^(i phase)`` of each phase."""
        parts = [[part(phase) for phase in phases] for part in (math.cos, math.sin)]
        exact = np.array(parts, np.float64)
        return (exact if self.is_float else np.floor(0.5 + self.one * exact)).astype(self.dtype)

    def times(self, a: Array, b: Array) -> Array:
        """The products of complex values."""
        (p, q), (r, s) = a.astype(self.wide), b.astype(self.wide)
        return self._rounded(np.stack([p * r - q * s, p * s + q * r]))

    def scaled(self, a: Array, factor: Any) -> Array:
        """Complex values times one real number."""
        return self._rounded(a.astype(self.wide) * self.wide.type(factor))

    def shared(self, a: Array, parts: int) -> Array:
        """Integers divided by the number of values that will be added; floats as they are."""
        return a if self.is_float else self.scaled(a, self.one // parts)

    def halved(self, a: Array) -> Array:
        """Half of each number, integers rounded down."""
        return a * np.float32(0.5) if self.is_float else a >> 1

    def half_sum(self, a: Array, b: Array) -> Array:
        """Half of the sums; those of int16 do not wrap around."""
        wide = np.int32 if self.dtype.itemsize == 2 else self.dtype
        return self.halved(a.astype(wide) + b.astype(wide)).astype(self.dtype)

    def _rounded(self, product: Array) -> Array:
        if self.is_float:
            return product
        rounded: Array = ((product + (1 << (self.bits - 1))) >> self.bits).astype(self.dtype)
        return rounded


class _Plan:
    """What does not depend on the values of transforms of ``length`` complex values."""

    def __init__(self, dtype: np.dtype[Any], length: int, inverse: bool) -> None:
        self.numbers = _Numbers(dtype)
        self.length = length
        self.inverse = inverse
        self.factors = factors(length)
        sign = 1 if inverse else -1
        self.twiddles = self.numbers.roots([sign * 2 * math.pi * i / length for i in range(length)])
        halves = [sign * math.pi * ((i + 1) / length + 0.5) for i in range(length // 2)]
        self.super_twiddles = self.numbers.roots(halves)
        self.order = np.arange(length).reshape(self.factors[::-1]).transpose().ravel()

    def transform(self, x: Array) -> Array:
        """The transforms of complex values [2, batch, length]."""
        y, m, stride = x[..., self.order], 1, self.length
        for radix in reversed(self.factors):
            stride //= radix
            parts = y.reshape(2, -1, stride, radix, m)
            parts = self.numbers.shared(parts, radix)
            first, turns = parts[..., 0, :], np.arange(m) * stride
            turned = [
                self.numbers.times(parts[..., q, :], self.twiddles[:, None, None, turns * q]) for q in range(1, radix)
            ]
            y = np.stack(self._join(radix, first, turned, m * stride), axis=3)
            m *= radix
        return y.reshape(2, -1, self.length)

    def _join(self, radix: int, first: Array, turned: list[Array], step: int) -> list[Array]:
        # The transform of length ``radix``. ``step``: twiddles from one of its roots to the next.
        numbers = self.numbers
        if radix == 2:
            return [first + turned[0], first - turned[0]]
        if radix == 4:
            a, b, c = turned
            even, odd = first + b, first - b
            outer, across = a + c, _quarter_turn(a - c)
            if self.inverse:
                across = -across
            return [even + outer, odd + across, even - outer, odd - across]
        if radix == 3:
            a, b = turned
            both, across = a + b, _quarter_turn(numbers.scaled(a - b, self.twiddles[1, step]))
            middle = first - numbers.halved(both)
            return [first + both, middle - across, middle + across]
        a, b, c, d = turned
        near, far, near_across, far_across = a + d, b + c, a - d, b - c
        (p, q), (r, s) = self.twiddles[:, step], self.twiddles[:, 2 * step]
        five, ten = (first + numbers.scaled(near, this) + numbers.scaled(far, that) for this, that in ((p, r), (r, p)))
        six = _quarter_turn(numbers.scaled(near_across, q) + numbers.scaled(far_across, s))
        twelve = _quarter_turn(numbers.scaled(far_across, q) - numbers.scaled(near_across, s))
        return [first + (near + far), five - six, ten + twelve, ten - twelve, five + six]


def _quarter_turn(a: Array) -> Array:
    """Complex values times -i."""
    return np.stack([a[1], -a[0]])


def factors(length: int) -> list[int]:
    """The radices in which a transform of so many complex values is done, the outermost first."""
    found = []
    for radix in (4, 2, 3, 5):
        while length % radix == 0:
            found.append(radix)
            length //= radix
    return found


def is_possible(samples: int) -> bool:
    """Whether so many real samples can be transformed: TFLite Micro can where half as many are a product of 2, 3 and 5,
    and no device has room for more than `MAX_SAMPLES`."""
    half = samples // 2
    return 4 <= samples <= MAX_SAMPLES and samples == 2 * half and math.prod(factors(half)) == half


@lru_cache(maxsize=8)
def _plan(dtype: np.dtype[Any], samples: int, inverse: bool) -> _Plan:
    return _Plan(dtype, samples // 2, inverse)


def real_fft(x: Array) -> Array:
    """The spectra [batch, samples + 2] of real samples [batch, samples], int16, int32 or float32: complex values from
    frequency 0 to the highest, real and imaginary part by turns. Those of integers are divided by ``samples``.

    The number of samples must be one for which `is_possible`.
    """
    batch, samples = x.shape
    plan = _plan(x.dtype, samples, False)
    numbers, length = plan.numbers, plan.length
    z = plan.transform(np.moveaxis(x.reshape(batch, length, 2), -1, 0))
    spectrum = np.zeros((2, batch, length + 1), x.dtype)
    zero = numbers.shared(z[..., 0], 2)
    spectrum[0, :, 0], spectrum[0, :, length] = zero[0] + zero[1], zero[0] - zero[1]
    k = np.arange(1, length // 2 + 1)
    here, there = numbers.shared(z[..., k], 2), numbers.shared(_conjugate(z[..., length - k]), 2)
    even, odd = here + there, numbers.times(here - there, plan.super_twiddles[:, None])
    spectrum[..., k] = numbers.half_sum(even, odd)
    spectrum[0][:, length - k] = numbers.half_sum(even[0], -odd[0].astype(numbers.wide))
    spectrum[1][:, length - k] = numbers.half_sum(odd[1], -even[1].astype(numbers.wide))
    return np.moveaxis(spectrum, 0, -1).reshape(batch, samples + 2)


def inverse_real_fft(x: Array) -> Array:
    """The real samples [batch, samples] of spectra [batch, samples + 2], laid out as those of `real_fft`: the inverse
    transform of integers, and of floats ``samples`` times that."""
    batch, samples = x.shape[0], x.shape[1] - 2
    plan = _plan(x.dtype, samples, True)
    numbers, length = plan.numbers, plan.length
    spectrum = np.moveaxis(x.reshape(batch, length + 1, 2), -1, 0)
    first, last = spectrum[0, :, 0], spectrum[0, :, length]
    z = np.empty((2, batch, length), x.dtype)
    z[..., 0] = numbers.shared(np.stack([first + last, first - last]), 2)
    k = np.arange(1, length // 2 + 1)
    here, there = numbers.shared(spectrum[..., k], 2), numbers.shared(_conjugate(spectrum[..., length - k]), 2)
    even, odd = here + there, numbers.times(here - there, plan.super_twiddles[:, None])
    z[..., k] = even + odd
    z[..., length - k] = _conjugate(even - odd)
    return np.moveaxis(plan.transform(z), 0, -1).reshape(batch, samples)


def _conjugate(a: Array) -> Array:
    return np.stack([a[0], -a[1]])
