from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.contract import Gemm, panels_of
from gossamer.codegen.kernels.groups import largest_group
from gossamer.codegen.kernels.strassen import (
    PRODUCTS,
    STRASSEN_PANEL,
    SUMS,
    Strassen,
    StrassenInnerOutput,
    StrassenInput,
    StrassenOutput,
    StrassenWeights,
)
from gossamer.codegen.kernels.winograd import plane_bytes
from gossamer.codegen.spec import ArgumentBlock
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, filled, guarded, normal, on_every_target, run


def add_weights(target: Target, weights: np.ndarray, nv: int, threads: int = 1, twice: bool = False) -> np.ndarray:
    """Weights [channels, depth] as packed sums of quarters; ``twice``: of sixteenths."""
    parts, products = (4, PRODUCTS**2) if twice else (2, PRODUCTS)
    channels, depth = (size // parts for size in weights.shape)
    panels = panels_of(channels, nv, target.lanes())
    packed = filled([products * channels * depth])
    spec = StrassenWeights(target.name, twice)
    arguments = block(
        spec.arguments,
        source=weights,
        destination=packed,
        channels=channels,
        depth=depth,
        source_row=weights.strides[0],
        nv=nv,
        panels=panels.whole,
        rest_nv=panels.rest_nv,
    )
    run(spec, arguments, threads)
    return packed


class Product:
    """y = epilogue(x weights + bias) for pixels x [pixels, depth] and weights [channels, depth].

    y and the residual are [rows, columns, channels]."""

    def __init__(
        self,
        target: Target,
        x: np.ndarray,
        weights: np.ndarray,
        bias: np.ndarray,
        y: np.ndarray,
        tile: tuple[int, int] = (4, 2),
        group: int = 7,
        epilogue: Expression = IDENTITY,
        residual: np.ndarray | None = None,
        prefetch: int = 0,
        threads: int = 1,
        most_groups: int = 99,
        fewer: int = 0,
        twice: bool = False,
        chunks: int = 1,
    ) -> None:
        lanes = target.lanes()
        pixels, each = len(x), 2 if twice else 1
        channels, depth = (size // (2 * each) for size in weights.shape)
        pairs = -(-pixels // 2)
        rows = pairs // each
        group = min(group, rows)
        mr, nv = min(tile[0], group), tile[1]
        fewer = fewer or mr
        groups = -(-rows // group)
        group = largest_group(rows, mr, groups)
        step, below = (2, 1) if pixels % 2 == 0 and y.shape[1] > 1 else (1, pixels - pairs)
        panels = panels_of(channels, nv, lanes)
        b = add_weights(target, weights, nv, twice=twice)
        width = y.shape[1]
        widest = min(nv, panels.vectors) * lanes
        panel_count = panels.whole + bool(panels.rest_nv)
        s_plane, m_plane = plane_bytes(each * group, each * depth), plane_bytes(each * group, widest)
        inner_s_plane, inner_m_plane = plane_bytes(mr, depth), plane_bytes(mr, widest)
        m_offset = SUMS * s_plane
        together = 2 * -(-panel_count // chunks) if twice else 1
        inner_offset = m_offset + together * PRODUCTS * m_plane
        inner = SUMS * inner_s_plane + PRODUCTS * inner_m_plane if twice else 0
        scratch = filled([threads, (inner_offset + inner) // 4])
        zeros = guarded(np.zeros(widest, np.float32))
        y_row, y_column = y.strides[:2]
        residual_row, residual_column = (0, 0) if residual is None else residual.strides[:2]
        self._keep = [x, weights, bias, y, residual, b, scratch, zeros]

        def panel(vectors: int) -> np.ndarray:
            x_shape, s_shape, inner_shape = (
                self._block(
                    Gemm.arguments,
                    depth=depth,
                    taps=1,
                    tap_offsets=0,
                    a_stride=stride,
                    c_stride=4 * vectors * lanes,
                    residual_stride=0,
                    tail=0,
                )
                for stride in (each * step * x.strides[0], each * each * 4 * depth, 4 * depth)
            )
            inner_output_shape = self._block(
                StrassenInnerOutput.arguments,
                channels=vectors * lanes,
                right=PRODUCTS * m_plane,
                m_plane=inner_m_plane,
            )
            output_shape = self._block(
                StrassenOutput.arguments,
                channels=vectors * lanes,
                right=each * 4 * channels,
                m_plane=m_plane,
                width=width,
                step=step,
                y_pair=step * y_column,
                y_turn=y_row - width * y_column,
                residual_pair=step * residual_column,
                residual_turn=residual_row - width * residual_column,
            )
            return self._block(
                STRASSEN_PANEL,
                kernel=Gemm(target.name, mr, vectors, prefetch=prefetch),
                smaller_kernel=Gemm(target.name, fewer, vectors, prefetch=prefetch),
                x_shape=x_shape,
                s_shape=s_shape,
                output_shape=output_shape,
                bytes=4 * vectors * lanes * depth,
                channels=4 * vectors * lanes,
                y_channels=4 * vectors * lanes,
                inner_shape=inner_shape,
                inner_output_shape=inner_output_shape,
            )

        def input_shape(pair: int, plane: int, depth: int) -> np.ndarray:
            return self._block(StrassenInput.arguments, depth=depth, x_pair=pair, s_plane=plane)

        whole = panel(nv)
        self.spec = Strassen(target.name, twice)
        self.arguments = block(
            self.spec.arguments,
            input=StrassenInput(target.name),
            input_shape=input_shape(step * x.strides[0], s_plane, each * depth),
            output=StrassenOutput(target.name, epilogue),
            panel=whole,
            last_panel=panel(panels.rest_nv) if panels.rest_nv else whole,
            x=x,
            b=b,
            zeros=zeros,
            bias=bias,
            y=y,
            residual=0 if residual is None else residual,
            scratch=scratch,
            scratch_thread=scratch.strides[0],
            m_offset=m_offset,
            s_plane=s_plane,
            m_plane=m_plane,
            pairs=pairs,
            step=step,
            below=below,
            skip=pixels % 2,
            groups=groups,
            most_groups=min(most_groups, rows // mr),
            width=width,
            x_column=x.strides[0],
            y_row=y_row,
            y_column=y_column,
            residual_row=residual_row,
            residual_column=residual_column,
            half_depth=each * 4 * depth,
            kernel_pairs=mr,
            smaller_pairs=fewer,
            next_stride=prefetch * 64 * (depth // 4),
            panels=panel_count,
            inner_x_shape=input_shape(each * step * x.strides[0], inner_s_plane, depth),
            inner_s_shape=input_shape(each * each * 4 * depth, inner_s_plane, depth),
            inner_output=StrassenInnerOutput(target.name),
            inner_offset=inner_offset,
            inner_s_plane=inner_s_plane,
            inner_m_plane=inner_m_plane,
            chunks=min(chunks, panel_count),
            quarter=4 * channels,
            quarter_depth=4 * depth,
        )

    def run(self, threads: int = 1) -> None:
        """Do it."""
        run(self.spec, self.arguments, threads)

    def _block(self, layout: ArgumentBlock, **values: object) -> np.ndarray:
        self._keep.append(block(layout, **values))
        return self._keep[-1]


def expected(x: np.ndarray, weights: np.ndarray, bias: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The product in double precision, as an array of this shape."""
    return (x.astype(np.float64) @ weights.T.astype(np.float64) + bias).reshape(shape)


def assert_close(got: np.ndarray, want: np.ndarray) -> None:
    """Relative to the largest value: large intermediate values cancel."""
    assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


@on_every_target
@pytest.mark.parametrize("threads", [1, 3])
def test_weights(target: Target, threads: int) -> None:
    lanes, nv = target.lanes(), 2
    for channels, depth in ((lanes, lanes), (3 * lanes, 2 * lanes)):
        weights = normal(np.random.default_rng(0), 2 * channels, 2 * depth)
        b11, b12, b21, b22 = (weights[i : i + channels, k : k + depth] for k in (0, depth) for i in (0, channels))
        t1 = b12 - b11
        t2 = b22 - t1
        want = [
            quarter[i : i + nv * lanes].T.ravel()
            for i in range(0, channels, nv * lanes)
            for quarter in (b11, b21, b21 - t2, t1, t2, b22 - b12, b22)
        ]
        np.testing.assert_array_equal(add_weights(target, weights, nv, threads), np.concatenate(want))


@on_every_target
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_product(target: Target, threads: int) -> None:
    rng = np.random.default_rng(1)
    lanes = target.lanes()
    for rows, columns, depth, channels in ((1, 2, 2, 2), (2, 7, 4, 4), (3, 5, 2, 6), (7, 7, 6, 10), (1, 1, 2, 2)):
        x, weights = normal(rng, rows * columns, depth * lanes), normal(rng, channels * lanes, depth * lanes)
        bias, y = normal(rng, channels * lanes), filled((rows, columns, channels * lanes))
        Product(target, x, weights, bias, y, epilogue=("relu", 0), threads=threads).run(threads)
        assert_close(y, np.maximum(expected(x, weights, bias, y.shape), 0))


@on_every_target
@pytest.mark.parametrize("rows", [4, 7])
def test_a_residual_and_a_border(target: Target, rows: int) -> None:
    rng = np.random.default_rng(2)
    depth = channels = 2 * target.lanes()
    x = normal(rng, rows * 5, depth + 3)[:, :depth]
    weights, bias = normal(rng, channels, depth), normal(rng, channels)
    residual = normal(rng, rows, 6, channels)[:, :5]
    bordered = filled((rows + 2, 7, channels), 5.0)
    y = bordered[1:-1, 1:-1]
    Product(target, x, weights, bias, y, (3, 1), 4, ("add", 0, 1), residual, prefetch=1).run()
    assert_close(y, expected(x, weights, bias, y.shape) + residual)
    outside = np.ones(bordered.shape, bool)
    outside[1:-1, 1:-1] = False
    assert (bordered[outside] == 5).all()


@on_every_target
@pytest.mark.parametrize("threads", [1, 3])
def test_products_of_products(target: Target, threads: int) -> None:
    rng = np.random.default_rng(6)
    lanes = target.lanes()
    for rows, columns, depth, channels, chunks in ((1, 4, 4, 4, 1), (2, 22, 8, 20, 2), (7, 8, 4, 12, 3)):
        x, weights = normal(rng, rows * columns, depth * lanes), normal(rng, channels * lanes, depth * lanes)
        bias, y = normal(rng, channels * lanes), filled((rows, columns, channels * lanes))
        how = {"epilogue": ("relu", 0), "threads": threads, "twice": True, "chunks": chunks}
        Product(target, x, weights, bias, y, **how).run(threads)
        assert_close(y, np.maximum(expected(x, weights, bias, y.shape), 0))


@on_every_target
def test_products_of_products_with_a_residual_and_a_border(target: Target) -> None:
    rng = np.random.default_rng(7)
    depth = channels = 4 * target.lanes()
    x = normal(rng, 4 * 5, depth + 3)[:, :depth]
    weights, bias = normal(rng, channels, depth), normal(rng, channels)
    residual = normal(rng, 4, 6, channels)[:, :5]
    bordered = filled((6, 7, channels), 5.0)
    y = bordered[1:-1, 1:-1]
    Product(target, x, weights, bias, y, (3, 1), 4, ("add", 0, 1), residual, prefetch=1, twice=True).run()
    assert_close(y, expected(x, weights, bias, y.shape) + residual)
    outside = np.ones(bordered.shape, bool)
    outside[1:-1, 1:-1] = False
    assert (bordered[outside] == 5).all()


@on_every_target
def test_bits_of_products_of_products_do_not_depend_on_threads(target: Target) -> None:
    rng = np.random.default_rng(8)
    lanes = target.lanes()
    x, weights, bias = normal(rng, 52, 4 * lanes), normal(rng, 20 * lanes, 4 * lanes), normal(rng, 20 * lanes)
    results = []
    for threads, chunks, fewer in ((1, 1, 4), (2, 1, 3), (3, 2, 4), (9, 3, 3)):
        y = filled((1, 52, 20 * lanes))
        how = {"threads": threads, "most_groups": 2, "fewer": fewer, "twice": True, "chunks": chunks}
        Product(target, x, weights, bias, y, **how).run(threads)
        results.append(y.tobytes())
    assert len(set(results)) == 1


@on_every_target
@pytest.mark.parametrize("pixels", [48, 49])
def test_bits_do_not_depend_on_threads(target: Target, pixels: int) -> None:
    rng = np.random.default_rng(3)
    lanes = target.lanes()
    x, weights, bias = normal(rng, pixels, 2 * lanes), normal(rng, 6 * lanes, 2 * lanes), normal(rng, 6 * lanes)
    results = []
    for threads in (1, 2, 3, 9):
        y = filled((1, pixels, 6 * lanes))
        for most_groups in (4, 99):
            arguments = {"epilogue": ("logistic", 0), "threads": threads, "most_groups": most_groups}
            Product(target, x, weights, bias, y, **arguments).run(threads)
            results.append(y.tobytes())
    assert len(set(results)) == 1


@on_every_target
@pytest.mark.parametrize("pixels", [9, 20, 26, 28])
def test_rows_in_tiles_of_two_sizes(target: Target, pixels: int) -> None:
    """5 pairs are too few for tiles of four and three; 10 are one and two of them, 13 one and three, 14 two and two."""
    rng = np.random.default_rng(5)
    lanes = target.lanes()
    x, weights, bias = normal(rng, pixels, 4 * lanes), normal(rng, 6 * lanes, 4 * lanes), normal(rng, 6 * lanes)
    results = []
    for fewer in (4, 3):
        for threads in (1, 2):
            y = filled((1, pixels, 6 * lanes))
            Product(target, x, weights, bias, y, group=14, threads=threads, fewer=fewer).run(threads)
            results.append(y.tobytes())
    assert_close(y, expected(x, weights, bias, y.shape))
    assert len(set(results)) == 1


@on_every_target
@pytest.mark.parametrize(("twice", "most"), [(False, 2e-6), (True, 4e-6)])
def test_errors_are_small(target: Target, twice: bool, most: float) -> None:
    rng = np.random.default_rng(4)
    x, weights = normal(rng, 52, 512), normal(rng, 256, 512)
    bias, y = normal(rng, 256), filled((1, 52, 256))
    Product(target, x, weights, bias, y, group=25, twice=twice).run()
    want = expected(x, weights, bias, y.shape)
    assert np.abs(y - want).max() <= most * np.abs(want).max()


def test_names_and_refusals() -> None:
    assert Strassen("avx2").name == "x8_strassen__avx2"
    assert Strassen("avx2", True).name == "x8_strassen_twice__avx2"
    assert StrassenWeights("avx2").name == "f32_strassen_weights__avx2"
    assert StrassenWeights("avx2", True).name == "f32_strassen_weights_twice__avx2"
    assert StrassenInnerOutput("avx2").name == "f32_strassen_inner_output__avx2"
    assert StrassenInput("avx2").name == "f32_strassen_input__avx2"
    assert StrassenOutput("avx2", ("relu", ("add", 0, 1))).name == "f32_strassen_output_add_relu__avx2"
    with pytest.raises(CompileError, match="one operand"):
        StrassenOutput("avx2", ("add", ("add", 0, 1), 2)).emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for twice in (False, True):
        assembly(Strassen(target.name, twice), target)
        assembly(StrassenWeights(target.name, twice), target)
    assembly(StrassenInput(target.name), target)
    assembly(StrassenInnerOutput(target.name), target)
    assembly(StrassenOutput(target.name, ("relu", ("add", 0, 1))), target)
