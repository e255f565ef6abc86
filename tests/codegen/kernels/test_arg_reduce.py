from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.arg_reduce import ArgReduce
from gossamer.errors import CompileError
from gossamer.ops.arg_max import op as ARG_MAX
from gossamer.ops.arg_min import op as ARG_MIN
from gossamer.schema import ArgMaxOptions, ArgMinOptions, TensorType
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run
from tests.ops.cases import Case, const, tensor
from tests.ops.reference import output_of

DTYPES = {"f32": "float32", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64"}
INDICES = {"i32": "int32", "i64": "int64"}


def extreme(spec: ArgReduce, x: np.ndarray, y: np.ndarray, size: int = 0, threads: int = 1) -> None:
    """Along the second of three dimensions; the third is 1 if the kernel goes along it."""
    outer, count, inner = x.shape
    size = size or max(inner, 1)
    arguments = block(
        spec.arguments,
        x=x,
        y=y,
        outer=outer,
        count=count,
        inner=inner,
        block=size,
        blocks=-(-inner // size),
        x_outer=x.strides[0],
        x_step=x.strides[1],
        y_outer=y.strides[0],
    )
    run(spec, arguments, threads)


@on_every_target
@pytest.mark.parametrize("type", DTYPES)
@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize("along", [False, True])
def test_indices(target: Target, type: str, greatest: bool, along: bool) -> None:
    rng = np.random.default_rng(0)
    lanes, dtype = target.lanes(), DTYPES[type]
    for index, index_dtype in INDICES.items():
        spec = ArgReduce(target.name, greatest, along, type, index)
        for count in (1, 2, lanes, 5 * lanes + 3, 300):
            for inner in (1,) if along else (1, lanes - 1, 3 * lanes + 2):
                # Few different numbers: the first of equals counts.
                x = guarded(rng.integers(0 if type == "u8" else -20, 20, (4, count, inner)).astype(dtype))
                if type != "f32":
                    x[0] = np.iinfo(dtype).min if greatest else np.iinfo(dtype).max
                want = np.argmax(x, 1) if greatest else np.argmin(x, 1)
                for size, threads in ((0, 1), (16, 2), (0, 3)):
                    y = guarded(np.full((4, inner), -1, index_dtype))
                    extreme(spec, x, y, size, threads)
                    np.testing.assert_array_equal(y, want)


@on_every_target
@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize("along", [False, True])
def test_infinite_and_missing_numbers(target: Target, greatest: bool, along: bool) -> None:
    rng = np.random.default_rng(1)
    numbers = [np.nan, np.inf, -np.inf, 1.0]
    op, options = (ARG_MAX, ArgMaxOptions) if greatest else (ARG_MIN, ArgMinOptions)
    for count in (1, 3, 40):
        x = guarded(rng.choice(numbers, (50, count, 1), p=(0.7, 0.1, 0.1, 0.1)).astype(np.float32))
        x[0] = np.nan
        y = guarded(np.full((50, 1), -1, np.int32))
        extreme(ArgReduce(target.name, greatest, along), x, y)
        case = Case("", [tensor(x), const(1)], [tensor(y, np.int32)], options(output_type=TensorType.INT32))
        np.testing.assert_array_equal(y, output_of(op, case))


@on_every_target
def test_nothing_to_compare(target: Target) -> None:
    for shape in ((0, 3, 4), (2, 3, 0)):
        y = guarded(np.zeros((shape[0], shape[2]), np.int32))
        extreme(ArgReduce(target.name, True), guarded(np.zeros(shape, np.float32)), y, threads=2)
    extreme(
        ArgReduce(target.name, True, True), guarded(np.zeros((0, 3, 1), np.float32)), guarded(np.zeros(0, np.int32))
    )


def test_names_and_refusals() -> None:
    assert ArgReduce("avx2", True).name == "f32_argmax_across_i32__avx2"
    assert ArgReduce("avx2", False, True, "u8", "i64").name == "u8_argmin_along_i64__avx2"
    for spec, message in (
        (ArgReduce("avx2", True, type="bool"), "no extreme of bool"),
        (ArgReduce("avx2", True, index="i16"), "indices are i32 or i64"),
    ):
        with pytest.raises(CompileError, match=message):
            spec.emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for along in (False, True):
        for type in DTYPES:
            assembly(ArgReduce(target.name, True, along, type, "i64"), target)
