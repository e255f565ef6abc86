"""`gossamer.flex_op`: functions in NumPy for TensorFlow's operators, as machine code where they can be traced."""

from __future__ import annotations

from typing import Any

import numpy as np

import gossamer
from gossamer.ops.op_def import OpDef
from tests.flex.models import FlexMaker
from tests.ops.traced import refusals, run
from tests.programs.kernels import target_here

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def interpreter(make: FlexMaker, op: OpDef) -> gossamer.Interpreter:
    made = gossamer.Interpreter(model_content=make.model(), custom_ops=[op])
    made.allocate_tensors()
    return made


def test_lists_of_operands_and_attributes() -> None:
    target_here()
    make = FlexMaker()
    x, y = make.tensor((2, 3), has_rank=True), make.tensor((2, 3), has_rank=True)
    make.io([x, y], make.flex("Pack", [x, y], [(2, 2, 3)], axis=1, N=2))

    @gossamer.flex_op("Pack")
    def pack(values: Any, *, axis: int) -> Any:
        return np.stack(values, axis) * np.float64(2)  # and float32 of it, as TensorFlow declares

    made = interpreter(make, pack)
    assert refusals(made) == []
    for _ in range(2):
        np.testing.assert_array_equal(run(made, [X, X + 1])[0], np.stack([X, X + 1], 1) * 2)


def test_lists_of_results() -> None:
    target_here()
    make = FlexMaker()
    x = make.tensor((2, 3), has_rank=True)
    make.io([x], make.flex("Unpack", [x], [(3,), (3,)], num=2, axis=0))
    made = interpreter(make, gossamer.flex_op("Unpack")(lambda value: [value[0], value[1] + 1]))
    assert refusals(made) == []
    first, second = run(made, [X])
    np.testing.assert_array_equal(first, X[0])
    np.testing.assert_array_equal(second, X[1] + 1)


def test_what_cannot_be_traced_runs_in_numpy() -> None:
    target_here()
    make = FlexMaker()
    x = make.tensor((2, 3), has_rank=True)
    make.io([x], make.flex("Relu", [x], [(2, 3)]))
    for op, reason in (
        (gossamer.flex_op("Relu")(lambda x: x if x.min() > 0 else x * 2), "a condition depends on a value"),
        (gossamer.flex_op("Relu", trace=False)(lambda x: x * 2), "it is TensorFlow's, and runs in NumPy"),
    ):
        made = interpreter(make, op)
        (found,) = refusals(made)
        assert reason in found
        np.testing.assert_array_equal(run(made, [X])[0], X * 2)
