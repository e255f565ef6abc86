"""Products of bytes with half of the multiplications: widened rows, packing and sums, against integers in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.codegen.dots import Byte, crosses, order
from gossamer.codegen.kernels.contract import GROUP_PANEL, ContractGroups, panels_of
from gossamer.codegen.kernels.inner_products import (
    OF_LINES,
    STEP,
    TOGETHER,
    InnerProductGemm,
    InnerProductRows,
    panel_bytes,
    places_of,
    row_bytes,
)
from gossamer.codegen.kernels.outputs import Requantized, Sums
from gossamer.codegen.kernels.quantized_contract import QuantizedPack
from gossamer.codegen.tiles import cut_in_two
from gossamer.errors import CompileError
from gossamer.programs import host
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, guarded, run
from tests.codegen.kernels.test_quantized_contract import TYPES

AVX2 = all_targets()["avx2"]
here = pytest.mark.skipif(not AVX2.runs_on(host.cpu_features()), reason="the CPU has no AVX2")


class Product:
    """y = round((x - x_zero) (w - w_zero)^T + bias) * scales) + y_zero, or the sums; x has ``taps`` of ``depth``."""

    def __init__(
        self,
        target: Target,
        tile: tuple[int, int],
        rows: int,
        channels: int,
        depth: int,
        type: Byte = "i8",
        *,
        taps: int = 1,
        by_depth: bool = False,
        w_zero: int | None = None,
        sums: bool = False,
        groups: int = 1,
        threads: int = 1,
        extreme: bool = False,
        line: int = 0,
    ) -> None:
        rng = np.random.default_rng(rows * channels + depth)
        mr, nv = min(tile[0], rows), tile[1]
        dtype, lanes = TYPES[type], target.lanes()
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max

        def bytes(*shape: int) -> np.ndarray:
            values = rng.integers(low, high, shape, dtype, endpoint=True)
            return guarded(np.where(values > (low + high) // 2, high, low).astype(dtype) if extreme else values)

        # A tap begins three bytes behind the end of the one before.
        gap = 3 if taps > 1 else 0
        self.taps = [tap * (depth + gap) for tap in range(taps)]
        image = bytes(rows, self.taps[-1] + depth)
        self.x = np.concatenate([image[:, tap : tap + depth] for tap in self.taps], 1)
        total = taps * depth
        weights = self.weights = bytes(channels, total)
        self.x_zero, self.y_zero = (int(rng.integers(low, high)) for _ in range(2))
        self.w_zero = w_zero if w_zero is not None else 128 if type == "u8" else 0
        self.bias = guarded(rng.integers(-5000, 5000, channels).astype(np.int32))
        self.scales = guarded((rng.random(channels) * 0.01 / np.sqrt(total)).astype(np.float32))
        if by_depth:
            weights = guarded(np.ascontiguousarray(weights.T))
        panels, steps = panels_of(channels, nv, lanes), -(-total // STEP)
        packed = guarded(np.full(panel_bytes(lanes, panels.vectors, steps), 77, np.uint8))

        def order_of(vectors: int) -> np.ndarray:
            return np.array([(lanes * v, 4) for v in range(vectors)] if sums else order(lanes, vectors), np.int64)

        orders = order_of(nv), order_of(panels.rest_nv)
        arguments = block(
            QuantizedPack.arguments,
            source=weights,
            destination=packed,
            bias=self.bias,
            scales=self.scales,
            bias_step=4,
            scale_step=4,
            channels=channels,
            taps=1,
            depth=total,
            source_row=weights.strides[0],
            nv=nv,
            panels=panels.whole,
            rest_nv=panels.rest_nv,
            order=orders[0],
            rest_order=orders[1] if panels.rest_nv else 0,
            offset=self.x_zero,
            weight_zero=self.w_zero - 128 * (type == "u8"),
            images=1,
            source_image=0,
            destination_image=0,
        )
        run(QuantizedPack(target.name, type == "u8", by_depth, wide=True), arguments, threads)

        # Lines of pixels, if there are, have one between them that is not written.
        self.y = guarded(np.full((rows + (rows // line if line else 0), channels), 99, np.int32 if sums else dtype))
        row, tiles, (large_tiles, smaller) = row_bytes(steps), -(-rows // mr), cut_in_two(rows, mr)
        more = {"line": line, "c_gap": self.y.strides[0], "residual_gap": 0} if line else {}
        shape = block(
            OF_LINES if line else Requantized.arguments,
            **more,
            depth=STEP * steps,
            taps=1,
            tap_offsets=0,
            a_stride=row,
            c_stride=self.y.strides[0],
            residual_stride=0,
            tail=channels - panels.whole * nv * lanes,
            zero_point=self.y_zero,
            low=low,
            high=high,
            weight_zero=0,
            nudge=0,
            parameters=0,
        )
        output: Any = Sums() if sums else Requantized()

        def kernel(count: int, vectors: int, ragged: bool) -> InnerProductGemm:
            return InnerProductGemm(target.name, count, vectors, type, output, ragged, line > 0)

        def panel(vectors: int, ragged: bool) -> np.ndarray:
            kernels = (kernel(count, vectors, ragged) for count in (mr, smaller or mr))
            names = ("kernel", "smaller_kernel")
            return block(GROUP_PANEL, **dict(zip(names, kernels, strict=True)), shape=shape)

        whole = [size for size in (16, 8, 4) if taps == 1 and depth % size == 0]
        size = next(size for size in whole or (16, 8, 4, 1) if size <= depth)
        input = InnerProductRows(target.name, type, size, bool(whole))
        wide, places = places_of(size, self.taps, depth)
        common = {
            "a_stride": image.strides[0],
            "v_stride": row,
            "depth": total,
            "together": max(1, TOGETHER // row),
            "wide_blocks": len(wide) // 2,
            "wide_places": np.array(wide, np.int64) if wide else 0,
            "blocks": len(places) // 2,
            "places": np.array(places, np.int64),
        }
        scratch_bytes = tiles * mr * row
        self.scratch = guarded(np.full(threads * scratch_bytes, 55, np.uint8))
        driver = ContractGroups(target.name)
        item = self.y.itemsize * nv * lanes
        geometry = {f"{name}_{way}": 0 for name in ("a", "c", "residual") for way in ("image", "row", "column")}
        geometry |= {"a_column": image.strides[0], "c_column": 0 if line else self.y.strides[0]}
        arguments = block(
            driver.arguments,
            **geometry,
            a=image,
            b=packed,
            bias=0,
            c=self.y,
            residual=0,
            images=1,
            rows=1,
            tiles=tiles,
            tile_columns=mr,
            large_tiles=large_tiles,
            last_column=rows,
            b_image=0,
            panels=panels.whole,
            panel_bytes=panel_bytes(lanes, nv, steps),
            panel_bias=0,
            panel_c=item,
            panel_residual=0,
            panel=panel(nv, False),
            ragged_panel=panel(panels.rest_nv, True) if panels.rest_nv else 0,
            input=input,
            input_shape=block(input.arguments, **common),
            columns=len(image),
            row_bytes=row,
            scratch=self.scratch,
            scratch_thread=scratch_bytes,
            groups=min(groups, tiles),
            most_groups=tiles,
            next_tiles=0,
            next_stride=0,
        )
        run(driver, arguments, threads)
        if line:
            gaps = np.arange(len(self.y)) % (line + 1) == line
            assert (self.y[gaps] == 99).all()
            self.y = self.y[~gaps]

    @property
    def sums(self) -> np.ndarray:
        """What the sums are."""
        x, w = self.x.astype(np.int64) - self.x_zero, self.weights.astype(np.int64) - self.w_zero
        return (x @ w.T + self.bias).astype(np.int32)

    @property
    def levels(self) -> np.ndarray:
        """What they become."""
        info = np.iinfo(self.y.dtype)
        scaled = self.sums.astype(np.float32) * self.scales
        return np.clip(np.rint(scaled) + self.y_zero, info.min, info.max).astype(self.y.dtype)


SHAPES = [
    (5, 64, 16),
    (7, 37, 9),
    (3, 100, 64),
    (6, 5, 3),
    (5, 130, 70),
    (1, 33, 131),
    (9, 16, 1),
    (13, 24, 48),
    (5, 16, 2),
    (4, 16, 12),
]


@here
@pytest.mark.parametrize("tile", [(4, 2), (3, 1), (1, 2)], ids=lambda tile: f"{tile[0]}x{tile[1]}")
def test_products(tile: tuple[int, int]) -> None:
    for shape in SHAPES:
        product = Product(AVX2, tile, *shape)
        np.testing.assert_array_equal(product.y, product.levels, str(shape))


FORMS: dict[str, dict[str, Any]] = {
    "uint8": {"type": "u8"},
    "zero point of weights": {"type": "u8", "w_zero": 3},
    "taps": {"taps": 3},
    "taps of uint8": {"taps": 7, "type": "u8", "w_zero": 250},
    "by depth": {"by_depth": True},
    "sums": {"sums": True},
    "groups": {"groups": 2},
    "lines": {"line": 4},
    "lines of groups": {"line": 5, "groups": 3, "threads": 2},
    "threads": {"threads": 3, "groups": 2},
    "greatest bytes": {"extreme": True, "sums": True},
    "greatest bytes of uint8": {"extreme": True, "sums": True, "type": "u8", "w_zero": 0},
}


@here
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms(form: dict[str, Any]) -> None:
    for shape in SHAPES:
        product = Product(AVX2, (4, 2), *shape, **form)
        np.testing.assert_array_equal(product.y, product.sums if "sums" in form else product.levels, str(shape))


def test_places() -> None:
    assert places_of(8, [0, 30, 60], 9) == ([0, 0, 30, 18], [60, 36, 61, 38])  # the last tap may end the buffer
    assert places_of(8, [0, 10], 9) == ([0, 0], [10, 18, 11, 20])
    assert places_of(1, [0, 4], 2) == ([], [0, 0, 1, 2, 4, 4, 5, 6])
    assert places_of(16, [0, 40], 24) == ([], [0, 0, 8, 16, 40, 48, 48, 64])


@pytest.mark.parametrize("isa", all_targets())
def test_other_targets_have_none(isa: str) -> None:
    target = all_targets()[isa]
    assert crosses(target) == (isa == "avx2")
    if not crosses(target):
        with pytest.raises(CompileError, match=f"{isa} multiplies bytes otherwise"):
            InnerProductGemm(isa, 2, 2).emit(target)
        assert not list(InnerProductGemm.ships(target))


def test_refuses_too_many_rows() -> None:
    with pytest.raises(CompileError, match="mr must be 1 to 14, got 15"):
        InnerProductGemm("avx2", 15, 1).emit(AVX2)
