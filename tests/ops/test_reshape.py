"""RESHAPE: where the shape comes from, and what -1 stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, OpResolverType
from gossamer.ops.reshape import op
from gossamer.schema import ReshapeOptions, TensorType
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused
from tests.runtime.graphs import ModelMaker

SIX = np.arange(6)

OFFSETS, AFTER = {0: 0, 1: 448, 2: 512, 3: 512}, {4: 960}
"""As LiteRT places the tensors of `with_computed_shape`: when allocated, and what an invocation adds."""


def shape(*sizes: int) -> ReshapeOptions:
    return ReshapeOptions(new_shape=sizes)


CASES = [
    Case("constant_shape", [tensor(SIX), const([2, 3])], [tensor(SIX.reshape(2, 3))]),
    Case("options", [tensor(SIX)], [tensor(SIX.reshape(3, 2))], shape(3, 2)),
    Case("tensor_before_options", [tensor(SIX), const([2, 3])], [tensor(SIX.reshape(2, 3))], shape(6, 1)),
    Case("fed_shape", [tensor(SIX), tensor([3, -1], np.int32)], [tensor(SIX.reshape(3, 2))]),
    Case("not_an_int32_vector", [tensor(SIX), const([[2, 3]])], [tensor(SIX.reshape(3, 2))], shape(3, 2)),
    Case("minus_one", [tensor(SIX), const([-1, 3])], [tensor(SIX.reshape(2, 3))]),
    Case("minus_one_of_nothing", [tensor(np.zeros((0, 4))), const([-1, 2])], [tensor(np.zeros((0, 2)))]),
    Case("minus_one_beside_zero", [tensor(np.zeros((0, 6))), const([0, -1, 2])], [tensor(np.zeros((0, 3, 2)))]),
    Case("scalar_in_old_models", [tensor([7])], [tensor(7)], shape(0)),
    Case("scalar", [tensor([[7]]), const([], shape=(0,))], [tensor(7)]),
    Case("constant", [const(SIX, np.int16), const([2, 3])], [tensor(SIX.reshape(2, 3), np.int16)]),
    Case("strings", [tensor([b"a", b"", b"ccc"], object), const([3, 1])], [tensor([[b"a"], [b""], [b"ccc"]], object)]),
    Case(
        "int4",
        [tensor([-8, 7, 3], np.int8, type=TensorType.INT4), const([1, 3])],
        [tensor([[-8, 7, 3]], np.int8, type=TensorType.INT4)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("cannot reshape [6] (6 elements) to [2, 4] (8 elements)", Case("", [tensor(SIX), const([2, 4])], [tensor(0)])),
    ("cannot reshape [6] (6 elements) to [-1, 4] (4 elements)", Case("", [tensor(SIX), const([-1, 4])], [tensor(0)])),
    ("new shape [-1, -1] may have one -1", Case("", [tensor(SIX), const([-1, -1])], [tensor(0)])),
    ("new shape [-2, -3] may have one -1 and no other negative", Case("", [tensor(SIX), const([-2, -3])], [tensor(0)])),
    ("output must be float32 here, got int32", Case("", [tensor(SIX), const([6])], [tensor(0, np.int32)])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


REFUSED_BY_INVOKE = [
    (
        "cannot reshape [6] (6 elements) to [4] (4 elements)",
        Case("", [tensor(SIX), tensor([4], np.int32)], [tensor(0)]),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED_BY_INVOKE, ids=[message for message, _ in REFUSED_BY_INVOKE])
def test_refuses_values(message: str, refused: Case) -> None:
    assert_refused_by_invoke(op, refused, message)


def with_computed_shape(count: int = 6) -> bytes:
    """y = -reshape(-x, shape), where the shape is an input."""
    make = ModelMaker()
    x, wanted = make.tensor((count,)), make.tensor((2,), TensorType.INT32)
    negative, reshaped, y = make.tensor((count,)), make.tensor((1, count)), make.tensor((1, count))
    make.op("NEG", [x], [negative])
    make.op("RESHAPE", [negative, wanted], [reshaped])
    make.op("NEG", [reshaped], [y])
    make.io([x, wanted], [y])
    return make.model()


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
def test_a_computed_shape_may_differ_in_each_run(resolver: OpResolverType) -> None:
    interpreter = Interpreter(model_content=with_computed_shape(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for sizes in ((2, 3), (3, 2), (1, 6), (-1, 2)):
        interpreter.set_tensor(0, SIX.astype(np.float32))
        interpreter.set_tensor(1, np.int32(sizes))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(4), SIX.reshape(sizes))


def test_the_place_for_a_computed_shape_is_planned_as_litert_does() -> None:
    interpreter = Interpreter(
        model_content=with_computed_shape(100),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    # The operand and the result lie in one place; what comes after is planned when the shape is known.
    assert interpreter.memory_plan().offsets == OFFSETS
    interpreter.set_tensor(1, np.int32([10, 10]))
    interpreter.invoke()
    assert interpreter.memory_plan().offsets == OFFSETS | AFTER
