"""READ_VARIABLE: variables without a value, and of other shapes than the output."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter, InvokeError
from gossamer.schema import TensorType, VarHandleOptions
from tests.ops.variables import accumulator
from tests.runtime.graphs import ModelMaker


def test_a_variable_without_a_value_is_an_error() -> None:
    interpreter = Interpreter(model_content=accumulator(initialise=False))
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match="variable 0 has no value: ASSIGN_VARIABLE must run first"):
        interpreter.invoke()


def stored_and_read(shape: tuple[int, ...]) -> Interpreter:
    """y, declared of this shape, is a variable that x was assigned to."""
    make = ModelMaker()
    x, handle, y = make.tensor(shape), make.tensor((1,), TensorType.RESOURCE), make.tensor(shape)
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="v"))
    make.op("ASSIGN_VARIABLE", [handle, x], [])
    make.op("READ_VARIABLE", [handle], [y])
    make.io([x], [y])
    make.signature("keep", {"x": x}, {"y": y})
    return Interpreter(model_content=make.model())


def test_an_output_declared_as_a_scalar_takes_every_shape_in_turn() -> None:
    keep = stored_and_read(()).get_signature_runner()
    for shape in ((), (1,), (2,), (), (2, 3)):
        assert keep(x=np.ones(shape, np.float32))["y"].shape == shape


def test_an_output_of_a_fixed_shape_takes_as_many_elements_of_another_shape() -> None:
    keep = stored_and_read((2,)).get_signature_runner()
    x = np.array([[1, 2]], np.float32)
    np.testing.assert_array_equal(keep(x=x)["y"], x.reshape(2))
    with pytest.raises(InvokeError, match=r"output 0 has shape \[2\], the kernel returned \[3\]"):
        keep(x=np.ones(3, np.float32))
