"""Stored models as the graphs that conversions make: what `gossamer.convert.export` writes, read back.

Nothing is inferred anew: types, shapes, names and quantization are those of the file. Sizes that it leaves open are all
the same number: it does not say which of them differ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.graph import WORLDS, Graph, Node, Signature, Size, Value, shapes_of, unknown
from gossamer.dtypes import decode_strings, is_packed, numpy_dtype, unpack
from gossamer.errors import ConvertError
from gossamer.model.model import Model
from gossamer.ops import find_op
from gossamer.quantization import UNQUANTIZED, Blocks, Quantization
from gossamer.schema import tables
from gossamer.schema.fields import Table

CALLS = "_subgraph_index"
"""How the names of options end that say which graph an operator calls."""


class Stored(NamedTuple):
    """A stored model: its signatures, one without a key for the main graph if it has none; its graphs and the values
    that its tensors are, both by their numbers in the file; and those of which it does not say how many dimensions they
    have."""

    signatures: list[Signature]
    graphs: list[Graph]
    values: list[list[Value]]
    unranked: set[Value]


def graphs_of_model(model: Model) -> Stored:
    """The graphs of a model.

    Raises `ConvertError` for what graphs do not have: sparse constants, data in other files.
    """
    graphs = [Graph(subgraph.name or "main") for subgraph in model.subgraphs]
    nodes: list[list[Node]] = [[] for _ in graphs]
    values = [_fill(model, graphs, number, nodes[number]) for number in range(len(graphs))]
    effects = {id(graph): any(map(_happens, of)) for graph, of in zip(graphs, nodes, strict=True)}
    for graph, of in zip(graphs, nodes, strict=True):
        _chain_effects(graph, of, effects)
    unranked = {
        value
        for subgraph, of_graph in zip(model.subgraphs, values, strict=True)
        for tensor, value in zip(subgraph.tensors, of_graph, strict=True)
        if not tensor.has_rank and not tensor.shape and value.known is None
    }
    if not model.signature_defs:
        graph = graphs[0]
        named = [{value.name or f"{what}_{n}": value for n, value in enumerate(of)} for what, of in _ends(graph)]
        return Stored([Signature("", graph, named[0], named[1])], graphs, values, unranked)
    signatures = [
        Signature(
            stored.signature_key,
            graphs[stored.subgraph_index],
            {one.name: values[stored.subgraph_index][one.tensor_index] for one in stored.inputs},
            {one.name: values[stored.subgraph_index][one.tensor_index] for one in stored.outputs},
        )
        for stored in model.signature_defs
    ]
    return Stored(signatures, graphs, values, unranked)


def _ends(graph: Graph) -> tuple[tuple[str, list[Value]], tuple[str, list[Value]]]:
    return ("input", graph.inputs), ("output", graph.outputs)


def _fill(model: Model, graphs: list[Graph], number: int, nodes: list[Node]) -> list[Value]:
    """Puts a subgraph into its graph; its tensors by their number."""
    subgraph, graph = model.subgraphs[number], graphs[number]
    values = [_value(model, tensor) for tensor in subgraph.tensors]
    for value, tensor in zip(values, subgraph.tensors, strict=True):
        details = None if tensor.quantization is None else tensor.quantization.details
        if details is not None:
            value.quantization = _blocks(details, values, tensor)

    def at(index: int) -> Value | None:
        return values[index] if index >= 0 else None

    for order, operator in enumerate(subgraph.operators):
        options = next((o for o in (operator.builtin_options, operator.builtin_options_2) if o is not None), None)
        custom = model.custom_options(operator).tobytes() if model.operator_code(operator).custom_code else None
        node = Node(
            model.operator_name(operator),
            [at(index) for index in operator.inputs],
            [values[index] for index in operator.outputs],
            options,
            (order, order),
            (),
            custom,
            _called(options, graphs),
        )
        node.intermediates = [values[index] for index in operator.intermediates if index >= 0]
        nodes.append(node)
    graph.inputs = [values[index] for index in subgraph.inputs]
    graph.outputs = [values[index] for index in subgraph.outputs]
    return values


def _called(options: Table | None, graphs: list[Graph]) -> dict[str, Graph]:
    """The graphs that options name."""
    if options is None:
        return {}
    names = [field.name for field in options.FIELDS if field.name.endswith(CALLS)]
    return {name: graphs[getattr(options, name)] for name in names if 0 <= getattr(options, name) < len(graphs)}


def _chain_effects(graph: Graph, nodes: list[Node], effects: dict[int, bool]) -> None:
    """Keeps the operators that have effects, in the order of the file."""
    last: Node | None = None
    for node in nodes:
        op = find_op(node.op, custom=node.is_custom)
        if op is not None and not op.side_effects:
            continue  # of an operator that nobody knows, anything may be expected
        node.after = last
        if _happens(node) or any(effects[id(called)] for called in node.graphs.values()):
            graph.effects.append(node)
            last = node


def _happens(node: Node) -> bool:
    """Whether an operator is there for what it does: it gives nothing."""
    return not node.outputs


def _value(model: Model, tensor: tables.Tensor) -> Value:
    if tensor.sparsity is not None or tensor.external_buffer:
        raise ConvertError(f"tensor {tensor.name!r} is sparse, or its data lie in another file: this is not read here")
    signature = tensor.shape_signature or tensor.shape
    sizes: list[int | Size] = [unknown(0) if size < 0 else size for size in signature]
    value = Value(tensor.type, shapes_of(sizes), None, tensor.name, stored_quantization(tensor))
    value.is_variable = tensor.is_variable
    raw = model.tensor_data(tensor)
    if raw is not None and (raw.size or 0 in tensor.shape):
        value.known = (stored_array(raw, tensor),) * WORLDS
    return value


def stored_array(raw: NDArray[np.uint8], tensor: tables.Tensor) -> NDArray[Any]:
    """The value of a constant tensor, from its bytes. Raises `ConvertError` if they are too few."""
    count = math.prod(tensor.shape)
    try:
        dtype = numpy_dtype(tensor.type)
        if dtype.hasobject:
            return decode_strings(raw, tensor.shape)
        if is_packed(tensor.type):
            return unpack(raw, tensor.type, count).reshape(tensor.shape)
        return raw.view(dtype)[:count].reshape(tensor.shape)
    except (ValueError, KeyError) as error:
        raise ConvertError(f"tensor {tensor.name!r} has data of another size than its shape says: {error}") from error


def stored_quantization(tensor: tables.Tensor) -> Quantization:
    """Scales and zero points of a tensor, without those of blocks."""
    stored = tensor.quantization
    if stored is None or not stored.scale.size:
        return UNQUANTIZED
    return Quantization(
        np.asarray(stored.scale, np.float32), np.asarray(stored.zero_point, np.int32), stored.quantized_dimension
    )


def _blocks(details: Table, values: list[Value], tensor: tables.Tensor) -> Quantization:
    """Scales of blocks, which are the value of another tensor."""
    if isinstance(details, tables.BlockwiseQuantization) and 0 <= details.scales < len(values):
        scales = values[details.scales].data
        points = values[details.zero_points].data if 0 <= details.zero_points < len(values) else None
        if scales is not None and (points is None or not points.any()):
            details = details.replace(scales=0, zero_points=-1)
            return Quantization(details=details, blocks=Blocks(details.block_size, scales.reshape(-1)))
    raise ConvertError(f"tensor {tensor.name!r} has a quantization that is not read here: {type(details).__name__}")
