"""Functions of fixed-point integers: equal to those on arrays, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.codegen.expression import Expression, parameters_of
from gossamer.codegen.kernels.elementwise import Map
from gossamer.ops import _fixed_point, _lookup_tables
from gossamer.ops._lookup_tables import SIGMOID
from gossamer.quantization import (
    high_mul,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    quantize_multipliers,
    round_half_away,
    rounding_divide_by_pot,
)
from gossamer.targets import Target
from tests.codegen.kernels.harness import block, guarded, on_every_target, run

EVERY = np.arange(-32768, 32768).astype(np.int16)
FIRST = ("toi32", 0)


def apply(target: Target, expression: Expression, *operands: np.ndarray, type: str = "i32") -> np.ndarray:
    """The expression of arrays of one length, of single numbers, and of parameters."""
    names = {"int16": "i16", "int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64"}
    tables = parameters_of(expression)
    letters = "".join("p" if at in tables else "v" if operand.ndim else "s" for at, operand in enumerate(operands))
    spec = Map(target.name, expression, letters, (*(names[operand.dtype.name] for operand in operands), type))
    held = [guarded(np.atleast_1d(operand)) for operand in operands]
    dtypes: dict[str, Any] = {"i16": np.int16, "i32": np.int32}
    count = operands[0].size
    y = guarded(np.zeros(count, dtypes[type]))
    words = [name for name in spec.arguments if name.name.startswith("x")]
    arguments = {word.name: 0 for word in words} | {f"x{at}": operand for at, operand in enumerate(held)}
    arguments |= {"y": y, "rows": 1, "columns": 1, "count": count, "block": count, "blocks": 1}
    run(spec, block(spec.arguments, y_row=0, y_column=0, **arguments))
    return y


def numbers(count: int, bits: int) -> np.ndarray:
    """Signed numbers of many sizes, of so many bits."""
    rng = np.random.default_rng(bits)
    drawn = rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), count)
    drawn[::7] = rng.choice([-(1 << (bits - 1)), (1 << (bits - 1)) - 1, 0, 1, -1], len(drawn[::7]))
    return drawn >> rng.integers(0, bits, count)


def multipliers(count: int) -> tuple[np.ndarray, np.ndarray]:
    return quantize_multipliers(2.0 ** np.random.default_rng(1).uniform(-30, 6, count))


@on_every_target
def test_requantizing(target: Target) -> None:
    x, (multiplier, shift) = numbers(4001, 31).astype(np.int32), multipliers(4001)
    operands = x, multiplier.astype(np.int32), shift.astype(np.int32)
    got = apply(target, ("requant", 0, 1, 2), *operands)
    np.testing.assert_array_equal(got, multiply_by_quantized_multiplier(x, multiplier, shift))
    # Halves upwards, twice.
    high = high_mul((x.astype(np.int64) << np.maximum(shift, 0)).astype(np.int32).astype(np.int64), multiplier)
    right = np.maximum(-shift, 0)
    wanted = (high + ((np.int64(1) << right) >> 1)) >> right
    np.testing.assert_array_equal(apply(target, ("requantup", 0, 1, 2), *operands), wanted)


@on_every_target
def test_requantizing_64_bits(target: Target) -> None:
    x, (multiplier, shift) = numbers(4001, 47), multipliers(4001)
    reduced = np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)
    got = apply(target, ("requant64", 0, 1, 2), x, reduced, 15 - shift)
    np.testing.assert_array_equal(got, multiply_by_quantized_multiplier_64(x, multiplier, shift))


@on_every_target
def test_common_scale(target: Target) -> None:
    multiplier, shift = 1518500250, -3
    words = np.array([5, 15, multiplier, -shift], np.int32)
    got = apply(target, ("scalein", FIRST, 1), EVERY, words)
    shifted = (EVERY.astype(np.int64) - 5) << 15
    wanted = rounding_divide_by_pot(high_mul(shifted, multiplier), -shift)
    np.testing.assert_array_equal(got, wanted)


@on_every_target
@pytest.mark.parametrize("shift", [2, 0, -7])
def test_result(target: Target, shift: int) -> None:
    multiplier = 1973790000
    words = np.array([multiplier, max(shift, 0), max(-shift, 0), -7, -20000, 30000], np.int32)
    got = apply(target, ("scaleout", FIRST, 1), EVERY, words, type="i16")
    levels = multiply_by_quantized_multiplier(EVERY, multiplier, shift) - 7
    np.testing.assert_array_equal(got, np.clip(levels, -20000, 30000))
    limits = np.array([-7, -20000, 30000], np.int32)
    np.testing.assert_array_equal(
        apply(target, ("limit", FIRST, 1), EVERY, limits), np.clip(EVERY.astype(int) - 7, -20000, 30000)
    )


@on_every_target
@pytest.mark.parametrize("by", [0, 1, 15, 30])
def test_rounding_shift(target: Target, by: int) -> None:
    x = numbers(1001, 32).astype(np.int32)
    got = apply(target, ("roundshift", 0, 1), x, np.array(by, np.int32))
    np.testing.assert_array_equal(got, rounding_divide_by_pot(x, by))


@on_every_target
def test_rounding_to_integers(target: Target) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.49, -(2.0**31), 2.0**30 + 0.5, 32767.5], np.float64)
    np.testing.assert_array_equal(apply(target, ("roundawayi32", 0), x), round_half_away(x))
    beyond = np.array([2.0**31, -(2.0**40), np.nan, np.inf], np.float64)
    assert apply(target, ("roundawayi32", 0), beyond).tolist() == [-(2**31)] * 4
    x = x.astype(np.float32)
    np.testing.assert_array_equal(apply(target, ("roundi32", 0), x), np.rint(x))
    assert apply(target, ("roundi32", 0), beyond.astype(np.float32)).tolist() == [-(2**31)] * 4


@on_every_target
def test_saturation_and_products(target: Target) -> None:
    x = numbers(1001, 32).astype(np.int32)
    np.testing.assert_array_equal(apply(target, ("saturate16", 0), x), np.clip(x, -32768, 32767))
    y = EVERY[::-1].copy()
    got = apply(target, ("product16", FIRST, ("toi32", 1)), EVERY, y)
    np.testing.assert_array_equal(got, high_mul(EVERY, y, 16))


@on_every_target
def test_interpolation(target: Target) -> None:
    table = _lookup_tables.interpolation_table(np.tanh, (3e-4, 0), (2.0**-15, 0))
    low = table.astype(np.int64)
    steps = (low[1:] - low[:-1]).astype(np.int16).astype(np.int64)
    words = ((low[:-1] & 0xFFFF) | (steps << 16)).astype(np.int32)
    got = apply(target, ("interpolate", FIRST, 1), EVERY, words, type="i16")
    np.testing.assert_array_equal(got, _lookup_tables.interpolate(EVERY, table))


@on_every_target
@pytest.mark.parametrize(("multiplier", "shift"), [(3, 0), (20000, 15), (32767, 3), (1 << 14, 30)])
def test_table_functions(target: Target, multiplier: int, shift: int) -> None:
    pairs = (SIGMOID[:-1] | (SIGMOID[1:] << 16)).astype(np.uint32)
    words = np.concatenate([np.array([multiplier, shift], np.uint32), pairs]).view(np.int32)
    for name, reference in (("sigmoid16", _lookup_tables.table_logistic), ("tanh16", _lookup_tables.table_tanh)):
        got = apply(target, (name, FIRST, 1), EVERY, words, type="i16")
        np.testing.assert_array_equal(got, reference(EVERY, multiplier, shift))


@on_every_target
def test_fixed_logistic(target: Target) -> None:
    got = apply(target, ("fixedlogistic", FIRST), EVERY, type="i16")
    np.testing.assert_array_equal(got, _fixed_point.logistic(EVERY, 3, 16))


@on_every_target
@pytest.mark.parametrize("integer_bits", range(7))
def test_fixed_tanh(target: Target, integer_bits: int) -> None:
    got = apply(target, (f"fixedtanh{integer_bits}", FIRST), EVERY, type="i16")
    np.testing.assert_array_equal(got, _fixed_point.tanh(EVERY, integer_bits, 16))
