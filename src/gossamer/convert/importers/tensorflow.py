"""TensorFlow's graphs: SavedModels and frozen GraphDefs.

Functions are inlined by following calls; what is passed to them may be tensors, or things that exist only while a
model is converted (`Handle`): variables, tables, lists of tensors. A variable that nobody writes is a constant; one
that somebody does becomes VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE, and CALL_ONCE gives it its first value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gossamer.convert.blocks.shapes import sizes
from gossamer.convert.flex import PREFIX, flex_options
from gossamer.convert.flex_operators import FLEX_OPERATORS, KNOWN_OPERATORS, flex_operator
from gossamer.convert.graph import Dims, Graph, Node, Origin, Refused, Signature, Size, Value, constant, unknown
from gossamer.convert.lowerings.tensorflow import AssetPath, Call, Handle, Variable, lowers
from gossamer.convert.lowerings.tensorflow.elementwise import SAME
from gossamer.convert.messages.tensorflow import FunctionDef, NodeDef, OpDef
from gossamer.convert.report import Report, Unavailable
from gossamer.convert.request import Imported, Request
from gossamer.convert.sources import graph_def, saved_model
from gossamer.convert.sources.attributes import Attributes
from gossamer.convert.sources.control_flow import raise_control_flow
from gossamer.convert.sources.graph_def import parse_edge
from gossamer.convert.sources.tensor_proto import tensor_type
from gossamer.errors import ConvertError
from gossamer.schema import flexbuffers
from gossamer.schema.enums import TensorType

MOST_NESTED = 64
"""Functions within functions."""

WRITES = ("Assign", "ResourceScatter", "ResourceApply", "ResourceSparseApply", "ResourceStridedSliceAssign")
"""How the names of operators begin that write a variable."""


class Body(NamedTuple):
    """Nodes that refer to each other: a whole graph, or a function of ``arguments``."""

    nodes: Mapping[str, NodeDef]
    arguments: Sequence[str] = ()
    results: Sequence[str] = ()
    effects: Sequence[str] = ()


def import_source(source: str | os.PathLike[str], format: str, request: Request) -> Imported:
    """See `gossamer.convert.importers`. Raises `ConvertError`."""
    if format == "saved_model":
        return _Importer(request).from_saved_model(
            saved_model.read_saved_model(source, request.options.get("tags") or ("serve",))
        )
    return _Importer(request).from_graph_def(graph_def.read_graph_def(source))


class _Importer:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.report = Report(request.progress)
        self.functions: Mapping[str, FunctionDef] = {}
        self.op_defs: Mapping[str, OpDef] = {}
        self.saved: saved_model.SavedModel | None = None
        self.written: set[str] = set()
        self.handles: dict[str, Handle] = {}
        self.variables: dict[str, Variable] = {}
        self.bodies: dict[str, Body] = {}
        self.calling: list[str] = []
        self.bound: Mapping[str, saved_model.Variable] = {}

    # -- sources

    def from_saved_model(self, saved: saved_model.SavedModel) -> Imported:
        keys = self._keys(saved)
        outputs = [spec.name for key in keys for spec in saved.signatures[key].outputs.values()]
        graph = raise_control_flow(saved.served, outputs)
        self.saved, self.functions, self.op_defs = saved, graph.functions, graph.op_defs
        self.bound = dict(_bound(saved))
        self.report.total = len(graph.nodes) + sum(len(f.node_def) for f in graph.functions.values())
        body = Body(graph.nodes)
        self._find_written(body, [parse_edge(name).node for name in outputs], {}, set())
        signatures = []
        for number, key in enumerate(keys):
            stored = saved.signatures[key]
            name = "main" if not number else key
            inputs = {k: (spec.name, spec.dtype, spec.shape) for k, spec in sorted(stored.inputs.items())}
            wanted = {k: spec.name for k, spec in sorted(stored.outputs.items())}
            signatures.append(self._signature(key, name, body, inputs, wanted))
        self._initialize([signature.graph for signature in signatures])
        return Imported(signatures, self.report)

    def _keys(self, saved: saved_model.SavedModel) -> list[str]:
        known = [key for key in saved.signatures if key != saved_model.INITIALIZER and not key.startswith("__")]
        wanted = list(self.request.signature_keys or known)
        if self.request.signature_keys is None and len(known) > 1 and _is_exported(saved):
            wanted.remove("serve")  # the same as serving_default
        for key in wanted:
            if key not in saved.signatures:
                raise ConvertError(f"{saved.directory}: there is no signature {key!r}; there are {', '.join(known)}")
        if not wanted:
            raise ConvertError(
                f"{saved.directory}: no signatures; save the model with signatures=, or a Keras model with export()"
            )
        return wanted

    def from_graph_def(self, graph: graph_def.Graph) -> Imported:
        inputs = list(self.request.inputs or ())
        if not inputs:
            inputs = [n.name for n in graph.nodes.values() if n.op in ("Placeholder", "PlaceholderV2")]
        outputs = list(self.request.outputs or ())
        if not outputs:
            used = {parse_edge(text).node for node in graph.nodes.values() for text in node.input}
            dead = ("Const", "NoOp", "Placeholder", "Assert")
            outputs = [n.name for n in graph.nodes.values() if n.name not in used and n.op not in dead]
        for name in [*inputs, *outputs]:
            if parse_edge(name).node not in graph.nodes:
                raise ConvertError(f"the graph has no node {parse_edge(name).node!r}")
        graph = raise_control_flow(graph, outputs)
        self.functions, self.op_defs = graph.functions, graph.op_defs
        self.report.total = len(graph.nodes) + sum(len(f.node_def) for f in graph.functions.values())
        body = Body(graph.nodes)
        self._find_written(body, [parse_edge(name).node for name in outputs], {}, set())
        specs = {}
        for name in inputs:
            node = graph.nodes[parse_edge(name).node]
            attributes = Attributes(node, self.op_defs.get(node.op))
            if "dtype" not in attributes:
                raise ConvertError(f"input {name!r} is a {node.op}, which does not say its type")
            stored = attributes["dtype"].type
            shape = attributes.shape("shape") if "shape" in attributes else None
            specs[_plain(name)] = (name, stored, shape)
        wanted = {_plain(name): name for name in outputs}
        signature = self._signature("serving_default", "main", body, specs, wanted)
        return Imported([signature], self.report)

    def _signature(
        self,
        key: str,
        name: str,
        body: Body,
        inputs: Mapping[str, tuple[str, Any, Dims | None]],
        outputs: Mapping[str, str],
    ) -> Signature:
        graph = Graph(name)
        environment: dict[str, list[Any]] = {}
        values: dict[str, Value] = {}
        for argument, (edge, dtype, shape) in inputs.items():
            sizes = self._sizes(argument, shape)
            values[argument] = graph.input(edge, tensor_type(dtype, f"input {argument!r}"), sizes)
            place = parse_edge(edge)
            known = environment.setdefault(place.node, [])
            known += [None] * (place.number + 1 - len(known))
            known[place.number] = values[argument]
        self._walk(graph, body, [parse_edge(name).node for name in outputs.values()], environment)
        results: dict[str, Value] = {}
        for argument, edge in outputs.items():
            found = self._edge(edge, environment, body)
            if isinstance(found, Unavailable):
                found = graph.constant(0.0)  # never seen: the report has a refusal
            if not isinstance(found, Value):
                raise ConvertError(f"output {argument!r} of signature {key!r} is a {type(found).__name__}, no tensor")
            if found.node is not None and found not in results.values():
                found.name = edge
            results[argument] = found
        graph.outputs = list(results.values())
        return Signature(key, graph, values, results)

    def _sizes(self, name: str, shape: Dims | None) -> list[int | Size]:
        given = self.request.given_shape(name, None if shape is None else len(shape))
        if given is not None:
            shape = tuple(given)
        if shape is None:
            raise ConvertError(f"input {name!r} has no known number of dimensions; say its shape with --shape {name}=…")
        if self.request.batch is not None and shape and shape[0] is None:
            shape = (self.request.batch, *shape[1:])
        large = len(shape) >= 4
        return [
            size if size is not None else unknown(axis, large=large and axis > 0) for axis, size in enumerate(shape)
        ]

    # -- walking

    def _walk(self, graph: Graph, body: Body, wanted: Iterable[str], environment: dict[str, list[Any]]) -> None:
        """Lower the nodes that are needed for others, each once, in an order in which they can run."""
        for node in _ordered(body, wanted, environment):
            environment[node.name] = self._lowered(graph, body, node, environment)

    def _lowered(self, graph: Graph, body: Body, node: NodeDef, environment: dict[str, list[Any]]) -> list[Any]:
        inputs = [self._edge(text, environment, body) for text in node.input if not text.startswith("^")]
        origin = Origin(node.op, node.name)
        if self.saved is not None and f"{node.name}:0" in self.saved.assets:
            return [AssetPath(self.saved.assets[f"{node.name}:0"])]
        missing = next((item for item in inputs if isinstance(item, Unavailable)), None)
        call = Call(self, graph, node, self._attributes(node), inputs)
        function = self.functions.get(node.op)
        if function is not None:
            return self.inline(graph, node.op, inputs)
        if missing is not None:
            return _Unavailable(missing)
        with self.report.lowering(graph, origin):
            return self._chosen(call)
        return _Unavailable(Unavailable(origin))

    def _chosen(self, call: Call) -> list[Any]:
        """What a node becomes: builtin operators, or TensorFlow's own or a custom one as far as these are allowed."""
        lowering = lowers.find(call.op)
        may_be_flex = self.request.allows_flex and call.op in FLEX_OPERATORS and call.op not in ALWAYS_LOWERED
        may_be_flex = may_be_flex and all(isinstance(item, Value) for item in call.inputs)
        refusal: Refused | None = None
        found: list[Any] | None = None
        effects = len(call.graph.effects)
        with call.graph.recorded() as (made, _):
            try:
                if lowering is None:
                    raise Refused(self._no_lowering(call))
                result = lowering(call)
                found = list(result) if isinstance(result, (list, tuple)) else [result]
            except Refused as error:
                refusal = error
        prefers = call.op in BY_FLEX or not self.request.allows_builtins
        if may_be_flex and (found is None or prefers or differs(call, made, found)):
            del call.graph.effects[effects:]
            return self._flex(call, found)
        if found is not None:
            return found
        if self.request.allow_custom_ops and lowering is None:
            return self._custom(call)
        raise refusal or Refused(self._no_lowering(call))

    def _flex(self, call: Call, like: Sequence[Any] | None) -> list[Any]:
        """The operator as it is, with its NodeDef; ``like`` it are the shapes of its outputs, if they are known."""
        definition = self._definition(call.op)
        outputs = self._declared(call, like)
        options = flex_options(call.node, definition)
        stateful = definition is not None and definition.is_stateful
        return list(
            call.graph.add_custom(
                f"{PREFIX}{call.op}", call.values(), outputs, options, effect=stateful and not outputs
            )
        )

    def _custom(self, call: Call) -> list[Any]:
        """An operator that the application brings: its attributes as a flexbuffer map."""
        values = {
            name: getattr(value, kind)
            for name, value in sorted(call.attributes.values.items())
            if (kind := value.which("value")) in ("i", "f", "b", "s") and not name.startswith("_")
        }
        return list(
            call.graph.add_custom(call.op, call.values(), self._declared(call, None), flexbuffers.dumps(values))
        )

    def _declared(self, call: Call, like: Sequence[Any] | None) -> list[tuple[TensorType, list[int | Size]]]:
        """Types and shapes of the outputs as the operator's definition and the node say them; a shape that nobody says
        has as many sizes as the first input, all open."""
        types = self._output_types(call)
        said = call.attributes.shapes("_output_shapes") if "_output_shapes" in call.attributes else ()
        outputs = []
        for n, type in enumerate(types):
            if like is not None and n < len(like) and isinstance(like[n], Value):
                shape = sizes(like[n])
            elif n < len(said) and said[n] is not None:
                shape = [unknown(axis) if size is None else size for axis, size in enumerate(said[n] or ())]
            else:
                rank = call.value(0).rank if call.inputs and isinstance(call.inputs[0], Value) else 0
                shape = [unknown(40 + axis) for axis in range(rank)]
            outputs.append((type, shape))
        return outputs

    def _output_types(self, call: Call) -> list[TensorType]:
        definition = self._definition(call.op)
        if definition is None:
            first = call.attributes.type("T") if "T" in call.attributes else call.value(0).type
            return [first]
        types: list[TensorType] = []
        for argument in definition.output_arg:
            if argument.type_list_attr:
                types += call.attributes.types(argument.type_list_attr)
                continue
            what = f"output {argument.name!r} of {call.node.name!r}"
            type = call.attributes.type(argument.type_attr) if argument.type_attr else tensor_type(argument.type, what)
            types += [type] * (call.attributes.int(argument.number_attr) if argument.number_attr else 1)
        return types

    def _attributes(self, node: NodeDef) -> Attributes:
        return Attributes(node, self._definition(node.op))

    def _definition(self, op: str) -> OpDef | None:
        """A SavedModel's definitions lack operators that only bodies have: most are known all the same."""
        definition = self.op_defs.get(op)
        return flex_operator(op) if definition is None and op in KNOWN_OPERATORS else definition

    def _no_lowering(self, call: Call) -> str:
        got = ", ".join(repr(item) for item in call.inputs)
        return f"there is no lowering of it (inputs: {got})"

    def _edge(self, text: str, environment: Mapping[str, list[Any]], body: Body) -> Any:
        edge = parse_edge(text)
        outputs = environment.get(edge.node)
        if outputs is None:
            raise ConvertError(f"{text!r} comes from nowhere")
        number = edge.number
        if edge.output and edge.node in body.nodes:
            number += self._offset(body.nodes[edge.node], edge.output)
        if isinstance(outputs, _Unavailable):
            return outputs.what
        if number >= len(outputs) or outputs[number] is None:
            raise ConvertError(f"{text!r}: node {edge.node!r} has {len(outputs)} outputs")
        return outputs[number]

    def _offset(self, node: NodeDef, output: str) -> int:
        """The number of the first output of this name."""
        definition = self.op_defs.get(node.op)
        function = self.functions.get(node.op)
        if function is not None:
            definition = function.signature
        if definition is None:
            return OUTPUTS.get(node.op, (output,)).index(output) if output in OUTPUTS.get(node.op, (output,)) else 0
        offset = 0
        attributes = Attributes(node, definition)
        for argument in definition.output_arg:
            if argument.name == output:
                return offset
            if argument.number_attr:
                offset += attributes.int(argument.number_attr)
            elif argument.type_list_attr:
                offset += len(attributes[argument.type_list_attr].list.type)  # type: ignore[union-attr]
            else:
                offset += 1
        raise ConvertError(f"node {node.name!r} ({node.op}) has no output {output!r}")

    # -- functions

    def body(self, name: str) -> Body:
        """A function by its name. Raises `ConvertError` if there is none."""
        if name not in self.bodies:
            function = self.functions.get(name)
            if function is None or function.signature is None:
                raise ConvertError(f"there is no function {name!r}")
            results = [function.ret[argument.name] for argument in function.signature.output_arg]
            self.bodies[name] = Body(
                {node.name: node for node in function.node_def},
                [argument.name for argument in function.signature.input_arg],
                results,
                list(function.control_ret.values()),
            )
        return self.bodies[name]

    def inline(self, graph: Graph, name: str, arguments: Sequence[Any]) -> list[Any]:
        """The results of a function for these arguments, its operators put into the graph."""
        body = self.body(name)
        if len(arguments) != len(body.arguments):
            raise ConvertError(f"function {name!r} takes {len(body.arguments)} arguments, it is given {len(arguments)}")
        if name in self.calling:
            raise ConvertError(f"function {name!r} calls itself")
        if len(self.calling) == MOST_NESTED:
            raise ConvertError(f"function {name!r} is called {MOST_NESTED} functions deep; inline some of them")
        environment: dict[str, list[Any]] = {
            argument: [value] for argument, value in zip(body.arguments, arguments, strict=True)
        }
        wanted = [parse_edge(text).node for text in [*body.results, *body.effects]]
        self.calling.append(name)
        try:
            self._walk(graph, body, wanted, environment)
        finally:
            self.calling.pop()
        return [self._edge(text, environment, body) for text in body.results]

    def handed_on(self, name: str) -> list[int | None]:
        """For each result of a function, which argument it is, if it is one."""
        body = self.body(name)
        found: list[int | None] = []
        for text in body.results:
            edge = parse_edge(text)
            for _ in body.nodes:
                node = body.nodes.get(edge.node)
                if node is None or node.op not in ("Identity", "IdentityN"):
                    break
                edge = parse_edge([text for text in node.input if not text.startswith("^")][edge.number])
            found.append(body.arguments.index(edge.node) if edge.node in body.arguments else None)
        return found

    # -- state

    def handle(self, node: NodeDef, make: Callable[[], Handle]) -> Handle:
        """The one handle of a node of the graph that stands for a variable or a table."""
        if node.name not in self.handles:
            self.handles[node.name] = make()
        return self.handles[node.name]

    def _initialize(self, graphs: Sequence[Graph]) -> None:
        """First values of variables that are written, and what fills tables: once, before anything else happens."""
        start = Graph("NoOp")
        for variable in self.variables.values():
            if variable.is_used and variable.initial is not None:
                start.add_many("ASSIGN_VARIABLE", [variable.of(start), variable.initial()], 0)
        if self.saved is not None and self.saved.initializer is not None and self.handles:
            self._walk(start, Body(self.saved.graph.nodes), [self.saved.initializer], {})
        if start.effects:
            for graph in graphs:
                graph.begin("CALL_ONCE", {"init_subgraph_index": start})

    def variable(self, node: NodeDef) -> Variable:
        """The variable that a node stands for."""

        if node.name not in self.variables:
            attributes = Attributes(node, self.op_defs.get(node.op))
            name = attributes.text("shared_name", "") or node.name
            stored = None
            if self.saved is not None:
                stored = self.bound.get(node.name) or self.saved.variables.get(node.name)
                stored = stored or _captured(self.saved, name)
            self.variables[node.name] = Variable(
                name,
                attributes.text("container", ""),
                attributes.type("dtype"),
                attributes.shape("shape") if "shape" in attributes else None,
                node.name in self.written,
                None if stored is None else _reader(stored, name),
            )
        return self.variables[node.name]

    def _find_written(
        self, body: Body, wanted: Iterable[str], bound: Mapping[str, str], seen: set[Any]
    ) -> dict[str, str]:
        """Notes the variables that operators of a body write; ``bound``: which variables its arguments are. What else
        stands for a variable in it."""
        known = dict(bound)
        for node in _ordered(body, wanted, dict.fromkeys(bound)):
            if node.op in saved_model.VARIABLES:
                known[node.name] = node.name
            given = [parse_edge(text).node for text in node.input if not text.startswith("^")]
            if node.op == "Identity" and given[0] in known:
                known[node.name] = known[given[0]]
            if node.op.startswith(WRITES) and given and given[0] in known:
                self.written.add(known[given[0]])
            if not any(name in known for name in given):
                continue  # nothing is handed on
            for name, offset in _called(node, self.functions):
                inner = self.body(name)
                passed = given[offset:]
                arguments = {a: known[g] for a, g in zip(inner.arguments, passed, strict=False) if g in known}
                key = (name, tuple(sorted(arguments.items())))
                if key not in seen and arguments:
                    seen.add(key)
                    targets = [parse_edge(text).node for text in [*inner.results, *inner.effects]]
                    self._find_written(inner, targets, arguments, seen)
        return known


