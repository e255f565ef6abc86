"""ASSIGN_VARIABLE, with what it works with."""

from __future__ import annotations

import numpy as np

from gossamer import Interpreter
from tests.ops.variables import accumulator


def test_a_value_stays_from_call_to_call() -> None:
    interpreter = Interpreter(model_content=accumulator())
    interpreter.allocate_tensors()
    seen = []
    for value in (1, 2, 3):
        interpreter.set_tensor(0, np.array([value], np.float32))
        interpreter.invoke()
        seen.append(float(interpreter.get_tensor(4)[0]))
    assert seen == [11, 13, 16]
