from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.nonzero import Nonzero
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

TYPES = {"f32": np.float32, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


@on_every_target
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("count", [1, 7, 16, 45])
def test_zeros_are_found(target: Target, name: str, count: int) -> None:
    x = guarded(np.arange(1, 3 * count + 1, dtype=TYPES[name]).reshape(3, count))
    spec = Nonzero(target.name, name)
    for place in (None, (0, 0), (2, count - 1), (1, count // 2)):
        for threads in (1, 2):
            given = guarded(x)
            if place is not None:
                given[place] = -0.0
            y, fault = guarded(np.full_like(x, 99)), guarded(np.zeros(1, np.int64))
            rows = {"rows": 3, "count": count, "x_row": x.strides[0], "y_row": x.strides[0]}
            run(spec, block(spec.arguments, x=given, y=y, fault=fault, **rows), threads)
            np.testing.assert_array_equal(y, given)
            assert fault[0] == (place is not None)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles(target: Target) -> None:
    assert Nonzero(target.name, "i8").name == f"i8_nonzero__{target.name}"
    for name in TYPES:
        assembly(Nonzero(target.name, name), target)
