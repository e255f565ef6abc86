"""VAR_HANDLE, with what it works with."""

from __future__ import annotations

import numpy as np

from gossamer import Interpreter, OpResolverType
from tests.ops.variables import accumulator


def test_one_name_is_one_variable_in_every_subgraph() -> None:
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES  # which leaves handles where one sees them
    interpreter = Interpreter(model_content=accumulator(), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(interpreter.get_tensor(1), [0])
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), [10])


def test_interpreters_share_nothing() -> None:
    totals = []
    for _ in range(2):
        interpreter = Interpreter(model_content=accumulator())
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.array([1], np.float32))
        interpreter.invoke()
        totals.append(float(interpreter.get_tensor(4)[0]))
    assert totals == [11, 11]
