from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.depthwise import Depthwise, DepthwiseRow
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, filled, normal, on_every_target, run


def depthwise(
    target: Target,
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray,
    y: np.ndarray,
    pixels: int,
    stride: int = 1,
    dilation: int = 1,
    epilogue: Expression = IDENTITY,
    known: bool = True,
    chunks: int = 1,
    threads: int = 1,
    multiplier: int = 1,
    by_chunk: bool = False,
) -> None:
    """y = epilogue(x * weights + bias); x has its border already."""
    height, width, channels = weights.shape
    images, rows, columns, _ = y.shape
    lanes = target.lanes()
    each = -(-channels // chunks // lanes) * lanes if chunks > 1 else channels
    chunks = -(-channels // each)
    kernel = DepthwiseRow(
        target.name,
        min(pixels, columns),
        epilogue,
        (height, width, stride) if known else None,
        multiplier,
    )

    def shape(count: int) -> Any:
        return block(
            DepthwiseRow.arguments,
            channels=count,
            columns=columns,
            kernel_rows=height,
            kernel_columns=width,
            x_column=x.strides[2],
            x_step=stride * x.strides[2],
            x_tap=dilation * x.strides[2],
            y_column=y.strides[2],
            weight_column=weights.strides[1],
        )

    most, last = shape(each), shape(channels - each * (chunks - 1))
    spec = Depthwise(target.name)
    arguments = block(
        spec.arguments,
        kernel=kernel,
        shape=most,
        last_shape=last,
        x=x,
        weights=weights,
        bias=bias,
        y=y,
        images=images,
        rows=rows,
        chunks=chunks,
        by_chunk=int(by_chunk),
        kernel_rows=height,
        chunk_bytes=4 * each,
        x_image=x.strides[0],
        x_step=stride * x.strides[1],
        x_row=dilation * x.strides[1],
        y_image=y.strides[0],
        y_row=y.strides[1],
    )
    run(spec, arguments, threads)


def expected(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, stride: int, dilation: int) -> np.ndarray:
    height, width, _ = weights.shape
    rows = (x.shape[1] - dilation * (height - 1) - 1) // stride + 1
    columns = (x.shape[2] - dilation * (width - 1) - 1) // stride + 1
    result = np.zeros((x.shape[0], rows, columns, x.shape[3]))
    for h in range(height):
        for w in range(width):
            part = x[:, h * dilation :: stride, w * dilation :: stride][:, :rows, :columns]
            result += part.astype(np.float64) * weights[h, w]
    return result + bias


@on_every_target
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kernel", [(3, 3, 1), (3, 3, 2), (5, 5, 1), (5, 5, 2), (1, 7, 1), (2, 1, 3)])
def test_every_shape(target: Target, kernel: tuple[int, int, int], known: bool) -> None:
    rng = np.random.default_rng(0)
    height, width, stride = kernel
    lanes = target.lanes()
    for pixels in (1, 4, 7):
        for columns in (1, pixels, pixels + 1, 2 * pixels, 3 * pixels - 1):
            for channels in (1, lanes - 1, lanes, lanes + 1, 3 * lanes + 2):
                x = normal(rng, 2, height + 2 * stride, width + (columns - 1) * stride, channels)
                weights, bias = normal(rng, height, width, channels), normal(rng, channels)
                want = expected(x, weights, bias, stride, 1)
                y = filled(want.shape)
                depthwise(target, x, weights, bias, y, pixels, stride, 1, ("relu", 0), known)
                np.testing.assert_allclose(y, np.maximum(want, 0), rtol=1e-5, atol=1e-5)


@on_every_target
@pytest.mark.parametrize("stride", [1, 2])
def test_dilation(target: Target, stride: int) -> None:
    rng = np.random.default_rng(1)
    x, weights, bias = normal(rng, 1, 15, 17, 20), normal(rng, 3, 3, 20), normal(rng, 20)
    want = expected(x, weights, bias, stride, 3)
    y = filled(want.shape)
    depthwise(target, x, weights, bias, y, 4, stride, 3, known=False)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


@on_every_target
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("multiplier", [2, 4, 8, 32])
def test_several_outputs_of_a_channel(target: Target, multiplier: int, known: bool) -> None:
    rng = np.random.default_rng(3)
    for depth in (1, 3, target.lanes() + 1):
        x, channels = normal(rng, 2, 5, 9, depth), depth * multiplier
        weights, bias = normal(rng, 3, 3, channels), normal(rng, channels)
        want = expected(np.repeat(x, multiplier, 3), weights, bias, 1, 1)
        y = filled(want.shape)
        depthwise(target, x, weights, bias, y, 4, known=known, multiplier=multiplier)
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


@on_every_target
def test_bits_do_not_depend_on_threads_or_chunks(target: Target) -> None:
    rng = np.random.default_rng(2)
    x, weights, bias = normal(rng, 1, 15, 9, 75), normal(rng, 3, 3, 75), normal(rng, 75)
    results = []
    for chunks, threads, by_chunk in product((1, 2, 3), (1, 2, 3, 7), (False, True)):
        bordered = filled((1, 15, 9, 75), 3.0)
        y = bordered[:, 1:-1, 1:-1]
        shares = {"chunks": chunks, "threads": threads, "by_chunk": by_chunk}
        depthwise(target, x, weights, bias, y, 7, epilogue=("mul", 0, ("logistic", 0)), **shares)
        results.append(bordered.tobytes())
        assert (bordered[:, 0] == 3).all()
        assert (bordered[:, :, -1] == 3).all()
    assert len(set(results)) == 1


def test_names_and_refusals() -> None:
    assert DepthwiseRow("avx512", 7, ("relu6", 0), (3, 3, 2)).name == "f32_dwconv_relu6_3x3s2_7x1__avx512"
    assert DepthwiseRow("avx512", 7).name == "f32_dwconv_any_7x1__avx512"
    assert DepthwiseRow("avx512", 7, multiplier=2).name == "f32_dwconv_any_7x1__avx512_m2"
    assert Depthwise("avx512").name == "x8_dwconv_rows__avx512"
    with pytest.raises(CompileError, match="no operand but the sum"):
        DepthwiseRow("avx512", 7, ("add", 0, 1)).emit(all_targets()["avx512"])
    with pytest.raises(CompileError, match="multiplied by one of"):
        DepthwiseRow("avx2", 4, multiplier=3).emit(all_targets()["avx2"])
    with pytest.raises(CompileError, match="16 registers"):
        DepthwiseRow("avx2", 15).emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for kernel in ((3, 3, 1), (3, 3, 2), (5, 5, 1), (5, 5, 2), None):
        assembly(DepthwiseRow(target.name, 7, ("relu6", 0), kernel), target)
