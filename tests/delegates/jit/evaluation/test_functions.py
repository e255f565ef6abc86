"""Functions of expressions on arrays: integers are those of machine code, floats as near as its functions are."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from gossamer.codegen.elements import ELEMENTS
from gossamer.codegen.expression import FUNCTIONS as EMITTED
from gossamer.codegen.expression import type_of
from gossamer.codegen.kernels.elementwise import Map
from gossamer.delegates.jit.evaluation.functions import DTYPES, FUNCTIONS, apply, fma
from gossamer.ops._lookup_tables import SIGMOID
from gossamer.quantization import quantize_multipliers
from tests.codegen.kernels.harness import PLAIN, RUNNABLE, block, guarded, run
from tests.codegen.kernels.test_elementwise import everything

TARGETS = [target for target in RUNNABLE if target in PLAIN][-1:]
COUNT = 1001
Array = np.ndarray
Rng = np.random.Generator


def test_there_is_every_function() -> None:
    assert FUNCTIONS.keys() == EMITTED.keys()


def words(*numbers: float) -> Array:
    return np.array([np.float32(n).view(np.int32) if isinstance(n, float) else n for n in numbers], np.int32)


def integers(rng: Rng, bits: int, dtype: type = np.int32) -> Array:
    """Numbers of many sizes."""
    return (rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), COUNT) >> rng.integers(0, bits, COUNT)).astype(dtype)


def scaled(rng: Rng) -> list[Array]:
    multipliers, shifts = quantize_multipliers(2.0 ** rng.uniform(-30, 6, COUNT))
    return [integers(rng, 31), multipliers.astype(np.int32), shifts.astype(np.int32)]


SIGMOID_WORDS = np.concatenate([words(3, 0), (SIGMOID[:-1] | (SIGMOID[1:] << 16)).astype(np.uint32).view(np.int32)])
TABLE = np.random.default_rng(5).integers(0, 256, 256 * 256).astype(np.uint8)

GIVEN: dict[str, Callable[[Rng], list[Array]]] = {
    "qadd": lambda rng: [words(1234567, -765432, 1 << 19, 20, 3, 2, 126)],
    "qmul": lambda rng: [words(-3, 7, 0.00731, 5, 2, 120)],
    "lookup": lambda rng: [TABLE[:256].view(np.int8)],
    "requant": scaled,
    "requantup": scaled,
    "requant64": lambda rng: [
        integers(rng, 47, np.int64), rng.integers(1 << 14, 1 << 15, COUNT), rng.integers(1, 47, COUNT)
    ],
    "roundshift": lambda rng: [integers(rng, 32), rng.integers(0, 31, COUNT).astype(np.int32)],
    "scalein": lambda rng: [integers(rng, 16), words(-5, 12, 1518500250, 7)],
    "scaleout": lambda rng: [integers(rng, 24), words(1518500250, 3, 9, 4, -32768, 32000)],
    "limit": lambda rng: [integers(rng, 32), words(-100, -32768, 32767)],
    "product16": lambda rng: [integers(rng, 16), integers(rng, 15)],
    "interpolate": lambda rng: [integers(rng, 16), rng.integers(-(2**31), 2**31, 513).astype(np.int32)],
    "sigmoid16": lambda rng: [integers(rng, 16), SIGMOID_WORDS],
    "tanh16": lambda rng: [integers(rng, 16), SIGMOID_WORDS],
    "fixedlogistic": lambda rng: [integers(rng, 16)],
    **{f"fixedtanh{bits}": lambda rng: [integers(rng, 16)] for bits in range(7)},
    **{f"quantize{type}": lambda rng: [everything("float32", COUNT), np.float32([0.037]), np.float32([3])]
       for type in ("i8", "u8", "i16")},
    "shiftleft": lambda rng: [rng.integers(0, 31, COUNT)],
    "pow": lambda rng: [np.abs(everything("float32", COUNT)), rng.uniform(-3, 3, COUNT).astype(np.float32)],
    **dict.fromkeys(("sin", "cos"), lambda rng: [rng.uniform(-30, 30, COUNT).astype(np.float32)]),
}  # fmt: skip
"""Operands of functions that take no others, or their last ones."""


def operands_of(name: str, type: str) -> tuple[list[Array], list[str]]:
    """Operands for a function of arguments of an element type, and the types of all of them."""
    function, rng, dtype = EMITTED[name], np.random.default_rng(0), DTYPES[type]
    given = GIVEN.get(name, lambda _: [])(rng)
    own = [everything("bool" if function.chooses and at == 0 else dtype.name, COUNT + 3 * at)[3 * at :]
           for at in range(function.arity - len(given))]  # fmt: skip
    if name == "shiftleft":
        given = [given[0].astype(dtype)]
    if name in ("div", "floordiv", "floormod") and dtype.kind != "f":
        own[1] = np.where(own[1] == 0, dtype.type(3), own[1])
    names = {each: name for name, each in DTYPES.items()}
    return [*own, *given], [names[operand.dtype] for operand in (*own, *given)]


def machine_code(expression: tuple, operands: list[Array], types: list[str]) -> Array:
    """What a map computes."""
    letters = "".join(
        "p" if EMITTED[expression[0]].reads and at == len(operands) - 1 else "v" if operand.size > 1 else "s"
        for at, operand in enumerate(operands)
    )
    result = type_of(expression, types)
    (target,) = TARGETS
    spec = Map(target.name, expression, letters, (*types, result))
    y = guarded(np.zeros(COUNT, DTYPES[result]))
    held = [guarded(operand) for operand in operands]
    arguments = {word.name: 0 for word in spec.arguments if word.name.startswith("x")}
    arguments |= {f"x{at}": operand for at, operand in enumerate(held)}
    arguments |= {"y": y, "rows": 1, "columns": 1, "count": COUNT, "block": COUNT, "blocks": 1}
    run(spec, block(spec.arguments, y_row=0, y_column=0, **arguments))
    return y


KINDS = {
    "float": ("f32",), "double": ("f64",), "bool": ("bool",), "signed": ("i8", "i16", "i32", "i64"),
    "unsigned": ("u8", "u16", "u32"), "complex": ("c64",),
}  # fmt: skip
ULPS = 8
"""Of functions that are no instructions."""

CANCELLING = ("sin", "cos", "gelu", "gelutanh")
"""Which are near 0 where they are differences."""


@pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one type", "every type"])
@pytest.mark.parametrize("name", [name for name in EMITTED if name != "lookuprow"])
def test_machine_code_computes_the_same(name: str, every: bool) -> None:
    function = EMITTED[name]
    taken = [[e for e in KINDS[kind] if function.bits in (0, ELEMENTS[e].bits)] for kind in function.emit]
    for type in (element for elements in taken for element in elements[: None if every else 1]):
        operands, types = operands_of(name, type)
        expression = (name, *range(len(operands)))
        with np.errstate(all="ignore"):
            got = np.broadcast_to(apply(expression, operands), COUNT)
        wanted = machine_code(expression, operands, types)
        assert got.dtype == wanted.dtype
        if got.dtype.kind != "f":
            np.testing.assert_array_equal(got, wanted, err_msg=type)
            continue
        near = ULPS * np.finfo(np.float32).eps
        np.testing.assert_allclose(got, wanted, rtol=near, atol=near if name in CANCELLING else 1e-37)


def test_rows_of_a_table() -> None:
    x, row = everything("int8", 300), everything("int8", 317)[17:]
    wanted = [TABLE.reshape(256, 256)[b, a] for a, b in zip(x.view(np.uint8), row.view(np.uint8), strict=True)]
    np.testing.assert_array_equal(FUNCTIONS["lookuprow"](x, row, TABLE), wanted)


def test_fma_rounds_once() -> None:
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal(2000).astype(np.float32) for _ in range(3))
    z[::2] = -(x[::2] * y[::2])  # what is left is what the first rounding takes away
    z[1::4] *= np.float32(2.0**-24)
    got = fma(x, y, z)
    for a, b, c, result in zip(x.tolist(), y.tolist(), z.tolist(), got, strict=True):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        error = abs(Fraction(float(result)) - exact)
        for neighbour in (np.nextafter(result, np.float32(s * math.inf)) for s in (-1, 1)):
            assert error <= abs(Fraction(float(neighbour)) - exact)
