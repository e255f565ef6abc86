"""Resource variables that programs read and write where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, InvokeError
from gossamer.delegates.jit.late import LateKernel
from gossamer.schema import (
    ActivationFunctionType,
    CallOnceOptions,
    GatherOptions,
    ReducerOptions,
    SequenceRNNOptions,
    TensorType,
    VarHandleOptions,
)
from tests.delegates.jit.running import machine_code, reference
from tests.ops.variables import accumulator
from tests.runtime.graphs import ModelMaker


def variables_of(interpreter: Any) -> dict[int, Any]:
    variables: dict[int, Any] = interpreter._subgraphs[0].resources.variables
    return variables


def added(interpreter: Any, x: float) -> float:
    interpreter.set_tensor(0, np.float32([x]))
    interpreter.invoke()
    return float(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])


def test_an_accumulator_is_one_program_from_its_first_run_on() -> None:
    interpreter, kernel = machine_code(accumulator())
    assert [added(interpreter, x) for x in (1, 2, 3)] == [11, 13, 16]
    assert kernel.again is not None
    assert variables_of(interpreter)[0].tolist() == [16]


def test_a_variable_that_is_another_array_is_bound_anew() -> None:
    interpreter, kernel = machine_code(accumulator())
    added(interpreter, 1)
    variables_of(interpreter)[0] = np.float32([100])
    assert added(interpreter, 1) == 101
    assert added(interpreter, 1) == 102
    assert kernel.again is not None


@pytest.mark.parametrize("value", [np.float32([[5]]), np.float32([5, 6]), np.int32([5])])
def test_a_variable_of_another_shape_or_type_is_left_to_the_reference_kernels(value: Any) -> None:
    results = []
    for interpreter in (machine_code(accumulator())[0], reference(accumulator())):
        interpreter.allocate_tensors()
        added(interpreter, 1)
        variables_of(interpreter)[0] = value
        try:
            results.append(added(interpreter, 1))
        except InvokeError as error:
            results.append(str(error).splitlines()[0].partition("READ_VARIABLE")[2])
        results.append(variables_of(interpreter)[0].tolist())
    assert results[:2] == results[2:]


def test_a_known_file_needs_no_lowering(tmp_path: Path) -> None:
    path = tmp_path / "accumulator.tflite"
    path.write_bytes(accumulator())
    for _ in range(2):
        interpreter = Interpreter(str(path))
        interpreter.allocate_tensors()
        assert [added(interpreter, x) for x in (1, 2)] == [11, 13]
        (kernel,) = interpreter.delegate_kernels()
        assert kernel.is_known


def test_what_has_been_written_before_a_fault_is_written_once() -> None:
    """total = total + 1, y = total[x]."""
    make = ModelMaker()
    x, handle = make.tensor((1,), TensorType.INT32), make.tensor((1,), TensorType.RESOURCE)
    before, after, y = make.tensor((3,)), make.tensor((3,)), make.tensor((1,))
    one = make.constant([1, 1, 1], np.float32, TensorType.FLOAT32)
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("READ_VARIABLE", [handle], [before])
    make.op("ADD", [before, one], [after])
    make.op("ASSIGN_VARIABLE", [handle, after], [])
    make.op("GATHER", [after, x], [y], GatherOptions())
    make.io([x], [y])
    make.subgraph("init")
    handle = make.tensor((1,), TensorType.RESOURCE)
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("ASSIGN_VARIABLE", [handle, make.constant([0, 10, 20], np.float32, TensorType.FLOAT32)], [])
    make.io([], [])
    interpreter, _ = machine_code(make.model())
    for index, wanted in ((1, 11), (7, None), (2, 23), (9, None), (0, 5)):
        interpreter.set_tensor(x, np.int32([index]))
        if wanted is None:
            with pytest.raises(InvokeError, match="out of range"):
                interpreter.invoke()
        else:
            interpreter.invoke()
            assert interpreter.get_tensor(y).tolist() == [wanted]


def state_and_index() -> bytes:
    """h = h + x, y = h[i], of a variable tensor h."""
    make = ModelMaker()
    x, i = make.tensor((1, 1, 2)), make.tensor((1,), TensorType.INT32)
    weights = [make.constant(np.eye(2), np.float32, TensorType.FLOAT32) for _ in range(2)]
    bias, state = make.constant([0, 0], np.float32, TensorType.FLOAT32), make.tensor((1, 2), is_variable=True)
    sums, y = make.tensor((1, 1, 2)), make.tensor((1, 1, 1))
    options = SequenceRNNOptions(fused_activation_function=ActivationFunctionType.NONE)
    make.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, *weights, bias, state], [sums], options)
    make.op("GATHER", [sums, i], [y], GatherOptions(axis=2))
    make.io([x, i], [y])
    return make.model()


def test_a_variable_tensor_is_changed_once_by_a_run_that_fails() -> None:
    interpreter, kernel = machine_code(state_and_index())
    expected = reference(state_and_index())
    expected.allocate_tensors()
    for index in (1, 0, 0, 7, 1, 1, 1, 9, 9, 0):
        found = []
        for each in (interpreter, expected):
            each.set_tensor(0, np.float32([[[1, 10]]]))
            each.set_tensor(1, np.int32([index]))
            if index > 1:
                with pytest.raises(InvokeError, match="out of range"):
                    each.invoke()
            else:
                each.invoke()
                found.append(float(each.get_tensor(each.get_output_details()[0]["index"]).item()))
        assert len(set(found)) <= 1, (index, found)
    assert kernel.again is not None  # which keeps what it changes


def test_what_is_assigned_first_needs_no_value() -> None:
    make = ModelMaker()
    x, y, handle = make.tensor((2,)), make.tensor((2,)), make.tensor((1,), TensorType.RESOURCE)
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("ASSIGN_VARIABLE", [handle, x], [])
    make.op("READ_VARIABLE", [handle], [y])
    make.io([x], [y])
    interpreter, _ = machine_code(make.model())
    interpreter.set_tensor(x, np.float32([1, 2]))
    interpreter.invoke()
    assert interpreter.get_tensor(y).tolist() == variables_of(interpreter)[0].tolist() == [1, 2]


def test_variables_are_swapped_as_they_were() -> None:
    """a, b = b, a + x."""
    make = ModelMaker()
    x, y = make.tensor((2,)), make.tensor((2,))
    handles = [make.tensor((1,), TensorType.RESOURCE) for _ in range(2)]
    values = [make.tensor((2,)) for _ in range(2)]
    for name, handle, value in zip("ab", handles, values, strict=True):
        make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name=name))
        make.op("READ_VARIABLE", [handle], [value])
    make.op("ADD", [values[0], x], [y])
    make.op("ASSIGN_VARIABLE", [handles[0], values[1]], [])
    make.op("ASSIGN_VARIABLE", [handles[1], y], [])
    make.io([x], [y])
    interpreter, _ = machine_code(make.model())
    variables_of(interpreter).update({0: np.float32([1, 2]), 1: np.float32([10, 20])})
    interpreter.set_tensor(x, np.float32([1, 1]))
    found = []
    for _ in range(3):
        interpreter.invoke()
        found.append(interpreter.get_tensor(y).tolist())
    assert found == [[2, 3], [11, 21], [3, 4]]


def test_what_is_assigned_before_a_subgraph_that_runs_once_is_assigned_again_by_that() -> None:
    make = ModelMaker()
    x, handle, y = make.tensor((1,)), make.tensor((1,), TensorType.RESOURCE), make.tensor((1,))
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("ASSIGN_VARIABLE", [handle, x], [])
    make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    make.op("READ_VARIABLE", [handle], [y])
    make.io([x], [y])
    make.subgraph("init")
    handle = make.tensor((1,), TensorType.RESOURCE)
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("ASSIGN_VARIABLE", [handle, make.constant([7], np.float32, TensorType.FLOAT32)], [])
    make.io([], [])
    interpreter, _ = machine_code(make.model())
    assert [added(interpreter, x) for x in (1, 2)] == [7, 2]


def test_a_variable_that_is_declared_as_a_scalar_has_a_program_for_each_of_its_shapes() -> None:
    make = ModelMaker()
    x, handle = make.tensor((1,)), make.tensor((1,), TensorType.RESOURCE)
    before, y = make.tensor(()), make.tensor(())
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("READ_VARIABLE", [handle], [before])
    make.op("ADD", [before, x], [y])
    make.op("ASSIGN_VARIABLE", [handle, y], [])
    make.io([x], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(x, np.float32([1]))
    (late,) = [one for one in interpreter.delegate_kernels() if isinstance(one, LateKernel)]
    for value in (np.float32([1, 2]), np.float32([[5]]), np.float32([3, 4])):
        variables_of(interpreter)[0] = value.copy()
        for count in (1, 2, 3):
            interpreter.invoke()
            np.testing.assert_array_equal(interpreter.get_tensor(y), value + count)
            assert [len(step.nodes) for step in late.steps if step.program is not None] == [3]
        assert late.again is not None


def test_what_is_found_in_the_data_is_added_to_a_variable() -> None:
    """How many there are is another number each time; the variable is the same, until it has another shape."""
    make = ModelMaker()
    x, handle = make.tensor((6,)), make.tensor((1,), TensorType.RESOURCE)
    places, found, y = make.tensor((1, 1), TensorType.INT64), make.tensor((1, 1)), make.tensor(())
    total, before = make.tensor(()), make.tensor(())
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("READ_VARIABLE", [handle], [before])
    make.op("WHERE", [x], [places])
    make.op("GATHER", [x, places], [found], GatherOptions())
    make.op("SUM", [found, make.constant([0, 1], np.int32, TensorType.INT32)], [total], ReducerOptions())
    make.op("ADD", [before, total], [y])
    make.op("ASSIGN_VARIABLE", [handle, y], [])
    make.io([x], [y, found])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    (late,) = [one for one in interpreter.delegate_kernels() if isinstance(one, LateKernel)]
    for expected in (np.float32([1, 2]), np.float32([[5]])):
        variables_of(interpreter)[0] = expected.copy()
        for count in (3, 1, 5, 2, 6, 0, 4, 4, 3):
            value = (np.arange(6) < count).astype(np.float32) * 2
            interpreter.set_tensor(x, value)
            interpreter.invoke()
            expected = expected + 2 * count
            np.testing.assert_array_equal(interpreter.get_tensor(y), expected)
            np.testing.assert_array_equal(variables_of(interpreter)[0], expected)
            np.testing.assert_array_equal(interpreter.get_tensor(found), value[:count, None])
            assert [len(step.nodes) for step in late.steps if step.program is not None] == [2, 4]
