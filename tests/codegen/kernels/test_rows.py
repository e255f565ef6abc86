from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.contract import Gemm, panels_of
from gossamer.codegen.kernels.depthwise import DepthwiseRow
from gossamer.codegen.kernels.rows import CONTRACT_ROW, RowPipeline, scratch_bytes
from gossamer.codegen.tiles import last_vector
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, filled, normal, on_every_target, pack, run

RELU6: Expression = ("relu6", 0)


class Convolution:
    """A row of pixels times weights [channels, depth], as a `CONTRACT_ROW`."""

    def __init__(
        self,
        target: Target,
        weights: np.ndarray,
        bias: np.ndarray,
        columns: int,
        tile: tuple[int, int],
        epilogue: Expression = IDENTITY,
        taps: np.ndarray | None = None,
        a_column: int = 0,
        residual_column: int = 0,
    ) -> None:
        channels, depth = weights.shape
        lanes = target.lanes()
        mr, nv = min(tile[0], columns), min(tile[1], -(-channels // lanes))
        panels = panels_of(channels, nv, lanes)
        conv = taps is not None
        offsets = np.zeros(1, np.int64) if taps is None else taps
        shape = block(
            Gemm.arguments,
            depth=depth // len(offsets),
            taps=len(offsets),
            tap_offsets=offsets,
            a_stride=a_column or 4 * depth,
            c_stride=4 * channels,
            residual_stride=residual_column,
            tail=panels.tail,
        )
        packed = pack(target, weights, nv)
        is_ragged, half = last_vector(target, panels.tail)
        ragged = Gemm(target.name, mr, panels.rest_nv, epilogue, conv, is_ragged, half=half) if panels.rest_nv else None
        self.keep = (packed, bias, offsets, shape)
        self.block = block(
            CONTRACT_ROW,
            b=packed,
            bias=bias,
            kernel=Gemm(target.name, mr, nv, epilogue, conv),
            shape=shape,
            ragged_kernel=ragged,
            ragged_shape=shape,
            tiles=-(-columns // mr),
            tile_columns=mr,
            last_column=columns - mr,
            a_column=a_column or 4 * depth,
            c_column=4 * channels,
            residual_column=residual_column,
            panels=panels.whole,
            panel_bytes=4 * nv * lanes * depth,
            panel_channels=4 * nv * lanes,
        )


class Rows:
    """y = project(relu6(depthwise(relu6(expand(x))))), without expand if that is None.

    ``expand`` and ``project`` are weights [channels, depth] and bias, ``filter`` is [rows, columns, channels] and
    bias; ``pad``: rows above and below, columns left and right (of x, which has them already, without expand).
    ``stem``: expand is a convolution, [channels, rows, columns, depth] and bias, of stride 2 over x with its border.
    """

    def __init__(
        self,
        target: Target,
        x: np.ndarray,
        expand: tuple[np.ndarray, np.ndarray] | None,
        filter: tuple[np.ndarray, np.ndarray],
        project: tuple[np.ndarray, np.ndarray],
        y: np.ndarray,
        pad: tuple[int, int, int, int],
        stride: int = 1,
        dilation: int = 1,
        residual: np.ndarray | None = None,
        tile: tuple[int, int] = (4, 2),
        pixels: int = 4,
        threads: int = 1,
    ) -> None:
        images, rows, columns, _ = y.shape
        kernel_rows, kernel_columns, channels = filter[0].shape
        above, _, left, right = pad
        keep: list[Any] = []
        height, width = x.shape[1], x.shape[2]
        x_row, slot = x.strides[1], 0
        first = None
        if expand:
            if expand[0].ndim == 4:
                size, across = expand[0].shape[1:3]
                height, width = (height - size) // 2 + 1, (width - across) // 2 + 1
                taps = np.arange(size) * x.strides[1]
                weights = expand[0].reshape(channels, -1)
                first = Convolution(target, weights, expand[1], width, tile, RELU6, taps, 2 * x.strides[2])
                x_row *= 2
            else:
                first = Convolution(target, *expand, width, tile, RELU6)
            keep.append(first)
            slot = 4 * channels * (left + width + right)
        known = (kernel_rows, kernel_columns, stride) if dilation == 1 else None
        kernel = DepthwiseRow(target.name, min(pixels, columns), RELU6, known)
        shape = block(
            DepthwiseRow.arguments,
            channels=channels,
            columns=columns,
            kernel_rows=kernel_rows,
            kernel_columns=kernel_columns,
            x_column=4 * channels,
            x_step=4 * channels * stride,
            x_tap=4 * channels * dilation,
            y_column=4 * channels,
            weight_column=filter[0].strides[1],
        )
        last = Convolution(
            target,
            *project,
            columns,
            tile,
            IDENTITY if residual is None else ("add", 0, 1),
            residual_column=0 if residual is None else residual.strides[2],
        )
        size = scratch_bytes(kernel_rows, dilation, slot, 4 * channels * columns)
        scratch = filled([threads, size // 4])
        self.spec = RowPipeline(target.name, first is not None)
        self.arguments = block(
            self.spec.arguments,
            expand=first.block if first else 0,
            project=last.block,
            depthwise=kernel,
            depthwise_shape=shape,
            weights=filter[0],
            bias=filter[1],
            x=x,
            y=y,
            residual=0 if residual is None else residual,
            scratch=scratch,
            scratch_thread=size,
            images=images,
            rows=rows,
            height=height,
            kernel_rows=kernel_rows,
            stride=stride,
            dilation=dilation,
            pad_rows=above if first else 0,
            x_image=x.strides[0],
            x_row=x_row,
            y_image=y.strides[0],
            y_row=y.strides[1],
            residual_image=0 if residual is None else residual.strides[0],
            residual_row=0 if residual is None else residual.strides[1],
            slot=slot,
            left=4 * channels * left,
            right=4 * channels * right,
            border=0,
        )
        self.keep = (keep, shape, last, scratch, x, y, residual, filter)

    def run(self, threads: int = 1) -> None:
        """Do it."""
        run(self.spec, self.arguments, threads)


def expected(
    x: np.ndarray,
    expand: tuple[np.ndarray, np.ndarray] | None,
    filter: tuple[np.ndarray, np.ndarray],
    project: tuple[np.ndarray, np.ndarray],
    pad: tuple[int, int, int, int],
    stride: int,
    dilation: int,
) -> np.ndarray:
    """The same in double precision; x without a border."""
    wide = x.astype(np.float64)
    if expand:
        wide = np.clip(wide @ expand[0].T.astype(np.float64) + expand[1], 0, 6)
    wide = np.pad(wide, ((0, 0), pad[:2], pad[2:], (0, 0)))
    height, width, _ = filter[0].shape
    rows = (wide.shape[1] - dilation * (height - 1) - 1) // stride + 1
    columns = (wide.shape[2] - dilation * (width - 1) - 1) // stride + 1
    total = np.zeros((x.shape[0], rows, columns, wide.shape[3]))
    for h in range(height):
        for w in range(width):
            part = wide[:, h * dilation :: stride, w * dilation :: stride][:, :rows, :columns]
            total += part * filter[0][h, w].astype(np.float64)
    filtered = np.clip(total + filter[1], 0, 6)
    return filtered @ project[0].T.astype(np.float64) + project[1]


def pair(rng: np.random.Generator, *shape: int, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias."""
    return normal(rng, *shape), normal(rng, channels)


def assert_close(got: np.ndarray, want: np.ndarray) -> None:
    # Up to 40 products of numbers up to 6, of which each has some roundings behind it.
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


CASES = [
    # kernel, stride, dilation, pad, height, width
    ((3, 3), 1, 1, (1, 1, 1, 1), 9, 11),
    ((3, 3), 2, 1, (0, 1, 0, 1), 8, 12),
    ((3, 3), 2, 1, (1, 1, 1, 1), 9, 13),
    ((5, 5), 1, 1, (2, 2, 2, 2), 7, 7),
    ((5, 5), 2, 1, (1, 2, 1, 2), 14, 14),
    ((3, 3), 1, 2, (2, 2, 2, 2), 9, 10),
    ((1, 1), 2, 1, (0, 0, 0, 0), 7, 7),
    ((3, 3), 1, 1, (0, 0, 0, 0), 3, 9),
    ((5, 5), 1, 1, (4, 4, 4, 4), 1, 1),
]


@on_every_target
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("has_expand", [True, False])
@pytest.mark.parametrize(("kernel", "stride", "dilation", "pad", "height", "width"), CASES)
def test_blocks(
    target: Target,
    kernel: tuple[int, int],
    stride: int,
    dilation: int,
    pad: tuple[int, int, int, int],
    height: int,
    width: int,
    has_expand: bool,
    threads: int,
) -> None:
    rng = np.random.default_rng(0)
    channels, narrow = 2 * target.lanes() + 3, target.lanes() + 1
    depth = 5 if has_expand else channels
    x = normal(rng, 2, height, width, depth)
    expand = pair(rng, channels, depth, channels=channels) if has_expand else None
    filter, project = pair(rng, *kernel, channels, channels=channels), pair(rng, narrow, channels, channels=narrow)
    want = expected(x, expand, filter, project, pad, stride, dilation)
    y = filled(want.shape)
    given = x
    if not has_expand:
        given = filled((2, height + pad[0] + pad[1], width + pad[2] + pad[3], depth), 0.0)
        given[:, pad[0] : pad[0] + height, pad[2] : pad[2] + width] = x
    Rows(target, given, expand, filter, project, y, pad, stride, dilation, threads=threads).run(threads)
    assert_close(y, want)


@on_every_target
def test_the_input_is_added(target: Target) -> None:
    rng = np.random.default_rng(1)
    x = normal(rng, 1, 6, 7, 20)
    expand, filter, project = (
        pair(rng, 40, 20, channels=40),
        pair(rng, 3, 3, 40, channels=40),
        pair(rng, 20, 40, channels=20),
    )
    y = filled(x.shape)
    Rows(target, x, expand, filter, project, y, (1, 1, 1, 1), residual=x).run()
    assert_close(y, expected(x, expand, filter, project, (1, 1, 1, 1), 1, 1) + x)


@on_every_target
def test_a_convolution_expands(target: Target) -> None:
    rng = np.random.default_rng(2)
    x = normal(rng, 1, 13, 17, 3)
    stem, filter, project = (
        pair(rng, 20, 3, 3, 3, channels=20),
        pair(rng, 3, 3, 20, channels=20),
        pair(rng, 9, 20, channels=9),
    )
    wide = sum(
        x[:, h : h + 11 : 2, w : w + 15 : 2].astype(np.float64) @ stem[0][:, h, w].T for h in range(3) for w in range(3)
    )
    wide = np.clip(wide + stem[1], 0, 6)
    want = expected(wide, None, filter, project, (1, 1, 1, 1), 1, 1)
    y = filled(want.shape)
    Rows(target, x, stem, filter, project, y, (1, 1, 1, 1)).run()
    assert_close(y, want)


@on_every_target
def test_bits_do_not_depend_on_threads(target: Target) -> None:
    rng = np.random.default_rng(3)
    x = normal(rng, 2, 7, 9, 12)
    expand, filter, project = (
        pair(rng, 33, 12, channels=33),
        pair(rng, 3, 3, 33, channels=33),
        pair(rng, 12, 33, channels=12),
    )
    results = []
    for threads in (1, 2, 3, 5, 20):
        y = filled((2, 7, 9, 12))
        Rows(target, x, expand, filter, project, y, (1, 1, 1, 1), residual=x, threads=threads).run(threads)
        results.append(y.tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_names_and_text(target: Target) -> None:
    assert RowPipeline(target.name, True).name == f"x8_rows_expand_dwconv_project__{target.name}"
    assert RowPipeline(target.name, False).name == f"x8_rows_dwconv_project__{target.name}"
    for expand in (True, False):
        assembly(RowPipeline(target.name, expand), target)
