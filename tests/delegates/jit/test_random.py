"""Random numbers that machine code draws: the reference kernels' own, which both go on with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.schema import BuiltinOptions, GatherOptions, RandomOptions, TensorType
from tests.delegates.jit.running import TARGETS, reference
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

COUNT = 11
NAMES = ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
assert RandomOptions in BuiltinOptions.codes


def drawn(name: str, **seeds: int) -> bytes:
    """x [3, 4] gathered at an index, and random numbers."""
    make = ModelMaker()
    x, index = make.tensor((3, 4)), make.tensor((1,), TensorType.INT32)
    row, y = make.tensor((1, 4)), make.tensor((COUNT,))
    make.op("GATHER", [x, index], [row], GatherOptions())
    make.op(name, [make.constant([COUNT], np.int32, TensorType.INT32)], [y], RandomOptions(**seeds))
    make.io([x, index], [row, y])
    return make.model()


def on_machine_code(model: bytes) -> Any:
    interpreter = gossamer.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert not claims.refusals
    return interpreter


def numbers(interpreter: Any) -> np.ndarray[Any, Any]:
    interpreter.invoke()
    return interpreter.get_tensor(3)


@pytest.mark.parametrize("name", NAMES)
def test_each_run_goes_on_and_each_interpreter_begins_anew(name: str) -> None:
    model = drawn(name, seed=3, seed2=5)
    wanted = reference(model)
    wanted.allocate_tensors()
    expected = [numbers(wanted) for _ in range(4)]
    assert len({each.tobytes() for each in expected}) == 4
    one, other = on_machine_code(model), on_machine_code(model)
    for want in expected:
        np.testing.assert_allclose(numbers(one), want, rtol=1e-5, atol=1e-6)
    for want in expected[:2]:
        np.testing.assert_allclose(numbers(other), want, rtol=1e-5, atol=1e-6)
    one.resize_tensor_input(0, [5, 4])
    one.allocate_tensors()
    for want in expected[:2]:
        np.testing.assert_allclose(numbers(one), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_without_seeds_no_two_are_alike(name: str) -> None:
    model = drawn(name)
    found = [numbers(interpreter) for interpreter in [on_machine_code(model) for _ in range(3)] for _ in range(2)]
    assert len({each.tobytes() for each in found}) == len(found)


def test_what_a_fault_leaves_to_the_reference_kernels_goes_on_where_machine_code_was() -> None:
    model = drawn("RANDOM_UNIFORM", seed=1)
    interpreter = on_machine_code(model)
    found = [numbers(interpreter) for _ in range(2)]
    interpreter.set_tensor(1, np.array([7], np.int32))
    with pytest.raises(RuntimeError, match="out of range"):
        interpreter.invoke()
    interpreter.set_tensor(1, np.array([0], np.int32))
    found += [numbers(interpreter) for _ in range(2)]
    assert len({each.tobytes() for each in found}) == 4
