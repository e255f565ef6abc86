"""Cases on the reference kernels: those that must be turned down, and those whose output is looked at by hand."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from numpy.typing import NDArray

import gossamer
from gossamer.errors import PrepareError
from gossamer.ops.op_def import OpDef
from tests.ops.cases import Case, model_of

REFERENCE = partial(
    gossamer.Interpreter, experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
)


def assert_refused(op: OpDef, case: Case, message: str) -> None:
    """Preparing the model of the case fails, and says so in words that contain ``message``."""
    interpreter = REFERENCE(model_content=model_of(op, case))
    with pytest.raises(PrepareError, match=re.escape(message)):
        interpreter.allocate_tensors()


def output_of(op: OpDef, case: Case) -> NDArray[Any]:
    """What the first output of the case is."""
    interpreter = REFERENCE(model_content=model_of(op, case))
    interpreter.allocate_tensors()
    fed = [operand for operand in case.inputs if operand is not None and not operand.constant and not operand.variable]
    for details, operand in zip(interpreter.get_input_details(), fed, strict=True):
        interpreter.set_tensor(details["index"], operand.value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
