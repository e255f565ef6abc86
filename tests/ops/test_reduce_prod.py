"""REDUCE_PROD: axes, wrapping, stepwise rescaling, folded constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, OpResolverType
from gossamer.ops.reduce_prod import op
from gossamer.schema import ReducerOptions
from tests.delegates.jit.running import TARGETS, check
from tests.ops.cases import Case, const, model_of, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused

X = [[1, -2, 3], [4, 5, -6]]
KEEP, DROP = ReducerOptions(keep_dims=True), ReducerOptions()

CASES = [
    Case("rows", [tensor(X), const([1])], [tensor([-6, -120])], DROP),
    Case("columns_kept", [tensor(X), const([-2])], [tensor([[4, -10, -18]])], KEEP),
    Case("all", [tensor(X), const([0, 1])], [tensor(720)], DROP),
    Case("twice", [tensor(X), const([1, -1])], [tensor([-6, -120])], DROP),
    Case("no_axes", [tensor(X), const([], np.int32)], [tensor(X)], DROP),
    Case("axes_fed", [tensor(X), tensor([1], np.int32)], [tensor([-6, -120])], DROP),
    Case("scalar", [tensor(5), const([7])], [tensor(5)], DROP),
    Case("nothing", [tensor(np.zeros((2, 0))), const([1])], [tensor([1, 1])], DROP),
    Case("int32", [tensor(X, np.int32), const([1])], [tensor([-6, -120], np.int32)], DROP),
    Case("int64_wraps", [tensor([2**62, 4], np.int64), const([0])], [tensor(0, np.int64)], DROP),
    Case("bool", [tensor([[1, 1], [0, 1]], np.bool_), const([1])], [tensor([1, 0], np.bool_)], DROP),
    Case("int8_plain", [tensor([100, 3], np.int8), const([0])], [tensor(44, np.int8)], DROP, 2),
    Case("constant", [const(X, np.float32), const([1])], [tensor([-6, -120])], DROP),
    # 2 * 0.5 times 6 * 0.5 is 3, six steps of 0.5; with a zero point of 1 on both sides 7.
    Case(
        "int8",
        [tensor([[3, 7], [-127, 127]], np.int8, scale=0.5, zero_point=1), const([1])],
        [tensor([7, -128], np.int8, scale=0.5, zero_point=1)],
        DROP,
        2,
    ),
    Case(
        "int16",
        [tensor([[300, -20, 7], [1, 2, 3]], np.int16, scale=0.25), const([1])],
        [tensor([-1313, 0], np.int16, scale=0.5)],
        DROP,
        2,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_small_products_of_constants_are_constants() -> None:
    folded = Case("", [const(X, np.float32), const([1])], [tensor([0, 0])], DROP)
    interpreter = REFERENCE(model_content=model_of(op, folded))
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.float32([-6, -120]))


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        ("axis 2 is not within an input of 2 dimensions", Case("", [tensor(X), const([2])], [tensor([0])], DROP)),
        ("axis -3 is not within", Case("", [tensor(X), const([-3])], [tensor([0])], DROP)),
        ("axes must be int32, got int64", Case("", [tensor(X), const([0], np.int64)], [tensor([0])], DROP)),
        ("output must be float32, got int32", Case("", [tensor(X), const([0])], [tensor([0], np.int32)], DROP)),
        (
            "quantized values must be int8 or int16, got uint8",
            Case("", [tensor([[1]], np.uint8, scale=1), const([0])], [tensor([0], np.uint8, scale=1)], DROP),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize("shape", [(2, 0, 4), (0, 0, 4)])
def test_products_of_no_factors_are_those_of_the_reference_kernel(shape: tuple[int, ...]) -> None:
    x, y = (tensor(np.ones(size), np.int16, scale=0.5) for size in ((2, 3, 4), (2, 4)))
    model = model_of(op, Case("", [x, const([1])], [y], DROP, 2))
    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
        interpreter.resize_tensor_input(0, shape)
        interpreter.allocate_tensors()
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(2), np.zeros((shape[0], 4), np.int16))


@pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")
@pytest.mark.parametrize("axes", [(1,), (0,), (0, 2), (0, 1, 2)])
def test_many_quantized_factors_are_machine_code(axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).choice(np.int8([2, 3, 5, 6]), (9, 100, 7))
    y = np.zeros([size for axis, size in enumerate(x.shape) if axis not in axes], np.int8)
    operands = [tensor(x, np.int8, scale=0.7, zero_point=4), const(axes)]
    model = model_of(op, Case("", operands, [tensor(y, np.int8, scale=0.9, zero_point=-3)], DROP, 2))
    check(model, {0: x})
