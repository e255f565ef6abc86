from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.dots import Byte, multiplies_pairs, offset
from gossamer.codegen.kernels.pack_depthwise import PackDepthwise, quads_of, scheme, weights_of, widths
from gossamer.codegen.kernels.quantized_depthwise import QuantizedDepthwise, QuantizedRows, pixels_of
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, guarded, on_every_extension, run

DTYPES: dict[Byte, type] = {"i8": np.int8, "u8": np.uint8}


class Layer:
    """A depthwise layer of random numbers: an image with its border, weights and all that belongs to them.

    Channels are groups of ``pixels`` pixels of ``depth`` channels, if that is more than one.
    """

    def __init__(
        self,
        seed: int,
        kernel: tuple[int, int],
        output: tuple[int, int],
        channels: int,
        *,
        stride: int = 1,
        dilation: int = 1,
        type: Byte = "i8",
        weights: Byte = "i8",
        scale: float = 0.002,
        images: int = 2,
        together: int = 1,
        clamps: bool = True,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.type, self.weight_type, self.kernel, self.stride, self.dilation = type, weights, kernel, stride, dilation
        self.together, self.bands = together, 1
        height, width = ((o - 1) * stride + (k - 1) * dilation + 1 for o, k in zip(output, kernel, strict=True))
        self.x = self.bytes(rng, type, images, height, width, channels)
        self.weights = self.bytes(rng, weights, *kernel, channels)
        self.bias = guarded(rng.integers(-9000, 9000, channels, np.int32))
        self.scales = guarded((scale * rng.uniform(0.5, 1.5, channels)).astype(np.float32))
        low = -128 if type == "i8" else 0
        self.input_zero, self.zero_point = (int(n) for n in rng.integers(low, low + 256, 2))
        self.weight_zero = 0 if weights == "i8" else int(rng.integers(0, 256))
        self.low, self.high = (low + 3, low + 250) if clamps else (low, low + 255)
        self.y = guarded(np.full((images, *output, channels), 77, DTYPES[type]))

    @staticmethod
    def bytes(rng: np.random.Generator, type: Byte, *shape: int) -> np.ndarray:
        """All of them, and many of the least and the greatest."""
        low = -128 if type == "i8" else 0
        numbers = rng.integers(low, low + 256, shape)
        numbers[rng.random(shape) < 0.2] = low
        numbers[rng.random(shape) < 0.2] = low + 255
        return guarded(numbers.astype(DTYPES[type]))

    def expected(self) -> np.ndarray:
        """XNNPACK's formula."""
        sums = np.zeros(self.y.shape, np.int64) + self.bias
        _, rows, columns, _ = self.y.shape
        for h in range(self.kernel[0]):
            for w in range(self.kernel[1]):
                part = self.x[:, h * self.dilation :: self.stride, w * self.dilation :: self.stride]
                centred = part[:, :rows, :columns].astype(np.int64) - self.input_zero
                sums += centred * (self.weights[h, w].astype(np.int64) - self.weight_zero)
        real = sums.astype(np.int32).astype(np.float32) * self.scales
        levels = np.rint(real).astype(np.float64) + self.zero_point
        return np.clip(levels, self.low, self.high).astype(self.y.dtype)

    def run(
        self, target: Target, width: int, *, form: str = "kept", rows: int = 1, pixels: int = 1, threads: int = 1
    ) -> np.ndarray:
        """The result of the kernels; ``form``: kept, apart, any, staged, or joined: the last line may lack a row."""
        of = scheme(target, width)
        images, height, columns, depth = self.y.shape
        together = min(self.together, columns)
        channels = depth * together
        saturates = bool((self.scales >= 1).any())
        layers = 2 if self.weight_type == "u8" and of.item == 1 else 1
        kernel_stride = 0 if form == "apart" else self.stride
        clamps = (self.low, self.high) not in ((-128, 127), (0, 255))
        blocks, rest = divmod(channels, width)
        starts = [(0, width, blocks)] * bool(blocks)
        if rest:
            starts.append((blocks * width, rest, 1))
        staged = form in ("staged", "joined")
        held: list[Any] = []
        tables: dict[int, list[int]] = {rows: [], 1: []}
        pitch = self.y.strides[2]
        for first, count, number in starts:
            for lines, words in tables.items():
                quads = quads_of(of, self.kernel, lines, self.stride, staged=staged)
                step, tap_step = self.weights.strides[0], self.weights.strides[1]
                places = [
                    -1 if tap is None else tap[0] * step + tap[1] * tap_step
                    for row in range(lines)
                    for quad in weights_of(self.kernel, quads, row * self.stride)
                    for tap in quad
                ]
                table = np.array(places, np.int64)
                block_bytes = of.head_bytes + lines * len(quads) * layers * of.parts * of.vector_bytes
                packed = guarded(np.full(number * block_bytes, 99, np.uint8))
                pack = PackDepthwise(target.name, self.weight_type, of.item, layers)
                arguments = block(
                    pack.arguments,
                    source=self.weights,
                    bias=self.bias,
                    scales=self.scales,
                    destination=packed,
                    blocks=number,
                    block_bytes=block_bytes,
                    width=width,
                    parts=of.parts,
                    rows=of.rows,
                    first=first,
                    channels=depth,
                    table=table,
                    output_rows=lines,
                    quads=len(quads),
                    scale_step=4,
                    input_zero=offset(target, self.type, self.input_zero),
                    weight_zero=self.weight_zero,
                )
                run(pack, arguments, threads)
                spec = QuantizedRows(
                    target.name,
                    self.type,
                    width,
                    None if form == "any" else (*self.kernel, kernel_stride),
                    lines,
                    pixels,
                    depth if form == "apart" and self.stride == 2 and together > 1 else 0,
                    staged,
                    layers,
                    count < width,
                    clamps,
                    saturates,
                )
                shape = block(
                    spec.arguments,
                    blocks=number,
                    block_bytes=block_bytes,
                    fetch=100,
                    count=count,
                    columns=-(-columns // together),
                    x_step=together * self.stride * self.x.strides[2],
                    x_last=(columns - together) * self.stride * self.x.strides[2],
                    x_tap=self.dilation * self.x.strides[2],
                    y_column=together * pitch,
                    y_last=(columns - together) * pitch,
                    y_row=self.y.strides[1],
                    x_line=rows * self.stride * self.x.strides[1],
                    y_line=rows * self.y.strides[1],
                    groups=-(-self.kernel[0] // of.rows),
                    kernel_columns=self.kernel[1],
                    zero_point=self.zero_point,
                    low=self.low,
                    high=self.high,
                )
                held.append((packed, shape))
                words.extend(block(QuantizedDepthwise.piece, kernel=spec, shape=shape, channel=first, weights=packed))
        lacks = height % rows if form == "joined" else 0
        pieces, last = (np.array(tables[n], np.int64) for n in (rows, height % rows or rows))
        driver = QuantizedDepthwise(target.name)
        input_rows = (
            -(-self.kernel[0] // of.rows) * of.rows if form == "any" else (rows - 1) * self.stride + self.kernel[0]
        )
        arguments = block(
            driver.arguments,
            pieces=pieces,
            last_pieces=last,
            x=self.x,
            y=self.y,
            images=images,
            lines=-(-height // rows),
            whole=(height + lacks) // rows,
            lacks=lacks,
            bands=self.bands,
            count=len(starts),
            kernel_rows=input_rows if form != "any" else self.kernel[0],
            input_rows=input_rows,
            x_image=self.x.strides[0],
            x_line=rows * self.stride * self.x.strides[1],
            x_row=self.dilation * self.x.strides[1],
            y_image=self.y.strides[0],
            y_line=rows * self.y.strides[1],
        )
        run(driver, arguments, threads)
        return self.y


@on_every_extension
@pytest.mark.parametrize("kernel", [(3, 3, 1), (3, 3, 2), (5, 5, 1), (5, 5, 2), (1, 4, 1), (2, 1, 3), (7, 7, 1)])
def test_every_kernel(target: Target, kernel: tuple[int, int, int]) -> None:
    height, width, stride = kernel
    seed = 0
    for channels in widths(target):
        for form in ("kept", "apart", "any"):
            for columns in (1, 4, 5):
                seed += 1
                layer = Layer(seed, (height, width), (3, columns), 2 * channels, stride=stride)
                got = layer.run(target, channels, form=form, pixels=pixels_of(target, form == "kept", False))
                np.testing.assert_array_equal(got, layer.expected())


@on_every_extension
@pytest.mark.parametrize("form", ["kept", "apart"])
@pytest.mark.parametrize("kernel", [(3, 3), pytest.param((5, 5), marks=pytest.mark.slow), (2, 3)])
def test_rows_and_pixels_together(target: Target, kernel: tuple[int, int], form: str) -> None:
    seed = 100
    for channels in widths(target):
        for rows, pixels in ((2, 1), (1, 2), (2, 2), (2, pixels_of(target, form == "kept", False))):
            for output in ((1, 1), (4, 6), (5, 7)):
                seed += 1
                layer = Layer(seed, kernel, output, 2 * channels)
                got = layer.run(target, channels, form=form, rows=rows, pixels=pixels, threads=3)
                np.testing.assert_array_equal(got, layer.expected())


@on_every_extension
@pytest.mark.parametrize("form", ["kept", "apart", "any"])
def test_channels_that_fill_no_block(target: Target, form: str) -> None:
    for channels in widths(target):
        for count in (1, channels - 1, channels + 3):
            layer = Layer(count, (3, 3), (4, 4), count)
            np.testing.assert_array_equal(layer.run(target, channels, form=form), layer.expected())


@on_every_extension
@pytest.mark.parametrize("form", ["apart", "any"])
def test_pixels_as_channels(target: Target, form: str) -> None:
    for channels in widths(target):
        for depth in (1, 3, 8):
            for columns in (2, 5, 9, 2 * channels + 1):
                layer = Layer(columns, (3, 3), (3, columns), depth, together=-(-channels // depth))
                np.testing.assert_array_equal(layer.run(target, channels, form=form), layer.expected())


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_one_row_has_the_first_of_the_weights_of_two(target: Target) -> None:
    for width in widths(target):
        of = scheme(target, width)
        for kernel in ((3, 3), (5, 5), (4, 2), (7, 7)):
            for staged in (False, True):
                one, two = (quads_of(of, kernel, rows, staged=staged) for rows in (1, 2))
                assert two[: len(one)] == one
                assert weights_of(kernel, two, 0)[: len(one)] == weights_of(kernel, one, 0)


@pytest.mark.parametrize("stride", [1, 2])
@on_every_extension
def test_stages(target: Target, stride: int) -> None:
    """More pixels than a stage has, and fewer."""
    for width in widths(target) if target.dot else ():
        for kernel in ((5, 5), (6, 3), (7, 4), (3, 3)):
            for rows, pixels in ((1, 1), (1, 4), (2, 4)) if stride == 1 else ((1, 1), (1, 4)):
                for columns in (1, 7, 16, 37):
                    layer = Layer(columns, kernel, (2, columns), 2 * width, stride=stride)
                    got = layer.run(target, width, form="staged", rows=rows, pixels=pixels)
                    np.testing.assert_array_equal(got, layer.expected())


@pytest.mark.parametrize("stride", [1, 2])
@on_every_extension
def test_lines_that_share_rows(target: Target, stride: int) -> None:
    """Of one line and several, the last of which may lack a row, by one thread and some; rows longer than their room,
    and kernels of even height, too."""
    if not multiplies_pairs(target):
        return
    width = widths(target)[0]
    for kernel in ((5, 5), (4, 3), (7, 2)) if stride == 1 else ((5, 5), (4, 3)):
        for height, columns, threads in ((1, 3, 1), (2, 7, 1), (5, 150, 1), (9, 6, 3)):
            layer = Layer(columns, kernel, (height, columns), 2 * width, stride=stride, images=1 + (height == 5))
            rows = 2 if stride == 1 and height > 1 else 1
            got = layer.run(target, width, form="joined", rows=rows, threads=threads)
            np.testing.assert_array_equal(got, layer.expected())


@on_every_extension
@pytest.mark.parametrize("height", [1, 2, 7])
def test_bands_of_lines(target: Target, height: int) -> None:
    """More of them than lines, as many threads as there are lines, and more."""
    width = widths(target)[0]
    for bands in (1, 3, 9):
        for threads in (1, 4, 9):
            layer = Layer(height, (3, 3), (height, 4), 2 * width)
            layer.bands = bands
            np.testing.assert_array_equal(layer.run(target, width, rows=2, threads=threads), layer.expected())


@on_every_extension
def test_every_second_pixel_as_channels(target: Target) -> None:
    for channels in widths(target):
        for depth in (2, 4, channels // 2):
            for kernel in ((3, 3), (5, 5), (1, 2)):
                for columns in (channels // depth, channels // depth + 1, 2 * channels // depth + 1):
                    layer = Layer(columns, kernel, (3, columns), depth, stride=2, together=channels // depth)
                    np.testing.assert_array_equal(layer.run(target, channels, form="apart"), layer.expected())


@on_every_extension
@pytest.mark.parametrize("form", ["apart", "any"])
def test_dilation(target: Target, form: str) -> None:
    width = widths(target)[0]
    for stride in (1, 2):
        layer = Layer(stride, (3, 3), (4, 5), width, stride=stride, dilation=3)
        np.testing.assert_array_equal(layer.run(target, width, form=form), layer.expected())


@on_every_extension
@pytest.mark.parametrize("weights", ["i8", "u8"])
@pytest.mark.parametrize("type", ["i8", "u8"])
def test_every_type(target: Target, type: Byte, weights: Byte) -> None:
    for seed in range(10):
        for width in widths(target):
            for form in ("kept", "any"):
                layer = Layer(seed, (3, 3), (4, 4), width, type=type, weights=weights, clamps=bool(seed % 2))
                np.testing.assert_array_equal(layer.run(target, width, form=form), layer.expected())


@on_every_extension
def test_large_scales_saturate(target: Target) -> None:
    for width in widths(target):
        layer = Layer(5, (3, 3), (4, 4), width, scale=1e5)
        want = layer.expected()
        assert set(np.unique(want)) == {layer.low, layer.high}
        np.testing.assert_array_equal(layer.run(target, width), want)


@on_every_extension
def test_halves_go_to_even(target: Target) -> None:
    width = widths(target)[0]
    layer = Layer(6, (1, 1), (8, 32), width)
    layer.weights[:], layer.bias[:], layer.scales[:] = 1, 0, 0.5
    layer.input_zero, layer.zero_point, layer.low, layer.high = 0, 1, -128, 127
    got = layer.run(target, width)
    np.testing.assert_array_equal(got, np.rint(layer.x[:, :, :, :] / 2) + 1)


def test_names_and_refusals() -> None:
    assert QuantizedRows("avx512vnni", "i8", 64, (3, 3, 1), 2, 2).name == "i8_dwconv_3x3s1_2x2x64__avx512vnni"
    assert QuantizedRows("avx512vnni", "u8", 16, (3, 3, 0)).name == "u8_dwconv_3x3_1x1x16__avx512vnni"
    assert QuantizedRows("avx2", "u8", 16, (3, 3, 0), spread=8).name == "u8_dwconv_3x3by8_1x1x16__avx2"
    rare = QuantizedRows("neon", "u8", 8, layers=2, ragged=True, clamps=True, saturates=True)
    assert rare.name == "u8_dwconv_any_1x1x8__neon_wide_ragged_clamps_saturates"
    assert QuantizedDepthwise("avx2").name == "x8_dwconv_lines__avx2"
    assert PackDepthwise("avx2", "u8", 1, 2).name == "u8_dwpack_1x2__avx2"
    with pytest.raises(CompileError, match="blocks of avx2 have"):
        QuantizedRows("avx2", "i8", 64).emit(all_targets()["avx2"])
    with pytest.raises(CompileError, match="unless the kernel is known"):
        QuantizedRows("avx2", "i8", 16, rows=2).emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for width in widths(target):
        for kernel in ((3, 3, 1), (3, 3, 2), (3, 3, 0), (5, 5, 1), None):
            assembly(QuantizedRows(target.name, "i8", width, kernel), target)