class _Unavailable(list[Any]):
    """The outputs of a node that was refused, however many it has."""

    def __init__(self, what: Unavailable) -> None:
        super().__init__()
        self.what = what


ALWAYS_LOWERED = {"Const", "Placeholder", "NoOp", "ReadVariableOp", "VarHandleOp", "PartitionedCall"}
ALWAYS_LOWERED |= {"StatefulPartitionedCall", "While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase"}
"""Operators that are never TensorFlow's own in a model, even where all shall be that can be."""

BY_FLEX = {
    *("Atan", "Cosh", "Sinh", "Tan", "Erf", "Cumprod", "DenseBincount"),
    *("BitwiseAnd", "BitwiseOr", "Invert", "LeftShift", "FFT", "FFT2D", "IFFT", "IRFFT", "StringJoin"),
    *("Cholesky", "MatrixInverse", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "MirrorPadGrad"),
    *("AvgPool3D", "MaxPool3D", "CropAndResize", "ResizeBicubic", "SparseTensorDenseMatMul"),
}
"""Operators that TensorFlow's converter leaves to Flex where it may, although they can be said in builtin ones, more or
less exactly: who allows Flex gets the operator itself."""


def differs(call: Call, made: Sequence[Node], found: Sequence[Any]) -> bool:
    """Whether a lowering computes in another type than the operator does, because TFLite has no kernel for this one, or
    has it for quantized numbers."""
    if call.op == "Cast" or not call.inputs:
        return False
    if call.op in SAME and call.value(0).type in (TensorType.INT8, TensorType.UINT8):
        return True
    casts = [node for node in made if node.op == "CAST"]
    return any(node.inputs[0] is call.inputs[0] or node.output in found for node in casts)


