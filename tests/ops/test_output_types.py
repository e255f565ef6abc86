"""An output whose type in the file is not the one that comes out: TFLite sets it, checks it, or trips over it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gossamer.interpreter
from gossamer.errors import PrepareError
from gossamer.interpreter import Interpreter, OpResolverType
from gossamer.ops import all_ops
from gossamer.ops.op_def import OpDef
from gossamer.schema import TensorType
from tests.ops.cases import Case, model_of
from tests.ops.coverage import cases_of
from tests.runtime.api_models import quantized
from tests.runtime.graphs import ModelMaker
from tests.runtime.outcomes import CRASH, Api, Outcome, Recorder, outcomes, outcomes_apart

RETYPED = (TensorType.FLOAT32, TensorType.INT8, TensorType.INT64, TensorType.STRING)


OPERATORS = {op.name: op for op in all_ops() if cases_of(op)}


def retyped(op: OpDef) -> Iterator[tuple[str, int, Case, Case]]:
    """A name, an output, a case, and the same case with a file that gives this output another type."""
    met = set()
    for case in cases_of(op):
        types = tuple(operand and operand.type for operand in (*case.inputs, *case.outputs))
        if types in met:
            continue
        met.add(types)
        for at, output in enumerate(case.outputs):
            for type in RETYPED:
                if type != output.type:
                    outputs = list(case.outputs)
                    outputs[at] = dataclasses.replace(output, type=type)
                    yield f"{case.id}, output {at} {type.name}", at, case, dataclasses.replace(case, outputs=outputs)


def script(op: OpDef) -> Any:
    """What becomes of every such file: an error of a phase, or the output's dtype and value."""

    def run(api: Api, record: Recorder) -> None:
        for name, at, case, changed in retyped(op):
            record(name, _run, api, op, at, case, changed)

    return run


def _run(api: Api, op: OpDef, at: int, case: Case, changed: Case) -> Any:
    try:
        interpreter = api.open(model_of(op, changed), resolver="BUILTIN_REF")
    except ValueError:  # the reference resolver lacks a few operators and versions
        interpreter = api.open(model_of(op, changed))
    interpreter.allocate_tensors()
    fed = [operand for operand in case.inputs if operand is not None and not operand.constant and not operand.variable]
    for _ in range(case.calls):
        for details, operand in zip(interpreter.get_input_details(), fed, strict=True):
            interpreter.set_tensor(details["index"], operand.value)
        interpreter.invoke()
    details = interpreter.get_output_details()[at]
    value = interpreter.get_tensor(details["index"])
    assert value.dtype == details["dtype"] or value.dtype == np.object_
    return value


def _is_expected(outcome: Outcome, at: int, case: Case) -> bool:
    """Whether a value came out as the case has it, though the file says another type."""
    want = case.outputs[at].value
    if outcome[0] != "value" or outcome[1][1:3] != (str(want.dtype), want.shape):
        return False
    if want.dtype.kind in "fc":
        return bool(np.allclose(outcome[1][3], want, 1e-3, 1e-3, equal_nan=True))
    return np.array_equal(np.array(outcome[1][3], want.dtype), want)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_both_paths_take_the_same_files(name: str) -> None:
    op = OPERATORS[name]

    def become(content: bytes, at: int, resolver: OpResolverType) -> Any:
        try:
            interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
            interpreter.allocate_tensors()
        except PrepareError as error:
            return str(error)
        return interpreter.get_output_details()[at]["dtype"]

    for label, at, _, changed in retyped(op):
        content = model_of(op, changed)
        reference = become(content, at, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        assert become(content, at, OpResolverType.AUTO) == reference, label


@pytest.mark.peer
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_types_are_set_where_litert_sets_them(name: str) -> None:
    op = OPERATORS[name]
    peer = Api(pytest.importorskip("ai_edge_litert.interpreter"))
    theirs = dict(outcomes_apart(script(op), peer))
    ours = dict(outcomes(script(op), Api(gossamer.interpreter)))
    wrong = []
    for label, at, case, _ in retyped(op):
        if label not in theirs:
            break  # LiteRT died of the one before, which it neither sets nor checks
        if _is_expected(theirs[label], at, case) and not _is_expected(ours[label], at, case):
            wrong.append((label, ours[label]))
        assert ours[label] != CRASH
    assert wrong == []


def test_a_type_that_others_rely_on_is_not_set() -> None:
    for swapped in (False, True):
        make = ModelMaker()
        x = make.tensor((2,), TensorType.INT8, "x", quantization=quantized([0.5]))
        y = make.tensor((2,), TensorType.INT8, "y", quantization=quantized([0.5]))
        z = make.tensor((2,), TensorType.INT8, "z", quantization=quantized([0.5]))
        make.op("RELU", [x], [y])
        make.op("RELU", [y], [z])
        make.op("DEQUANTIZE", [y], [y if swapped else x])
        make.io([x], [z])
        for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
            interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
            for _ in range(2):
                with pytest.raises(PrepareError, match="output 0 must be float32, got int8"):
                    interpreter.allocate_tensors()
