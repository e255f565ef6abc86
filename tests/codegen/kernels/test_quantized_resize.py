from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.quantized_resize import QuantizedResize
from gossamer.codegen.kernels.resize import SAMPLE
from gossamer.errors import CompileError
from gossamer.ops.resize_bilinear import _eleven_bit_samples
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run
from tests.codegen.kernels.test_quantized_reduce import numbers
from tests.codegen.kernels.test_resize import FORMS, SIZES, images


@on_every_target
@pytest.mark.parametrize("type", ["i8", "u8"])
@pytest.mark.parametrize(("size", "new_size"), SIZES)
@pytest.mark.parametrize(("aligned", "centred"), FORMS)
def test_bilinear(
    target: Target, type: str, size: tuple[int, int], new_size: tuple[int, int], aligned: bool, centred: bool
) -> None:
    spec = QuantizedResize(target.name, type)
    for channels in (1, 3, target.lanes(), 2 * target.lanes() + 9):
        x = numbers(type, 2, *size, channels)
        sides = [_eleven_bit_samples(old, new, aligned, centred) for old, new in zip(size, new_size, strict=True)]
        (top, bottom, dy), (left, right, dx) = sides
        dy, dx = dy[:, None, None], dx[:, None]
        wide = x.astype(np.int64)
        rows = [wide[:, row] for row in (top, bottom)]
        above, below = (row[:, :, left] * (2048 - dx) + row[:, :, right] * dx for row in rows)
        wanted = ((above * (2048 - dy) + below * dy + (1 << 21)) >> 22).astype(x.dtype)
        tables = {
            name: guarded(
                np.array([SAMPLE.words(first=a, second=b, weight=c) for a, b, c in zip(*side, strict=True)], np.int64)
                * [stride, stride, 1]
            )
            for name, side, stride in zip(("row_table", "column_table"), sides, x.strides[1:3], strict=True)
        }
        for threads in (1, 3):
            y = guarded(np.zeros_like(wanted))
            run(spec, block(spec.arguments, **images(x, y), **tables, channels=channels), threads)
            np.testing.assert_array_equal(y, wanted)


def test_names_and_refusals() -> None:
    assert QuantizedResize("avx2", "u8").name == "u8_resize_bilinear__avx2"
    with pytest.raises(CompileError, match="i8 and u8"):
        QuantizedResize("avx2", "i16").emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for type in ("i8", "u8"):
        assembly(QuantizedResize(target.name, type), target)
