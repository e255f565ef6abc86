from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.topk import TopK
from gossamer.errors import CompileError
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

DTYPES = {"f32": "float32", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64"}


def greatest(target: Target, type: str, x: np.ndarray, k: int, threads: int = 1) -> np.ndarray:
    spec = TopK(target.name, type)
    y = guarded(np.full((len(x), k), -1, np.int32))
    strides = {"x_row": x.strides[0], "y_row": y.strides[0]}
    run(spec, block(spec.arguments, x=x, y=y, rows=len(x), count=x.shape[1], k=k, **strides), threads)
    return y


@on_every_target
@pytest.mark.parametrize("type", DTYPES)
def test_indices(target: Target, type: str) -> None:
    rng = np.random.default_rng(0)
    lanes = target.lanes()
    for count in (1, 2, lanes, lanes + 1, 5 * lanes + 3, 300):
        # Few different numbers: the first of equals comes first.
        x = guarded(rng.integers(0 if type == "u8" else -20, 20, (4, count)).astype(DTYPES[type]))
        x[1], x[2] = np.sort(x[1]), np.sort(x[2])[::-1]
        for k in sorted({1, 2, lanes, 32, 33, 100, count} & set(range(1, count + 1))):
            want = np.argsort(-x.astype(np.int64), axis=1, kind="stable")[:, :k]
            for threads in (1, 3):
                np.testing.assert_array_equal(greatest(target, type, x, k, threads), want)


@on_every_target
def test_nan_comes_last(target: Target) -> None:
    x = np.full((2, 40), np.nan, np.float32)
    x[0, [3, 30, 35]] = -np.inf, 2, 1
    y = greatest(target, "f32", guarded(x), 5)
    np.testing.assert_array_equal(y, [[30, 35, 3, 0, 1], [0, 1, 2, 3, 4]])
    others = [at for at in range(40) if at not in (3, 30, 35)]
    np.testing.assert_array_equal(greatest(target, "f32", guarded(x), 40), [[30, 35, 3, *others], range(40)])


@on_every_target
def test_nothing_to_sort(target: Target) -> None:
    assert greatest(target, "f32", guarded(np.zeros((0, 5), np.float32)), 2).shape == (0, 2)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("type", DTYPES)
def test_compiles_for_every_target(target: Target, type: str) -> None:
    assembly(TopK(target.name, type), target)


def test_names_and_refusals() -> None:
    assert TopK("neon", "i64").name == "i64_topk__neon"
    with pytest.raises(CompileError, match="there is no order of bool"):
        TopK("avx2", "bool").emit(PLAIN[0])
