"""Files that leave all shapes open: what they hold, a 1 for each -1 of a signature, is no shape yet.

Programs allocate such a model before they know better, and run it by a signature, which resizes its inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gossamer.interpreter
from gossamer.errors import InvokeError
from gossamer.interpreter import Interpreter, OpResolverType
from gossamer.ops.op_def import OpDef
from tests.ops.cases import Case, Operand, assert_same, model_of
from tests.ops.coverage import cases_of
from tests.ops.test_output_types import OPERATORS
from tests.runtime.outcomes import Api, Recorder, outcomes, outcomes_apart


def _opened(operand: Operand, *, fed: bool) -> Operand:
    if (operand.constant and not fed) or operand.variable:
        return operand
    rank = len(operand.value.shape)
    value = np.zeros((1,) * rank, operand.value.dtype)
    return dataclasses.replace(operand, value=value, shape_signature=(-1,) * rank, constant=False)


def opened(op: OpDef) -> Iterator[tuple[str, Case, Case]]:
    """A name, a case, and the same in a file of open shapes; then with those integers fed that are constant."""
    met = set()
    for case in cases_of(op):
        key = tuple(operand and (operand.type, operand.value.ndim) for operand in (*case.inputs, *case.outputs))
        if key in met:
            continue
        met.add(key)
        for fed in (False, True):
            inputs = [
                operand and _opened(operand, fed=fed and operand.value.dtype.kind == "i" and not operand.quantization)
                for operand in case.inputs
            ]
            outputs = [_opened(output, fed=False) for output in case.outputs]
            yield f"{case.id}{', fed' * fed}", case, dataclasses.replace(case, inputs=inputs, outputs=outputs)


def script(op: OpDef) -> Any:
    """Whether such a file can be allocated, if the operator needs nothing but its operands."""

    def run(api: Api, record: Recorder) -> None:
        for name, case, changed in opened(op):
            for which, model in (("as it is", case), ("opened", changed)):
                record(f"{name}, {which}", lambda model=model: api.open(model_of(op, model)).allocate_tensors())

    return run


@pytest.mark.peer
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_what_litert_allocates_is_allocated(name: str) -> None:
    op = OPERATORS[name]
    peer = Api(pytest.importorskip("ai_edge_litert.interpreter"))
    theirs = outcomes_apart(script(op), peer)
    ours = outcomes(script(op), Api(gossamer.interpreter))
    takes = {label.removesuffix(", as it is") for label, outcome in ours if outcome[0] == "value"}
    refused = {label.removesuffix(", opened") for label, outcome in ours if outcome[0] == "error"}
    taken = {label.removesuffix(", opened") for label, outcome in theirs if outcome[0] == "value"}
    assert takes & refused & taken == set()


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES])
@pytest.mark.parametrize("name", ["SLICE", "TILE", "STRIDED_SLICE"])
def test_a_model_is_allocated_before_its_shapes_are_known(name: str, resolver: OpResolverType) -> None:
    op, objections = OPERATORS[name], 0
    for _, case, changed in opened(op):
        interpreter = Interpreter(model_content=model_of(op, changed), experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
        fed = [case.inputs[at] for at, operand in enumerate(changed.inputs) if operand and not operand.constant]
        for details in interpreter.get_input_details():
            interpreter.set_tensor(details["index"], np.zeros(details["shape"], details["dtype"]))
        if interpreter._subgraph(0).nodes[0].objection:
            objections += 1
            with pytest.raises(InvokeError, match=name):
                interpreter.invoke()
        for details, operand in zip(interpreter.get_input_details(), fed, strict=True):
            interpreter.resize_tensor_input(details["index"], operand.value.shape)
        interpreter.allocate_tensors()
        for details, operand in zip(interpreter.get_input_details(), fed, strict=True):
            interpreter.set_tensor(details["index"], operand.value)
        interpreter.invoke()
        expected = case.default if resolver is OpResolverType.AUTO and case.default else case.outputs
        for details, operand in zip(interpreter.get_output_details(), expected, strict=True):
            assert_same(interpreter.get_tensor(details["index"]), operand.value, case)
    assert objections
