"""Cases that are prepared without complaint and turned down by the values they are given."""

from __future__ import annotations

import re

import pytest

import gossamer
from gossamer.errors import InvokeError
from gossamer.ops.op_def import OpDef
from tests.ops.cases import Case, model_of
from tests.ops.reference import REFERENCE


def assert_refused_by_invoke(op: OpDef, case: Case, message: str) -> None:
    """The model of the case can be allocated; running it fails, again and again, and says so in words that contain
    ``message``, on reference kernels and where machine code runs."""
    fed = [operand for operand in case.inputs if operand is not None and not operand.constant]
    for make in (REFERENCE, gossamer.Interpreter):
        interpreter = make(model_content=model_of(op, case))
        interpreter.allocate_tensors()
        for details, operand in zip(interpreter.get_input_details(), fed, strict=True):
            interpreter.set_tensor(details["index"], operand.value)
        for _ in range(2):
            with pytest.raises(InvokeError, match=re.escape(message)):
                interpreter.invoke()
