from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.quantized_reduce import QuantizedReduce
from gossamer.codegen.kernels.quantized_sums import TYPES
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, guarded, on_every_extension, run

DTYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16}
FORMS = [(reduction, type) for reduction in ("sum", "max", "min") for type in TYPES]


def reduce(
    target: Target,
    reduction: str,
    along: bool,
    type: str,
    x: np.ndarray,
    y: np.ndarray,
    rescaling: tuple[float, float] = (1, 0),
    size: int = 0,
    threads: int = 1,
) -> None:
    """x is [outer, rows, columns, inner]; inner is 1 if ``along``."""
    spec = QuantizedReduce(target.name, reduction, along, type)  # type: ignore[arg-type]
    outer, rows, columns, inner = x.shape
    size = size or inner
    words = guarded(np.array(rescaling, np.float32))
    arguments = block(
        spec.arguments,
        x=x,
        y=y,
        rescaling=words,
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


def expected(reduction: str, x: np.ndarray, rescaling: tuple[float, float]) -> np.ndarray:
    """What the kernel says that it computes."""
    if reduction != "sum":
        extreme: np.ndarray = (x.max if reduction == "max" else x.min)(axis=(1, 2))
        return extreme
    total = x.sum(axis=(1, 2), dtype=np.int32)
    if x.dtype == np.int16:
        return total
    scale, zero_point = (np.float32(number) for number in rescaling)
    limits = np.iinfo(x.dtype)
    return np.clip(np.rint(total.astype(np.float32) * scale + zero_point), limits.min, limits.max).astype(x.dtype)


def numbers(type: str, *shape: int) -> np.ndarray:
    """All that there are, and many of the extremes."""
    rng = np.random.default_rng(0)
    limits = np.iinfo(DTYPES[type])
    x = rng.integers(limits.min, limits.max, shape, DTYPES[type], endpoint=True)
    extreme = rng.choice([limits.min, limits.max], shape).astype(x.dtype)
    return guarded(np.where(rng.random(shape) < 0.3, extreme, x))


@on_every_extension
@pytest.mark.parametrize(("reduction", "type"), FORMS)
def test_across(target: Target, reduction: str, type: str) -> None:
    lanes = target.lanes(8)
    for inner in (1, 7, 8, 24, lanes - 1, lanes, 2 * lanes + 1, 4 * lanes + 19):
        x = numbers(type, 3, 7, 9, inner)[:, 1:-1, 2:-1]
        wanted = expected(reduction, x, (0.013, 2.5))
        for size, threads in ((0, 1), (16, 2), (64, 3)):
            y = guarded(np.zeros((3, inner), wanted.dtype))
            reduce(target, reduction, False, type, x, y, (0.013, 2.5), size, threads)
            np.testing.assert_array_equal(y, wanted)


@on_every_extension
@pytest.mark.parametrize(("reduction", "type"), FORMS)
def test_along(target: Target, reduction: str, type: str) -> None:
    lanes = target.lanes(8)
    for columns in (1, 7, lanes - 1, lanes, 2 * lanes + 1, 4 * lanes + 19):
        x = numbers(type, 5, 3, columns, 1)
        wanted = expected(reduction, x, (0.013, 2.5))
        for threads in (1, 3):
            y = guarded(np.zeros((5, 1), wanted.dtype))
            reduce(target, reduction, True, type, x, y, (0.013, 2.5), threads=threads)
            np.testing.assert_array_equal(y, wanted)


@on_every_extension
@pytest.mark.parametrize("type", ["i8", "u8"])
def test_sums_of_more_than_16_bits(target: Target, type: str) -> None:
    limits = np.iinfo(DTYPES[type])
    for value in (limits.min, limits.max):
        for rows, columns in ((1, 1000), (300, 7), (3, 256)):
            x = guarded(np.full((1, rows, columns, 20), value, DTYPES[type]))
            y = guarded(np.zeros((1, 20), x.dtype))
            scale = 1 / (rows * columns)
            reduce(target, "sum", False, type, x, y, (scale, 0))
            np.testing.assert_array_equal(y, expected("sum", x, (scale, 0)))
            assert (y == value).all()


@on_every_extension
@pytest.mark.parametrize("reduction", ["max", "min"])
def test_truth_values(target: Target, reduction: str) -> None:
    """Any byte but 0 is true; the result is 0 or 1."""
    lanes = target.lanes(8)
    rng = np.random.default_rng(0)
    for inner, columns in ((1, 2 * lanes + 1), (1, 7), (2 * lanes + 1, 3), (24, 2)):
        x = guarded(np.where(rng.random((6, 3, columns, inner)) < 0.1, 0, 1 << rng.integers(8)).astype(np.uint8))
        x[0], x[1] = 0, 2
        wanted = expected(reduction, (x != 0).astype(np.uint8), (1, 0))
        for threads in (1, 2):
            y = guarded(np.full((6, inner), 7, np.uint8))
            reduce(target, reduction, inner == 1, "bool", x, y, threads=threads)
            np.testing.assert_array_equal(y, wanted)


@on_every_extension
def test_halves_go_to_even(target: Target) -> None:
    x = guarded(np.array([1, 3, 5, -1, -3], np.int8).reshape(1, 1, 1, 5))
    y = guarded(np.zeros((1, 5), np.int8))
    reduce(target, "sum", False, "i8", x, y, (0.5, 0))
    np.testing.assert_array_equal(y, [[0, 2, 2, 0, -2]])


def test_names_and_refusals() -> None:
    assert QuantizedReduce("avx2", "sum").name == "i8_reduce_sum_across__avx2"
    assert QuantizedReduce("avx2", "max", True, "u8").name == "u8_reduce_max_along__avx2"
    with pytest.raises(CompileError, match="sums, maxima and minima of i8, u8, i16"):
        QuantizedReduce("avx2", "sum", type="i32").emit(all_targets()["avx2"])
    with pytest.raises(CompileError, match="Truth values have no sum"):
        QuantizedReduce("avx2", "sum", type="bool").emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for reduction, type in FORMS:
        for along in (False, True):
            assembly(QuantizedReduce(target.name, reduction, along, type), target)  # type: ignore[arg-type]
