from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.quantized_normalize import QuantizedNormalize
from gossamer.errors import CompileError
from gossamer.ops.l2_normalization import op
from gossamer.targets import Target, all_targets
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run
from tests.codegen.kernels.test_quantized_reduce import numbers
from tests.ops.cases import Case, tensor
from tests.ops.reference import output_of


@on_every_target
@pytest.mark.parametrize(("type", "zero_point"), [("i8", 0), ("i8", -128), ("i8", 17), ("u8", 0), ("u8", 128)])
def test_rows(target: Target, type: str, zero_point: int) -> None:
    spec = QuantizedNormalize(target.name, type)
    for count in (1, 2, 7, target.lanes(), 4 * target.lanes() + 3, 400):
        x = numbers(type, 9, count)
        x[0] = x.dtype.type(zero_point)
        if count > 1:
            x[1] = x.dtype.type(zero_point)
            x[1, 1] += 1
        wanted = output_of(
            op,
            Case(
                "rows",
                [tensor(x, x.dtype, scale=0.1, zero_point=zero_point)],
                [tensor(x, x.dtype, scale=1 / 128, zero_point=0 if type == "i8" else 128)],
                version=2,
            ),
        )
        for threads in (1, 3):
            y = guarded(np.zeros_like(x))
            arguments = block(
                spec.arguments,
                x=x,
                y=y,
                zero_point=zero_point,
                rows=len(x),
                count=count,
                x_row=x.strides[0],
                y_row=y.strides[0],
            )
            run(spec, arguments, threads)
            np.testing.assert_array_equal(y, wanted)


def test_names_and_refusals() -> None:
    assert QuantizedNormalize("avx2", "u8").name == "u8_normalize_l2__avx2"
    with pytest.raises(CompileError, match="i8 and u8"):
        QuantizedNormalize("avx2", "i16").emit(all_targets()["avx2"])


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_it_compiles(target: Target) -> None:
    for type in ("i8", "u8"):
        assembly(QuantizedNormalize(target.name, type), target)
