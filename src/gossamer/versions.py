"""Versions of operators in both directions: which one a model needs, which release has it, and models for older ones.

An operator's file says which versions it has, since which release, and what makes an operator of a model need each;
all else is derived from that. A newer runtime has every older version, so old models load. A model loads on an older
runtime if each of its operators has the lowest version that its operands and options allow, and the runtime has that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gossamer.model.metadata import with_min_runtime_version
from gossamer.model.model import Model, resolved_code
from gossamer.ops import find_op
from gossamer.ops.op_signature import OpSignature, TensorSpec
from gossamer.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from gossamer.ops.op_def import OpDef
    from gossamer.schema.tables import Operator, OperatorCode, SubGraph


def op_signature(model: Model, subgraph: SubGraph, operator: Operator) -> OpSignature:
    """What versions may depend on in an operator of a model. Raises `ModelError` if its operator code is missing."""
    code = model.operator_code(operator)
    op = _builtin(code)
    stored = (operator.builtin_options, operator.builtin_options_2)
    return OpSignature(
        resolved_code(code),
        tuple(_spec(model, subgraph, index) for index in operator.inputs),
        tuple(_spec(model, subgraph, index) for index in operator.outputs),
        next((options for options in stored if op is not None and type(options) is op.options), None),
        code.version,
        code.custom_code,
    )


def _spec(model: Model, subgraph: SubGraph, index: int) -> TensorSpec:
    if not 0 <= index < len(subgraph.tensors):
        return TensorSpec()
    tensor = subgraph.tensors[index]
    stored = 0 < tensor.buffer < len(model.buffers)
    data = model.buffer_data(tensor.buffer) if stored else None
    return TensorSpec(
        tensor.type,
        tensor.shape,
        tensor.quantization,
        is_constant=data is not None and len(data) > 0,
        is_dynamic=-1 in tensor.shape_signature,
        is_sparse=tensor.sparsity is not None,
    )


def _builtin(code: OperatorCode) -> OpDef | None:
    number = resolved_code(code)
    return find_op(BuiltinOperator(number).name) if number in BuiltinOperator._value2member_map_ else None


def get_builtin_operator_version(signature: OpSignature) -> int:
    """The lowest version that has what an operator needs: TFLite's GetBuiltinOperatorVersion.

    1 for a custom operator, and for a builtin one that is not known here.
    """
    op = find_op(signature.name) if signature.op != BuiltinOperator.CUSTOM else None
    return 1 if op is None else op.needed_version(signature).number


def runtime_version(op: BuiltinOperator | str, version: int) -> str:
    """The first release that has a version of a builtin operator, such as ``"2.3.0"``; ``""`` if none is known."""
    known = find_op(op if isinstance(op, str) else op.name)
    return "" if known is None else known.runtime_version(version)


def release_key(release: str) -> tuple[int, ...]:
    """Releases in their order: ``"1.9" < "1.10" == "1.10.0"``. Raises `ValueError` for what is not dotted integers."""
    if not release:
        return ()
    parts = release.split(".")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{release!r} is no release; write numbers and dots, as in 2.5.0")
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def operators(model: Model) -> Iterator[tuple[SubGraph, Operator]]:
    """Every operator of a model with the subgraph it stands in, in the order of the file."""
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            yield subgraph, operator


def needed_versions(model: Model) -> dict[int, int]:
    """The version that each operator code of a model needs, the highest that an operator using it needs.

    Without codes of custom operators and of operators that are not known here. A code that nothing uses needs the
    lowest version there is.
    """
    codes = {index: op for index, code in enumerate(model.operator_codes) if (op := _builtin(code)) is not None}
    needed = {index: op.min_version for index, op in codes.items()}
    for subgraph, operator in operators(model):
        op = codes.get(operator.opcode_index)
        if op is not None:
            number = op.needed_version(op_signature(model, subgraph, operator)).number
            needed[operator.opcode_index] = max(needed[operator.opcode_index], number)
    return needed


def update_op_versions(model: Model) -> Model:
    """A copy of a model whose operators have at least the versions that they need: TFLite's UpdateOpVersion.

    Only ever raises a version, and leaves custom operators alone.
    """
    return _with_versions(model, max)


def lowered_op_versions(model: Model) -> Model:
    """A copy of a model whose operators have no higher versions than they need, for older runtimes.

    Only ever lowers a version, and leaves custom operators alone.
    """
    return _with_versions(model, min)


def _with_versions(model: Model, choose: Callable[[int, int], int]) -> Model:
    codes = list(model.operator_codes)
    for index, needed in needed_versions(model).items():
        code = codes[index]
        if choose(code.version, needed) != code.version:
            codes[index] = code.replace(version=needed)
    changed = any(new is not old for new, old in zip(codes, model.operator_codes, strict=True))
    return model.replace(operator_codes=tuple(codes)) if changed else model


def minimum_runtime_version(model: Model) -> str:
    """The first release that has every operator of a model in its version; ``""`` if nothing is known of any.

    As in TFLite, custom operators and versions that no release has do not count.
    """
    codes = {operator.opcode_index for _, operator in operators(model)}
    found = [_released(model.operator_codes[index]) for index in codes if index < len(model.operator_codes)]
    return max(found, key=release_key, default="")


def _released(code: OperatorCode) -> str:
    op = _builtin(code)
    return "" if op is None else op.runtime_version(code.version)


def with_minimum_runtime_version(model: Model) -> Model:
    """A copy of a model that names its minimum release in its metadata, as ``min_runtime_version``.

    The model itself if nothing is known of its operators.
    """
    release = minimum_runtime_version(model)
    return with_min_runtime_version(model, release) if release else model
