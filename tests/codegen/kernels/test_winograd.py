from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.contract import Gemm, panels_of
from gossamer.codegen.kernels.groups import largest_group
from gossamer.codegen.kernels.winograd import (
    Size,
    Winograd,
    WinogradInput,
    WinogradOutput,
    WinogradWeights,
    plane_bytes,
    planes_of,
)
from gossamer.codegen.tiles import last_vector
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, filled, guarded, normal, on_every_target, run
from tests.codegen.kernels.test_contract import expected

A, B = np.sqrt(0.5), np.sqrt(2)

# B^T, G and A^T of Lavin and Gray; those of the larger tile for the points 0, A, -A, B, -B and infinity.
INPUT: dict[Size, np.ndarray] = {
    2: np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]),
    4: np.array(
        [[1, 0, -2.5, 0, 1, 0], [0, -2 * A, -2, A, 1, 0], [0, 2 * A, -2, -A, 1, 0], [0, -B / 2, -0.5, B, 1, 0],
         [0, B / 2, -0.5, -B, 1, 0], [0, 1, 0, -2.5, 0, 1]]
    ),
}  # fmt: skip
WEIGHTS: dict[Size, np.ndarray] = {
    2: np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2,
    4: np.array(
        [[6, 0, 0], [-4, -4 * A, -2], [-4, 4 * A, -2], [1, B, 2], [1, -B, 2], [0, 0, 6]]
    ) / 6,
}  # fmt: skip
OUTPUT: dict[Size, np.ndarray] = {
    2: np.array([[1, 1, 1, 0], [0, 1, -1, -1]]),
    4: np.array(
        [[1, 1, 1, 1, 1, 0], [0, A, -A, B, -B, 0], [0, 0.5, 0.5, 2, 2, 0], [0, A**3, -(A**3), B**3, -(B**3), 1]]
    ),
}


