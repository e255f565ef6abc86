"""What each operator takes, and what becomes machine code: the models that answer, and the answers.

The models are the cases of the operators, and the same cases with another element type in the place of that of their
principal operand. Those that prepare accepts are shown to the default delegate. Nothing is compiled or run.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

import gossamer
from gossamer.delegates.delegate import NodeInfo
from gossamer.delegates.jit.delegate import JitDelegate
from gossamer.delegates.jit.late import LateDelegate
from gossamer.delegates.jit.lowering import ELEMENTS
from gossamer.dtypes import NO_ARENA, is_packed, numpy_dtype, type_name
from gossamer.errors import GossamerError
from gossamer.ops import all_ops, module_name
from gossamer.ops.op_def import OpDef
from gossamer.schema import BuiltinOperator, QuantizationParameters, TensorType
from gossamer.targets import all_targets
from tests.ops import (
    test_densify,
    test_if_,
    test_lstm,
    test_stablehlo_case,
    test_stablehlo_composite,
    test_unidirectional_sequence_lstm,
    test_while_,
)
from tests.ops.bodies import BodyCase, add_body
from tests.ops.cases import Case, Operand, model_of
from tests.ops.lstm_cells import with_intermediates
from tests.ops.tables import INT64, STRING, TableModel
from tests.ops.variables import accumulator

ORDER = (
    *(TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.FLOAT64),
    *(TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2),
    *(TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64),
    *(TensorType.UINT16, TensorType.UINT32, TensorType.UINT64, TensorType.BOOL),
    *(TensorType.COMPLEX64, TensorType.COMPLEX128, TensorType.INT4, TensorType.UINT4, TensorType.INT2),
    *(TensorType.STRING, TensorType.RESOURCE),
)
"""Element types as the table lists them."""

QUANTIZED = {TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.UINT4, TensorType.INT2}

WEIGHTS = {TensorType.FLOAT32, TensorType.INT8}
"""An operand that may have both and has another type than the principal one is named too."""

WHOLE = {type_name(type) for type in ELEMENTS}

LITERT: Mapping[str, Sequence[str]] = json.loads((Path(__file__).parents[1] / "data" / "op_types.json").read_text())
"""By operator, the types with which LiteRT's own kernels ran when they were asked for every type."""

BESIDES = {
    "FAKE_QUANT": "every type is read as float32",
    "HASHTABLE_LOOKUP": "rows of less than a byte are copied as if they had none",
    "LSH_PROJECTION": "seeds of every type are read as float32",
    "MATRIX_DIAG": "elements are copied as bytes, or not at all",
    "MATRIX_SET_DIAG": "elements are copied as bytes, or not at all",
    "MAXIMUM": "tensors without elements",
    "MINIMUM": "tensors without elements",
    "STABLEHLO_PAD": "elements are copied as bytes",
    "TILE": "multipliers of 1, for which nothing is done",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "every type is read as float32",
}
"""Why types of `LITERT` are not taken here."""

RUNNING = "is only known when the model runs"

GENERAL = ("has no elements", RUNNING, "the quantization of")
"""Parts of reasons that hold for every operator."""

MANY = 16
"""An operator that converts between so many types is listed by what it reads."""

MOST_RETYPED = 3
"""Cases of an operator that are tried with other types: so many of the first, and of the last."""

DATA = {TensorType.FLOAT32, TensorType.INT8, TensorType.COMPLEX64, TensorType.STRING}
"""An operand that may have one of these types holds data, not positions or sizes."""


def _integer_cells() -> Iterator[tuple[str, bytes]]:
    for intermediates, case in test_lstm.INTEGER_CASES:
        yield "int8", with_intermediates(_content, intermediates)(model_of(test_lstm.op, case))


def _integer_sequences() -> Iterator[tuple[str, bytes]]:
    module = test_unidirectional_sequence_lstm
    for case in module.INTEGER_CASES:
        yield "int8", with_intermediates(_content, module.intermediates_of(case))(model_of(module.op, case))


def _content(model_content: bytes) -> bytes:
    return model_content


def _hash_tables() -> Iterator[tuple[str, bytes]]:
    yield "int64, string", TableModel(STRING, INT64).fill([b"a"], [1]).find([b"a"], [0]).size().model()


