"""Winograd's algorithm for bytes, against integers in NumPy: sums must be exact, up to the largest there can be."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.dots import Byte
from gossamer.codegen.kernels.outputs import Requantized
from gossamer.codegen.kernels.quantized_winograd import (
    HEADER,
    SIDE,
    SIZE,
    QuantizedWinogradInput,
    QuantizedWinogradOutput,
    QuantizedWinogradProduct,
    QuantizedWinogradWeights,
    fits,
    vectors_of,
)
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import address, block, call, guarded, on_every_extension, place, run

TILES = 2
DEPTHS = 112, 1824  # the largest, usual and deep, that are whole vectors of every target
TYPES = {"i8": np.int8, "u8": np.uint8}

# B^T, and G and A^T as the kernels have them: for the points 0, 1, -1, 2, -2 and infinity, and with -1/2 for -2.
INPUT = np.array(
    [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0],
     [0, 4, 0, -5, 0, 1]]
)  # fmt: skip
WEIGHTS = np.array([[3, 0, 0], [-2, -2, -2], [-2, 2, -2], [1, 2, 4], [1, -2, 4], [0, 0, 12]])
OUTPUT = np.array([[2, 2, 2, 1, 1, 0], [0, 1, -1, 1, -1, 0], [0, 1, 1, 2, 2, 0], [0, 1, -1, 4, -4, 1]])
FACTORS = np.array([24, 12, 12, 12])

DEEP_INPUT = np.array(
    [[2, 3, -4, -3, 2, 0], [0, -2, -5, -1, 2, 0], [0, 2, 1, -5, 2, 0], [0, -1, -2, 1, 2, 0], [0, 2, -1, -2, 1, 0],
     [0, 2, 3, -4, -3, 2]]
)  # fmt: skip
DEEP_WEIGHTS = np.array([[15, 0, 0], [-5, -5, -5], [5, -5, 5], [1, 2, 4], [-4, 2, -1], [0, 0, 15]])
DEEP_OUTPUT = np.array([[1, 1, 1, 1, 8, 0], [0, 1, -1, 2, -4, 0], [0, 1, 1, 4, 2, 0], [0, 1, -1, 8, -1, 1]])
DEEP_FACTORS = np.full(SIZE, 30)

MATRICES = [(INPUT, WEIGHTS, OUTPUT, FACTORS), (DEEP_INPUT, DEEP_WEIGHTS, DEEP_OUTPUT, DEEP_FACTORS)]


@pytest.mark.parametrize(("input", "weights", "output", "factors"), MATRICES, ids=["usual", "deep"])
def test_the_matrices_make_multiples_of_a_convolution(
    input: np.ndarray, weights: np.ndarray, output: np.ndarray, factors: np.ndarray
) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-128, 128, (SIDE, SIDE)), rng.integers(-128, 128, (3, 3))
    planes = (input @ x @ input.T) * (weights @ w @ weights.T)
    want = [[(x[i : i + 3, j : j + 3] * w).sum() for j in range(SIZE)] for i in range(SIZE)]
    np.testing.assert_array_equal(output @ planes @ output.T, factors[:, None] * factors * want)


def test_the_bounds_of_16_and_32_bits() -> None:
    for input, weights, _, _ in MATRICES:
        assert 128 * np.abs(input).sum(1).max() ** 2 < 1 << 15
        assert 128 * np.abs(weights).sum(1).max() ** 2 < 1 << 15
    assert [fits(DEPTHS[deep], 8, deep) for deep in (False, True)] == [True, True]
    assert [fits(DEPTHS[deep] + 16, 8, deep) for deep in (False, True)] == [False, False]


def convolved(
    target: Target,
    type: Byte,
    x: np.ndarray,
    w: np.ndarray,
    bias: np.ndarray,
    scales: np.ndarray,
    zeros: tuple[int, int],
    deep: bool,
) -> np.ndarray:
    """The outputs [tiles, 4, 4, channels] of tiles [tiles, 6, 6, depth], with these zero points of x and y."""
    channels, _, _, depth = w.shape
    wide = target.lanes() * vectors_of(target)
    panels, panel = channels // wide, 4 * wide * SIDE * (depth // 2)
    header = guarded(np.zeros((HEADER, channels), np.int32))
    b = guarded(np.zeros((SIDE, panels, panel), np.uint8))
    pack = QuantizedWinogradWeights(target.name, deep)
    sources = [guarded(array) for array in (w, bias, scales)]
    arguments = block(
        pack.arguments,
        source=sources[0],
        header=header,
        destination=b,
        bias=sources[1],
        scales=sources[2],
        scale_step=4 * (scales.size > 1),
        zero_point=zeros[0] - 128 * (type == "u8"),
        channels=channels,
        depth=depth,
    )
    run(pack, arguments, threads=2)

    x, v = guarded(x), guarded(np.zeros((SIDE, SIDE, TILES, depth), np.int16))
    into = QuantizedWinogradInput(target.name, type, deep, half=depth % (2 * target.lanes()) > 0)
    shape = block(
        into.arguments, channels=depth, x_row=x.strides[1], x_column=x.strides[2], v_plane=v.strides[1]
    )  # fmt: skip
    for tile in range(TILES):
        call(address(into), place(x[tile]), place(v[0, 0, tile]), place(shape))

    m = guarded(np.zeros((SIDE, SIZE, TILES, channels), np.int32))
    product = QuantizedWinogradProduct(target.name, TILES, deep)
    shape = block(
        product.arguments,
        depth=depth,
        v_tile=v.strides[2],
        v_plane=v.strides[1],
        m_tile=m.strides[2],
        m_plane=m.strides[1],
    )
    for row in range(SIDE):
        for number in range(panels):
            to = m[row, 0, 0, number * wide :]
            call(address(product), place(v[row]), place(b[row, number]), 0, place(to), 0, 0, place(shape))

    y = guarded(np.zeros((TILES, SIZE, SIZE, channels), x.dtype))
    together = channels == target.lanes()
    out = QuantizedWinogradOutput(
        target.name, type, Requantized(large=bool(scales.max() >= 1), together=together), deep
    )
    shape = block(
        out.arguments,
        channels=channels,
        m_plane=m.strides[1],
        y_row=y.strides[1],
        c_stride=y.strides[2],
        residual_row=0,
        residual_stride=0,
        zero_point=zeros[1],
        low=np.iinfo(x.dtype).min,
        high=np.iinfo(x.dtype).max,
        parameters=0,
    )
    for tile in range(TILES):
        call(address(out), place(m[0, 0, tile]), place(header), place(y[tile]), 0, place(shape), 0, 0)
    return y


def expected(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray, scales: np.ndarray, zeros: tuple[int, int]
) -> np.ndarray:  # fmt: skip
    centred, weights = x.astype(np.int64) - zeros[0], w.astype(np.int64)
    sums = np.zeros((len(x), SIZE, SIZE, len(w)), np.int64) + bias
    for i in range(3):
        for j in range(3):
            sums += centred[:, i : i + SIZE, j : j + SIZE] @ weights[:, i, j].T
    levels = np.rint(sums.astype(np.float32) * scales) + np.float32(zeros[1])
    info = np.iinfo(x.dtype)
    return np.clip(levels, info.min, info.max).astype(x.dtype)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("depth", [32, 48])
@pytest.mark.parametrize("type", ["i8", "u8"])
@on_every_extension
def test_tiles(target: Target, type: Byte, depth: int, deep: bool) -> None:
    rng = np.random.default_rng(depth)
    x = rng.integers(
        np.iinfo(TYPES[type]).min, np.iinfo(TYPES[type]).max, (TILES, SIDE, SIDE, depth), TYPES[type], True
    )
    w = rng.integers(-128, 127, (32, 3, 3, depth), np.int8, True)
    bias = rng.integers(-5000, 5000, 32).astype(np.int32)
    scales = (rng.random(32) / (200 * np.sqrt(9 * depth))).astype(np.float32)
    zeros = (int(x[0, 0, 0, 0]), int(x[0, 0, 0, 1]))
    got = convolved(target, type, x, w, bias, scales, zeros, deep)
    np.testing.assert_array_equal(got, expected(x, w, bias, scales, zeros))


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("signs", ["same", "opposite", "alternating"])
@pytest.mark.parametrize("type", ["i8", "u8"])
@on_every_extension
def test_the_largest_sums(target: Target, type: Byte, signs: str, deep: bool) -> None:
    depth = DEPTHS[deep]
    info = np.iinfo(TYPES[type])
    x = np.full((TILES, SIDE, SIDE, depth), info.min if type == "i8" else info.max, TYPES[type])
    if signs == "alternating":
        x[:, ::2, 1::2], x[:, 1::2, ::2] = (127, 127) if type == "i8" else (0, 0)
    w = np.full((16, 3, 3, depth), 127 if signs == "opposite" else -128, np.int8)
    w[1::2, ::2, 1] = w[1::2, 1, ::2] = -128 if signs == "opposite" else 127
    bias = np.arange(-8, 8, dtype=np.int32)
    scales = np.full(1, 2.0**-22, np.float32)
    zeros = (127 if type == "i8" else 0, 3)
    got = convolved(target, type, x, w, bias, scales, zeros, deep)
    np.testing.assert_array_equal(got, expected(x, w, bias, scales, zeros))


@pytest.mark.parametrize("target", all_targets().values(), ids=all_targets())
def test_every_target_has_them(target: Target) -> None:
    added = Requantized(("qadd", 0, 1, 2), clamps=True)
    for spec in (
        QuantizedWinogradWeights(target.name),
        QuantizedWinogradWeights(target.name, deep=True),
        QuantizedWinogradInput(target.name, "u8"),
        QuantizedWinogradInput(target.name, "u8", deep=True),
        QuantizedWinogradProduct(target.name, 2),
        QuantizedWinogradProduct(target.name, 2, deep=True),
        QuantizedWinogradOutput(target.name, "i8", added),
        QuantizedWinogradOutput(target.name, "i8", added, deep=True),
    ):
        assert assembly(spec, target)


def test_sums_of_pairs_are_one_instruction_on_x86() -> None:
    target = all_targets()["avx512vnni"]
    text = assembly(QuantizedWinogradProduct(target.name, 4), target)
    assert text.count("vpdpwssd") == 4 * SIDE
    assert "vpmaddwd" not in text


def test_names_tell_specs_apart() -> None:
    specs = [
        QuantizedWinogradOutput("avx2", "i8"),
        QuantizedWinogradOutput("avx2", "u8"),
        QuantizedWinogradOutput("avx2", "i8", Requantized(clamps=True)),
        QuantizedWinogradOutput("avx2", "i8", Requantized(large=True)),
        QuantizedWinogradOutput("avx2", "i8", Requantized(("qadd", 0, 1, 2))),
        QuantizedWinogradProduct("avx2", 2),
        QuantizedWinogradProduct("avx2", 4),
        QuantizedWinogradProduct("avx2", 4, deep=True),
        QuantizedWinogradInput("avx2", "i8"),
        QuantizedWinogradInput("avx2", "i8", deep=True),
        QuantizedWinogradInput("avx2", "i8", half=True),
        QuantizedWinogradWeights("avx2"),
        QuantizedWinogradWeights("avx2", deep=True),
        QuantizedWinogradOutput("avx2", "i8", deep=True),
        QuantizedWinogradOutput("avx2", "i8", Requantized(together=True)),
    ]
    assert len({spec.name for spec in specs}) == len(specs)
    assert QuantizedWinogradOutput("avx2", "i8").name == "i8_winograd_output__avx2"
