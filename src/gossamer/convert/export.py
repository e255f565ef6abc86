"""Graphs as a stored model: tensors, buffers, operator codes in the lowest versions that do what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.elements import in_order
from gossamer.convert.graph import Graph, Node, Signature, Value, constant
from gossamer.dtypes import encode_strings, is_packed, pack
from gossamer.model.model import Model
from gossamer.ops import find_op
from gossamer.ops.op_signature import OpSignature, TensorSpec
from gossamer.quantization import Quantization
from gossamer.schema import tables
from gossamer.schema.enums import BuiltinOperator, CustomOptionsFormat, TensorType
from gossamer.schema.fields import Table
from gossamer.schema.options import BuiltinOptions
from gossamer.versions import update_op_versions, with_minimum_runtime_version

DESCRIPTION = "Gossamer converted."

SAMPLED = 1021
"""Bytes by which most different buffers are told apart."""


def to_model(
    signatures: Sequence[Signature],
    description: str = DESCRIPTION,
    first: Callable[[Graph], Sequence[Value]] = lambda graph: (),
) -> Model:
    """The model of these signatures, the first of which is its main graph. ``first``: the values that come first among
    the tensors of a graph, where their numbers matter, whether or not it has them."""
    return _Exporter(signatures, description, first).model()


def graphs_of(signatures: Sequence[Signature]) -> list[Graph]:
    """Every graph once: those of the signatures first, then those that they call, callers before."""
    found: dict[int, Graph] = {}
    waiting = [signature.graph for signature in signatures]
    while waiting:
        graph = waiting.pop(0)
        if id(graph) not in found:
            found[id(graph)] = graph
            waiting += [called for node in graph.ordered() for called in node.graphs.values()]
    return list(found.values())


class _Exporter:
    def __init__(
        self, signatures: Sequence[Signature], description: str, first: Callable[[Graph], Sequence[Value]]
    ) -> None:
        self.first = first
        self.signatures = signatures
        self.description = description
        self.graphs = graphs_of(signatures)
        self.numbers = {id(graph): number for number, graph in enumerate(self.graphs)}
        self.buffers: list[tables.Buffer] = [tables.Buffer()]
        self.contents: dict[Any, int] = {}
        self.codes: dict[tuple[int, str], int] = {}
        self.tensors: list[dict[int, int]] = []
        self.scales: dict[Value, Value] = {}

    def model(self) -> Model:
        subgraphs = tuple([self._subgraph(graph) for graph in self.graphs])
        model = Model(
            version=3,
            operator_codes=tuple(
                [
                    tables.OperatorCode(builtin_code=BuiltinOperator(code), custom_code=custom)
                    if custom
                    else tables.OperatorCode(builtin_code=BuiltinOperator(code))
                    for code, custom in self.codes
                ]
            ),
            subgraphs=subgraphs,
            description=self.description,
            buffers=tuple(self.buffers),
            signature_defs=tuple([self._signature(signature) for signature in self.signatures if signature.key]),
        )
        return with_minimum_runtime_version(update_op_versions(model))

    def _signature(self, signature: Signature) -> tables.SignatureDef:
        number = self.numbers[id(signature.graph)]
        return tables.SignatureDef(
            inputs=tuple(self._map(signature.inputs, number)),
            outputs=tuple(self._map(signature.outputs, number)),
            signature_key=signature.key,
            subgraph_index=number,
        )

    def _map(self, values: Mapping[str, Value], number: int) -> Iterator[tables.TensorMap]:
        for name, value in values.items():
            yield tables.TensorMap(name=name, tensor_index=self.tensors[number][id(value)])

    def _subgraph(self, graph: Graph) -> tables.SubGraph:
        nodes = graph.ordered()
        values = list(dict.fromkeys([*self.first(graph), *_values(graph, nodes)]))
        self.scales = _scales_of_blocks(values)
        values += self.scales.values()
        numbers = {id(value): number for number, value in enumerate(values)}
        self.tensors.append(numbers)
        names = _names(values)

        def number(value: Value | None) -> int:
            return -1 if value is None else numbers[id(value)]

        return tables.SubGraph(
            name=graph.name,
            tensors=tuple([self._tensor(value, name) for value, name in zip(values, names, strict=True)]),
            inputs=tuple(map(number, graph.inputs)),
            outputs=tuple(map(number, graph.outputs)),
            operators=tuple(
                [
                    self._operator(
                        node,
                        tuple(map(number, _operands(node))),
                        tuple(map(number, node.outputs)),
                        tuple(map(number, node.intermediates)),
                    )
                    for node in nodes
                ]
            ),
        )

    def _operator(
        self, node: Node, inputs: tuple[int, ...], outputs: tuple[int, ...], intermediates: tuple[int, ...]
    ) -> tables.Operator:
        fields: dict[str, Any] = {"inputs": inputs, "outputs": outputs, "opcode_index": self._code(node)}
        if intermediates:
            fields["intermediates"] = intermediates
        if node.custom_options is not None:
            fields["custom_options"] = np.frombuffer(node.custom_options, np.uint8)
            fields["custom_options_format"] = CustomOptionsFormat.FLEXBUFFERS
        elif node.options is not None:
            options = node.options
            if node.graphs:
                options = options.replace(**{key: self.numbers[id(graph)] for key, graph in node.graphs.items()})
            fields[_field_of(options)] = options
        variable = tuple([value is not None and value.is_variable for value in node.inputs])
        if any(variable):
            fields["mutating_variable_inputs"] = variable
        return tables.Operator(**fields)

    def _code(self, node: Node) -> int:
        custom = find_op(node.op, custom=True) is not None or node.is_custom
        key = (BuiltinOperator.CUSTOM, node.op) if custom else (BuiltinOperator[node.op], "")
        return self.codes.setdefault(key, len(self.codes))

    def _tensor(self, value: Value, name: str) -> tables.Tensor:
        dims = value.dims
        fields: dict[str, Any] = {
            "shape": tuple([1 if size is None else size for size in dims]),
            "type": value.type,
            "name": name,
            "has_rank": True,
        }
        if None in dims:
            fields["shape_signature"] = tuple([-1 if size is None else size for size in dims])
        if value.data is not None and value.node is None:
            fields["buffer"] = self._buffer(value.data, value.type)
        if value.is_variable:
            fields["is_variable"] = True
        if value.quantization:
            fields["quantization"] = _stored_quantization(value.quantization)
        elif value in self.scales and value.quantization.details is not None:
            scales = self.tensors[-1][id(self.scales[value])]
            details = value.quantization.details.replace(scales=scales)
            fields["quantization"] = tables.QuantizationParameters(details=details)
        return tables.Tensor(**fields)

    def _buffer(self, array: NDArray[Any], type: TensorType) -> int:
        """The number of a buffer with these values; equal ones share it."""
        if array.dtype.hasobject:
            raw = np.frombuffer(encode_strings(array), np.uint8)
        elif is_packed(type):
            raw = pack(array, type)
        else:
            raw = in_order(array).reshape(-1).view(np.uint8)
        if not raw.size:
            key: Any = ("empty", type)
        elif raw.size <= SAMPLED:
            key = raw.tobytes()
        else:
            key = (raw.size, raw[:: raw.size // SAMPLED].tobytes())
        known = self.contents.get(key)
        if known is not None and np.array_equal(self.buffers[known].data, raw):
            return known
        self.contents[key] = len(self.buffers)
        self.buffers.append(tables.Buffer(data=raw))
        return len(self.buffers) - 1


def _operands(node: Node) -> list[Value | None]:
    """The inputs; those that are left out at the end are written as left out where older versions have that."""
    op = find_op(node.op)
    missing = 0 if op is None else len(op.inputs) - len(node.inputs)
    if op is None or missing <= 0 or not all(name.endswith("?") for name in op.inputs[len(node.inputs) :]):
        return node.inputs
    written = [*node.inputs, *[None] * missing]

    def version(inputs: Sequence[Value | None]) -> int:
        specs = [tuple(map(_spec, values)) for values in (inputs, node.outputs)]
        return op.needed_version(OpSignature(op.code, specs[0], specs[1], node.options)).number

    return written if version(written) < version(node.inputs) else node.inputs


def _spec(value: Value | None) -> TensorSpec:
    if value is None:
        return TensorSpec()
    return TensorSpec(value.type, value.shapes[0], is_constant=value.data is not None, is_dynamic=not value.is_static)


def _values(graph: Graph, nodes: Sequence[Node]) -> list[Value]:
    """The tensors of a graph: inputs, constants in the order of their use, then what its operators make."""
    found: dict[int, Value] = {id(value): value for value in graph.inputs}
    for node in nodes:
        for value in node.inputs:
            if value is not None and value.node is None:
                found.setdefault(id(value), value)
    for value in graph.outputs:
        if value.node is None:
            found.setdefault(id(value), value)
    for node in nodes:
        for value in [*node.outputs, *node.intermediates]:
            found[id(value)] = value
    return list(found.values())


def _scales_of_blocks(values: Sequence[Value]) -> dict[Value, Value]:
    """The scales of blocks, which are tensors of their own, by the values that have them."""
    found = {}
    for value in values:
        blocks = value.quantization.blocks
        if blocks is not None:
            found[value] = constant(blocks.scales.reshape(*value.shape[:-1], -1), None, f"{value.name}_scales")
    return found


def _names(values: Sequence[Value]) -> list[str]:
    """A name of its own for each; constants and unnamed values come last in the choice."""
    taken: set[str] = set()
    names = [""] * len(values)
    for number in sorted(range(len(values)), key=lambda n: (not values[n].name, values[n].data is not None, n)):
        base = values[number].name or ("constant" if values[number].data is not None else "value")
        name, tries = base, 0
        while name in taken:
            tries += 1
            name = f"{base}_{tries}"
        taken.add(name)
        names[number] = name
    return names


def _field_of(options: Table) -> str:
    return "builtin_options" if type(options) in BuiltinOptions.codes else "builtin_options_2"


def _stored_quantization(quantization: Quantization) -> tables.QuantizationParameters:
    return tables.QuantizationParameters(
        scale=np.asarray(quantization.scales, np.float32),
        zero_point=np.asarray(quantization.zero_points, np.int64),
        quantized_dimension=quantization.dimension,
    )
