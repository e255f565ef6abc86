"""READ_VARIABLE of a variable without a value."""

from __future__ import annotations

import pytest

from gossamer import Interpreter, InvokeError
from tests.ops.variables import accumulator


def test_a_variable_without_a_value_is_an_error() -> None:
    interpreter = Interpreter(model_content=accumulator(initialise=False))
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match="variable 0 has no value: ASSIGN_VARIABLE must run first"):
        interpreter.invoke()
