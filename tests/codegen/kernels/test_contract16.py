"""Products of 16 bits, and what becomes of them: against NumPy in 64 bits, over shapes, strides and targets."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from gossamer.codegen.expression import Expression
from gossamer.codegen.kernels.contract import ContractTiles, panels_of
from gossamer.codegen.kernels.contract16 import BLOCK, Depthwise16, Dot16, PairGemm, Product16
from gossamer.codegen.kernels.outputs import Rescaled, Rounding
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.kernels.push import Push
from gossamer.errors import CompileError
from gossamer.quantization import high_mul, round_half_away, rounding_divide_by_pot
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, guarded, on_every_target, place, run

THREADS = 3


def integers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Of the whole range, every fifth an extreme."""
    rng, limits = np.random.default_rng(seed), np.iinfo(dtype)
    drawn = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return guarded(np.where(rng.random(shape) < 0.2, rng.choice([limits.min, limits.max], shape), drawn).astype(dtype))


ADDED: Expression = ("scaleout", ("add", ("scalein", ("toi32", 0), 2), ("scalein", ("toi32", 1), 3)), 4)
"""A residual sum, as ADD is lowered."""

SCALES = [np.array(numbers, np.int32) for numbers in ([0, 3, 3 << 28, 4], [0, 2, 2 << 29, 3])]
TO = np.array([5 << 27, 0, 1, 0, -30000, 30001], np.int32)


def numbers_of(rounding: Rounding, channels: int, width: int) -> np.ndarray:
    """A bias, a multiplier and an exponent of each channel, as kernels read them."""
    rng = np.random.default_rng(2)
    bias = rng.integers(-(1 << 20), 1 << 20, channels)
    if rounding == "double":
        rows = [bias, (rng.random(channels) / 5000).view(np.int64)]
    elif rounding == "once":
        rows = [bias, rng.integers(1 << 14, 1 << 15, channels), rng.integers(24, 30, channels)]
    else:
        rows = [bias, rng.integers(1 << 30, 1 << 31, channels), rng.integers(-12, 2, channels)]
    padded = np.pad(np.stack(rows), [(0, 0), (0, width - channels)])
    return guarded(padded.astype(np.int32 if rounding == "twice" else np.int64))


