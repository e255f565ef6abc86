"""Products of bytes in registers of tiles, in software: all forms of the microkernel, in guarded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gossamer.codegen.commands.tile_contract import TileShape, blocks_of, tile_shape
from gossamer.codegen.compiler import assembly
from gossamer.codegen.dots import Byte, order
from gossamer.codegen.expression import IDENTITY, Expression
from gossamer.codegen.kernels.contract import ContractTiles, panels_of
from gossamer.codegen.kernels.outputs import Requantized
from gossamer.codegen.kernels.quantized_contract import STEP, QuantizedPack, panel_bytes
from gossamer.codegen.kernels.tile_contract import DEPTH, TileGemm, WithTiles, configuration, factors
from gossamer.errors import CompileError
from gossamer.programs import host
from tests.codegen.kernels.harness import block, guarded, place, run
from tests.codegen.tiles import AMX, VNNI, faults, in_software, software_tiles

TYPES: dict[Byte, Any] = {"i8": np.int8, "u8": np.uint8}
HERE = AMX.runs_on(host.cpu_features())
LANES = VNNI.lanes()


@pytest.fixture(
    params=["software", pytest.param("here", marks=pytest.mark.skipif(not HERE, reason="the CPU has no tiles"))]
)
def _tiles(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "here":
        yield
        return
    if not VNNI.runs_on(host.cpu_features()):
        pytest.skip("the CPU has no AVX-512 with dot products of bytes")
    with software_tiles():
        yield


on_tiles = pytest.mark.usefixtures("_tiles")


class Product:
    """y = epilogue(clamp(round(((x - x_zero) w^T + bias) * scales) + y_zero)) of an image of some rows, between which
    there are gaps. Nothing may be written there."""

    def __init__(
        self,
        tile: TileShape,
        lines: int,
        columns: int,
        channels: int,
        depth: int,
        type: Byte = "i8",
        *,
        taps: int = 1,
        bounds: tuple[int, int] | None = None,
        scale: float = 0.01,
        epilogue: Expression = IDENTITY,
        residual: bool = False,
        parameters: tuple[np.ndarray, ...] = (),
        fill: tuple[int, int] | None = None,
        threads: int = 1,
        flaw: int = 0,
    ) -> None:
        rng = np.random.default_rng(lines * columns * channels + depth)
        dtype = TYPES[type]
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        self.bounds = bounds or (low, high)
        gap = 3

        def bytes(*shape: int) -> np.ndarray:
            return rng.integers(low, high, shape, dtype, endpoint=True)

        # There is a gap between rows, but none behind the last one.
        content = guarded(bytes(lines * (columns * taps * depth + gap) - gap))
        row = columns * taps * depth + gap
        x = np.lib.stride_tricks.as_strided(content, (lines, columns * taps * depth), (row, 1))
        weights = guarded(rng.integers(-128, 127, (channels, taps * depth), np.int8, endpoint=True))
        if fill is not None:
            content[...], weights[...] = fill
        self.x, self.weights = x.reshape(lines * columns, taps * depth), weights
        self.residual = guarded(bytes(lines * columns, channels)) if residual else None
        self.x_zero, self.y_zero = (int(rng.integers(low, high)) for _ in range(2))
        self.bias = guarded(rng.integers(-5000, 5000, channels).astype(np.int32))
        self.scales = guarded((rng.random(channels) * scale / np.sqrt(depth * taps)).astype(np.float32))
        panels = panels_of(channels, tile.nv, LANES)
        steps = taps * depth // STEP
        packed = guarded(np.full(panel_bytes(LANES, panels.vectors, steps), 77, np.uint8))
        orders = [np.array(order(LANES, vectors), np.int64) for vectors in (tile.nv, panels.rest_nv)]
        packing = block(
            QuantizedPack.arguments,
            source=weights,
            destination=packed,
            bias=self.bias,
            scales=self.scales,
            bias_step=4,
            scale_step=4,
            channels=channels,
            taps=1,
            depth=taps * depth,
            source_row=weights.strides[0],
            nv=tile.nv,
            panels=panels.whole,
            rest_nv=panels.rest_nv,
            order=orders[0],
            rest_order=orders[1] if panels.rest_nv else 0,
            offset=self.x_zero,
            weight_zero=0,
            images=1,
            source_image=0,
            destination_image=0,
        )
        run(QuantizedPack(VNNI.name), packing, threads)

        offsets = np.array([tap * depth for tap in range(taps)], np.int64)
        y_row, pixel = columns * channels + gap, taps * depth
        memory = guarded(np.full(lines * y_row - gap, 99, dtype))
        lines_of_y = np.lib.stride_tricks.as_strided(memory, (lines, columns * channels), (y_row, 1))
        self.gaps = np.lib.stride_tricks.as_strided(memory[columns * channels :], (lines - 1, gap), (y_row, 1))
        addresses = np.array([place(array) for array in parameters], np.int64)
        size, whole = blocks_of(depth)
        shape = block(
            TileGemm.arguments,
            depth=depth,
            taps=taps,
            tap_offsets=offsets,
            a_stride=pixel,
            c_stride=channels,
            residual_stride=channels,
            tail=channels - panels.whole * tile.nv * LANES,
            zero_point=self.y_zero,
            low=self.bounds[0],
            high=self.bounds[1],
            weight_zero=0,
            nudge=0,
            parameters=addresses if parameters else 0,
            rows=tile.rows,
            a_tile=row if tile.across else tile.rows * pixel,
            c_tile=y_row if tile.across else tile.rows * channels,
            residual_tile=(columns if tile.across else tile.rows) * channels,
            block=size,
            whole=whole,
        )

        def kernel(vectors: int, is_last: bool) -> TileGemm:
            return TileGemm(
                AMX.name,
                tile.mr,
                vectors,
                type,
                Requantized(epilogue, bounds is not None, scale >= 1),
                taps > 1,
                whole < depth,
                is_last and channels % (vectors * LANES) > 0,
            )

        count, step = (lines, tile.mr) if tile.across else (columns, tile.pixels)
        driver = ContractTiles(VNNI.plain.name)
        arguments = block(
            driver.arguments,
            a=content,
            b=packed,
            bias=0,
            c=memory,
            residual=self.residual if self.residual is not None else 0,
            images=1,
            rows=1 if tile.across else lines,
            tiles=-(-count // step),
            tile_columns=step,
            large_tiles=-(-count // step),
            last_column=count - step,
            a_image=0,
            a_row=row,
            a_column=row if tile.across else pixel,
            b_image=0,
            c_image=0,
            c_row=y_row,
            c_column=y_row if tile.across else channels,
            residual_image=0,
            residual_row=columns * channels,
            residual_column=columns * channels if tile.across else channels,
            panels=panels.whole,
            panel_bytes=panel_bytes(LANES, tile.nv, steps),
            panel_bias=0,
            panel_c=tile.nv * LANES,
            panel_residual=tile.nv * LANES,
            kernel=kernel(tile.nv, False),
            smaller_kernel=None,
            smaller_ragged_kernel=None,
            shape=shape,
            ragged_kernel=kernel(panels.rest_nv, True) if panels.rest_nv else None,
            ragged_shape=shape,
        )
        registers = np.array(configuration(tile.mr, tile.rows, size, depth - whole), np.uint64)
        registers[6] ^= np.uint64(flaw)
        spec = WithTiles(AMX.name)
        run(spec, block(spec.arguments, kernel=driver, block=arguments, configuration=registers), threads)
        self.y = lines_of_y.reshape(lines * columns, channels)

    @property
    def levels(self) -> np.ndarray:
        """What the sums become."""
        low, high = self.bounds
        sums = (self.x.astype(np.int64) - self.x_zero) @ self.weights.astype(np.int64).T + self.bias
        scaled = np.minimum(sums.astype(np.float32) * self.scales, np.float32(high - self.y_zero))
        return np.clip(np.rint(scaled) + self.y_zero, low, high).astype(self.y.dtype)


# The tile, then rows and columns of the image, channels, and bytes of a tap.
SHAPES = [
    ((1, 4, 16, False), (1, 16, 64, 64)),
    ((1, 4, 13, False), (1, 20, 150, 100)),
    ((1, 3, 7, False), (1, 7, 37, 116)),
    ((2, 2, 16, False), (1, 32, 32, 128)),
    ((2, 2, 10, False), (1, 43, 45, 68)),
    ((2, 1, 5, False), (2, 11, 16, 184)),
    ((4, 1, 16, False), (1, 65, 10, 16)),
    ((4, 1, 3, True), (6, 3, 50, 72)),
    ((3, 1, 14, True), (5, 14, 5, 64)),
    ((2, 2, 7, True), (7, 7, 48, 300)),
    ((1, 1, 1, False), (1, 3, 3, 20)),
]

FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "uint8": {"type": "u8"},
    "taps": {"taps": 3},
    "clamped": {"type": "u8", "bounds": (20, 200)},
    "large": {"scale": 1000.0},
    "threads": {"threads": 3},
}


@on_tiles
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_products(form: dict[str, Any]) -> None:
    for tile, shape in SHAPES:
        product = Product(TileShape(*tile), *shape, **form)
        np.testing.assert_array_equal(product.y, product.levels, f"{tile} {shape}")
        assert (product.gaps == 99).all()


@on_tiles
@pytest.mark.parametrize("type", TYPES)
def test_residuals_and_tables(type: Byte) -> None:
    low, high = np.iinfo(TYPES[type]).min, np.iinfo(TYPES[type]).max
    numbers = np.array([1 << 19, 3 << 18, 77, 20, 3, low + 5, high - 7], np.int32)
    table = np.random.default_rng(0).integers(low, high, 256, TYPES[type], endpoint=True)
    epilogue = ("lookup", ("qadd", 0, 1, 2), 3)
    for tile, shape in SHAPES:
        product = Product(TileShape(*tile), *shape, type, epilogue=epilogue, residual=True, parameters=(numbers, table))
        assert product.residual is not None
        terms = product.levels.astype(np.int64) * numbers[0] + product.residual.astype(np.int64) * numbers[1]
        total = np.clip(((terms + numbers[2]) >> numbers[3]) + numbers[4], numbers[5], numbers[6])
        np.testing.assert_array_equal(product.y, table[total.astype(np.int64) & 0xFF], f"{tile} {shape}")


@on_tiles
@pytest.mark.parametrize(("x", "w"), [(-128, -128), (-128, 127), (127, 127)])
def test_extremes_of_bytes_do_not_saturate(x: int, w: int) -> None:
    product = Product(TileShape(1, 1, 8, False), 1, 8, 16, 1024, scale=0.001, fill=(x, w))
    np.testing.assert_array_equal(product.y, product.levels)


@pytest.mark.skipif(not VNNI.runs_on(host.cpu_features()), reason="the CPU has no AVX-512 with dot products of bytes")
def test_software_refuses_what_the_cpu_would() -> None:
    with software_tiles():
        Product(TileShape(1, 1, 4, False), 1, 4, 16, 64)
        assert faults() == 0
        Product(TileShape(1, 1, 4, False), 1, 4, 16, 64, flaw=24 << 40)  # 8 rows of a tile of weights, not 16
        assert faults() > 0


@pytest.mark.parametrize("depth", range(4, 600, 4))
def test_blocks_of_depth(depth: int) -> None:
    block, whole = blocks_of(depth)
    assert block % STEP == 0
    assert whole % block == 0
    assert 0 < block <= DEPTH
    assert 0 <= depth - whole < block
    # There are as few as there can be.
    assert whole // block + (whole < depth) == -(-depth // DEPTH)


@pytest.mark.parametrize("mr", [1, 2, 3, 4])
def test_registers_of_a_configuration(mr: int) -> None:
    content = np.array(configuration(mr, 13, 60, 24), np.uint64).tobytes()
    assert len(content) == 64
    assert content[:2] == b"\1\0"
    columns, rows = np.frombuffer(content[16:32], np.uint16), np.frombuffer(content[48:56], np.uint8)
    assert columns.tolist() == [64, 64, 64, 64, 60, 64, 24, 64]
    assert rows.tolist() == [13, 13, 13, 13, 13, 15, 13, 6]
    of_a, of_b = factors(mr, False)
    assert sorted(of_a + of_b) == [4, 5, 6, 7]
    assert len(of_a) == min(mr, 3)


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((1, 3136, 256, 1, 64), (1, 4, 16, False)),
        ((1, 12544, 96, 1, 16), (2, 2, 16, False)),
        ((56, 56, 64, 3, 192), (2, 2, 14, False)),
        ((7, 7, 512, 3, 1536), (2, 2, 7, True)),
        ((1, 49, 2048, 1, 512), (1, 4, 13, False)),
        ((1, 196, 512, 1, 2048), (2, 2, 14, False)),
        ((1, 7, 64, 1, 64), (1, 4, 7, False)),
    ],
)
def test_tiles_of_shapes(shape: tuple[int, int, int, int, int], tile: tuple[int, int, int, bool]) -> None:
    assert tile_shape(*shape) == TileShape(*tile)


@pytest.mark.parametrize(
    "spec",
    [
        TileGemm(AMX.name, 1, 4),
        TileGemm(AMX.name, 2, 2, "i8", Requantized(clamps=True, large=True), conv=True, rest=True, ragged=True),
        TileGemm(AMX.name, 4, 1, "u8", Requantized(("lookup", ("qadd", 0, 1, 2), 3))),
        WithTiles(AMX.name),
    ],
    ids=lambda spec: spec.name,
)
def test_instructions(spec: TileGemm | WithTiles) -> None:
    text = assembly(spec, AMX)
    if isinstance(spec, WithTiles):
        assert re.findall(r"\t(ldtilecfg|call\w*|tilerelease)\b", text) == ["ldtilecfg", "callq", "tilerelease"]
        return
    assert "call" not in text
    blocks = 2 if spec.rest else 1
    product = "tdpbssd" if spec.type == "i8" else "tdpbusd"
    assert len(re.findall(rf"\t{product}\b", text)) == blocks * spec.mr * spec.nv
    assert len(re.findall(r"\ttilestored\b", text)) == spec.mr * spec.nv
    # A load for each tile of the bias and of the factors, and one more where only one of each is kept.
    loads = spec.mr + spec.nv + (1 if spec.rest and spec.mr == spec.nv == 2 else 0)
    assert len(re.findall(r"\ttileloadd\b", text)) == spec.mr * spec.nv + blocks * loads
    # No vector is kept in memory but the sums.
    assert not re.search(r"vmov\w+\t%[xyz]mm\d+, -?\d*\(%[re](sp|bp)\)", text)


@pytest.mark.parametrize(("mr", "nv"), [(0, 1), (2, 3), (5, 1)])
def test_refuses_more_sums_than_there_are_registers(mr: int, nv: int) -> None:
    with pytest.raises(CompileError, match="there are registers for 4 tiles of sums"):
        TileGemm(AMX.name, mr, nv).emit(AMX)


@pytest.mark.parametrize("spec", [TileGemm(VNNI.name, 1, 1), WithTiles(VNNI.name)], ids=lambda spec: spec.name)
def test_refuses_targets_without_tiles(spec: TileGemm | WithTiles) -> None:
    with pytest.raises(CompileError, match="avx512vnni has no tiles"):
        spec.emit(VNNI)


def test_texts_without_tiles_stay() -> None:
    assert in_software("declare void @llvm.x86.other()\n") == "declare void @llvm.x86.other()\n"