OUTPUTS = {
    "TopKV2": ("values", "indices"),
    "Unique": ("y", "idx"),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
    "NonMaxSuppressionV5": ("selected_indices", "selected_scores", "valid_outputs"),
    "FusedBatchNormV3": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"),
}
"""Names of outputs for files of graphs, which do not have the operators' definitions."""


def _plain(name: str) -> str:
    return name.partition(":")[0] if name.endswith(":0") else name


def _reader(stored: saved_model.Variable, name: str) -> Callable[[], Value]:
    def read() -> Value:
        return constant(stored.value(), None, name)

    return read


def _is_exported(saved: saved_model.SavedModel) -> bool:
    """Whether Keras' ``export`` wrote it, which has the one function under two names."""
    stored = saved.meta_graph.object_graph_def
    names = {child.local_name for child in stored.nodes[0].children} if stored is not None and stored.nodes else set()
    return "serve" in saved.signatures and "serve" in names and "_default_save_signature" not in names


def _bound(saved: saved_model.SavedModel) -> Iterator[tuple[str, saved_model.Variable]]:
    """The variables by the nodes that are given to functions which have captured them: several may have one name."""
    for node in saved.graph.nodes.values():
        call = saved_model.called(node)
        captures = saved.captures(call.name) if call is not None and call.name in saved.graph.functions else {}
        if call is None or not captures:
            continue
        signature = saved.graph.functions[call.name].signature or OpDef()
        given = [parse_edge(text).node for text in node.input if not text.startswith("^")]
        for argument, name in zip(signature.input_arg, given, strict=False):
            found = captures.get(argument.name)
            if isinstance(found, saved_model.Variable):
                yield name, found


