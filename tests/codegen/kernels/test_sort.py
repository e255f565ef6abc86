from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.sort import Sort, scratch_bytes
from gossamer.errors import CompileError
from gossamer.ops import topk_v2
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run
from tests.delegates.jit.running import TARGETS, machine_code
from tests.ops.cases import Case, const, model_of, tensor

DTYPES = {"f32": "float32", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32", "i64": "int64"}


def greatest(target: Target, type: str, x: np.ndarray, k: int, threads: int = 1) -> np.ndarray:
    spec = Sort(target.name, type)
    y = guarded(np.full((len(x), k), -1, np.int32))
    thread = scratch_bytes(type, x.shape[1])
    places = {"x": x, "y": y, "scratch": guarded(np.zeros(threads * thread, np.uint8))}
    strides = {"x_row": x.strides[0], "y_row": y.strides[0], "scratch_thread": thread}
    run(spec, block(spec.arguments, rows=len(x), count=x.shape[1], k=k, **places, **strides), threads)
    return y


@on_every_target
@pytest.mark.parametrize("type", DTYPES)
def test_indices(target: Target, type: str) -> None:
    rng = np.random.default_rng(0)
    limits = np.iinfo(np.int32 if type == "f32" else DTYPES[type])
    for count in (1, 2, 33, 300):
        x = rng.integers(limits.min, limits.max, (4, count), limits.dtype, endpoint=True).astype(DTYPES[type])
        x[1] = np.arange(count) % 5  # of equals the first comes first
        x[2] = np.sort(x[2])
        x[3, -1], x[3, 0] = limits.min, limits.max
        # The stable order of the reversed row from its end: what is equal comes in its own order again.
        want = count - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
        for k, threads in ((count, 1), ((count + 1) // 2, 3)):
            np.testing.assert_array_equal(greatest(target, type, guarded(x), k, threads), want[:, :k])


@on_every_target
def test_nan_comes_last_and_zeros_are_equal(target: Target) -> None:
    x = np.float32([[np.nan, -0.0, np.inf, 0.0, -np.inf, -np.nan, 1e-45, -1e-45, 3]])
    np.testing.assert_array_equal(greatest(target, "f32", guarded(x), 9), [[2, 8, 6, 1, 3, 7, 4, 0, 5]])


@on_every_target
def test_nothing_to_sort(target: Target) -> None:
    assert greatest(target, "f32", guarded(np.zeros((0, 5), np.float32)), 2).shape == (0, 2)


@pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")
@pytest.mark.parametrize(
    ("count", "k", "name"),
    [(264, 100, "sort"), (264, 33, "sort"), (264, 32, "topk"), (264, 20, "topk"), (20, 5, "sort"), (21, 5, "topk")],
)
def test_what_sorts_a_row(count: int, k: int, name: str) -> None:
    x = tensor(np.zeros((2, count)), np.float32)
    case = Case("", [x, const(k)], [tensor(np.zeros((2, k))), tensor(np.zeros((2, k)), np.int32)])
    _, kernel = machine_code(model_of(topk_v2.op, case))
    assert kernel.program is not None
    assert any(f"f32_{name}__" in one for one in kernel.program.plan.kernels)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("type", DTYPES)
def test_compiles_for_every_target(target: Target, type: str) -> None:
    assembly(Sort(target.name, type), target)


def test_names_and_refusals() -> None:
    assert Sort("neon", "i64").name == "i64_sort__neon"
    with pytest.raises(CompileError, match="there is no order of f64"):
        Sort("avx2", "f64").emit(all_targets()["avx2"])
