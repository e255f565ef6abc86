"""ONNX models: their graph, the functions that they bring, and graphs inside of operators.

Elements are what `gossamer.convert.lowerings.onnx` says; what comes in and goes out is cast there and back. Equal names
of open sizes are equal sizes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.graph import Graph, Origin, Refused, Signature, Size, Value, unknown
from gossamer.convert.lowerings.onnx import CARRIERS, SOURCES, Call, lowers
from gossamer.convert.messages.onnx import (
    AttributeProto,
    DataType,
    FunctionProto,
    GraphProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    ValueInfoProto,
)
from gossamer.convert.report import Report, Unavailable
from gossamer.convert.request import Imported, Request
from gossamer.convert.sources.onnx import OnnxModel, TensorSpec, operator_sets, read_onnx
from gossamer.dtypes import numpy_dtype
from gossamer.errors import ConvertError
from gossamer.schema.enums import TensorType

SIGNATURE = "serving_default"

MOST_NESTED = 100
"""Functions and graphs within each other."""

OUTSIDE: Mapping[DataType, TensorType] = {
    DataType.FLOAT16: TensorType.FLOAT16,
    DataType.BFLOAT16: TensorType.BFLOAT16,
    DataType.DOUBLE: TensorType.FLOAT64,
    DataType.FLOAT8E4M3FN: TensorType.FLOAT8_E4M3FN,
    DataType.FLOAT8E5M2: TensorType.FLOAT8_E5M2,
    DataType.UINT16: TensorType.UINT16,
    DataType.UINT32: TensorType.UINT32,
    DataType.UINT64: TensorType.UINT64,
    DataType.INT4: TensorType.INT4,
    DataType.COMPLEX128: TensorType.COMPLEX128,
}
"""Types of inputs and outputs that are others inside."""

ONNX = ("", "ai.onnx")


def import_source(source: str | os.PathLike[str], format: str, request: Request) -> Imported:
    """See `gossamer.convert.importers`. Raises `ConvertError`."""
    return _Importer(read_onnx(source), request).imported()


class Scope:
    """Values by name in a graph or function, those of the graph around it included, and the types of their elements."""

    def __init__(
        self,
        graph: Graph,
        versions: Mapping[str, int],
        outer: Scope | None = None,
        attributes: Mapping[str, AttributeProto] | None = None,
        prefix: str = "",
    ) -> None:
        self.graph = graph
        self.versions = versions
        self.outer = outer
        self.attributes = attributes or {}
        self.prefix = prefix
        self.values: dict[str, Any] = {}
        self.types: dict[str, DataType] = {}
        self.initializers: dict[str, TensorProto | SparseTensorProto] = {}
        self.declared: dict[str, ValueInfoProto] = {}
        self.depth: int = 0 if outer is None else outer.depth + 1

    def find(self, name: str) -> Scope | None:
        """The scope that has a value of this name."""
        if name in self.values or name in self.initializers:
            return self
        return None if self.outer is None else self.outer.find(name)


class _Importer:
    def __init__(self, model: OnnxModel, request: Request) -> None:
        self.model = model
        self.request = request
        self.report = Report(request.progress, len(model.graph.node))
        self.sizes: dict[str, Size] = {}
        self.counts: dict[str, int] = {}
        self.free: dict[int, list[str]] = {}
        self.quantized: dict[int, tuple[Value, Value, tuple[float, int]]] = {}

    def imported(self) -> Imported:
        """The whole model."""
        graph = Graph("main")
        scope = Scope(graph, self.model.opsets)
        scope.initializers.update(self.model.initializers)
        scope.initializers.update(self.model.sparse_initializers)
        scope.declared.update({one.name: one for one in [*self.model.graph.value_info, *self.model.graph.output]})
        wanted = [name for name in self.model.outputs if not self.request.outputs or name in self.request.outputs]
        large = self._large(self.model.inputs.values())
        inputs = {name: self._input(scope, spec, large) for name, spec in self.model.inputs.items()}
        self._walk(scope, self.model.graph.node, wanted)
        outputs: dict[str, Value] = {}
        for name in wanted:
            outputs[name] = self._output(scope, self.model.outputs[name])
        graph.outputs = list(outputs.values())
        return Imported([Signature(SIGNATURE, graph, inputs, outputs)], self.report)

    # -- inputs and outputs

    def _large(self, specs: Iterable[TensorSpec]) -> set[str]:
        """Names of sizes of pictures."""
        return {
            size
            for spec in specs
            if spec.shape is not None and len(spec.shape) >= 4
            for size in spec.shape[2:]
            if isinstance(size, str)
        }

    def _input(self, scope: Scope, spec: TensorSpec, large: set[str]) -> Value:
        name = spec.name
        if spec.dtype == DataType.UNDEFINED:
            kind = spec.stored.type.which("value") if spec.stored.type is not None else None
            raise ConvertError(f"input {name!r} is {kind or 'of no type'}; a TFLite model takes tensors alone")
        if spec.dtype not in CARRIERS:
            kind = getattr(spec.dtype, "name", f"type {int(spec.dtype)}")  # a number that ONNX does not have stays one
            raise ConvertError(f"input {name!r} is of {kind}, which TFLite does not have")
        given = self.request.given_shape(name, None if spec.shape is None else len(spec.shape))
        shape: Sequence[int | str | None] | None = spec.shape if given is None else given
        if shape is None:
            raise ConvertError(f"input {name!r} has no known number of dimensions; say its shape with --shape {name}=…")
        sizes: list[int | Size] = []
        for axis, size in enumerate(shape):
            if isinstance(size, int) and size >= 0:
                sizes.append(size)
            elif axis == 0 and self.request.batch is not None:
                sizes.append(self.request.batch)
            else:
                key = size if isinstance(size, str) else f"{name}:{axis}"
                if key not in self.sizes:
                    picture = key in large or (axis >= 2 and len(shape) >= 4)
                    self.sizes[key] = unknown(len(self.sizes), large=picture)
                sizes.append(self.sizes[key])
        value = scope.graph.input(name, OUTSIDE.get(spec.dtype, CARRIERS[spec.dtype]), sizes)
        scope.values[name] = inner(scope.graph, value, CARRIERS[spec.dtype])
        scope.types[name] = spec.dtype
        return value

    def _output(self, scope: Scope, spec: TensorSpec) -> Value:
        name = spec.name
        found = self.value(scope, name)
        if isinstance(found, Unavailable):
            return scope.graph.constant(0.0)  # never seen: the report has a refusal
        if not isinstance(found, Value):
            raise ConvertError(f"output {name!r} is a {type(found).__name__}; a TFLite model gives tensors alone")
        declared = spec.dtype if spec.dtype in CARRIERS else SOURCES[found.type]
        if found.data is not None and not found.data.size:
            found = nothing(scope.graph, found)
        value = outer(scope.graph, cast(scope.graph, found, CARRIERS[declared]), OUTSIDE.get(declared))
        if value.node is not None:
            value.name = name
        return value

    # -- walking

    def _walk(self, scope: Scope, nodes: Sequence[NodeProto], wanted: Iterable[str]) -> None:
        """Lower the nodes that are needed for others, in an order in which they can run."""
        ordered = self._ordered(nodes, wanted)
        for node in ordered:
            results = self._lowered(scope, node)
            for name, result in zip(node.output, results, strict=False):
                if name:
                    scope.values[name] = result

    def _ordered(self, nodes: Sequence[NodeProto], wanted: Iterable[str]) -> list[NodeProto]:
        makers = {name: node for node in nodes for name in node.output if name}
        state: dict[int, bool] = {}
        order = []
        for name in wanted:
            stack = [(makers[name], False)] if name in makers else []
            while stack:
                node, done = stack.pop()
                if done:
                    state[id(node)] = True
                    order.append(node)
                elif id(node) not in state:
                    state[id(node)] = False
                    stack.append((node, True))
                    for needed in reversed(self._needed(node)):
                        maker = makers.get(needed)
                        if maker is None or maker is node or state.get(id(maker)):
                            continue
                        if id(maker) in state:
                            raise ConvertError(f"{node.op_type} {node.name!r} waits for what waits for it: {needed!r}")
                        stack.append((maker, False))
        return order

    def _needed(self, node: NodeProto) -> list[str]:
        names = [name for name in node.input if name]
        for attribute in node.attribute:
            for body in [*([attribute.g] if attribute.g is not None else []), *attribute.graphs]:
                names += self.free_names(body)
        return names

    def free_names(self, body: GraphProto) -> list[str]:
        """What a body takes from around it."""
        if id(body) not in self.free:
            own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
            own |= {item.values.name for item in body.sparse_initializer if item.values is not None}
            own |= {name for node in body.node for name in node.output}
            used = [name for node in body.node for name in self._needed(node)] + [value.name for value in body.output]
            self.free[id(body)] = list(dict.fromkeys([name for name in used if name and name not in own]))
        return self.free[id(body)]

    def _lowered(self, scope: Scope, node: NodeProto) -> Sequence[Any]:
        domain = "" if node.domain in ONNX else node.domain
        name = f"{domain}.{node.op_type}" if domain else node.op_type
        origin = Origin(name, self._unique(scope.prefix + (node.name or next(filter(None, node.output), ""))))
        inputs = [self.value(scope, one) if one else None for one in node.input]
        missing = next((one for one in inputs if isinstance(one, Unavailable)), None)
        if missing is not None:
            return [missing] * len(node.output)
        attributes = dict(self._attributes(scope, node))
        lowering = lowers.find(name)
        function = self.model.functions.get((node.domain, node.op_type, node.overload))
        if lowering is None and function is not None:
            return self._called(scope, node, function, inputs, attributes)
        types = [self._type(scope, one) if one else None for one in node.input]
        call = Call(self, scope, node, scope.versions.get(domain, 1), inputs, types, attributes, self._stored)
        with self.report.lowering(scope.graph, origin):
            if lowering is None:
                known = "" if domain in scope.versions or not domain else f"; the model does not import {domain!r}"
                got = ", ".join(repr(one) for one in inputs)
                raise Refused(f"there is no lowering of it (inputs: {got}){known}")
            found = lowering(call)
            results = list(found) if type(found) in (list, tuple) else [found]
            if len(results) < len(node.output) and any(node.output[len(results) :]):
                raise Refused(f"only {len(results)} of its {len(node.output)} outputs are known")
            self._name_them(scope, node, call, results, origin)
            return results
        return [Unavailable(origin)] * len(node.output)

    def _name_them(self, scope: Scope, node: NodeProto, call: Call, results: Sequence[Any], origin: Origin) -> None:
        """Values bear the names of tensors; elements of a type that TFLite has not stay that in what they become."""
        odd = [type for type in call.known_types if type is not None and SOURCES.get(CARRIERS[type]) != type]
        for position, (name, result) in enumerate(zip(node.output, results, strict=False)):
            if not isinstance(result, Value) or not name:
                continue
            if result.node is not None and result.name.partition(":")[0] == origin.name:
                result.name = scope.prefix + name
            like = next((type for type in odd if CARRIERS[type] == result.type), None)
            known = call.given.get(position, like)
            if known is not None:
                scope.types[name] = known

    def _attributes(self, scope: Scope, node: NodeProto) -> Iterable[tuple[str, AttributeProto]]:
        """Those of a node; inside a function they may stand for those of its call."""
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                yield attribute.name, attribute
            elif attribute.ref_attr_name in scope.attributes:
                yield attribute.name, scope.attributes[attribute.ref_attr_name]

    def _called(
        self,
        scope: Scope,
        node: NodeProto,
        function: FunctionProto,
        inputs: Sequence[Any],
        attributes: Mapping[str, AttributeProto],
    ) -> Sequence[Any]:
        """The results of a function that the model brings, its operators put into the graph."""
        if scope.depth > MOST_NESTED:
            raise ConvertError(f"function {function.name!r} is called {MOST_NESTED} deep, or calls itself")
        versions = {**scope.versions, **operator_sets(function.opset_import, f"function {function.name!r}")}
        defaults = {one.name: one for one in function.attribute_proto}
        prefix = f"{scope.prefix}{node.name or node.op_type}/"
        inside = Scope(scope.graph, versions, None, {**defaults, **attributes}, prefix)
        inside.depth = scope.depth + 1
        for position, name in enumerate(function.input):
            inside.values[name] = inputs[position] if position < len(inputs) else None
            known = self._type(scope, node.input[position]) if position < len(inputs) else None
            if known is not None:
                inside.types[name] = known
        self._walk(inside, function.node, function.output)
        for name, mine in zip(function.output, node.output, strict=False):
            if name in inside.types:
                scope.types[mine] = inside.types[name]
        return [self.value(inside, name) for name in function.output]

    def inline(self, scope: Scope, graph: Graph, body: GraphProto, given: Mapping[str, Any]) -> list[Any]:
        """The results of a body, its operators put into a graph. ``given`` are its inputs, and what it takes from
        around it if the graph is another one than the scope's."""
        inside = Scope(graph, scope.versions, scope, scope.attributes, scope.prefix)
        if inside.depth > MOST_NESTED:
            raise ConvertError(f"graphs within graphs, {MOST_NESTED} deep")
        inside.initializers.update({tensor.name: tensor for tensor in body.initializer})
        inside.initializers.update(
            {item.values.name: item for item in body.sparse_initializer if item.values is not None}
        )
        inside.values.update(given)
        wanted = [value.name for value in body.output]
        self._walk(inside, body.node, wanted)
        return [self.value(inside, name) for name in wanted]

    # -- values

    def value(self, scope: Scope, name: str) -> Any:
        """What a name stands for in a scope. Raises `ConvertError` if it is nothing."""
        place = scope.find(name)
        if place is None:
            raise ConvertError(f"tensor {name!r} comes from nowhere")
        if name not in place.values:
            stored = place.initializers[name]
            if isinstance(stored, TensorProto):
                array, kind = self.model.array(stored), stored.data_type
            else:
                array, kind = self.model.sparse_array(stored), (stored.values or TensorProto()).data_type
            place.values[name] = scope.graph.constant(carried(array, kind), CARRIERS[kind], name)
            place.types[name] = kind
        return place.values[name]

    def declared(self, scope: Scope, name: str) -> list[int | Size | None] | None:
        """The shape that the model says a tensor has; ``None`` for sizes that it does not, or for all of it."""
        stored = scope.declared.get(name)
        tensor = None if stored is None or stored.type is None else stored.type.tensor_type
        if tensor is None or tensor.shape is None:
            return None
        return [
            int(dim.dim_value)
            if dim.which("value") == "dim_value" and dim.dim_value >= 0
            else self.sizes.get(dim.dim_param)
            for dim in tensor.shape.dim
        ]

    def _type(self, scope: Scope, name: str) -> DataType | None:
        place = scope.find(name)
        return None if place is None else place.types.get(name)

    def _stored(self, attribute: AttributeProto) -> tuple[NDArray[Any], DataType]:
        if attribute.sparse_tensor is not None:
            kind = (attribute.sparse_tensor.values or TensorProto()).data_type
            return carried(self.model.sparse_array(attribute.sparse_tensor), kind), kind
        if attribute.t is None:
            raise Refused(f"attribute {attribute.name!r} is no tensor")
        return carried(self.model.array(attribute.t), attribute.t.data_type), attribute.t.data_type

    def _unique(self, name: str) -> str:
        """Names of nodes need not be unique; those of what they become are."""
        count = self.counts.get(name, 0)
        self.counts[name] = count + 1
        return f"{name}#{count}" if count else name


