"""Strassen's algorithm for bytes, against integers in NumPy: sums must be exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.codegen.dots import Byte, order
from gossamer.codegen.kernels.groups import largest_group
from gossamer.codegen.kernels.inner_products import STEP, InnerProductGemm, panel_bytes, row_bytes
from gossamer.codegen.kernels.outputs import Requantized, Sums
from gossamer.codegen.kernels.quantized_strassen import (
    NV,
    QuantizedStrassenInput,
    QuantizedStrassenOutput,
    QuantizedStrassenWeights,
)
from gossamer.codegen.kernels.quantized_winograd import plane_bytes
from gossamer.codegen.kernels.strassen import PRODUCTS, STRASSEN_PANEL, TWICE_WORDS, Strassen
from gossamer.codegen.spec import ArgumentBlock
from gossamer.errors import CompileError
from gossamer.programs import host
from gossamer.targets import all_targets
from tests.codegen.kernels.harness import block, guarded, place, run
from tests.codegen.kernels.test_quantized_contract import TYPES, added_and_found, epilogues

AVX2 = all_targets()["avx2"]
LANES = AVX2.lanes()
PAIRS = 4
pytestmark = pytest.mark.skipif(not AVX2.runs_on(host.cpu_features()), reason="the CPU has no AVX2")


class Product:
    """y [rows, columns, channels] = round(((x - x_zero) w^T + bias) * scales) + y_zero; ``border``: of pixels, around
    y; ``gap``: bytes behind each pixel of x."""

    def __init__(
        self,
        rows: int,
        columns: int,
        channels: int,
        depth: int,
        type: Byte = "i8",
        *,
        group: int = 99,
        threads: int = 1,
        border: int = 0,
        gap: int = 0,
        extreme: bool = False,
        residual: bool = False,
        output: Requantized = Requantized(),  # noqa: B008 -- a value
        parameters: tuple[np.ndarray, ...] = (),
    ) -> None:
        rng = np.random.default_rng(rows * columns + channels)
        dtype = TYPES[type]
        self.info = np.iinfo(dtype)

        def bytes(kind: Any, *shape: int) -> np.ndarray:
            low, high = np.iinfo(kind).min, np.iinfo(kind).max
            values = rng.integers(low, high, shape, kind, endpoint=True)
            return guarded(np.where(values > (low + high) // 2, high, low).astype(kind) if extreme else values)

        pixels, half, quarter = rows * columns, channels // 2, depth // 2
        image = bytes(dtype, pixels, depth + gap)
        self.x, self.weights = image[:, :depth], bytes(np.int8, channels, depth)
        self.x_zero, self.y_zero = (int(rng.integers(self.info.min, self.info.max)) for _ in range(2))
        self.bias = guarded(rng.integers(-5000, 5000, channels).astype(np.int32))
        self.scales = (rng.random(channels) * 0.01 / np.sqrt(depth)).astype(np.float32)
        self.residual = bytes(dtype, rows, columns, channels) if residual else None
        self.bordered = guarded(np.full((rows + 2 * border, columns + 2 * border, channels), 77, dtype))
        self.y = self.bordered[border : border + rows, border : border + columns]

        steps = quarter // STEP
        row, panel, panels = row_bytes(steps), panel_bytes(LANES, NV, steps), half // (NV * LANES)
        packed = guarded(np.full(PRODUCTS * panels * panel, 77, np.uint8))
        pack = QuantizedStrassenWeights("avx2")
        sources = {"source": self.weights, "destination": packed, "bias": self.bias}
        arguments = block(pack.arguments, **sources, channels=half, depth=quarter, source_row=depth, offset=self.x_zero)
        run(pack, arguments, threads)

        pairs = -(-pixels // 2)
        groups = -(-pairs // min(group, pairs))
        group = largest_group(pairs, PAIRS, groups)
        step, below = (2, 1) if pixels % 2 == 0 and columns > 1 else (1, pixels - pairs)
        s_plane, m_plane = plane_bytes(group, row, 1), plane_bytes(group, NV * LANES, 4)
        scratch = guarded(np.full((threads, PRODUCTS * (s_plane + m_plane)), 55, np.uint8))
        places = [start + step * (lane // 4) + lane % 4 for start, step in order(LANES, NV) for lane in range(LANES)]
        scales = guarded(np.ascontiguousarray(self.scales.reshape(-1, NV * LANES)[:, places]))
        y_row, y_column = self.y.strides[:2]
        residual_row, residual_column = (0, 0) if self.residual is None else self.residual.strides[:2]
        self._keep: list[Any] = []

        def kernel(count: int) -> InnerProductGemm:
            return InnerProductGemm("avx2", count, NV, type, Sums())

        words = dict.fromkeys(word.name for word in Sums().arguments) | {"depth": quarter, "a_stride": row}
        words = {name: value or 0 for name, value in words.items()} | {"c_stride": 4 * NV * LANES}
        input = QuantizedStrassenInput("avx2", type)
        written = QuantizedStrassenOutput("avx2", type, output)
        tables = [guarded(array) for array in parameters]
        table = guarded(np.array([place(array) for array in tables], np.int64)) if tables else 0
        output_shape = self._block(
            written.arguments,
            right=half,
            m_plane=m_plane,
            width=columns,
            step=step,
            y_pair=step * y_column,
            y_turn=y_row - columns * y_column,
            residual_pair=step * residual_column,
            residual_turn=residual_row - columns * residual_column,
            zero_point=self.y_zero,
            low=self.info.min,
            high=self.info.max,
            parameters=table,
        )
        one = self._block(
            STRASSEN_PANEL,
            kernel=kernel(PAIRS),
            smaller_kernel=kernel(PAIRS - 1),
            x_shape=0,
            s_shape=self._block(Sums().arguments, **words),
            output_shape=output_shape,
            bytes=panel,
            channels=4 * NV * LANES,
            y_channels=NV * LANES,
            inner_shape=0,
            inner_output_shape=0,
        )
        driver = Strassen("avx2", widened=True)
        x_pair = step * image.strides[0]
        arguments = block(
            driver.arguments,
            input=input,
            input_shape=self._block(input.arguments, depth=quarter, x_pair=x_pair, s_row=row, s_plane=s_plane),
            output=written,
            panel=one,
            last_panel=one,
            x=image,
            b=packed,
            zeros=0,
            bias=scales,
            y=self.y,
            residual=0 if self.residual is None else self.residual,
            scratch=scratch,
            scratch_thread=scratch.strides[0],
            m_offset=PRODUCTS * s_plane,
            s_plane=s_plane,
            m_plane=m_plane,
            pairs=pairs,
            step=step,
            below=below,
            skip=pixels % 2,
            groups=groups,
            most_groups=max(1, pairs // 24),
            width=columns,
            x_column=image.strides[0],
            y_row=y_row,
            y_column=y_column,
            residual_row=residual_row,
            residual_column=residual_column,
            half_depth=row,
            kernel_pairs=PAIRS,
            smaller_pairs=PAIRS - 1,
            next_stride=0,
            panels=panels,
            **dict.fromkeys(TWICE_WORDS, 0),
        )
        run(driver, arguments, threads)

    def _block(self, layout: ArgumentBlock, **values: Any) -> np.ndarray:
        self._keep.append(block(layout, **values))
        return self._keep[-1]

    @property
    def levels(self) -> np.ndarray:
        """What y should be."""
        sums = (self.x.astype(np.int64) - self.x_zero) @ self.weights.T.astype(np.int64) + self.bias
        scaled = np.rint(sums.astype(np.float32) * self.scales) + self.y_zero
        return np.clip(scaled, self.info.min, self.info.max).astype(self.y.dtype).reshape(self.y.shape)


SHAPES = [
    (1, 48, 32, 32),
    (7, 7, 32, 64),
    (5, 11, 96, 32),
    (6, 9, 64, 96),
]
"""Rows, columns, channels and depth: of an even and an odd number of pixels, in which 24 to 28 pairs are tiles of four
and of three."""

FORMS: dict[str, dict[str, Any]] = {
    "int8": {},
    "uint8": {"type": "u8"},
    "groups": {"group": 13},
    "threads": {"threads": 3, "group": 13},
    "a border": {"border": 1},
    "gaps": {"gap": 5},
    "greatest bytes": {"extreme": True},
    "greatest bytes of uint8": {"extreme": True, "type": "u8"},
    "large": {"output": Requantized(clamps=True, large=True)},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_products(form: dict[str, Any]) -> None:
    for shape in SHAPES:
        product = Product(*shape, **form)
        np.testing.assert_array_equal(product.y, product.levels, str(shape))
        product.y[...] = 77
        assert (product.bordered == 77).all()


@pytest.mark.parametrize("type", TYPES)
def test_residuals_and_tables(type: Byte) -> None:
    epilogue, *numbers = epilogues(type)
    for shape in SHAPES:
        product = Product(*shape, type, residual=True, output=Requantized(epilogue), parameters=(*numbers,))
        np.testing.assert_array_equal(product.y, added_and_found(product, *numbers), str(shape))


def test_names_and_refusals() -> None:
    assert Strassen("avx2", widened=True).name == "x8_strassen__avx2_widened"
    assert QuantizedStrassenWeights("avx2").name == "i8_strassen_weights__avx2"
    assert QuantizedStrassenInput("avx2", "u8").name == "u8_strassen_input__avx2"
    assert QuantizedStrassenOutput("avx2").name == "i8_strassen_output__avx2"
    with pytest.raises(CompileError, match="do not lie together"):
        QuantizedStrassenOutput("avx2", "i8", Requantized(together=True)).emit(AVX2)


@pytest.mark.parametrize("isa", all_targets())
def test_only_targets_without_dot_products_have_them(isa: str) -> None:
    kinds = (QuantizedStrassenWeights, QuantizedStrassenInput, QuantizedStrassenOutput)
    assert all(bool(list(kind.ships(all_targets()[isa]))) == (isa == "avx2") for kind in kinds)
    assert (Strassen(isa, widened=True) in Strassen.ships(all_targets()[isa])) == (isa == "avx2")
