"""Functions of arrays as models of one custom operator, which must run as machine code and compute what NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gossamer
from gossamer.delegates.jit.checking import difference
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.ops.op_def import OpDef
from tests.ops.cases import Case, Operand, model_of, tensor

Array = np.ndarray[Any, np.dtype[Any]]


def interpreter_of(op: OpDef, inputs: Sequence[Operand | None], outputs: Sequence[Array]) -> gossamer.Interpreter:
    """A model of the operator alone, allocated."""
    case = Case("", inputs, [tensor(one, one.dtype) for one in outputs])
    interpreter = gossamer.Interpreter(model_content=model_of(op, case), custom_ops=[op])
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: gossamer.Interpreter, values: Sequence[Array]) -> list[Array]:
    """The outputs for these inputs."""
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(one["index"])) for one in interpreter.get_output_details()]


def refusals(interpreter: gossamer.Interpreter) -> list[str]:
    """Why nodes are not machine code."""
    return list(interpreter.delegate_claims()[0].refusals.values())


def check(function: Callable[..., Any], *values: Any, constant: Sequence[int] = (), runs: int = 2) -> None:
    """That the function is one program, which says the same as NumPy in the first run and behind it."""
    arrays = [np.asarray(value) for value in values]
    with np.errstate(all="ignore"):
        returned = function(*arrays)
    expected = [np.asarray(one) for one in (returned if isinstance(returned, tuple) else (returned,))]
    names = tuple(f"y{number}" for number in range(len(expected)))
    op = gossamer.custom_op("Traced", outputs=names)(function)
    operands = [tensor(one, one.dtype, constant=at in constant) for at, one in enumerate(arrays)]
    interpreter = interpreter_of(op, operands, expected)
    assert refusals(interpreter) == []
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    fed = [one for at, one in enumerate(arrays) if at not in constant]
    for _ in range(runs):
        for got, one in zip(run(interpreter, fed), expected, strict=True):
            assert difference(got, one) == ""
    assert kernel.program is not None
    assert kernel.is_checked


def refusal(function: Callable[..., Any], *values: Any, **settings: Any) -> str:
    """Why the function is not traced; it runs in NumPy and says what it says."""
    arrays = [np.asarray(value) for value in values]
    op = gossamer.custom_op("Untraced", **settings)(function)
    expected = np.asarray(function(*arrays))
    interpreter = interpreter_of(op, [tensor(one, one.dtype) for one in arrays], [expected])
    (reason,) = refusals(interpreter)
    (got,) = run(interpreter, arrays)
    np.testing.assert_array_equal(got, expected)
    return reason