def carried(array: NDArray[Any], kind: DataType) -> NDArray[Any]:
    """Elements as what stands for them."""
    if kind not in CARRIERS:
        raise Refused(f"elements of {kind.name}, which TFLite does not have")
    dtype = numpy_dtype(CARRIERS[kind])
    if array.dtype == dtype or array.dtype.hasobject:
        return array
    if array.dtype == np.uint64:
        return array.view(np.int64)
    with np.errstate(over="ignore"):
        return array.astype(dtype)


def nothing(graph: Graph, value: Value) -> Value:
    """No elements, computed: of a constant without any LiteRT cannot say the shape."""
    given = next((one for one in graph.inputs if one.dtype.kind in "fiu"), None)
    if given is None:
        return value
    flat = graph.add("RESHAPE", given, np.array([-1], np.int32), new_shape=(-1,))
    none = cast(graph, graph.add("GATHER", flat, np.zeros(0, np.int32)), value.type)
    return reshape(graph, none, value.shape)


def inner(graph: Graph, value: Value, type: TensorType) -> Value:
    """What comes in, in the type that stands for its own."""
    if value.type == TensorType.UINT64:
        return graph.add("BITCAST", value, type=type)
    return cast(graph, value, type)


def outer(graph: Graph, value: Value, type: TensorType | None) -> Value:
    """What goes out, in its own type."""
    if type is None or value.type == type:
        return value
    if type == TensorType.UINT64:
        return graph.add("BITCAST", value, type=type)
    return cast(graph, value, type)
