from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.dot import Dot, rows_of_weights
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, filled, guarded, normal, on_every_target, run


def dot(
    target: Target,
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray,
    y: np.ndarray,
    nr: int,
    epilogue: Expression = IDENTITY,
    residual: np.ndarray | None = None,
    threads: int = 1,
) -> None:
    """y = epilogue(x w + bias) for x [rows, depth] and w [channels, depth]."""
    spec = Dot(target.name, len(x), nr, epilogue, "f16" if w.dtype == np.float16 else "f32")
    arguments = block(
        spec.arguments,
        x=x,
        w=w,
        bias=bias,
        y=y,
        residual=0 if residual is None else residual,
        channels=len(w),
        depth=x.shape[1],
        x_row=x.strides[0],
        w_row=w.strides[0],
        y_row=y.strides[0],
        residual_row=0 if residual is None else residual.strides[0],
    )
    run(spec, arguments, threads)


@on_every_target
@pytest.mark.parametrize("type", [np.float32, np.float16])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("nr", [1, 2, 4])
def test_every_shape(target: Target, rows: int, nr: int, type: type) -> None:
    if (rows + 1) * nr > target.registers:
        pytest.skip("too few registers")
    rng = np.random.default_rng(0)
    lanes = target.lanes()
    for channels in (1, lanes - 1, lanes, lanes + 1, 3 * lanes + 2):
        for depth in (1, lanes - 1, lanes, lanes + 1, 5 * lanes + 3):
            x, w, bias = normal(rng, rows, depth), guarded(rng.standard_normal((channels, depth)).astype(type)), None
            bias, y = normal(rng, channels), filled((rows, channels))
            dot(target, x, w, bias, y, nr, ("relu", 0))
            want = np.maximum(x.astype(np.float64) @ w.T.astype(np.float64) + bias, 0)
            np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5)


@on_every_target
def test_rows_may_be_apart(target: Target) -> None:
    rng = np.random.default_rng(1)
    x, w, bias = normal(rng, 3, 50)[:, :40], normal(rng, 20, 45)[:, :40], normal(rng, 20)
    y, residual = filled((3, 33), 7.0), normal(rng, 3, 21)
    dot(target, x, w, bias, y[:, :20], 2, ("add", 0, 1), residual[:, :20])
    np.testing.assert_allclose(y[:, :20], x @ w.T + bias + residual[:, :20], rtol=2e-5, atol=2e-5)
    assert (y[:, 20:] == 7).all()


@on_every_target
def test_bits_do_not_depend_on_threads(target: Target) -> None:
    rng = np.random.default_rng(2)
    x, w, bias = normal(rng, 2, 100), normal(rng, 75, 100), normal(rng, 75)
    results = []
    for threads in (1, 2, 3, 9):
        y = filled((2, 75))
        dot(target, x, w, bias, y, 4, threads=threads)
        results.append(y.tobytes())
    assert len(set(results)) == 1


def test_names_and_refusals() -> None:
    assert Dot("avx512", 1, 4, ("relu6", 0)).name == "f32_dot_relu6_1x4__avx512"
    assert Dot("avx2", 2, 2, weights="f16").name == "f32_f16w_dot_2x2__avx2"
    avx2 = all_targets()["avx2"]
    for spec, message in (
        (Dot("avx2", 5, 1), "rows must be 1 to 4"),
        (Dot("avx2", 1, 3), "nr must divide 8"),
        (Dot("avx2", 4, 4), "16 registers"),
        (Dot("avx2", 1, 1, ("add", ("add", 0, 1), 2)), "one operand"),
    ):
        with pytest.raises(CompileError, match=message):
            spec.emit(avx2)


def test_how_many_rows_of_weights() -> None:
    avx512, avx2 = all_targets()["avx512"], all_targets()["avx2"]
    assert [rows_of_weights(avx512, 1, size) for size in (1000, 5_000_000)] == [4, 1]
    assert [rows_of_weights(avx2, rows, 5_000_000) for rows in (1, 2, 3, 4)] == [1, 4, 4, 2]
    for target in (avx512, avx2):
        for rows in (1, 2, 3, 4):
            Dot(target.name, rows, rows_of_weights(target, rows, 0)).emit(target)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("type", ["f32", "f16"])
def test_it_compiles(target: Target, type: str) -> None:
    assembly(Dot(target.name, 1, 4, ("relu", 0), type), target)