def transform_weights(target: Target, weights: np.ndarray, size: Size, nv: int, threads: int = 1) -> np.ndarray:
    """Weights [channels, 3, 3, depth] as [planes, packed]; what lies between planes stays NaN."""
    channels, _, _, depth = weights.shape
    panels = panels_of(channels, nv, target.lanes())
    plane = plane_bytes(panels.vectors * target.lanes(), depth)
    packed = filled([planes_of(size), plane // 4])
    spec = WinogradWeights(target.name, size, "f16" if weights.dtype == np.float16 else "f32")
    arguments = block(
        spec.arguments,
        source=weights,
        destination=packed,
        channels=channels,
        depth=depth,
        nv=nv,
        panels=panels.whole,
        rest_nv=panels.rest_nv,
        destination_plane=plane,
    )
    run(spec, arguments, threads)
    return packed


class Convolution:
    """y = epilogue(x * weights + bias) of stride 1; x has its border already."""

    def __init__(
        self,
        target: Target,
        x: np.ndarray,
        weights: np.ndarray,
        bias: np.ndarray,
        y: np.ndarray,
        size: Size = 4,
        tile: tuple[int, int] = (4, 2),
        group: int = 7,
        epilogue: Expression = IDENTITY,
        residual: np.ndarray | None = None,
        prefetch: int = 0,
        threads: int = 1,
    ) -> None:
        images, height, width, channels = y.shape
        depth, lanes = x.shape[3], target.lanes()
        tile_rows, tile_columns = -(-height // size), -(-width // size)
        total = images * tile_rows * tile_columns
        group = min(group, total)
        mr, nv = min(tile[0], group), tile[1]
        groups = -(-total // group)
        group = largest_group(total, mr, groups)
        panels = panels_of(channels, nv, lanes)
        b = transform_weights(target, weights, size, nv)
        v_plane, m_plane = plane_bytes(group, depth), plane_bytes(group, channels)
        planes = planes_of(size)
        scratch = filled([threads, planes * (v_plane + m_plane) // 4])
        zeros = guarded(np.zeros(channels, np.float32))
        ragged, half = last_vector(target, panels.tail)
        shape = block(
            Gemm.arguments,
            depth=depth,
            taps=1,
            tap_offsets=0,
            a_stride=4 * depth,
            c_stride=4 * channels,
            residual_stride=0,
            tail=panels.tail,
        )
        input_shape = block(
            WinogradInput.arguments,
            channels=depth,
            x_row=x.strides[1],
            x_column=x.strides[2],
            v_plane=v_plane,
        )
        output_shape = block(
            WinogradOutput.arguments,
            channels=channels,
            m_plane=m_plane,
            y_row=y.strides[1],
            y_column=y.strides[2],
            residual_row=0 if residual is None else residual.strides[1],
            residual_column=0 if residual is None else residual.strides[2],
        )
        last = None
        if panels.rest_nv:
            last = Gemm(target.name, mr, panels.rest_nv, ragged=ragged, half=half, prefetch=prefetch)
        self.spec = Winograd(target.name)
        self.arguments = block(
            self.spec.arguments,
            input=WinogradInput(target.name, size),
            input_shape=input_shape,
            kernel=Gemm(target.name, mr, nv, prefetch=prefetch),
            shape=shape,
            ragged_kernel=last,
            ragged_shape=shape,
            output=WinogradOutput(target.name, size, epilogue),
            output_shape=output_shape,
            x=x,
            b=b,
            zeros=zeros,
            bias=bias,
            y=y,
            residual=0 if residual is None else residual,
            scratch=scratch,
            scratch_thread=planes * (v_plane + m_plane),
            m_offset=planes * v_plane,
            images=images,
            tile_rows=tile_rows,
            tile_columns=tile_columns,
            size=size,
            last_row=height - size,
            last_column=width - size,
            groups=groups,
            x_image=x.strides[0],
            x_row=x.strides[1],
            x_column=x.strides[2],
            y_image=y.strides[0],
            y_row=y.strides[1],
            y_column=y.strides[2],
            residual_image=0 if residual is None else residual.strides[0],
            residual_row=0 if residual is None else residual.strides[1],
            residual_column=0 if residual is None else residual.strides[2],
            planes=planes,
            v_plane=v_plane,
            v_tile=4 * depth,
            m_plane=m_plane,
            m_tile=4 * channels,
            b_plane=b.strides[0],
            kernel_tiles=mr,
            next_stride=prefetch * 64 * (depth // 4),
            panels=panels.whole,
            panel_bytes=4 * nv * lanes * depth,
            panel_channels=4 * nv * lanes,
        )
        self._keep = (x, b, zeros, bias, y, residual, scratch, shape, input_shape, output_shape)

    def run(self, threads: int = 1) -> None:
        """Do it."""
        run(self.spec, self.arguments, threads)


def assert_close(got: np.ndarray, want: np.ndarray) -> None:
    """Relative to the largest value: large intermediate values cancel."""
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize("size", [2, 4])
def test_the_matrices_make_a_convolution(size: Size) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((size + 2, size + 2)), rng.standard_normal((3, 3))
    planes = (INPUT[size] @ x @ INPUT[size].T) * (WEIGHTS[size] @ w @ WEIGHTS[size].T)
    want = [[(x[i : i + 3, j : j + 3] * w).sum() for j in range(size)] for i in range(size)]
    np.testing.assert_allclose(OUTPUT[size] @ planes @ OUTPUT[size].T, want, atol=1e-12)


@on_every_target
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("type", [np.float32, np.float16])
@pytest.mark.parametrize("threads", [1, 3])
def test_weights(target: Target, size: Size, type: type, threads: int) -> None:
    rng = np.random.default_rng(1)
    lanes, nv = target.lanes(), 2
    for channels in (1, lanes + 1, 4 * lanes, 5 * lanes - 1):
        weights = guarded(rng.standard_normal((channels, 3, 3, 2 * lanes)).astype(type))
        packed = transform_weights(target, weights, size, nv, threads)
        panels = panels_of(channels, nv, lanes)
        full = np.pad(
            weights.astype(np.float64), ((0, panels.vectors * lanes - channels), (0, 0), (0, 0), (0, 0)), "edge"
        )
        planes = np.einsum("pa,nabd,qb->pqnd", WEIGHTS[size], full, WEIGHTS[size]).reshape(-1, *full.shape[::3])
        want = [
            np.concatenate([plane[i : i + nv * lanes].T.ravel() for i in range(0, len(plane), nv * lanes)])
            for plane in planes
        ]
        np.testing.assert_allclose(packed[:, : len(want[0])], want, rtol=1e-5, atol=1e-6)
        assert np.isnan(packed[:, len(want[0]) :]).all()


@on_every_target
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_convolution(target: Target, size: Size, threads: int) -> None:
    rng = np.random.default_rng(2)
    depth = target.lanes() * 2
    for images, height, width, channels in ((1, 4, 4, 5), (2, 7, 9, 40), (1, 12, 8, 32), (1, 14, 14, 24)):
        x, weights = normal(rng, images, height + 2, width + 2, depth), normal(rng, channels, 3, 3, depth)
        bias, y = normal(rng, channels), filled((images, height, width, channels))
        Convolution(target, x, weights, bias, y, size, epilogue=("relu", 0), threads=threads).run(threads)
        assert_close(y, np.maximum(expected(x, weights, bias), 0))


@on_every_target
@pytest.mark.parametrize("size", [2, 4])
def test_a_residual_and_a_border(target: Target, size: Size) -> None:
    rng = np.random.default_rng(3)
    depth = channels = target.lanes()
    x, weights, bias = normal(rng, 1, 9, 9, depth), normal(rng, channels, 3, 3, depth), normal(rng, channels)
    residual, bordered = normal(rng, 1, 7, 7, channels), filled((1, 9, 9, channels), 5.0)
    y = bordered[:, 1:-1, 1:-1]
    Convolution(target, x, weights, bias, y, size, (3, 1), 4, ("add", 0, 1), residual, prefetch=1).run()
    assert_close(y, expected(x, weights, bias) + residual)
    outside = np.ones(bordered.shape, bool)
    outside[:, 1:-1, 1:-1] = False
    assert (bordered[outside] == 5).all()


@on_every_target
def test_bits_do_not_depend_on_threads(target: Target) -> None:
    rng = np.random.default_rng(4)
    x, weights, bias = normal(rng, 2, 15, 16, 32), normal(rng, 20, 3, 3, 32), normal(rng, 20)
    results = []
    for threads in (1, 2, 3, 9):
        y = filled((2, 13, 14, 20))
        Convolution(target, x, weights, bias, y, epilogue=("logistic", 0), threads=threads).run(threads)
        results.append(y.tobytes())
    assert len(set(results)) == 1


def test_planes_lie_apart() -> None:
    assert plane_bytes(14, 64) == 3648  # 57 lines
    assert plane_bytes(1, 16) == 64
    assert plane_bytes(1, 1) == 64


def test_names_and_refusals() -> None:
    assert Winograd("avx2").name == "x8_winograd__avx2"
    assert WinogradWeights("avx2", 4).name == "f32_winograd_weights_4x4__avx2"
    assert WinogradWeights("avx2", 2, "f16").name == "f16_f32_winograd_weights_2x2__avx2"
    assert WinogradInput("avx2", 4).name == "f32_winograd_input_4x4__avx2"
    assert WinogradOutput("avx2", 2, ("relu", ("add", 0, 1))).name == "f32_winograd_output_add_relu_2x2__avx2"
    with pytest.raises(CompileError, match="one operand"):
        WinogradOutput("avx2", 2, ("add", ("add", 0, 1), 2)).emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    assembly(Winograd(target.name), target)
    for size in (2, 4):
        for spec in (WinogradWeights(target.name, size), WinogradInput(target.name, size)):
            assembly(spec, target)
        assembly(WinogradOutput(target.name, size, ("relu", 0)), target)