def _captured(saved: saved_model.SavedModel, name: str) -> saved_model.Variable | None:
    return next((one for one in saved.objects if isinstance(one, saved_model.Variable) and one.name == name), None)


def _called(node: NodeDef, functions: Mapping[str, FunctionDef]) -> list[tuple[str, int]]:
    """The functions that a node calls, and the number of the input that is their first argument."""
    if node.op in functions:
        return [(node.op, 0)]
    offset = 1 if node.op in ("If", "StatelessIf", "Case", "StatelessCase") else 0
    names = [value.func.name for value in node.attr.values() if value.func is not None]
    names += [func.name for value in node.attr.values() if value.list is not None for func in value.list.func]
    return [(name, offset) for name in names if name in functions]


def _ordered(body: Body, wanted: Iterable[str], known: Mapping[str, Any]) -> list[NodeDef]:
    """The nodes that are needed for some of a body, and not known yet, in an order in which they can run.

    Raises `ConvertError` for a cycle.
    """
    order: list[NodeDef] = []
    state: dict[str, int] = {}  # 1: being looked at, 2: done
    for target in wanted:
        stack = [(target, False)]
        while stack:
            name, done = stack.pop()
            node = body.nodes.get(name)
            if node is None or name in known:
                continue
            if done:
                state[name] = 2
                order.append(node)
                continue
            if state.get(name):
                if state[name] == 1:
                    raise ConvertError(f"node {name!r} ({node.op}) waits for itself")
                continue
            state[name] = 1
            stack.append((name, True))
            for text in reversed(node.input):
                before = parse_edge(text).node
                if before not in known and state.get(before) != 2:
                    if state.get(before) == 1:
                        raise ConvertError(f"node {before!r} and node {name!r} ({node.op}) wait for each other")
                    stack.append((before, False))
    return order