MODELS: Mapping[str, Callable[[], Iterable[tuple[str, bytes]]]] = {
    **dict.fromkeys(
        ("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE"), lambda: [("any type", accumulator())]
    ),
    **dict.fromkeys(
        ("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE"),
        _hash_tables,
    ),
    "DENSIFY": lambda: [
        ("float32", test_densify.sparse_model([[0, 0, 1], [2, 3, 0]], [1, 2, 3], test_densify.CSR)),
    ],
    "IF": lambda: [("any type", test_if_.branching())],
    "STABLEHLO_CASE": lambda: [("any type", test_stablehlo_case.branching())],
    "STABLEHLO_COMPOSITE": lambda: [("any type", test_stablehlo_composite.composite())],
    "WHILE": lambda: [("any type", test_while_.counting())],
    "LSTM": _integer_cells,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _integer_sequences,
}
"""Models that are no cases: of several operators, or with more than a case can say; and the types that they have."""


class Survey(JitDelegate):
    """The default delegate, claiming nothing: it writes down what it would say to the nodes of an operator."""

    def __init__(self, op: OpDef) -> None:
        super().__init__(target=all_targets()["avx2"])  # which does not matter
        self.op = op
        self.reasons: list[str | None] = []

    def is_node_supported(self, node: NodeInfo) -> bool | str:
        if node.op is self.op:
            said = super().is_node_supported(node)
            if isinstance(said, str) and RUNNING in said and node.op.tells_shapes:
                said = LateDelegate(self).is_node_supported(node) is True or said
            # What prepare computes of constants needs no kernel; that says something only of operators without one.
            if node.op.lower_function is None or not all(tensor.is_constant for tensor in node.outputs):
                self.reasons.append(said if isinstance(said, str) else None)
        return False


@cache
def claims(op: OpDef) -> dict[str, set[str | None]]:
    """By the types of a model: why the default delegate leaves the operator to the reference kernel, ``None`` where it
    does not."""
    found: dict[str, set[str | None]] = {}
    for types, model in models(op):
        survey = Survey(op)
        try:
            gossamer.Interpreter(
                model_content=model,
                experimental_delegates=[survey],
                experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            ).allocate_tensors()
        except GossamerError:
            continue  # types that do not go together
        if survey.reasons:
            found.setdefault(types, set()).update(survey.reasons)
    return found


def models(op: OpDef) -> Iterator[tuple[str, bytes]]:
    """Models with an operator, and the types that they have: its cases, and some of them with each other legal type."""
    cases = cases_of(op)
    for case in cases:
        yield _types(op, case), model(op, case)
    legal = {type for operand in op.inputs for type in op.types.get(operand.rstrip("?*"), ORDER)}
    for type in ORDER:
        if type in legal and type not in NO_ARENA:
            for case in (*cases[:MOST_RETYPED], *cases[MOST_RETYPED:][-MOST_RETYPED:]):
                other = retyped(op, case, type)
                if other is not None:
                    yield _types(op, other), model(op, other)
    yield from MODELS.get(op.name, tuple)()


def cases_of(op: OpDef) -> Sequence[Case]:
    """The cases in the test file of an operator."""
    stem = module_name(op.name, custom=op.custom).rpartition(".")[2]
    cases: Sequence[Case] = getattr(importlib.import_module(f"tests.ops.test_{stem}"), "CASES", ())
    return cases


def model(op: OpDef, case: Case) -> bytes:
    """The case as a model."""
    content = model_of(op, case)
    return add_body(content, case) if isinstance(case, BodyCase) else content


def retyped(op: OpDef, case: Case, type: TensorType) -> Case | None:
    """The case with another type in the place of that of its principal operand, and of those that have to have it too;
    ``None`` if that cannot be. What it computes is not known; prepare may refuse it."""
    source = case.inputs[_principal(op, case)] if case.inputs else None
    if source is None or source.type in (type, *NO_ARENA):
        return None

    def replaced(declared: Sequence[str], operands: Sequence[Operand | None]) -> list[Operand | None]:
        return [
            _as(operand, type)
            if operand is not None and operand.type == source.type and type in legal and legal & DATA
            else operand
            for operand, legal in zip(operands, _legal(op, declared, len(operands)), strict=True)
        ]

    inputs, outputs = replaced(op.inputs, case.inputs), replaced(op.outputs, case.outputs)
    return dataclasses.replace(case, inputs=inputs, outputs=outputs, version=op.max_version)


