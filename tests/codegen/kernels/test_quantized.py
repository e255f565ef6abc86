"""Functions of quantized bytes with parameters: sums, products, tables."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import Expression
from gossamer.codegen.kernels.elementwise import Map
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import filled, guarded, on_every_extension
from tests.codegen.kernels.test_elementwise import compute

COUNTS = (1, 7, 16, 31, 63, 64, 65, 200, 517)
DTYPES = {"i8": np.int8, "u8": np.uint8}
of_both = pytest.mark.parametrize("type", DTYPES)


def every(type: str, count: int, seed: int = 0) -> np.ndarray:
    """Bytes, all of them if there is room."""
    rng = np.random.default_rng([count, seed])
    drawn = rng.permutation(max(count, 256))[:count].astype(np.uint8)
    return guarded(drawn.view(DTYPES[type])[None, None])


def words(*numbers: float) -> np.ndarray:
    """Parameters, of which floats are float32."""
    values = [np.float32(n).view(np.int32) if isinstance(n, float) else n for n in numbers]
    return guarded(np.array(values, np.int32)[None, None])


def mapped(target: Target, expression: Expression, type: str, letters: str, *operands: np.ndarray) -> np.ndarray:
    x = operands[0]
    y = guarded(np.zeros(x.shape, DTYPES[type]))
    names = {"int8": "i8", "uint8": "u8", "int32": "i32", "float32": "f32"}
    types = tuple(names[operand.dtype.name] for operand in operands)
    compute(Map(target.name, expression, letters, (*types, type)), y, list(operands))
    return y[0, 0]


# x m + y n: as large as multipliers get, small ones, a difference.
SUMS = [
    (1 << 21, (1 << 21) - 1, 20),
    (1 << 20, 3, 12),
    (1500000, -700001, 21),
    (-(1 << 21), 1 << 21, 30),
    (7, 1 << 20, 29),
]


@on_every_extension
@of_both
@pytest.mark.parametrize(("m", "n", "shift"), SUMS)
def test_sums(target: Target, type: str, m: int, n: int, shift: int) -> None:
    zeros = (3, -70, 11) if type == "i8" else (200, 0, 117)
    low, high = (-128, 127) if m > n else (-100, 90) if type == "i8" else (20, 240)
    low, high = (max(low, 0), high + 128) if type == "u8" and m > n else (low, high)
    bias = (1 << (shift - 1)) - m * zeros[0] - n * zeros[1]
    for count in COUNTS:
        x, y = every(type, count), every(type, count, 1)
        got = mapped(target, ("qadd", 0, 1, 2), type, "vvp", x, y, words(m, n, bias, shift, zeros[2], low, high))
        total = x.astype(np.int64) * m + y.astype(np.int64) * n + bias
        np.testing.assert_array_equal(got, np.clip((total >> shift) + zeros[2], low, high)[0, 0])


@on_every_extension
@of_both
@pytest.mark.parametrize("scale", [2.0**-16, 0.0137, 0.5, 0.9999, 3.7, 255.9])
def test_products(target: Target, type: str, scale: float) -> None:
    zeros = (3, -128, -5) if type == "i8" else (255, 1, 90)
    low, high = (-120, 127) if type == "i8" else (3, 250)
    for count in COUNTS:
        x, y = every(type, count), every(type, count, 1)
        got = mapped(target, ("qmul", 0, 1, 2), type, "vvp", x, y, words(*zeros[:2], scale, zeros[2], low, high))
        product = (x.astype(np.int32) - zeros[0]) * (y.astype(np.int32) - zeros[1])
        level = np.rint(product.astype(np.float32) * np.float32(scale)) + zeros[2]
        np.testing.assert_array_equal(got, np.clip(level, low, high)[0, 0])


@on_every_extension
@of_both
def test_tables(target: Target, type: str) -> None:
    table = every(type, 256, 2)
    for count in COUNTS:
        x = every(type, count)
        got = mapped(target, ("lookup", 0, 1), type, "vp", x, table)
        np.testing.assert_array_equal(got, table[0, 0][x.view(np.uint8)[0, 0]])


@on_every_extension
def test_a_table_of_other_bytes_and_floats_of_its_entries(target: Target) -> None:
    table = every("u8", 256, 2)
    for count in COUNTS:
        x = every("i8", count)
        entries = table[0, 0][x.view(np.uint8)[0, 0]]
        np.testing.assert_array_equal(mapped(target, ("lookup", 0, 1), "u8", "vp", x, table), entries)
        y = filled(x.shape)
        compute(Map(target.name, ("tof32", ("lookup", 0, 1)), "vp", ("i8", "u8", "f32")), y, [x, table])
        np.testing.assert_array_equal(y[0, 0], entries.astype(np.float32))


@on_every_extension
@of_both
def test_a_table_for_each_row(target: Target, type: str) -> None:
    matrix = np.random.default_rng(0).integers(0, 256, (256, 256)).astype(np.uint8)
    entries = guarded(matrix.view(DTYPES[type])[None])
    spec = Map(target.name, ("lookuprow", 0, 1, 2), "vsp", (type,) * 4)
    for count in COUNTS:
        x = guarded(np.random.default_rng(count).integers(0, 256, (2, 3, count)).astype(np.uint8).view(DTYPES[type]))
        rows = guarded(np.array([0, 255, 128, 127, 1, 64], np.uint8).view(DTYPES[type]).reshape(2, 3, 1))
        y = guarded(np.zeros(x.shape, DTYPES[type]))
        compute(spec, y, [x, rows, entries])
        np.testing.assert_array_equal(y.view(np.uint8), matrix[rows.view(np.uint8), x.view(np.uint8)])


def test_the_row_of_a_table_is_one_byte() -> None:
    with pytest.raises(CompileError, match="the row of a table is an operand s"):
        Map("avx2", ("lookuprow", 0, 1, 2), "vvp", ("u8",) * 4).emit(all_targets()["avx2"])


@on_every_extension
def test_parameters_between_tensors(target: Target) -> None:
    first, second = every("i8", 256, 2), every("i8", 256, 3)
    numbers = words(1 << 20, 1 << 19, 1 << 19, 20, 5, -128, 127)
    for count in COUNTS:
        x, y = every("i8", count), every("i8", 1, 1)
        expression = ("lookup", ("qadd", ("lookup", 0, 1), 2, 3), 4)
        got = mapped(target, expression, "i8", "vpspp", x, first, y, numbers, second)
        inner = first[0, 0][x.view(np.uint8)[0, 0]].astype(np.int64)
        total = ((inner << 20) + (int(y[0, 0, 0]) << 19) + (1 << 19) >> 20) + 5
        middle = np.clip(total, -128, 127).astype(np.int8)
        np.testing.assert_array_equal(got, second[0, 0][middle.view(np.uint8)])


@on_every_extension
def test_threads_and_rows_share_parameters(target: Target) -> None:
    table = every("u8", 256, 2)
    x = guarded(np.random.default_rng(0).integers(0, 256, (4, 3, 150)).astype(np.uint8))
    for size, threads in ((0, 1), (64, 2), (64, 5)):
        y = guarded(np.zeros(x.shape, np.uint8))
        compute(Map(target.name, ("lookup", 0, 1), "vp", ("u8",) * 3), y, [x, table], size, threads)
        np.testing.assert_array_equal(y, table[0, 0][x])


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
@pytest.mark.parametrize("expression", [("qadd", 0, 1, 2), ("qmul", 0, 1, 2)])
def test_every_target_compiles_them(target: Target, expression: Expression) -> None:
    assert assembly(Map(target.name, expression, "vvp", ("u8", "u8", "i32", "u8")), target)


def test_products_widen_and_saturate_in_order_on_neon() -> None:
    text = assembly(Map("neon", ("qmul", 0, 1, 2), "vvp", ("i8", "i8", "i32", "i8")), all_targets()["neon"])
    for instruction in ("ssubw2", "smull2", "fcvtns", "sqxtn2", "sqadd"):
        assert instruction in text
    for instruction in ("sshll2", "frintx\tv", "frinti\tv"):
        assert instruction not in text


def test_tables_are_permutations_of_bytes() -> None:
    wanted = {"avx512vnni": "vperm", "avx512": "vpshufb", "avx2": "vpshufb", "neon": "tbx"}
    for name, instruction in wanted.items():
        assert instruction in assembly(Map(name, ("lookup", 0, 1), "vp", ("u8",) * 3), all_targets()[name])


@pytest.mark.parametrize(
    ("expression", "letters"),
    [
        (("qadd", 0, 1, 2), "vvv"),
        (("max", 0, 1), "vp"),
        (("max", ("lookup", 0, 1), 1), "vp"),
        (("lookup", ("qadd", 0, 0, 1), 1), "vp"),
        (("lookup", 0, ("max", 0, 1)), "vv"),
    ],
)
def test_parameters_are_operands_of_their_own(expression: Expression, letters: str) -> None:
    with pytest.raises(CompileError, match="parameters"):
        Map("avx2", expression, letters, ("u8",) * (len(letters) + 1)).emit(all_targets()["avx2"])
