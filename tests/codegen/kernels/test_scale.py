"""Bytes times a factor for each channel, against integers in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import kernel_text
from gossamer.codegen.kernels.scale import ScaleRows, has_dots, runs
from gossamer.errors import CompileError
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import RUNNABLE, block, guarded, run


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("zero", "bounds"), [(-128, (-128, 127)), (127, (-128, 127)), (3, (-20, 90))])
@pytest.mark.parametrize("target", [target for target in RUNNABLE if runs(target)], ids=lambda target: target.name)
def test_products(target: Target, zero: int, bounds: tuple[int, int], threads: int) -> None:
    rng = np.random.default_rng(zero & 0xFF)
    scale, zero_point = np.float32(0.0078125), -7  # halves are met
    factor_zero = -128 if has_dots(target) else zero ^ 21
    for rows, count in ((5, 64), (1, 63), (3, 200), (2, 600)):
        x, factors = (
            guarded(rng.integers(-128, 127, shape, np.int8, endpoint=True)) for shape in ((rows, count), (count,))
        )
        y = guarded(np.zeros((rows, count), np.int8))
        arguments = block(
            ScaleRows.arguments,
            x=x,
            factors=factors,
            y=y,
            rows=rows,
            count=count,
            x_row=count,
            y_row=count,
            zero=zero,
            factor_zero=factor_zero,
            scale=np.array([scale]),
            zero_point=zero_point,
            low=bounds[0],
            high=bounds[1],
        )
        run(ScaleRows(target.name, clamps=bounds != (-128, 127)), arguments, threads)
        product = (x.astype(np.int32) - zero) * (factors.astype(np.int32) - factor_zero)
        wanted = np.clip(np.rint(product.astype(np.float32) * scale) + zero_point, *bounds)
        np.testing.assert_array_equal(y, wanted, str((rows, count)))


@pytest.mark.parametrize("isa", all_targets())
def test_emits_on_x86(isa: str) -> None:
    target = all_targets()[isa]
    if runs(target):
        assert "define void @k" in kernel_text(ScaleRows(isa), target)
    else:
        with pytest.raises(CompileError, match="is not x86"):
            ScaleRows(isa).emit(target)
