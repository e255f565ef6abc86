"""Integer sums of 16-bit products: against NumPy in 64 bits, over shapes, strides and targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.codegen.kernels.contract16 import BLOCK, Contract16, Depthwise16, Dot16, Product16
from gossamer.codegen.kernels.pack import Pack
from gossamer.codegen.kernels.push import Push
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, guarded, on_every_target, run

THREADS = 3


def integers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Of the whole range, every fifth an extreme."""
    rng, limits = np.random.default_rng(seed), np.iinfo(dtype)
    drawn = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return guarded(np.where(rng.random(shape) < 0.2, rng.choice([limits.min, limits.max], shape), drawn).astype(dtype))


def contract(target: Target, x: np.ndarray, weights: np.ndarray, mr: int, nv: int, wide: bool) -> np.ndarray:
    """The sums [pixels, channels] of [pixels, taps, depth] with [channels, taps, depth]."""
    channels, taps, depth = weights.shape
    lanes, even = target.lanes(), depth + depth % 2
    panels = -(-channels // (nv * lanes))
    padded = guarded(np.pad(weights, [(0, 0), (0, 0), (0, even - depth)]))
    packed = guarded(np.zeros(panels * nv * lanes * taps * even, np.int8))
    arguments = block(
        Pack.arguments,
        source=padded,
        destination=packed,
        channels=channels,
        depth=taps * even // 2,
        source_row=taps * even,
        nv=nv,
        panels=panels,
        rest_nv=nv,
        images=1,
        source_image=0,
        destination_image=0,
    )
    run(Pack(target.name, weights="f16", packed="f16"), arguments, THREADS)
    y = guarded(np.zeros((len(x), panels * nv * lanes), np.int64 if wide else np.int32))
    offsets = guarded(np.arange(taps, dtype=np.int64) * x.strides[1])
    spec = Contract16(target.name, mr, nv, wide)
    arguments = block(
        spec.arguments,
        x=x,
        w=packed,
        y=y,
        images=1,
        rows=1,
        columns=len(x),
        x_image=0,
        x_row=0,
        x_column=x.strides[0],
        y_image=0,
        y_row=0,
        y_column=y.strides[0],
        taps=taps,
        tap_offsets=offsets,
        depth=depth,
        panels=panels,
    )
    run(spec, arguments, THREADS)
    return y[:, :channels]


@on_every_target
@pytest.mark.parametrize(("mr", "nv"), [(4, 2), (1, 1)])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("pixels", "channels", "taps", "depth"), [(1, 1, 1, 1), (5, 17, 3, 7), (9, 40, 1, 64), (3, 33, 2, 2 * BLOCK + 5)]
)
def test_contract(
    target: Target, mr: int, nv: int, wide: bool, pixels: int, channels: int, taps: int, depth: int
) -> None:
    x, weights = integers((pixels, taps, depth), np.int16), integers((channels, taps, depth), np.int8, 1)
    got = contract(target, x, weights, mr, nv, wide)
    sums = np.einsum("ptd,ctd->pc", x.astype(np.int64), weights.astype(np.int64))
    np.testing.assert_array_equal(got, sums if wide else sums.astype(np.int32))


@on_every_target
def test_sums_of_extremes_are_exact(target: Target) -> None:
    depth = 4 * BLOCK + 1
    x, weights = np.full((1, 1, depth), -32768, np.int16), np.full((1, 1, depth), -128, np.int8)
    assert contract(target, guarded(x), guarded(weights), 1, 1, True).tolist() == [[depth << 22]]


def test_tiles_need_registers() -> None:
    target = all_targets()["avx2"]
    with pytest.raises(CompileError, match="has 16 registers"):
        Contract16(target.name, 8, 2).emit(target)


@on_every_target
@pytest.mark.parametrize("channels", [1, 8, 37])
def test_depthwise(target: Target, channels: int) -> None:
    x, weights = integers((2, 5, 6, channels), np.int16), integers((3, 2, channels), np.int8, 1)
    y = guarded(np.zeros((2, 3, 3, channels), np.int32))
    arguments = block(
        Depthwise16.arguments,
        x=x,
        w=weights,
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
    )
    run(Depthwise16(target.name), arguments, THREADS)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (3, 2), (1, 2))[:, :, ::2]
    np.testing.assert_array_equal(y, np.einsum("nhwcij,ijc->nhwc", windows, weights.astype(np.int64)))


@on_every_target
@pytest.mark.parametrize("columns", [1, 16, 37])
def test_product(target: Target, columns: int) -> None:
    x, w = integers((4, 9), np.int16), integers((9, columns), np.int16, 1)
    y = guarded(np.zeros((4, columns), np.int64))
    arguments = block(
        Product16.arguments,
        x=x,
        w=w,
        y=y,
        rows=4,
        depth=9,
        columns=columns,
        x_row=x.strides[0],
        x_depth=x.strides[1],
        w_depth=w.strides[0],
        y_row=y.strides[0],
    )
    run(Product16(target.name), arguments, THREADS)
    np.testing.assert_array_equal(y, x.astype(np.int64) @ w.astype(np.int64))


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
