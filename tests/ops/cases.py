"""Test cases of operators as data: a model of one operator, its inputs, and what must come out.

Every operator's test file holds ``CASES``; `tests/ops/conftest.py` runs each of them on each backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

import gossamer
from gossamer.delegates.delegate import PartitionInvokeContext
from gossamer.delegates.jit import delegate as jit
from gossamer.dtypes import encode_strings, is_packed, pack
from gossamer.model.model import Model
from gossamer.model.writer import write_model
from gossamer.ops.op_def import OpDef
from gossamer.programs import host
from gossamer.schema import (
    Buffer,
    BuiltinOptions,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SubGraph,
    Table,
    Tensor,
    TensorType,
)
from gossamer.targets import host_target

_TYPES = {
    np.dtype(np.float32): TensorType.FLOAT32,
    np.dtype(np.float16): TensorType.FLOAT16,
    np.dtype(np.float64): TensorType.FLOAT64,
    np.dtype(np.int8): TensorType.INT8,
    np.dtype(np.uint8): TensorType.UINT8,
    np.dtype(np.int16): TensorType.INT16,
    np.dtype(np.uint16): TensorType.UINT16,
    np.dtype(np.int32): TensorType.INT32,
    np.dtype(np.uint32): TensorType.UINT32,
    np.dtype(np.int64): TensorType.INT64,
    np.dtype(np.uint64): TensorType.UINT64,
    np.dtype(np.bool_): TensorType.BOOL,
    np.dtype(np.complex64): TensorType.COMPLEX64,
    np.dtype(np.complex128): TensorType.COMPLEX128,
    np.dtype(np.object_): TensorType.STRING,
}


@dataclass(eq=False)
class Operand:
    """A tensor of a case: its value (an input's, or what is expected of an output) and how the model declares it."""

    value: NDArray[Any]
    type: TensorType
    quantization: QuantizationParameters | None = None
    constant: bool = False
    variable: bool = False
    shape_signature: tuple[int, ...] = ()


def tensor(
    values: ArrayLike,
    dtype: Any = np.float32,
    *,
    shape: Sequence[int] | None = None,
    type: TensorType | None = None,
    scale: float | Sequence[float] | None = None,
    zero_point: int | Sequence[int] = 0,
    dimension: int = 0,
    constant: bool = False,
    variable: bool = False,
) -> Operand:
    """An input or an expected output. ``type`` for element types that NumPy does not tell (int4 with int8 values);
    ``scale`` with several values quantizes along ``dimension``; ``constant`` stores the value in the model."""
    array = np.array(values, dtype)
    if shape is not None:
        array = array.reshape(tuple(shape))
    quantization = None
    if scale is not None:
        scales = np.atleast_1d(np.asarray(scale, np.float32))
        points = np.broadcast_to(np.asarray(zero_point, np.int64), scales.shape).copy()
        quantization = QuantizationParameters(scale=scales, zero_point=points, quantized_dimension=dimension)
    return Operand(array, _TYPES[array.dtype] if type is None else type, quantization, constant, variable)


def const(values: ArrayLike, dtype: Any = np.int32, **how: Any) -> Operand:
    """A constant input; int32 unless told otherwise, as shapes and axes are."""
    return tensor(values, dtype, constant=True, **how)


@dataclass(eq=False)
class Case:
    """One call of an operator. ``None`` among the inputs is an optional operand left out.

    Integers, booleans and strings must come out exactly; floats within ``rtol`` and ``atol``. ``variable`` inputs are
    not fed: their value is what they must hold afterwards. ``calls``: how often to invoke before looking. ``default``:
    the outputs where the default path answers otherwise, as LiteRT's, XNNPACK, does. ``faults``: machine code leaves
    these values to the reference kernel.
    """

    id: str
    inputs: Sequence[Operand | None]
    outputs: Sequence[Operand]
    options: Table | None = None
    version: int = 1
    custom_options: bytes = b""
    rtol: float = 1e-6
    atol: float = 1e-6
    calls: int = 1
    default: Sequence[Operand] = ()
    faults: bool = False
    notes: str = field(default="", repr=False)


def model_of(op: OpDef, case: Case) -> bytes:
    """The case as a .tflite model of one operator."""
    buffers, tensors, inputs = [Buffer()], [], []
    graph_inputs = []
    for position, operand in enumerate(case.inputs):
        if operand is None:
            inputs.append(-1)
            continue
        inputs.append(len(tensors))
        if not operand.constant and not operand.variable:
            graph_inputs.append(len(tensors))
        tensors.append(_stored(f"input_{position}", operand, buffers))
    outputs = list(range(len(tensors), len(tensors) + len(case.outputs)))
    for position, operand in enumerate(case.outputs):
        tensors.append(_stored(f"output_{position}", operand, buffers))
    kind = {}
    if case.options is not None:
        kind["builtin_options" if type(case.options) in BuiltinOptions.codes else "builtin_options_2"] = case.options
    if case.custom_options:
        kind["custom_options"] = np.frombuffer(case.custom_options, np.uint8)
    code: dict[str, Any] = {"builtin_code": op.code, "deprecated_builtin_code": min(int(op.code), 127)}
    if op.custom:
        code["custom_code"] = op.name
    model = Model(
        version=3,
        operator_codes=(OperatorCode(version=case.version, **code),),
        subgraphs=(
            SubGraph(
                tensors=tuple(tensors),
                inputs=tuple(graph_inputs),
                outputs=tuple(outputs),
                operators=(Operator(opcode_index=0, inputs=tuple(inputs), outputs=tuple(outputs), **kind),),
                name="main",
            ),
        ),
        buffers=tuple(buffers),
    )
    return write_model(model)


def _stored(name: str, operand: Operand, buffers: list[Buffer]) -> Tensor:
    fields: dict[str, Any] = {"shape": operand.value.shape, "type": operand.type, "name": name}
    if operand.quantization is not None:
        fields["quantization"] = operand.quantization
    if operand.variable:
        fields["is_variable"] = True
    if operand.shape_signature:
        fields["shape_signature"] = operand.shape_signature
    if operand.constant:
        fields["buffer"] = len(buffers)
        buffers.append(Buffer(data=_stored_bytes(operand)))
    return Tensor(**fields)


def _stored_bytes(operand: Operand) -> NDArray[np.uint8]:
    if operand.type == TensorType.STRING:
        return np.frombuffer(encode_strings(operand.value), np.uint8)
    if is_packed(operand.type):
        return pack(operand.value, operand.type)
    return np.frombuffer(operand.value.tobytes(), np.uint8)


def run_case(make_interpreter: Any, op: OpDef, case: Case) -> None:
    """Build the model, run it, compare every output and variable. Raises what the interpreter raises.

    Where the default delegate has claimed the operator, machine code must have answered.
    """
    interpreter = make_interpreter(model_content=model_of(op, case))
    interpreter.allocate_tensors()
    fed = [operand for operand in case.inputs if operand is not None and not operand.constant and not operand.variable]
    default = make_interpreter is gossamer.Interpreter
    if isinstance(interpreter, gossamer.Interpreter):
        assert_machine_code(interpreter)
        has_target = host_target(host.cpu_features()) is not None
        assert bool(interpreter.delegate_claims()) or not (default and has_target)
    with nullcontext() if case.faults else patch.object(jit, "_run_reference", _fail):
        for _ in range(case.calls):
            for details, operand in zip(interpreter.get_input_details(), fed, strict=True):
                interpreter.set_tensor(details["index"], operand.value)
            interpreter.invoke()
    outputs = case.default if default and case.default else case.outputs
    for details, operand in zip(interpreter.get_output_details(), outputs, strict=True):
        assert_same(interpreter.get_tensor(details["index"]), operand.value, case)
    index = 0
    for operand in case.inputs:
        if operand is not None:
            if operand.variable:
                assert_same(interpreter.get_tensor(index), operand.value, case)
            index += 1


def assert_machine_code(interpreter: gossamer.Interpreter) -> None:
    """What the default delegate has claimed is machine code. (What it leaves, and why, is a table of docs/operators.md,
    which is compared with these cases.)"""
    for subgraph in range(interpreter.num_subgraphs()):
        for kernel in interpreter.delegate_kernels(subgraph):
            if isinstance(kernel, jit.JitKernel):
                assert kernel.failure is None
                assert kernel.program is not None or subgraph > 0  # which is prepared when it is called


def _fail(_: PartitionInvokeContext) -> None:
    pytest.fail("the reference kernels ran in the place of machine code")


def assert_same(got: NDArray[Any], want: NDArray[Any], case: Case) -> None:
    """Same dtype and shape; equal, or for floats as near as the case says."""
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if want.dtype.kind in "fc":
        np.testing.assert_allclose(got, want, rtol=case.rtol, atol=case.atol)
    else:
        np.testing.assert_array_equal(got, want)