def _as(operand: Operand, type: TensorType) -> Operand:
    value = np.abs(np.nan_to_num(np.asarray(operand.value, np.complex128).real, posinf=1))
    value = np.clip(value, 0, 1) if is_packed(type) else np.clip(value, 0, 100)
    grid = operand.quantization
    if type not in QUANTIZED:
        grid = None
    elif grid is None:
        grid = QuantizationParameters(scale=np.array([0.5], np.float32), zero_point=np.zeros(1, np.int64))
    return dataclasses.replace(operand, value=value.astype(numpy_dtype(type)), type=type, quantization=grid)


def _legal(op: OpDef, declared: Sequence[str], count: int) -> list[set[TensorType]]:
    """The types that each of so many operands may have."""
    names = [declared[min(position, len(declared) - 1)].rstrip("?*") for position in range(count)]
    return [set(op.types.get(name, ORDER)) for name in names]


def _principal(op: OpDef, case: Case) -> int:
    """The operand called input, else the first that holds data; 0 if there is none."""
    if "input" in op.inputs[: len(case.inputs)]:
        return op.inputs.index("input")
    legal = _legal(op, op.inputs, len(case.inputs))
    return next(
        (at for at, operand in enumerate(case.inputs) if operand is not None and legal[at] & DATA),
        0,
    )


def _types(op: OpDef, case: Case) -> str:
    """Names of the types that tell kernels apart: ``float32 with int8``, ``int8 to int16``."""
    if not case.inputs:
        return type_name(case.outputs[0].type)
    at = _principal(op, case)
    first = case.inputs[at]
    assert first is not None
    text = type_name(first.type)
    legal = _legal(op, op.inputs, len(case.inputs))
    for name, operand, types in zip(op.inputs, case.inputs, legal, strict=False):
        if operand is None or operand.type == first.type or operand.type not in QUANTIZED or "bias" in name:
            continue
        if types >= WEIGHTS and len(types) < MANY:
            text += f" with {type_name(operand.type)}"
            break
    if case.outputs and first.type in QUANTIZED | {TensorType.FLOAT32}:
        output, types = case.outputs[0].type, _legal(op, op.outputs, 1)[0]
        if output != first.type and TensorType.INT8 in types and 1 < len(types) < MANY:
            text += f" to {type_name(output)}"
    return text


def row(op: OpDef) -> str:
    """A row of Markdown: an operator, its versions, types with machine code, and why others have none."""
    found = claims(op)
    claimed = [types for types, reasons in found.items() if None in reasons]
    versions = str(op.max_version) if op.min_version == op.max_version else f"{op.min_version}-{op.max_version}"
    name = f"{op.name} (custom)" if op.custom else op.name
    return f"| {name} | {versions} | {_listed(claimed)} | {'; '.join(_reasons(found))} |"


def codes() -> str:
    """The builtin codes that no operator has."""
    names = {op.name for op in all_ops()}
    return ", ".join(f"`{code.name}`" for code in BuiltinOperator if code.name not in names)


def besides(op: OpDef) -> str | None:
    """A row of Markdown: types that LiteRT's kernel takes and the operator here does not, and why that is."""
    missing = set(LITERT.get(op.name, ())) - {word.strip(",") for known in claims(op) for word in known.split()}
    return f"| {op.name} | {_listed(sorted(missing))} | {BESIDES[op.name]} |" if missing else None


def _reasons(found: Mapping[str, set[str | None]]) -> Iterator[str]:
    """What the reference kernel does alone, grouped by reason."""
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for types, reasons in found.items():
        said = sorted(reason for reason in reasons if reason is not None)
        special = [reason for reason in said if not any(part in reason for part in GENERAL)]
        for reason in special or (said if None not in reasons else ()):
            template = f"{reason.removesuffix(types)}{{}}" if reason.endswith(f" {types}") else reason
            groups.setdefault(template, ([], []))[None in reasons].append(types)
    for reason, (all_of, some_of) in groups.items():
        if all_of:
            listed = _listed(all_of)
            yield reason.replace("{}", listed) if "{}" in reason else f"{listed}: {reason}"
        if some_of:
            listed = _listed(some_of)
            yield f"some {listed}: {reason.replace('{}', listed)}"


def _listed(types: Sequence[str]) -> str:
    """Types in the order of `ORDER`; all that fill bytes, and no more than eight, in two words."""
    if set(types) >= WHOLE:
        return ", ".join(["whole bytes", *_sorted(set(types) - WHOLE)])
    return ", ".join(_sorted(types))


def _sorted(types: Iterable[str]) -> list[str]:
    order = [type_name(type) for type in ORDER]
    return sorted(types, key=lambda text: [order.index(word) if word in order else -1 for word in text.split()])
