from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.dynamic import BLOCKS, HEADER, Grids, QuantizeImages, QuantizeRows, Range, levels_of
from gossamer.errors import CompileError
from gossamer.ops._dynamic_range import quantize_asymmetric
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import block, filled, guarded, normal, on_every_extension, run
from tests.qd8 import quantize

COUNTS = (1, 3, 15, 16, 17, 64, 130, 259)


def bytes_of(*shape: int) -> np.ndarray:
    return guarded(np.full(shape, 0x55, np.int8))


@on_every_extension
def test_rows(target: Target) -> None:
    rng = np.random.default_rng(0)
    for type, together, count in product(("i8", "u8"), (1, 4), COUNTS):
        spec = QuantizeRows(target.name, type, together)  # type: ignore[arg-type]
        more = 128 * (type == "u8")
        x = normal(rng, 7, count)
        x[1], x[2], x[3], x[4] = 0, np.abs(x[2]), -np.abs(x[3]), x[4] * 1e30
        x[5] = np.round(x[5] * 4) / 4  # halves
        for threads in (1, 3):
            y = bytes_of(7, -(-(HEADER + count) // 4) * 4)
            row = y.strides[0]
            run(spec, block(spec.arguments, x=x, y=y, rows=7, count=count, x_row=x.strides[0], y_row=row), threads)
            levels, points, scales = quantize(x)
            of_type = y[:, HEADER : HEADER + count].view(np.uint8 if more else np.int8)
            np.testing.assert_array_equal(of_type, levels.astype(int) + more)
            assert (y[:, HEADER + count :] == 0x55).all()
            header = np.ascontiguousarray(y[:, :8])
            assert header[:, :4].tobytes() == scales.tobytes()
            assert header[:, 4:].tobytes() == (points + np.int32(more)).tobytes()


def images(target: Target, rule: str, x: np.ndarray, y: np.ndarray, threads: int) -> np.ndarray:
    """NHWC images onto grids of their own; the headers."""
    count, rows, columns, channels = x.shape
    partial, headers = filled((count, 2, BLOCKS)), bytes_of(count, HEADER)
    where = {"images": count, "rows": rows, "columns": columns, "count": channels, "x": x}
    where |= {f"x_{name}": stride for name, stride in zip(("image", "row", "column"), x.strides, strict=False)}
    run(Range(target.name), block(Range.arguments, y=partial, **where), threads)
    grids = Grids(target.name, rule)  # type: ignore[arg-type]
    run(grids, block(grids.arguments, x=partial, y=headers, images=count), threads)
    where |= {f"y_{name}": stride for name, stride in zip(("image", "row", "column"), y.strides, strict=False)}
    spec = QuantizeImages(target.name, rule)  # type: ignore[arg-type]
    run(spec, block(spec.arguments, y=y, headers=headers, **where), threads)
    return headers


@on_every_extension
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 5, 7), (3, 40, 2, 16), (1, 17, 3, 67)])
def test_images(target: Target, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    for threads in (1, 3):
        x = guarded(rng.standard_normal((*shape[:3], shape[3] + 2)).astype(np.float32))[..., : shape[3]]
        if shape[0] > 1:
            x[-1] = 0
        flat = x.reshape(shape[0], -1)
        y = bytes_of(*shape)
        headers = images(target, "qd8", x, y, threads)
        levels, points, scales = quantize(flat)
        np.testing.assert_array_equal(y.reshape(levels.shape), levels)
        np.testing.assert_array_equal(headers.view(np.int32)[:, 1], points)
        np.testing.assert_array_equal(headers.view(np.float32)[:, 0], scales)

        z = filled(shape)
        headers = images(target, "builtin", x, z, threads)
        levels, scales, points = quantize_asymmetric(flat)
        np.testing.assert_array_equal(z.reshape(levels.shape), levels - points[:, None].astype(np.float32))
        np.testing.assert_array_equal(headers.view(np.int32)[:, 1], points)
        np.testing.assert_array_equal(headers.view(np.float32)[:, 0], scales)


def test_names_and_refusals() -> None:
    assert QuantizeRows("avx2").name == "f32_i8_quantize_rows1__avx2"
    assert QuantizeImages("neon", "builtin").name == "f32_f32_quantize_images_builtin__neon"
    for spec in (Grids("avx2", "ruy"), QuantizeImages("avx2", "ruy")):  # type: ignore[arg-type]
        with pytest.raises(CompileError, match="qd8 or builtin, got 'ruy'"):
            spec.emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", all_targets().values(), ids=lambda target: target.name)
def test_compiles(target: Target) -> None:
    for rule in ("qd8", "builtin"):
        assembly(Grids(target.name, rule), target)  # type: ignore[arg-type]
        assembly(QuantizeImages(target.name, rule), target)  # type: ignore[arg-type]
    assembly(Range(target.name), target)
    assembly(QuantizeRows(target.name, levels_of(target), 4), target)
