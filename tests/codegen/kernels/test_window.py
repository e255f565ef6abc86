from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.window import LOWEST, Window
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, filled, normal, on_every_target, run

REDUCTIONS = ("max", "mean", "l2")


def pool(
    target: Target,
    reduction: str,
    x: np.ndarray,
    y: np.ndarray,
    window: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int],
    threads: int = 1,
    epilogue: Expression = IDENTITY,
) -> None:
    spec = Window(target.name, reduction, epilogue)  # type: ignore[arg-type]
    images, rows, columns, channels = y.shape
    axes = ("image", "row", "column")
    values = {f"{name}_{axis}": a.strides[i] for name, a in (("x", x), ("y", y)) for i, axis in enumerate(axes)}
    arguments = block(
        spec.arguments,
        x=x,
        y=y,
        images=images,
        rows=rows,
        columns=columns,
        channels=channels,
        height=x.shape[1],
        width=x.shape[2],
        window_rows=window[0],
        window_columns=window[1],
        stride_rows=stride[0],
        stride_columns=stride[1],
        pad_rows=pad[0],
        pad_columns=pad[1],
        **values,
    )
    run(spec, arguments, threads)


def expected(reduction: str, x: np.ndarray, y: np.ndarray, window: tuple, stride: tuple, pad: tuple) -> np.ndarray:
    want = np.empty(y.shape)
    for i in range(y.shape[1]):
        for j in range(y.shape[2]):
            top, left = i * stride[0] - pad[0], j * stride[1] - pad[1]
            part = x[:, max(top, 0) : top + window[0], max(left, 0) : left + window[1]].astype(np.float64)
            want[:, i, j] = {
                "max": lambda p: p.max((1, 2)),
                "mean": lambda p: p.mean((1, 2)),
                "l2": lambda p: np.sqrt(np.square(p).mean((1, 2))),
            }[reduction](part)
    return want


@on_every_target
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("window", "stride", "pad", "size"),
    [((3, 3), (2, 2), (1, 1), (4, 5)), ((2, 2), (2, 2), (0, 0), (3, 4)), ((7, 9), (1, 1), (0, 0), (1, 1)),
     ((3, 2), (1, 3), (2, 1), (7, 3)), ((1, 1), (1, 1), (0, 0), (7, 9))],
)  # fmt: skip
def test_windows(
    target: Target, reduction: str, window: tuple[int, int], stride: tuple[int, int], pad: tuple[int, int],
    size: tuple[int, int],
) -> None:  # fmt: skip
    rng = np.random.default_rng(0)
    lanes = target.lanes()
    for channels in (1, lanes - 1, lanes, 4 * lanes, 5 * lanes + 3):
        x = normal(rng, 2, 7, 9, channels)
        results = []
        for threads in (1, 2, 3):
            y = filled((2, *size, channels))
            pool(target, reduction, x, y, window, stride, pad, threads)
            results.append(y.tobytes())
        np.testing.assert_allclose(y, expected(reduction, x, y, window, stride, pad), rtol=1e-5, atol=1e-6)
        assert len(set(results)) == 1


@on_every_target
def test_epilogue_and_borders(target: Target) -> None:
    rng = np.random.default_rng(1)
    x, bordered = normal(rng, 1, 6, 6, 21), filled((1, 5, 5, 21), 3.0)
    y = bordered[:, 1:-1, 1:-1]
    pool(target, "mean", x, y, (2, 2), (2, 2), (0, 0), epilogue=("relu", 0))
    np.testing.assert_allclose(y, np.maximum(expected("mean", x, y, (2, 2), (2, 2), (0, 0)), 0), rtol=1e-5, atol=1e-6)
    assert (bordered[:, 0] == 3).all()
    assert (bordered[:, :, -1] == 3).all()


@on_every_target
def test_maximum_of_nan_is_the_lowest_number(target: Target) -> None:
    x, y = filled((1, 2, 2, 5)), filled((1, 1, 1, 5))
    pool(target, "max", x, y, (2, 2), (1, 1), (0, 0))
    assert (y == np.float32(LOWEST)).all()


def test_names_and_refusals() -> None:
    assert Window("neon", "max", ("relu", 0)).name == "f32_maxpool_relu__neon"
    with pytest.raises(CompileError, match="no operand but the result"):
        Window("neon", "max", ("add", 0, 1)).emit(all_targets()["neon"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_it_compiles(target: Target, reduction: str) -> None:
    assembly(Window(target.name, reduction), target)  # type: ignore[arg-type]
