from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.compiler import assembly
from gossamer.codegen.kernels.elementwise import MAX_OPERANDS, Map
from gossamer.codegen.kernels.repeat import MAX_WORDS, Repeat
from gossamer.targets import Target
from tests.codegen.kernels.harness import PLAIN, block, filled, normal, on_every_target, run


@on_every_target
@pytest.mark.parametrize("threads", [1, 3])
def test_a_map_over_six_dimensions(target: Target, threads: int) -> None:
    rng = np.random.default_rng(0)
    shape = (3, 1, 2, 4, 3, 5)
    x, y = normal(rng, 3, 1, 1, 4, 1, 5), normal(rng, 1, 1, 2, 1, 3, 5)
    result = filled(shape)
    steps = [[array.strides[axis] * (array.shape[axis] > 1) for array in (result, x, y)] for axis in range(len(shape))]
    spec = Map(target.name, ("sub", 0, 1), "vv")
    unused = {f"x{at}{word}": 0 for at in range(2, MAX_OPERANDS) for word in ("", "_row", "_column")}
    arguments = block(
        spec.arguments,
        y=result,
        rows=shape[3],
        columns=shape[4],
        count=shape[5],
        block=shape[5],
        blocks=1,
        y_row=steps[3][0],
        y_column=steps[4][0],
        x0=x,
        x0_row=steps[3][1],
        x0_column=steps[4][1],
        x1=y,
        x1_row=steps[3][2],
        x1_column=steps[4][2],
        **unused,
    )
    before = arguments.copy()
    names = [argument.name for argument in spec.arguments]
    table = np.array([[shape[axis], *steps[axis]] for axis in (2, 1, 0)], np.int64)
    positions = np.array([names.index(name) for name in ("y", "x0", "x1")], np.int64)
    repeated = block(
        Repeat.arguments,
        kernel=spec,
        block=arguments,
        words=len(arguments),
        turns=6,
        dimensions=3,
        table=table,
        pointers=3,
        positions=positions,
    )
    run(Repeat(target.name), repeated, threads)
    np.testing.assert_array_equal(result, x - y)
    np.testing.assert_array_equal(arguments, before)


def test_the_blocks_of_maps_fit() -> None:
    assert len(Map.arguments) <= MAX_WORDS


@pytest.mark.parametrize("target", PLAIN, ids=lambda target: target.name)
def test_compiles(target: Target) -> None:
    assert Repeat(target.name).name == f"repeat__{target.name}"
    assembly(Repeat(target.name), target)
