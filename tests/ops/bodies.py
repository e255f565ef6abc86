"""Cases of operators that look at a body subgraph: one operator on two scalars, or none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gossamer.errors import PrepareError
from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.ops.op_def import OpDef
from gossamer.schema import BuiltinOperator, Operator, OperatorCode, SubGraph, Tensor
from tests.ops.cases import Case, model_of, run_case
from tests.ops.reference import REFERENCE


@dataclass(eq=False)
class BodyCase(Case):
    """``body``: the names of the operators in subgraph 1, one after the other."""

    body: tuple[str, ...] = ()


def add_body(content: bytes, case: BodyCase) -> bytes:
    """The model with the body of the case as subgraph 1."""
    model = read_model(content)
    element = case.inputs[0].type if case.inputs[0] is not None else 0
    tensors = tuple(Tensor(shape=(), type=element, name=f"scalar_{i}") for i in range(2 + len(case.body)))
    codes = [BuiltinOperator[name] for name in case.body]
    first = len(model.operator_codes)
    body = SubGraph(
        tensors=tensors,
        inputs=(0, 1),
        outputs=(len(tensors) - 1,),
        operators=tuple(
            Operator(opcode_index=first + i, inputs=(0, 1), outputs=(2 + i,)) for i in range(len(case.body))
        ),
        name="body",
    )
    stored = tuple(OperatorCode(builtin_code=c, deprecated_builtin_code=min(int(c), 127), version=1) for c in codes)
    return write_model(
        model.replace(operator_codes=(*model.operator_codes, *stored), subgraphs=(*model.subgraphs, body))
    )


def run_body_case(make_interpreter: Callable[..., Any], op: OpDef, case: BodyCase) -> None:
    """Like `run_case`."""
    run_case(lambda model_content: make_interpreter(model_content=add_body(model_content, case)), op, case)


def assert_body_refused(op: OpDef, case: BodyCase, message: str) -> None:
    """Preparing the case fails, and says so in words that contain ``message``."""
    interpreter = REFERENCE(model_content=add_body(model_of(op, case), case))
    with pytest.raises(PrepareError, match=re.escape(message)):
        interpreter.allocate_tensors()
