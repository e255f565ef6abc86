"""From a stored model to subgraphs that run, in TFLite's order: operators first, then tensors, nodes and variables."""

from __future__ import annotations

from gossamer.dtypes import NO_ARENA
from gossamer.errors import UnsupportedOpError
from gossamer.model.control_dependencies import control_dependencies
from gossamer.model.model import Model, resolved_code
from gossamer.model.verifier import Fault
from gossamer.ops.op_def import OpDef, PrepareContext, Version
from gossamer.planner.planner import AllocationType
from gossamer.resolver import BuiltinOpResolver, OpResolver
from gossamer.runtime.node import Node
from gossamer.runtime.resources import ResourceMap
from gossamer.runtime.subgraph import Subgraph
from gossamer.runtime.tensor import Tensor, constant_tensor, stored_tensor
from gossamer.schema import BuiltinOperator, Operator, SubGraph
from gossamer.schema import Tensor as StoredTensor


def build_subgraphs(
    model: Model,
    resolver: OpResolver,
    faults: tuple[Fault, ...] = (),
    **settings: bool,
) -> list[Subgraph]:
    """Subgraphs over a verified model. ``faults`` are what its verifier found and TFLite reports at allocation;
    ``settings`` are those of `Subgraph`, for all of them.

    Raises `UnsupportedOpError` for a builtin operator or version that the resolver does not have. An unknown custom
    operator is no error yet: a delegate may claim it, and preparing it says what is missing.
    """
    ops = _resolve(model, resolver)
    resources = ResourceMap()
    dependencies = control_dependencies(model)
    subgraphs: list[Subgraph] = []
    for index, stored in enumerate(model.subgraphs):
        wrong = [f"{fault.place}: {fault.message}" for fault in faults if fault.subgraph == index]
        subgraphs.append(
            Subgraph(
                index,
                stored.name,
                [_tensor(model, i, tensor) for i, tensor in enumerate(stored.tensors)],
                [] if wrong else _nodes(model, stored, ops),
                stored.inputs,
                stored.outputs,
                siblings=subgraphs,
                resources=resources,
                faults=wrong,
                control_edges=dependencies[index] if dependencies is not None else None,
                **settings,
            )
        )
    return subgraphs


def _resolve(model: Model, resolver: OpResolver) -> list[tuple[OpDef, int]]:
    ops = []
    for stored in model.operator_codes:
        code, version = resolved_code(stored), stored.version
        if code == BuiltinOperator.CUSTOM:
            if not stored.has("custom_code"):
                raise UnsupportedOpError("Operator with CUSTOM builtin_code has no custom_code.\nRegistration failed.")
            op = resolver.find_custom(stored.custom_code, version) or unresolved_custom_op(stored.custom_code)
        else:
            found = resolver.find_builtin(BuiltinOperator(code), version) if code in _KNOWN_CODES else None
            if found is None:
                raise UnsupportedOpError(_missing(code, version, resolver))
            op = found
        ops.append((op, version))
    return ops


_KNOWN_CODES = frozenset(int(code) for code in BuiltinOperator)


def _missing(code: int, version: int, resolver: OpResolver) -> str:
    if code not in _KNOWN_CODES:
        return (
            f"Op builtin_code out of range: {code}. Are you using old TFLite binary with newer model?\n"
            "Registration failed."
        )
    name = BuiltinOperator(code).name
    known = [v for v in range(1, 33) if resolver.find_builtin(BuiltinOperator(code), v) is not None]
    if known:
        help_ = f"This resolver has {name} up to version {known[-1]}."
    elif BuiltinOpResolver().find_builtin(BuiltinOperator(code), 1) is not None:
        help_ = f"This resolver does not have {name}; the default one does."
    else:
        help_ = f"{name} has no kernel here yet."
    return (
        f"Didn't find op for builtin opcode '{name}' version '{version}'. "
        "An older version of this builtin might be supported. "
        "Are you using an old TFLite binary with a newer model?\n"
        f"Registration failed.\n{help_}"
    )


def unresolved_custom_op(name: str) -> OpDef:
    """A stand-in for a custom operator that no resolver has: it can be delegated, but not prepared."""
    op = OpDef(name, inputs=("inputs*",), outputs=("outputs*",), versions=(Version(1, ""),), custom=True)
    if name.startswith("Flex"):
        reason = (
            "Select TensorFlow op(s), included in the given model, is(are) not supported by this interpreter. "
            "Make sure you apply/link the Flex delegate before inference"
        )
    else:
        reason = (
            f"Encountered unresolved custom op: {name}.\n"
            "See instructions: https://www.tensorflow.org/lite/guide/ops_custom "
            "Register it with MutableOpResolver.add_custom"
        )

    @op.prepare
    def prepare(ctx: PrepareContext) -> None:
        ctx.fail(reason)

    return op


def _tensor(model: Model, index: int, stored: StoredTensor) -> Tensor:
    data = model.buffer_data(stored.buffer) if stored.buffer else None
    if data is not None:
        return constant_tensor(index, stored, data)
    if stored.type in NO_ARENA:
        return stored_tensor(index, stored, AllocationType.DYNAMIC)
    if stored.is_variable:
        return stored_tensor(index, stored, AllocationType.ARENA_RW_PERSISTENT)
    return stored_tensor(index, stored, AllocationType.ARENA_RW)


def _nodes(model: Model, subgraph: SubGraph, ops: list[tuple[OpDef, int]]) -> list[Node]:
    nodes = []
    for index, stored in enumerate(subgraph.operators):
        op, version = ops[stored.opcode_index]
        nodes.append(
            Node(
                index,
                op,
                version,
                stored.inputs,
                stored.outputs,
                _options(op, stored),
                model.custom_options(stored).tobytes() if op.custom else b"",
                stored.intermediates,
            )
        )
    return nodes


def _options(op: OpDef, stored: Operator) -> object:
    # Options of another operator read as the defaults, as TFLite's accessors have it.
    for options in (stored.builtin_options, stored.builtin_options_2):
        if type(options) is op.options:
            return options
    return op.options()
