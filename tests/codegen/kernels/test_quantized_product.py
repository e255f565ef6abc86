from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.quantized_product import NUMBERS, TYPES, QuantizedProduct
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

DTYPES = {"i8": np.int8, "i16": np.int16}
X_ZERO, MULTIPLIER, EXPONENT, Y_ZERO = 3, 0x5A3C, 15, -7


def product(target: Target, type: str, x: np.ndarray, y: np.ndarray, size: int = 0, threads: int = 1) -> None:
    """x is [outer, rows, columns, inner]."""
    spec, limits = QuantizedProduct(target.name, type), np.iinfo(DTYPES[type])
    outer, rows, columns, inner = x.shape
    size = size or max(inner, 1)
    words = NUMBERS.words(
        x_zero=X_ZERO, multiplier=MULTIPLIER, exponent=EXPONENT, y_zero=Y_ZERO, low=limits.min, high=limits.max
    )
    numbers = guarded(np.array(words, np.int64))
    arguments = block(
        spec.arguments,
        x=x,
        y=y,
        numbers=numbers,
        outer=outer,
        rows=rows,
        columns=columns,
        inner=inner,
        block=size,
        blocks=-(-inner // size),
        x_outer=x.strides[0],
        x_row=x.strides[1],
        x_column=x.strides[2],
        y_outer=y.strides[0],
    )
    run(spec, arguments, threads)


def expected(x: np.ndarray) -> np.ndarray:
    """What the kernel says that it computes."""
    outer, rows, columns, inner = x.shape
    first, *others = np.moveaxis(x.reshape(outer, rows * columns, inner).astype(np.int64) - X_ZERO, 1, 0)

    def rescaled(product: np.ndarray) -> np.ndarray:
        return (product * MULTIPLIER + (1 << EXPONENT - 1) >> EXPONENT).astype(np.int32).astype(np.int64)

    total = first
    for other in others:
        total = rescaled(total * other)
    limits = np.iinfo(x.dtype)
    levels: np.ndarray = np.clip(rescaled(total) + Y_ZERO, limits.min, limits.max).astype(x.dtype)
    return levels


@on_every_target
@pytest.mark.parametrize("type", TYPES)
def test_products(target: Target, type: str) -> None:
    rng = np.random.default_rng(0)
    lanes = target.lanes(64)
    for inner in (1, lanes - 1, lanes, 3 * lanes + 2):
        for rows, columns in ((1, 1), (2, 3), (1, 12)):
            # Few are far from their zero, so that not all products leave the range.
            x = rng.integers(X_ZERO - 2, X_ZERO + 3, (3, rows, columns, inner)).astype(DTYPES[type])
            x[0] = rng.integers(-128, 128, x[0].shape)
            x = guarded(x)
            for size, threads in ((0, 1), (0, 2), (16, 3)):
                y = guarded(np.zeros((3, inner), DTYPES[type]))
                product(target, type, x, y, size if inner > 1 else 0, threads)
                np.testing.assert_array_equal(y, expected(x))


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("type", TYPES)
def test_compiles_for_every_target(target: Target, type: str) -> None:
    assembly(QuantizedProduct(target.name, type), target)


def test_names_and_refusals() -> None:
    assert QuantizedProduct("neon", "i16").name == "i16_product__neon"
    with pytest.raises(CompileError, match="There are products of i8, i16, got 'i32'"):
        QuantizedProduct("avx2", "i32").emit(all_targets()["avx2"])
