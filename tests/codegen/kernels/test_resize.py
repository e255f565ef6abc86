from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.resize import SAMPLE, ResizeBilinear, ResizeNearest
from gossamer.ops.resize_bilinear import _float_samples
from gossamer.ops.resize_bilinear import op as BILINEAR
from gossamer.ops.resize_nearest_neighbor import _sources
from gossamer.ops.resize_nearest_neighbor import op as NEAREST
from gossamer.schema import ResizeBilinearOptions, ResizeNearestNeighborOptions
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, filled, guarded, normal, on_every_target, run
from tests.ops.cases import Case, const, tensor
from tests.ops.reference import output_of

SIZES = [((4, 5), (8, 10)), ((4, 5), (7, 3)), ((1, 1), (3, 4)), ((6, 7), (6, 7)), ((5, 3), (1, 1))]
FORMS = [(False, False), (True, False), (False, True)]


def samples(first: np.ndarray, second: np.ndarray, weight: np.ndarray, stride: int) -> np.ndarray:
    """A table of `SAMPLE` rows from indices and weights."""
    words = weight.astype(np.float32).view(np.uint32)
    rows = zip(first * stride, second * stride, words, strict=True)
    return np.array([SAMPLE.words(first=a, second=b, weight=c) for a, b, c in rows], np.int64)


def images(x: np.ndarray, y: np.ndarray) -> dict[str, object]:
    """The arguments that both kernels share."""
    return {
        "x": x,
        "y": y,
        "images": y.shape[0],
        "rows": y.shape[1],
        "columns": y.shape[2],
        "x_image": x.strides[0],
        "y_image": y.strides[0],
        "y_row": y.strides[1],
        "y_column": y.strides[2],
    }


def bilinear(target: Target, x: np.ndarray, y: np.ndarray, aligned: bool, centred: bool, threads: int = 1) -> None:
    """Resize x to the size of y."""
    spec = ResizeBilinear(target.name)
    tables = {
        name: guarded(samples(*_float_samples(x.shape[axis], y.shape[axis], aligned, centred), x.strides[axis]))
        for axis, name in ((1, "row_table"), (2, "column_table"))
    }
    run(spec, block(spec.arguments, **images(x, y), **tables, channels=y.shape[3]), threads)


def nearest(target: Target, x: np.ndarray, y: np.ndarray, aligned: bool, centred: bool, threads: int = 1) -> None:
    """Resize x to the size of y."""
    spec = ResizeNearest(target.name)
    tables = {
        name: guarded(_sources(x.shape[axis], y.shape[axis], aligned, centred) * x.strides[axis])
        for axis, name in ((1, "row_table"), (2, "column_table"))
    }
    run(spec, block(spec.arguments, **images(x, y), **tables, run=y.shape[3] * y.itemsize), threads)


@on_every_target
@pytest.mark.parametrize(("aligned", "centred"), FORMS)
@pytest.mark.parametrize(("size", "new_size"), SIZES)
def test_bilinear(
    target: Target, size: tuple[int, int], new_size: tuple[int, int], aligned: bool, centred: bool
) -> None:
    rng = np.random.default_rng(0)
    lanes = target.lanes()
    options = ResizeBilinearOptions(align_corners=aligned, half_pixel_centers=centred)
    for channels in (1, 3, lanes, 2 * lanes + 1):
        x = normal(rng, 2, *size, channels)
        results = []
        for threads in (1, 2, 5):
            y = filled((2, *new_size, channels))
            bilinear(target, x, y, aligned, centred, threads)
            results.append(y.tobytes())
        want = output_of(BILINEAR, Case("", [tensor(x), const(new_size)], [tensor(np.zeros(y.shape))], options))
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)
        assert len(set(results)) == 1


@on_every_target
@pytest.mark.parametrize(("aligned", "centred"), FORMS)
@pytest.mark.parametrize(("size", "new_size"), SIZES)
def test_nearest(
    target: Target, size: tuple[int, int], new_size: tuple[int, int], aligned: bool, centred: bool
) -> None:
    rng = np.random.default_rng(1)
    options = ResizeNearestNeighborOptions(align_corners=aligned, half_pixel_centers=centred)
    for dtype in ("uint8", "int16", "float32"):
        for channels in (1, 3, 40):
            x = guarded(rng.integers(0, 256, (2, *size, channels)).astype(dtype))
            y = guarded(np.zeros((2, *new_size, channels), dtype))
            nearest(target, x, y, aligned, centred, 3)
            case = Case("", [tensor(x, dtype), const(new_size)], [tensor(np.zeros(y.shape), dtype)], options)
            np.testing.assert_array_equal(y, output_of(NEAREST, case))


@on_every_target
def test_borders_are_kept(target: Target) -> None:
    rng = np.random.default_rng(2)
    x = normal(rng, 1, 5, 6, 7)[:, 1:-1, 1:-1]
    for resize in (bilinear, nearest):
        whole, alone = filled((1, 8, 9, 7), 3.0), filled((1, 6, 7, 7))
        resize(target, x, whole[:, 1:-1, 1:-1], False, True)
        resize(target, guarded(x), alone, False, True)
        np.testing.assert_array_equal(whole[:, 1:-1, 1:-1], alone)
        assert (whole[:, 0] == 3).all()
        assert (whole[:, :, -1] == 3).all()


@on_every_target
def test_nothing_to_resize(target: Target) -> None:
    for shape in ((0, 3, 4, 5), (2, 3, 4, 0)):
        bilinear(target, filled((2, 2, 2, 5)), filled(shape), False, False, 2)
        nearest(target, filled((2, 2, 2, 5)), filled(shape), False, False, 2)


def test_names() -> None:
    assert ResizeBilinear("avx2").name == "f32_resize_bilinear__avx2"
    assert ResizeNearest("avx2").name == "x8_resize_nearest__avx2"


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    assembly(ResizeBilinear(target.name), target)
    assembly(ResizeNearest(target.name), target)
