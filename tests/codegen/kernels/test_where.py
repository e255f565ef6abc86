from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.where import Where
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, guarded, on_every_target, run

DTYPES = {"f32": "float32", "i8": "int8", "i32": "int32", "i64": "int64"}


@on_every_target
@pytest.mark.parametrize("type", DTYPES)
def test_coordinates(target: Target, type: str) -> None:
    rng = np.random.default_rng(0)
    spec = Where(target.name, type)
    for shape in ((1,), (37,), (3, 5), (2, 3, 4), (1, 2, 1, 3, 2)):
        for share in (0.0, 0.3, 1.0):
            x = guarded((rng.random(shape) < share).astype(DTYPES[type]) * np.array(64, DTYPES[type]))
            if type == "f32":
                x[...] = np.where(rng.random(shape) < 0.2, np.nan, np.where(x == 0, np.float32(-0.0), x))
            found = np.array(x.nonzero(), np.int64).T
            y, count = guarded(np.full((x.size, x.ndim), -1, np.int64)), guarded(np.full(1, -1, np.int64))
            sizes = guarded(np.array(shape, np.int64))
            words = {"x": x, "y": y, "count": count, "sizes": sizes, "elements": x.size, "rank": x.ndim}
            for threads in (1, 3):
                run(spec, block(spec.arguments, **words), threads)
                assert count[0] == len(found)
                np.testing.assert_array_equal(y[: len(found)], found)


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
@pytest.mark.parametrize("type", DTYPES)
def test_compiles_for_every_target(target: Target, type: str) -> None:
    assembly(Where(target.name, type), target)
