"""Some operators of a model as a model of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from gossamer.edit.documented import with_ends_of
from gossamer.edit.names import Graph, unique
from gossamer.edit.references import (
    all_called,
    called,
    inline,
    moved_operator,
    moved_subgraph,
    moved_tensor,
    new_numbers,
    scales_of,
    tensors_of,
)
from gossamer.model.control_dependencies import CONTROL_DEPENDENCIES, control_dependencies, encode
from gossamer.model.metadata import OFFLINE_ALLOCATION, with_metadata
from gossamer.model.model import Model
from gossamer.schema.tables import Metadata, SignatureDef, SubGraph, TensorMap

ORIGIN = "gossamer_origin"
"""The metadata entry in which a portion remembers what it was cut from (`gossamer.edit.origin`)."""

OF_THE_WHOLE = (ORIGIN, OFFLINE_ALLOCATION)
"""Metadata entries that say nothing about anything but the whole model."""


class Part(NamedTuple):
    """Operators of a subgraph, and the tensors that go in and come out, all by their numbers."""

    subgraph: int
    operators: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class Portion(NamedTuple):
    """A part as a model, and which tensors and buffers of the whole its tensors and buffers are."""

    model: Model
    tensors: tuple[int, ...]
    buffers: tuple[int, ...]


def portion(whole: Model, part: Part) -> Portion:
    """A model of a part, with what its operators call, and nothing that it does not need. What remains keeps its order
    and its names."""
    whole = inline(whole)
    subgraph = whole.subgraphs[part.subgraph]
    operators = [subgraph.operators[number] for number in part.operators]
    tensors = _tensors(subgraph, [*part.inputs, *part.outputs, *[t for one in operators for t in tensors_of(one)]])
    others = all_called(whole, [number for operator in operators for number in called(operator)])
    entries = [one for one in whole.metadata if one.name not in OF_THE_WHOLE and one.buffer < len(whole.buffers)]
    every = [subgraph.tensors[number] for number in tensors]
    every += [tensor for number in others for tensor in whole.subgraphs[number].tensors]
    buffers = sorted({0, *[tensor.buffer for tensor in every], *[entry.buffer for entry in entries]})
    buffers = [number for number in buffers if number < len(whole.buffers)]
    used = [*operators, *[one for number in others for one in whole.subgraphs[number].operators]]
    codes = sorted({operator.opcode_index for operator in used})
    new_buffers, new_codes, new_tensors = new_numbers(buffers), new_numbers(codes), new_numbers(tensors)
    new_subgraphs = new_numbers([part.subgraph, *others])
    cut = subgraph.replace(
        tensors=tuple([moved_tensor(subgraph.tensors[number], new_buffers, new_tensors) for number in tensors]),
        inputs=tuple([new_tensors[number] for number in part.inputs]),
        outputs=tuple([new_tensors[number] for number in part.outputs]),
        operators=tuple([moved_operator(operator, new_tensors, new_codes, new_subgraphs) for operator in operators]),
    )
    rest = [moved_subgraph(whole.subgraphs[number], new_buffers, new_codes, new_subgraphs) for number in others]
    changes: dict[str, Any] = {
        "operator_codes": tuple([whole.operator_codes[number] for number in codes]),
        "subgraphs": (cut, *rest),
        "buffers": tuple([whole.buffers[number] for number in buffers]),
        "metadata": tuple([Metadata(name=entry.name, buffer=new_buffers[entry.buffer]) for entry in entries]),
        "metadata_buffer": tuple([new_buffers[number] for number in whole.metadata_buffer if number in new_buffers]),
        "signature_defs": _signatures(Graph(whole, part.subgraph), part, new_tensors),
    }
    model = whole.replace(**{name: value for name, value in changes.items() if value or whole.has(name)})
    model = _with_dependencies(whole, model, part, others)
    model = with_ends_of(whole, model, part.subgraph, part.inputs, part.outputs)
    return Portion(model, tuple(tensors), tuple(buffers))


def _tensors(subgraph: SubGraph, named: Iterable[int]) -> list[int]:
    """The tensors that are named, and those that hold their scales."""
    found: set[int] = set()
    waiting = list(named)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += scales_of(subgraph.tensors[number])
    return sorted(found)


def _signatures(graph: Graph, part: Part, new: dict[int, int]) -> tuple[SignatureDef, ...]:
    """The signature of the whole with the arguments and results that the part has; what is new is called as it is."""
    signature = graph.signature
    if signature is None:
        return ()

    def entries(old: Sequence[TensorMap], tensors: Sequence[int]) -> tuple[TensorMap, ...]:
        found = [entry for entry in old if entry.tensor_index in tensors]
        known = {entry.tensor_index for entry in found}
        for number in dict.fromkeys(tensors):
            if number not in known:
                name = unique(graph.name(number), [entry.name for entry in found])
                found.append(TensorMap(name=name, tensor_index=number))
        return tuple([TensorMap(name=entry.name, tensor_index=new[entry.tensor_index]) for entry in found])

    inputs, outputs = entries(signature.inputs, part.inputs), entries(signature.outputs, part.outputs)
    return (SignatureDef(inputs=inputs, outputs=outputs, signature_key=signature.signature_key),)


def _with_dependencies(whole: Model, model: Model, part: Part, others: Sequence[int]) -> Model:
    """The order that the whole asks of operators that the part has."""
    edges = control_dependencies(whole)
    if edges is None:
        return model
    new = new_numbers(part.operators)
    kept = tuple([(new[a], new[b]) for a, b in edges[part.subgraph] if a in new and b in new])
    return with_metadata(model, CONTROL_DEPENDENCIES, encode([kept, *[edges[number] for number in others]]))
