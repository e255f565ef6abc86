"""Products of bytes: packing, sums and requantization, against integers in NumPy."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly, kernel_text
from gossamer.codegen.dots import Byte, adds_pairs, has_halves, offset, order
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.contract import ContractTiles, panels_of
from gossamer.codegen.kernels.outputs import Requantized, Sums
from gossamer.codegen.kernels.quantized_contract import STEP, QuantizedGemm, QuantizedPack, panel_bytes
from gossamer.codegen.tiles import proposals
from gossamer.errors import CompileError
from gossamer.programs import host
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, guarded, inner_loops, on_every_extension, place, run

AVX2 = all_targets()["avx2"]
TYPES = {"i8": np.int8, "u8": np.uint8}


class Product:
    """y = clamp(round((x - x_zero) (w - w_zero)^T + bias) * scales) + y_zero), through packing, kernel and driver."""

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
        bounds: tuple[int, int] | None = None,
        scale: float = 0.01,
        w_zero: int | None = None,
        nudge: float = 0.0,
        epilogue: Expression = IDENTITY,
        residual: bool = False,
        parameters: tuple[np.ndarray, ...] = (),
        sums: bool = False,
        half: bool = False,
        together: bool = False,
        relu: bool = False,
        threads: int = 1,
        by_sign: bool = False,
        extreme: bool = False,
        narrow: bool = False,
    ) -> None:
        rng = np.random.default_rng(rows * channels + depth)
        mr, nv = min(tile[0], rows), tile[1]
        dtype = TYPES[type]
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        self.bounds = bounds or (low, high)

        def bytes(*shape: int) -> np.ndarray:
            if extreme:
                return guarded(rng.choice(np.array([low, high], dtype), shape))
            return guarded(rng.integers(low, high, shape, dtype, endpoint=True))

        self.x, weights = bytes(rows, taps * depth), bytes(channels, taps * depth)
        weights[...] = np.maximum(weights, low + narrow)
        self.weights = weights
        self.residual = bytes(rows, channels) if residual else None
        self.x_zero, self.y_zero = (int(rng.integers(low, high)) for _ in range(2))
        self.y_zero = low if relu else self.y_zero
        self.w_zero = w_zero if w_zero is not None else int(rng.integers(low, high)) if type == "u8" else 0
        self.nudge = np.float32(nudge)
        self.bias = guarded(rng.integers(-5000, 5000, channels).astype(np.int32))
        self.scales = guarded((rng.random(channels) * scale / np.sqrt(depth * taps)).astype(np.float32))
        if by_depth:
            weights = guarded(np.ascontiguousarray(weights.T))
        signed_zero = self.w_zero - 128 * (type == "u8")
        lanes = target.lanes()
        panels = panels_of(channels, nv, lanes)
        half = half and has_halves(target) and 0 < channels % lanes <= lanes // 2
        steps = taps * -(-depth // STEP)
        packed = guarded(np.full(panel_bytes(lanes, panels.vectors, steps), 77, np.uint8))

        def order_of(vectors: int, half: bool) -> np.ndarray:
            pairs = [(lanes * v, 4) for v in range(vectors)] if sums else order(lanes, vectors, half)
            return np.array(pairs, np.int64)

        orders = order_of(nv, False), order_of(panels.rest_nv, half)
        arguments = block(
            QuantizedPack.arguments,
            source=weights,
            destination=packed,
            bias=self.bias,
            scales=self.scales,
            bias_step=4,
            scale_step=4,
            channels=channels,
            taps=taps,
            depth=depth,
            source_row=weights.strides[0],
            nv=nv,
            panels=panels.whole,
            rest_nv=panels.rest_nv,
            order=orders[0],
            rest_order=orders[1] if panels.rest_nv else 0,
            offset=offset(target, type, self.x_zero),
            weight_zero=signed_zero,
            images=1,
            source_image=0,
            destination_image=0,
        )
        run(QuantizedPack(target.name, type == "u8", by_depth, by_sign=by_sign), arguments, threads)

        table, tap_depth, walk, short = [tap * depth for tap in range(taps)], depth, "taps" if taps > 1 else "", 0
        if depth % STEP:
            inside = [*range(0, depth - STEP + 1, STEP), max(depth - STEP, 0)]
            table, tap_depth, walk = [tap + at for tap in table for at in inside], STEP, "steps"
            short = depth if depth < STEP else 0
        offsets = np.array(table, np.int64)
        self.y = guarded(np.zeros((rows, channels), np.int32 if sums else dtype))
        size = self.y.itemsize * nv * lanes
        addresses = np.array([place(array) for array in parameters], np.int64)
        shape = block(
            Requantized.arguments,
            depth=tap_depth,
            taps=len(table),
            tap_offsets=offsets,
            a_stride=self.x.strides[0],
            c_stride=self.y.strides[0],
            residual_stride=channels,
            tail=channels - panels.whole * nv * lanes,
            zero_point=self.y_zero,
            low=self.bounds[0],
            high=self.bounds[1],
            weight_zero=signed_zero,
            nudge=int(self.nudge.view(np.int32)),
            parameters=addresses if parameters else 0,
        )

        def kernel(vectors: int, ragged: bool) -> QuantizedGemm:
            return QuantizedGemm(
                target.name,
                mr,
                vectors,
                type,
                Sums() if sums else Requantized(epilogue, bounds is not None, scale >= 1, nudge != 0, relu, together),
                walk,
                short,
                ragged,
                signed_zero != 0,
                half=ragged and half,
                by_sign=by_sign,
                narrow=narrow and adds_pairs(target),
            )

        driver = ContractTiles(target.plain.name)
        geometry = {f"{name}_{way}": 0 for name in ("a", "c", "residual") for way in ("image", "row")}
        arguments = block(
            driver.arguments,
            **geometry,
            a=self.x,
            b=packed,
            bias=0,
            c=self.y,
            residual=self.residual if self.residual is not None else 0,
            images=1,
            rows=1,
            tiles=-(-rows // mr),
            tile_columns=mr,
            large_tiles=-(-rows // mr),
            last_column=rows - mr,
            a_column=self.x.strides[0],
            b_image=0,
            c_column=self.y.strides[0],
            residual_column=channels,
            panels=panels.whole,
            panel_bytes=panel_bytes(lanes, nv, steps),
            panel_bias=0,
            panel_c=size,
            panel_residual=size,
            kernel=kernel(nv, False),
            smaller_kernel=None,
            smaller_ragged_kernel=None,
            shape=shape,
            ragged_kernel=kernel(panels.rest_nv, True) if panels.rest_nv else None,
            ragged_shape=shape,
        )
        run(driver, arguments, threads)

    @property
    def sums(self) -> np.ndarray:
        """What the sums are."""
        x, w = self.x.astype(np.int64) - self.x_zero, self.weights.astype(np.int64) - self.w_zero
        return (x @ w.T + self.bias).astype(np.int32)

    @property
    def levels(self) -> np.ndarray:
        """What they become."""
        low, high = self.bounds
        sums = self.sums.astype(np.float32)
        exact = sums.astype(np.float64) * self.scales + np.copysign(self.nudge, sums)
        scaled = np.minimum(exact.astype(np.float32), np.float32(high - self.y_zero))
        return np.clip(np.rint(scaled) + self.y_zero, low, high).astype(self.y.dtype)


SHAPES = [(5, 64, 16), (7, 37, 9), (3, 100, 64), (6, 5, 3), (5, 130, 70), (1, 33, 131), (4, 16, 1)]
TILES = [(1, 8), (2, 1), (3, 3), (5, 2), (4, 4)]


@on_every_extension
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: f"{tile[0]}x{tile[1]}")
def test_products(target: Target, tile: tuple[int, int]) -> None:
    for shape in SHAPES:
        product = Product(target, tile, *shape)
        np.testing.assert_array_equal(product.y, product.levels, str(shape))


FORMS: dict[str, dict[str, Any]] = {
    "uint8": {"type": "u8"},
    "taps": {"taps": 3},
    "clamped": {"type": "u8", "bounds": (20, 200)},
    "clamped rows": {"bounds": (-100, 90)},
    "relu": {"relu": True},
    "relu uint8": {"type": "u8", "relu": True},
    "relu large": {"relu": True, "scale": 1000.0},
    "relu half": {"relu": True, "half": True, "bounds": (-128, 90)},
    "by_depth": {"by_depth": True},
    "large": {"scale": 1000.0},
    "shifted": {"w_zero": -7},
    "narrow": {"narrow": True},
    "narrow extremes": {"narrow": True, "extreme": True},
    "narrow uint8": {"narrow": True, "type": "u8"},
    "nudged": {"w_zero": 5, "nudge": 0.01},
    "sums": {"sums": True},
    "half": {"half": True},
    "half clamped": {"half": True, "bounds": (-100, 90)},
    "threads": {"threads": 3},
}


@on_every_extension
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_forms(target: Target, form: dict[str, Any]) -> None:
    for shape in SHAPES:
        product = Product(target, (3, 3), *shape, **form)
        np.testing.assert_array_equal(product.y, product.sums if "sums" in form else product.levels, str(shape))


@pytest.mark.skipif(not AVX2.runs_on(host.cpu_features()), reason="the CPU has no AVX2")
@pytest.mark.parametrize("nv", [1, 4, 8])
@pytest.mark.parametrize("form", ["taps", "clamped rows", "relu", "by_depth", "large", "shifted", "nudged", "sums"])
def test_rows_by_sign(nv: int, form: str) -> None:
    for shape in SHAPES:
        for extreme in (False, True):
            product = Product(AVX2, (1, nv), *shape, by_sign=True, extreme=extreme, **FORMS[form])
            np.testing.assert_array_equal(product.y, product.sums if form == "sums" else product.levels, str(shape))


def epilogues(type: Byte) -> tuple[Expression, np.ndarray, np.ndarray]:
    """A sum with the residual and a table of the result, with their parameters."""
    low, high = np.iinfo(TYPES[type]).min, np.iinfo(TYPES[type]).max
    numbers = np.array([1 << 19, 3 << 18, 77, 20, 3, low + 5, high - 7], np.int32)
    table = np.random.default_rng(0).integers(low, high, 256, TYPES[type], endpoint=True)
    return ("lookup", ("qadd", 0, 1, 2), 3), numbers, table


def added_and_found(product: Product, numbers: np.ndarray, table: np.ndarray) -> np.ndarray:
    """What they make of a product."""
    assert product.residual is not None
    terms = product.levels.astype(np.int64) * numbers[0] + product.residual.astype(np.int64) * numbers[1]
    total = np.clip(((terms + numbers[2]) >> numbers[3]) + numbers[4], numbers[5], numbers[6])
    found: np.ndarray = table[total.astype(np.int64) & 0xFF]
    return found


@on_every_extension
@pytest.mark.parametrize("type", TYPES)
def test_residuals_and_tables(target: Target, type: Byte) -> None:
    epilogue, *numbers = epilogues(type)
    for shape in SHAPES:
        for half in {False, type == "i8"}:
            product = Product(
                target, (3, 3), *shape, type, epilogue=epilogue, residual=True, parameters=(*numbers,), half=half
            )
            np.testing.assert_array_equal(product.y, added_and_found(product, *numbers), str(shape))


@on_every_extension
@pytest.mark.parametrize("rows", [4, 6, 7])
@pytest.mark.parametrize("nv", [1, 2])
def test_pixels_that_lie_together(target: Target, nv: int, rows: int) -> None:
    epilogue, *numbers = epilogues("i8")
    channels = nv * target.lanes()
    product = Product(target, (7, nv), rows, channels, 8, together=True)
    np.testing.assert_array_equal(product.y, product.levels)
    product = Product(
        target, (7, nv), rows, channels, 8, epilogue=epilogue, residual=True, parameters=(*numbers,), together=True
    )
    np.testing.assert_array_equal(product.y, added_and_found(product, *numbers))


def test_extremes_of_bytes_do_not_saturate() -> None:
    for target in all_targets().values():
        assert offset(target, "i8", -128) in (0, -128)
        assert offset(target, "u8", 255) in (255, 127)


@pytest.mark.parametrize("isa", all_targets())
def test_emits_for_every_target(isa: str) -> None:
    target = all_targets()[isa]
    for spec in (QuantizedGemm(isa, 3, 2), QuantizedGemm(isa, 2, 1, "u8", walk="steps", shifted=True, ragged=True)):
        assert "define void @k" in kernel_text(spec, target)


def test_inner_loops_of_aarch64_neither_spill_nor_repeat_what_they_load() -> None:
    neon, dotprod = all_targets()["neon"], all_targets()["dotprod"]
    for (mr, nv), narrow in product(proposals(neon, "quantized_gemm"), (False, True)):
        (loop,) = inner_loops(assembly(QuantizedGemm("neon", mr, nv, narrow=narrow), neon), "smull")
        second, sums = ("smlal2\t", 1) if narrow else ("smull2\t", 2)
        assert [loop.count(name) for name in ("smull\t", second, "sadalp\t")] == [mr * nv, mr * nv, sums * mr * nv]
        assert loop.count("tbl\t") == mr
        assert "ld1r" not in loop
        assert "[sp" not in loop
    for mr, nv in proposals(dotprod, "quantized_gemm"):
        loop, *rest = inner_loops(assembly(QuantizedGemm("dotprod", mr, nv), dotprod), "sdot")
        assert len(re.findall(r"sdot.*\.4b\[[0-3]\]", loop)) == 4 * mr * nv
        assert "ld1r" not in loop
        assert "[sp" not in "".join([loop, *rest])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"mr": 15}, "mr must be 1 to 14"),
        ({"short": 2}, "short steps have 1 to 3 bytes and a table"),
        ({"output": Requantized(("add", ("add", 0, 1), 2))}, "one operand beside the sum"),
        ({"nv": 3, "output": Requantized(together=True)}, "one or two whole vectors"),
        ({"ragged": True, "output": Requantized(together=True)}, "one or two whole vectors"),
        ({"half": True}, "half a vector is the last of a ragged kernel"),
        ({"half": True, "ragged": True, "shifted": True}, "neither shifted, large nor nudged"),
        ({"half": True, "ragged": True, "output": Requantized(large=True)}, "neither shifted, large nor nudged"),
        ({"half": True, "ragged": True, "isa": "neon"}, "neon has no halves"),
        ({"narrow": True}, "avx512vnni multiplies -128 as any other weight"),
        ({"by_sign": True, "mr": 1}, "and not on avx512vnni"),
        ({"by_sign": True, "isa": "avx2"}, "only a row of int8"),
        ({"by_sign": True, "mr": 1, "type": "u8", "isa": "avx2"}, "only a row of int8"),
    ],
)
def test_refuses(form: dict[str, Any], message: str) -> None:
    target = all_targets()[form.get("isa", "avx512vnni")]
    with pytest.raises(CompileError, match=message):
        QuantizedGemm(**{"isa": target.name, "mr": 2, "nv": 2, **form}).emit(target)
