"""From a stored model to subgraphs that run, in TFLite's order: operators first, then tensors, nodes and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer.dtypes import NO_ARENA, is_packed
from gossamer.errors import UnsupportedOpError
from gossamer.model.control_dependencies import control_dependencies
from gossamer.model.model import Model, resolved_code
from gossamer.model.structure import Dependencies, structure
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef
from gossamer.phases import phase
from gossamer.planner.planner import AllocationType
from gossamer.resolver import BuiltinOpResolver, OpResolver
from gossamer.runtime.arenas import SharedArena, call_depths
from gossamer.runtime.cancellation import Cancellation
from gossamer.runtime.node import Node
from gossamer.runtime.resources import ResourceMap
from gossamer.runtime.subgraph import Subgraph
from gossamer.runtime.taps import Taps
from gossamer.runtime.tensor import Tensor, constant_tensor, stored_tensor
from gossamer.runtime.unresolved import unresolved_custom_op
from gossamer.schema import BuiltinOperator, Operator, SubGraph
from gossamer.schema import Tensor as StoredTensor

if TYPE_CHECKING:
    from gossamer.model.verifier import Fault


@phase("subgraphs")
def build_subgraphs(
    model: Model,
    resolver: OpResolver,
    faults: tuple[Fault, ...] = (),
    cancellation: Cancellation | None = None,
    taps: Taps | None = None,
    **settings: bool,
) -> list[Subgraph]:
    """Subgraphs over a verified model. ``faults`` are what its verifier found and TFLite reports at allocation;
    ``cancellation``, ``taps`` and ``settings`` are those of `Subgraph`, for all of them.

    Raises `UnsupportedOpError` for a builtin operator or version that the resolver does not have. An unknown custom
    operator is no error yet: a delegate may claim it, and preparing it says what is missing.
    """
    ops = _resolve(model, resolver)
    cancellation, taps = cancellation or Cancellation(), taps or Taps()
    entries = {0, *(signature.subgraph_index for signature in model.signatures.values())}
    resources = ResourceMap(uncalled=_uncalled(model, entries))
    shared = {} if settings.get("preserve_all_tensors") else _shared_arenas(model, entries)
    edges = control_dependencies(model)
    # Operators of somebody else may change from one run to the next.
    shipped = all(op is find_op(op.name, custom=op.custom) for op, _ in ops)
    dependencies = None
    if shipped and model.source is not None and model.identity is not None:
        dependencies = Dependencies(model.source, model.identity, structure(model))
    subgraphs: list[Subgraph] = []
    for index, stored in enumerate(model.subgraphs):
        wrong = [f"{fault.place}: {fault.message}" for fault in faults if fault.subgraph == index]
        subgraphs.append(
            Subgraph(
                index,
                stored.name,
                _tensors(model, stored, dependencies),
                [] if wrong else _nodes(model, stored, ops),
                stored.inputs,
                stored.outputs,
                siblings=subgraphs,
                resources=resources,
                cancellation=cancellation,
                taps=taps,
                is_entry=index in entries,
                promised=[
                    output.tensor_index
                    for signature in model.signatures.values()
                    if signature.subgraph_index == index
                    for output in signature.outputs
                ],
                shared_arena=shared.get(index),
                source=model.source,
                dependencies=dependencies,
                faults=wrong,
                control_edges=edges[index] if edges is not None else None,
                **settings,
            )
        )
    return subgraphs


def _shared_arenas(model: Model, entries: set[int]) -> dict[int, SharedArena]:
    """By subgraph, the arena that it shares with those that operators call at the same depth. What users run keeps its
    memory from one call to the next."""
    made: dict[int, SharedArena] = {}
    return {
        index: made.setdefault(depth, SharedArena())
        for index, depth in enumerate(call_depths(model))
        if depth and index not in entries
    }


def _uncalled(model: Model, entries: set[int]) -> tuple[int, ...]:
    """See `ResourceMap.uncalled`."""
    return tuple(
        [
            index
            for index, (stored, depth) in enumerate(zip(model.subgraphs, call_depths(model), strict=True))
            if depth == 0 and index not in entries and not len(stored.inputs) and not len(stored.outputs)
        ]
    )


@phase("resolver")
def _resolve(model: Model, resolver: OpResolver) -> list[tuple[OpDef, int]]:
    ops = []
    for stored in model.operator_codes:
        code, version = resolved_code(stored), stored.version
        if code == BuiltinOperator.CUSTOM:
            if not stored.has("custom_code"):
                raise UnsupportedOpError("Operator with CUSTOM builtin_code has no custom_code.\nRegistration failed.")
            name = stored.custom_code
            op = resolver.find_custom(name, version) or unresolved_custom_op(name, model, resolver)
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
    return (
        f"Didn't find op for builtin opcode '{name}' version '{version}'. "
        "An older version of this builtin might be supported. "
        "Are you using an old TFLite binary with a newer model?\n"
        f"Registration failed.\n{_advice(name, version, resolver)}"
    )


def _advice(name: str, version: int, resolver: OpResolver) -> str:
    """What the resolver has of this operator, and where there is what the model wants."""
    op, code = find_op(name), BuiltinOperator[name]
    known = [v for v in range(1, 33) if resolver.find_builtin(code, v) is not None]
    if op is None and not known:
        return f"{name} has no kernel here yet."
    default = BuiltinOpResolver().find_builtin(code, version) is not None
    if not known:
        return f"This resolver does not have {name}{'; the default one does' if default else ''}."
    span = f"in versions {known[0]} to {known[-1]}" if known[0] > 1 else f"up to version {known[-1]}"
    release = op.runtime_version(version) if op is not None else ""
    wanted = f"version {version} came with release {release}" if release else f"no known release has version {version}"
    return (
        f"This resolver has {name} {span}; {wanted}{', and the default resolver has it' if default else ''}.\n"
        "`gossamer versions MODEL --lower OUT` writes the model with the lowest versions that it can do with."
    )


def _tensors(model: Model, subgraph: SubGraph, dependencies: Dependencies | None) -> list[Tensor]:
    tensors = [_tensor(model, index, stored) for index, stored in enumerate(subgraph.tensors)]
    for tensor in tensors:
        if tensor.is_stored and is_packed(tensor.type):  # which others are not blockwise
            tensor.find_blocks(tensors, dependencies)
    return tensors


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