def rescaled(rounding: Rounding, sums: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """What int64 sums [..., channels] become: as `gossamer.quantization` defines it, between -32000 and 32000."""
    bias, *rows = (row[: sums.shape[-1]] for row in numbers)
    total = sums + bias
    if rounding == "double":
        scaled = round_half_away(total * rows[0].view(np.float64))
    elif rounding == "once":
        scaled = (total * rows[0] + (np.int64(1) << (rows[1] - 1))) >> rows[1]
    else:
        left, right = np.maximum(rows[1], 0), np.maximum(-rows[1], 0).astype(np.int64)
        wrapped = (total.astype(np.int32) << left).astype(np.int32).astype(np.int64)
        high = (wrapped * rows[0].astype(np.int64) + (1 << 30)) >> 31
        scaled = (high + ((np.int64(1) << right) >> 1)) >> right
    return np.clip(scaled.astype(np.int64).astype(np.int32), -32000, 32000).astype(np.int16)


def added(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What `ADDED` makes of two tensors."""
    terms = [
        rounding_divide_by_pot(high_mul(value.astype(np.int64) << left, multiplier), right)
        for value, (_, left, multiplier, right) in ((x, SCALES[0]), (y, SCALES[1]))
    ]
    multiplier, left, right, zero, low, high = TO.astype(np.int64)
    total = rounding_divide_by_pot(high_mul(sum(terms) << left, multiplier), right)
    return np.clip(total + zero, low, high).astype(np.int16)


def contract(
    target: Target,
    x: np.ndarray,
    weights: np.ndarray,
    mr: int,
    nv: int,
    output: Rescaled | None,
    wide: bool = False,
    residual: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """What [pixels, taps, depth] with [channels, taps, depth] become, and the numbers of channels."""
    channels, taps, depth = weights.shape
    lanes, even = target.lanes(), depth + depth % 2
    panels = panels_of(channels, nv, lanes)
    padded = guarded(np.pad(weights, [(0, 0), (0, 0), (0, even - depth)]))
    packed = guarded(np.zeros(panels.vectors * lanes * taps * even, np.int8))
    arguments = block(
        Pack.arguments,
        source=padded,
        destination=packed,
        channels=channels,
        depth=taps * even // 2,
        source_row=taps * even,
        nv=nv,
        panels=panels.whole,
        rest_nv=panels.rest_nv,
        images=1,
        source_image=0,
        destination_image=0,
    )
    run(Pack(target.name, weights="f16", packed="f16"), arguments, THREADS)
    y = guarded(np.zeros((len(x), channels), np.int32 if output is None else np.int16))
    offsets = guarded(np.arange(taps, dtype=np.int64) * x.strides[1])
    numbers = numbers_of("once" if output is None else output.rounding, channels, panels.vectors * lanes)
    addresses = np.array([place(array) for array in (*SCALES, TO)], np.int64)
    size = 0 if output is None else output.item
    shape = block(
        PairGemm.arguments,
        depth=depth,
        taps=taps,
        tap_offsets=offsets,
        a_stride=x.strides[0],
        c_stride=y.strides[0],
        residual_stride=y.strides[0],
        tail=panels.tail,
        low=-32000,
        high=32000,
        numbers=numbers.strides[0],
        parameters=addresses,
    )

    def kernel(vectors: int, ragged: bool) -> PairGemm:
        return PairGemm(target.name, mr, vectors, output, wide, ragged)

    driver = ContractTiles(target.name)
    geometry = {f"{name}_{way}": 0 for name in ("a", "c", "residual") for way in ("image", "row")}
    arguments = block(
        driver.arguments,
        **geometry,
        a=x,
        b=packed,
        bias=numbers,
        c=y,
        residual=0 if residual is None else residual,
        images=1,
        rows=1,
        tiles=-(-len(x) // mr),
        tile_columns=mr,
        large_tiles=-(-len(x) // mr),
        last_column=len(x) - mr,
        a_column=x.strides[0],
        b_image=0,
        c_column=y.strides[0],
        residual_column=y.strides[0],
        panels=panels.whole,
        panel_bytes=nv * lanes * taps * even,
        panel_bias=size * nv * lanes,
        panel_c=y.itemsize * nv * lanes,
        panel_residual=y.itemsize * nv * lanes,
        kernel=kernel(nv, False),
        smaller_kernel=None,
        smaller_ragged_kernel=None,
        shape=shape,
        ragged_kernel=kernel(panels.rest_nv, panels.tail < lanes) if panels.rest_nv else None,
        ragged_shape=shape,
    )
    run(driver, arguments, THREADS)
    return y, numbers


@on_every_target
@pytest.mark.parametrize(("mr", "nv"), [(4, 2), (1, 1)])
@pytest.mark.parametrize("rounding", [None, *get_args(Rounding)])
@pytest.mark.parametrize(
    ("pixels", "channels", "taps", "depth"), [(4, 1, 1, 1), (5, 17, 3, 7), (9, 40, 1, 64), (4, 32, 2, 2 * BLOCK + 5)]
)
def test_contract(
    target: Target, mr: int, nv: int, rounding: Rounding | None, pixels: int, channels: int, taps: int, depth: int
) -> None:
    x, weights = integers((pixels, taps, depth), np.int16), integers((channels, taps, depth), np.int8, 1)
    sums = np.einsum("ptd,ctd->pc", x.astype(np.int64), weights.astype(np.int64))
    if rounding is None:
        got, _ = contract(target, x, weights, mr, nv, None)
        np.testing.assert_array_equal(got, sums.astype(np.int32))
        return
    for wide in {rounding != "twice", rounding != "twice" and taps * depth > 511}:
        got, numbers = contract(target, x, weights, mr, nv, Rescaled(rounding), wide)
        np.testing.assert_array_equal(got, rescaled(rounding, sums, numbers))
    residual = integers((pixels, channels), np.int16, 3)
    got, _ = contract(target, x, weights, mr, nv, Rescaled(rounding, ADDED), rounding != "twice", residual)
    np.testing.assert_array_equal(got, added(rescaled(rounding, sums, numbers), residual))


@on_every_target
def test_sums_of_extremes_are_exact(target: Target) -> None:
    depth = 4 * BLOCK + 1
    x, weights = np.full((1, 1, depth), -32768, np.int16), np.full((1, 1, depth), -128, np.int8)
    got, numbers = contract(target, guarded(x), guarded(weights), 1, 1, Rescaled("double"), True)
    np.testing.assert_array_equal(got, rescaled("double", np.array([[depth << 22]]), numbers))


def test_tiles_need_registers() -> None:
    target = all_targets()["avx2"]
    with pytest.raises(CompileError, match="has 16 registers"):
        PairGemm(target.name, 8, 2).emit(target)


@on_every_target
@pytest.mark.parametrize("output", [None, Rescaled("once")])
@pytest.mark.parametrize("channels", [1, 8, 37])
def test_depthwise(target: Target, channels: int, output: Rescaled | None) -> None:
    x, weights = integers((2, 5, 6, channels), np.int16), integers((3, 2, channels), np.int8, 1)
    y = guarded(np.zeros((2, 3, 3, channels), np.int32 if output is None else np.int16))
    numbers = numbers_of("once", channels, channels)
    arguments = block(
        Depthwise16.arguments,
        x=x,
        w=weights,
        bias=numbers,
        y=y,
        images=2,
        rows=3,
        columns=3,
        channels=channels,
        kernel_rows=3,
        kernel_columns=2,
        x_image=x.strides[0],
        x_step_row=x.strides[1],
        x_step_column=2 * x.strides[2],
        x_row=x.strides[1],
        x_column=x.strides[2],
        w_row=weights.strides[0],
        w_column=weights.strides[1],
        **dict(zip(("y_image", "y_row", "y_column"), y.strides, strict=False)),
        low=-32000,
        high=32000,
        numbers=numbers.strides[0],
        parameters=0,
    )
    run(Depthwise16(target.name, output), arguments, THREADS)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (3, 2), (1, 2))[:, :, ::2]
    sums = np.einsum("nhwcij,ijc->nhwc", windows, weights.astype(np.int64))
    np.testing.assert_array_equal(y, sums if output is None else rescaled("once", sums, numbers))


@on_every_target
@pytest.mark.parametrize("output", [None, Rescaled("once"), Rescaled("once", ADDED)])
@pytest.mark.parametrize("columns", [1, 16, 37])
def test_product(target: Target, columns: int, output: Rescaled | None) -> None:
    x, w, residual = (
        integers((4, 9), np.int16),
        integers((9, columns), np.int16, 1),
        integers((4, columns), np.int16, 2),
    )
    y = guarded(np.zeros((4, columns), np.int64 if output is None else np.int16))
    numbers = numbers_of("once", columns, columns)
    arguments = block(
        Product16.arguments,
        x=x,
        w=w,
        bias=numbers,
        y=y,
        residual=residual,
        rows=4,
        depth=9,
        columns=columns,
        x_row=x.strides[0],
        x_depth=x.strides[1],
        w_depth=w.strides[0],
        y_row=y.strides[0],
        residual_row=residual.strides[0],
        low=-32000,
        high=32000,
        numbers=numbers.strides[0],
        parameters=np.array([place(array) for array in (*SCALES, TO)], np.int64),
    )
    run(Product16(target.name, output), arguments, THREADS)
    sums = x.astype(np.int64) @ w.astype(np.int64)
    if output is not None:
        sums = rescaled("once", sums, numbers)
        sums = added(sums, residual) if output.epilogue else sums
    np.testing.assert_array_equal(y, sums)


@on_every_target
@pytest.mark.parametrize("type", ["i8", "i16"])
@pytest.mark.parametrize("depth", [1, 7, 16, 37])
def test_dot(target: Target, type: str, depth: int) -> None:
    dtype = np.dtype(type.replace("i8", "int8").replace("i16", "int16"))
    x, w = integers((2, 5, depth), dtype), integers((5, depth), dtype, 1)
    y = guarded(np.zeros((2, 5), np.int32))
    arguments = block(
        Dot16.arguments,
        x=x,
        w=w,
        y=y,
        rows=2,
        columns=5,
        depth=depth,
        x_row=x.strides[0],
        x_column=x.strides[1],
        w_column=w.strides[0],
        y_row=y.strides[0],
        y_column=y.strides[1],
    )
    run(Dot16(target.name, "i8" if type == "i8" else "i16"), arguments, THREADS)
    sums = np.einsum("rcd,cd->rc", x.astype(np.int64), w.astype(np.int64))
    np.testing.assert_array_equal(y, sums.astype(np.int32))


@on_every_target
@pytest.mark.parametrize("dtype", ["i1", "i2"])
@pytest.mark.parametrize("count", [1, 2, 8, 37, 200])
def test_push(target: Target, dtype: str, count: int) -> None:
    x, y = integers((6,), np.dtype(dtype)), integers((6, count), np.dtype(dtype), 1)
    wanted = np.concatenate([y[:, 1:], x[:, None]], axis=1)
    run(Push(target.name, 8 * x.itemsize), block(Push.arguments, x=x, y=y, rows=6, count=count), THREADS)
    np.testing.assert_array_equal(y, wanted)
