from __future__ import annotations

import itertools

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.move import SIZES, Border, Copy, Transpose
from gossamer.codegen.spec import KernelSpec
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run


def numbers(*shape: int, dtype: str = "u1") -> np.ndarray:
    return guarded(np.random.default_rng(0).integers(0, 200, shape).astype(dtype))


def move(spec: KernelSpec, source: np.ndarray, destination: np.ndarray, threads: int = 1, **others: int) -> None:
    """Copy an array with as many dimensions as the kernel names (those of `Copy` without its runs)."""
    names = ("group", "plane", "row", "column", "element")
    names = tuple(name for name in names if f"source_{name}" in [argument.name for argument in spec.arguments])
    counts = {"group": "groups", "plane": "planes", "row": "rows", "column": "columns", "element": "count"}
    values = {counts[name]: source.shape[at] for at, name in enumerate(names)}
    for side, array in (("source", source), ("destination", destination)):
        values |= {f"{side}_{name}": array.strides[at] for at, name in enumerate(names)}
    run(spec, block(spec.arguments, source=source, destination=destination, **values, **others), threads)


@on_every_target
@pytest.mark.parametrize("run_bytes", [0, 1, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 200])
def test_copies_of_runs(target: Target, run_bytes: int) -> None:
    for size, threads in ((0, 1), (64, 1), (64, 2), (7, 3)):
        for step in (1, -1):
            source = numbers(2, 3, 4, run_bytes + 2)[:, ::step, ::2, 1 : 1 + run_bytes]
            whole = guarded(np.full((2, 3, 2, run_bytes + 5), 255, "u1"))
            destination = whole[..., 5:]
            each = size or max(run_bytes, 1)
            blocks = {"run": run_bytes, "block": each, "blocks": -(-run_bytes // each)}
            move(Copy(target.name), source, destination, threads, **blocks)
            np.testing.assert_array_equal(destination, source)
            assert (whole[..., :5] == 255).all()


@on_every_target
@pytest.mark.parametrize("bits", SIZES)
def test_transposes_slices_and_reversals(target: Target, bits: int) -> None:
    whole = numbers(2, 4, 5, 6, 7, dtype=f"u{bits // 8}")
    for axes in itertools.permutations(range(5)):
        for x in (whole, whole[:, ::2, 1:4, ::3, 1:], whole[::-1, ::-1, :, ::-2]):
            source = x.transpose(axes)
            destination = guarded(np.zeros(source.shape, source.dtype))
            move(Transpose(target.name, bits), source, destination, 3)
            np.testing.assert_array_equal(destination, source)


@on_every_target
@pytest.mark.parametrize("bits", SIZES)
def test_neighbours_that_are_reversed_and_every_second_one(target: Target, bits: int) -> None:
    for rows, columns in ((1, 5), (3, 70), (70, 3), (40, 131), (2, 9000)):
        x = numbers(rows, columns, dtype=f"u{bits // 8}")[None, None, None]
        for source in (
            x[..., ::-1],
            x[..., ::-1, ::-1],
            x[..., ::-1].swapaxes(3, 4),
            x[..., ::2],
            x[..., 1::2],
            x[..., ::2].swapaxes(3, 4),
        ):
            whole = guarded(np.zeros(source.shape, source.dtype))
            for destination in (whole, whole.reshape(*source.shape[:3], *source.shape[:2:-1]).swapaxes(3, 4)):
                move(Transpose(target.name, bits), source, destination, 3)
                np.testing.assert_array_equal(destination, source)


@on_every_target
@pytest.mark.parametrize("bits", SIZES)
def test_squares(target: Target, bits: int) -> None:
    sizes = (1, 2, 3, 4, 5, 15, 16, 17, 40, 64, 65, 150)
    for rows, columns in (*itertools.product(sizes, repeat=2), (3, 9000), (9000, 3)):
        source = numbers(rows, columns, dtype=f"u{bits // 8}").T[None, None, None]
        for gap, threads in ((0, 1), (0, 3), (3, 1), (3, 2)):
            whole = guarded(np.zeros((columns, rows + gap), source.dtype))
            destination = whole[None, None, None, :, gap:]
            move(Transpose(target.name, bits), source, destination, threads)
            np.testing.assert_array_equal(destination, source)
            assert (whole[:, :gap] == 0).all()


@on_every_target
@pytest.mark.parametrize("bits", SIZES)
def test_channels_of_pixels(target: Target, bits: int) -> None:
    for rows, channels, pixels in itertools.product((1, 37), (2, 3, 4, 5), (3, 4, 12, 16, 33)):
        packed = numbers(1, 1, rows, pixels, channels, dtype=f"u{bits // 8}")
        planes = packed.swapaxes(3, 4)
        for source in (planes, guarded(np.ascontiguousarray(planes)).swapaxes(3, 4)):
            destination = guarded(np.zeros(source.shape, source.dtype))
            move(Transpose(target.name, bits), source, destination, 2)
            np.testing.assert_array_equal(destination, source)


@on_every_target
def test_nothing_to_move(target: Target) -> None:
    for shape in ((0, 2, 3, 4, 5), (2, 0, 3, 4, 5), (2, 3, 0, 4, 5), (2, 3, 4, 0, 5), (2, 3, 4, 5, 0)):
        nothing = numbers(*shape, dtype="u4")
        move(Transpose(target.name, 32), nothing, nothing, 2)
    for shape in ((0, 2, 3), (2, 0, 3), (2, 3, 0)):
        nothing = numbers(*shape)
        move(Copy(target.name), nothing, nothing, 2, run=5, block=5, blocks=1)


@on_every_target
@pytest.mark.parametrize("pad", [(1, 1, 1, 1), (0, 1, 0, 1), (3, 2, 5, 4), (0, 0, 0, 0), (2, 0, 0, 0), (0, 0, 0, 3)])
@pytest.mark.parametrize("channels", [1, 3, 20, 64])
def test_border(target: Target, pad: tuple[int, int, int, int], channels: int) -> None:
    top, bottom, left, right = pad
    spec = Border(target.name)
    for height, images in ((1, 1), (4, 3)):
        y = numbers(images, top + height + bottom, left + 6 + right, channels)
        want = np.full_like(y, 9)
        inside = np.s_[:, top : top + height, left : left + 6]
        want[inside] = y[inside]
        row = y.strides[1]
        arguments = block(
            spec.arguments,
            y=y,
            images=images,
            image=y.strides[0],
            rows=height,
            row=row,
            top=top * row,
            bottom=bottom * row,
            left=left * channels,
            right=right * channels,
            value=9,
        )
        run(spec, arguments, 2)
        np.testing.assert_array_equal(y, want)


def test_names_and_refusals() -> None:
    assert Copy("avx2").name == "x8_copy__avx2"
    assert Transpose("avx2", 16).name == "x16_transpose__avx2"
    assert Border("avx2").name == "x8_border__avx2"
    with pytest.raises(CompileError, match="got 12"):
        Transpose("avx2", 12).emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for spec in (Copy(target.name), Border(target.name), *(Transpose(target.name, bits) for bits in SIZES)):
        assembly(spec, target)
