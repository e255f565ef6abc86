from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.elements import ELEMENT_OF
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.reduce import HALVES, INTEGERS, START, Reduce, start_of
from gossamer.dtypes import numpy_dtype
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, filled, guarded, normal, on_every_target, run

DTYPES = {name: numpy_dtype(type) for type, name in ELEMENT_OF.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
REDUCERS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
NUMPY = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


def reduce(
    target: Target,
    reduction: str,
    along: bool,
    x: np.ndarray,
    y: np.ndarray,
    size: int = 0,
    threads: int = 1,
    epilogue: Expression = IDENTITY,
) -> None:
    """x is [outer, rows, columns, inner]; inner is 1 if ``along``."""
    types = [NAMES[array.dtype] for array in (x, y)]
    spec = Reduce(target.name, reduction, along, epilogue, type=types[0], result=types[1])  # type: ignore[arg-type]
    outer, rows, columns, inner = x.shape
    size = size or max(inner, 1)
    arguments = block(
        spec.arguments,
        x=x,
        y=y,
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


@on_every_target
@pytest.mark.parametrize("reduction", START)
def test_across(target: Target, reduction: str) -> None:
    rng = np.random.default_rng(0)
    lanes = target.lanes()
    for inner in (1, lanes - 1, lanes, 4 * lanes, 4 * lanes + 1, 9 * lanes + 2):
        x = normal(rng, 3, 7, 9, inner)[:, 1:-1, 2:-1]
        results = []
        for size, threads in ((0, 1), (0, 2), (16, 1), (64, 3)):
            y = filled((3, inner))
            reduce(target, reduction, False, x, y, size, threads)
            results.append(y.tobytes())
        np.testing.assert_allclose(y, NUMPY[reduction](x.astype(np.float64), axis=(1, 2)), rtol=1e-5, atol=1e-5)
        assert len(set(results)) == 1


@on_every_target
@pytest.mark.parametrize("reduction", START)
def test_along(target: Target, reduction: str) -> None:
    rng = np.random.default_rng(1)
    lanes = target.lanes()
    for columns in (1, lanes - 1, lanes, 4 * lanes, 4 * lanes + 1, 9 * lanes + 2):
        x = guarded(1 + 0.1 * normal(rng, 5, 3, columns, 1))
        results = []
        for threads in (1, 2, 3):
            y = filled((5, 1))
            reduce(target, reduction, True, x, y, threads=threads)
            results.append(y.tobytes())
        np.testing.assert_allclose(y, NUMPY[reduction](x.astype(np.float64), axis=(1, 2)), rtol=1e-4)
        assert len(set(results)) == 1


@on_every_target
@pytest.mark.parametrize("along", [False, True])
def test_of_nothing(target: Target, along: bool) -> None:
    for reduction, start in START.items():
        x, y = filled((2, 0, 3, 1)), filled((2, 1))
        reduce(target, reduction, along, x, y)
        np.testing.assert_array_equal(y, np.nan if reduction == "mean" else start)


OF_INTEGERS = [(reduction, *types) for reduction, all_types in INTEGERS.items() for types in all_types]


@on_every_target
@pytest.mark.parametrize(("reduction", "type", "result"), OF_INTEGERS)
@pytest.mark.parametrize("along", [False, True])
def test_integers(target: Target, along: bool, reduction: str, type: str, result: str) -> None:
    limits, lanes = np.iinfo(DTYPES[type]), target.lanes(np.iinfo(DTYPES[result]).bits)
    rng = np.random.default_rng(3)
    for size in (1, lanes - 1, 4 * lanes + 1, 9 * lanes):
        shape = (3, 2, size, 1) if along else (3, 2, 3, size)
        x = guarded(rng.integers(limits.min, limits.max, shape, DTYPES[type], endpoint=True))
        results = []
        for threads in (1, 2):
            y = guarded(np.zeros((3, shape[3]), DTYPES[result]))
            reduce(target, reduction, along, x, y, 0 if along else 64, threads)
            results.append(y.tobytes())
        wide = x.astype(DTYPES[result])
        np.testing.assert_array_equal(y, REDUCERS[reduction].reduce(wide, axis=(1, 2), dtype=wide.dtype))
        assert results[0] == results[1]
    y = guarded(np.zeros((2, 1), DTYPES[result]))
    reduce(target, reduction, along, guarded(np.zeros((2, 0, 3, 1), DTYPES[type])), y)
    np.testing.assert_array_equal(y, start_of(reduction, result))  # type: ignore[arg-type]


@on_every_target
@pytest.mark.parametrize("reduction", HALVES)
@pytest.mark.parametrize("along", [False, True])
def test_halves_are_floats(target: Target, along: bool, reduction: str) -> None:
    rng = np.random.default_rng(4)
    for size in (1, target.lanes() + 3, 5 * target.lanes()):
        x = guarded(rng.standard_normal((3, 2, size, 1) if along else (3, 2, 3, size)).astype(np.float16))
        y, of_floats = (guarded(np.zeros((3, x.shape[3]), np.float32)) for _ in range(2))
        reduce(target, reduction, along, x, y)
        reduce(target, reduction, along, guarded(x.astype(np.float32)), of_floats)
        np.testing.assert_array_equal(y, of_floats)


@on_every_target
@pytest.mark.parametrize("along", [False, True])
def test_epilogue(target: Target, along: bool) -> None:
    x = normal(np.random.default_rng(2), 7, 2, 21, 1)
    y = filled((7, 1))
    reduce(target, "mean", along, x, y, epilogue=("sqrt", ("square", 0)))
    np.testing.assert_allclose(y, np.abs(x.astype(np.float64).mean((1, 2))), rtol=1e-5, atol=1e-6)


def test_names_and_refusals() -> None:
    assert Reduce("avx2", "mean").name == "f32_reduce_mean_across__avx2"
    assert Reduce("avx2", "sum", True).name == "f32_reduce_sum_along__avx2"
    assert Reduce("avx2", "max", epilogue=("relu", 0)).name == "f32_reduce_max_across_relu__avx2"
    with pytest.raises(CompileError, match="prologue and epilogue of a reduction have one operand"):
        Reduce("avx2", "sum", epilogue=("add", 0, 1)).emit(all_targets()["avx2"])
    assert Reduce("avx2", "sum", True, prologue=("mul", 0, 0)).name == "f32_x0_mul_reduce_sum_along__avx2"
    assert Reduce("avx2", "sum", True, type="i32", result="i64").name == "i32_i64_reduce_sum_along__avx2"
    with pytest.raises(CompileError, match="there is no max of u8 in u8"):
        Reduce("avx2", "max", type="u8", result="u8").emit(all_targets()["avx2"])
    with pytest.raises(CompileError, match="only float32 has a prologue"):
        Reduce("avx2", "max", epilogue=("relu", 0), type="i32", result="i32").emit(all_targets()["avx2"])
    with pytest.raises(CompileError, match="one of sum, mean"):
        Reduce("avx2", "mode").emit(all_targets()["avx2"])  # type: ignore[arg-type]


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for reduction in START:
        for along in (False, True):
            assembly(Reduce(target.name, reduction, along), target)  # type: ignore[arg-type]
            for type, result in (*INTEGERS.get(reduction, ()), *[("f16", "f32")] * (reduction in HALVES)):
                assembly(Reduce(target.name, reduction, along, type=type, result=result), target)  # type: ignore[arg-type]
