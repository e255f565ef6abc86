"""Flex operators that builtin ones can say: a model in other words, before anything of it is prepared.

Every operator of TensorFlow that the converter can lower without computing in another type is lowered here too, by the
same functions. Lists of tensors become tensors, through loops and branches, if all that touches them can be lowered.
What is left stays a Flex operator and runs in NumPy (`gossamer.flex.kernels`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from gossamer.convert.converter import with_patterns
from gossamer.convert.export import graphs_of, to_model
from gossamer.convert.flex import PREFIX
from gossamer.convert.flex_operators import flex_operator
from gossamer.convert.graph import WORLDS, Graph, Node, Refused, Signature, Size, Value, shapes_of, unknown
from gossamer.convert.importers.tensorflow import differs
from gossamer.convert.importers.tflite import Stored, graphs_of_model
from gossamer.convert.lowerings.tensorflow import Call, Handle, Variable, lowers
from gossamer.convert.messages.tensorflow import AttrValue, NameAttrList, NodeDef
from gossamer.convert.report import Report
from gossamer.convert.request import Request
from gossamer.convert.sources.attributes import Attributes
from gossamer.errors import ConvertError, GossamerError
from gossamer.flex.kernels import Shape, find_kernel
from gossamer.flex.node import FlexNode, flex_node, types_of
from gossamer.flex.operator import TRIPPED, operator
from gossamer.log import logger
from gossamer.model.model import Model
from gossamer.model.verifier import verify_model
from gossamer.ops import find_op
from gossamer.ops.op_def import OpDef
from gossamer.quantize.rebuild import options_of
from gossamer.schema.enums import TensorType
from gossamer.schema.tables import SubGraph

CALLS = {
    "WHILE": ("While", {"cond": "cond_subgraph_index", "body": "body_subgraph_index"}),
    "IF": ("If", {"then_branch": "then_subgraph_index", "else_branch": "else_subgraph_index"}),
}
"""Operators that hand lists to other graphs: TensorFlow's name, its attributes and the options that say the same."""

CHECKS = (
    *("Assert", "CheckNumerics", "InvertPermutation", "Segment", "SparseSegment", "SparseToDense"),
    *("BatchCholesky", "BatchMatrix", "Cholesky", "MatrixInverse", "MatrixSolve", "MatrixTriangularSolve"),
)
"""How the names of operators begin that refuse values of which builtin ones make something: these stay."""

LISTS = ("EmptyTensorList", "Identity", "TensorList")
"""How the names of operators begin that make, take and hand on lists of tensors."""

SLICES = {"STRIDED_SLICE": "StridedSlice", "SLICE": "Slice"}
"""Operators of which the lowering of TensorFlow's can tell sizes that their own prepare cannot."""


def may_be_builtin(op: str) -> bool:
    """Whether an operator of TensorFlow becomes builtin ones, where these have its types."""
    return lowers.find(op) is not None and not op.startswith(CHECKS) and not flex_operator(op).is_stateful


class _NoListsError(ConvertError):
    """Something takes a list of tensors that only an object can be."""


def rewritten(model: Model, find: Callable[[str, int], OpDef | None]) -> Model:
    """The model with builtin operators for all Flex operators that these can say; the model itself if there are none.
    ``find`` is the ``find_custom`` of a resolver: what it finds elsewhere is the user's, and stays."""

    def is_flex(name: str) -> bool:
        return name.startswith(PREFIX) and find(name, 1) is operator(name)

    if any(verify_model(model)) or not all(_is_regular(model, graph) for graph in model.subgraphs):
        return model  # what is wrong is said when it is prepared
    try:
        return _rewritten(model, is_flex)
    except (RuntimeError, *TRIPPED) as error:  # no converter writes that
        logger.warning("TensorFlow's operators run as they are: %s: %s", type(error).__name__, error)
        return model


def _is_regular(model: Model, graph: SubGraph) -> bool:
    """Whether every tensor is written once, before it is read."""
    written = {index for index, tensor in enumerate(graph.tensors) if model.tensor_data(tensor) is not None}
    written |= {index for index, tensor in enumerate(graph.tensors) if tensor.is_variable} | set(graph.inputs) | {-1}
    for node in graph.operators:
        outputs = [index for index in node.outputs if index >= 0]
        if not written.issuperset(node.inputs) or written.intersection(outputs) or len({*outputs}) < len(node.outputs):
            return False
        written.update(outputs)
    return written.issuperset(graph.outputs)


def _rewritten(model: Model, is_flex: Callable[[str], bool]) -> Model:
    for lists in (True, False):
        try:
            stored = graphs_of_model(model)
            if len(graphs_of(stored.signatures)) < len(stored.graphs):
                return model  # what nobody calls fills a table
            rewriter = _Rewriter(stored, is_flex, lists)
            signatures = rewriter.signatures()
        except _NoListsError:
            continue
        except ConvertError:
            return model
        if not rewriter.lowered:
            return model
        return to_model(with_patterns(signatures), model.description, rewriter.numbered)
    return model


class _Rewriter:
    """Copies graphs, with other operators in them: an `Importer` for lowerings of what calls graphs.

    ``opaque`` are new values of which the shape is not known for certain.
    """

    def __init__(self, stored: Stored, is_flex: Callable[[str], bool], lists: bool) -> None:
        self.request = Request()
        self.report = Report()
        self.stored = stored
        self.is_flex = is_flex
        self.lists = lists
        self.lowered = 0
        self.named = {graph_name(number): graph for number, graph in enumerate(stored.graphs)}
        self.entries = [signature.graph for signature in stored.signatures]
        self.ends = {value for graph in self.entries for value in graph.outputs}
        self.copies: dict[int, Graph] = {}
        self.opaque: set[Value] = set()

    def signatures(self) -> list[Signature]:
        found = []
        for key, graph, inputs, outputs in self.stored.signatures:
            copy = self.copied(graph)
            if not {*inputs.values()} <= {*graph.inputs} or not {*outputs.values()} <= {*graph.outputs}:
                raise ConvertError(f"signature {key!r} has inputs or outputs that its graph does not have")
            found.append(
                Signature(
                    key,
                    copy,
                    {name: copy.inputs[graph.inputs.index(value)] for name, value in inputs.items()},
                    {name: copy.outputs[graph.outputs.index(value)] for name, value in outputs.items()},
                )
            )
        return found

    def copied(self, source: Graph) -> Graph:
        """A graph of the model, rewritten."""
        if id(source) not in self.copies:
            graph = self.copies[id(source)] = Graph(source.name)
            values: dict[Value, Any] = {}
            for number, old in enumerate(source.inputs):
                new = values[old] = _like(old)
                graph.inputs.append(new)
                self._note(new, old, ())
                if source in self.entries and old not in self.stored.unranked:
                    new.shapes = shapes_of([_size(old, axis, number) for axis in range(old.rank)])
                    self.opaque.discard(new)
            self._walk(graph, source, values)
            graph.outputs = [_tensor(_become(old, values)) for old in source.outputs]
            for old, new in zip(source.outputs, graph.outputs, strict=True):
                if new.node is not None:
                    new.name = old.name
        return self.copies[id(source)]

    def numbered(self, graph: Graph) -> list[Value]:
        """The inputs and outputs of what can be called from outside, by the numbers of their tensors in the file; what
        lies in between."""
        source = next((old for old in self.entries if self.copies.get(id(old)) is graph), None)
        if source is None:
            return []
        ends = dict(zip([*source.inputs, *source.outputs], [*graph.inputs, *graph.outputs], strict=True))
        numbers = self.stored.values[self.stored.graphs.index(source)]
        last = max([numbers.index(old) for old in ends], default=-1)
        return [ends.get(old) or Value(old.type, old.shapes) for old in numbers[: last + 1]]

    def _walk(self, graph: Graph, source: Graph, values: dict[Value, Any]) -> None:
        nodes: dict[Node, Node] = {}
        for node in source.ordered():
            inputs = [None if old is None else _become(old, values) for old in node.inputs]
            with graph.at(*node.origins, position=node.order[0]):
                results = self._results(graph, node, inputs, nodes)
            values.update(zip(node.outputs, results, strict=True))
            if node in source.effects and node in nodes:
                graph.effects.append(nodes[node])

    def _results(self, graph: Graph, node: Node, inputs: list[Any], nodes: dict[Node, Node]) -> Sequence[Any]:
        if node.is_custom and self.is_flex(node.op):
            found = self._flex(graph, node, inputs)
            if found is not None:
                self.lowered += 1
                return found
        if node.op in CALLS and any(isinstance(one, Handle) for one in inputs):
            return self._call(graph, node, inputs)
        return self._inferred(graph, node, inputs) or self._copy(graph, node, inputs, nodes)

    # -- operators as they are

    def _copy(self, graph: Graph, node: Node, inputs: list[Any], nodes: dict[Node, Node]) -> Sequence[Value]:
        operands = [None if one is None else _tensor(one) for one in inputs]
        outputs = [_like(old) for old in node.outputs]
        graphs = {key: self.copied(called) for key, called in node.graphs.items()}
        new = nodes[node] = Node(
            node.op, operands, outputs, node.options, node.order, node.origins, node.custom_options, graphs
        )
        new.intermediates = node.intermediates
        new.after = None if node.after is None else nodes.get(node.after)
        shapes = self._told(node, operands)
        for number, (value, old) in enumerate(zip(outputs, node.outputs, strict=True)):
            if shapes is None:
                self._note(value, old, operands)
            else:
                value.shapes = tuple([world[number] for world in shapes])
        return outputs

    def _told(self, node: Node, operands: Sequence[Value | None]) -> list[Sequence[Shape]] | None:
        """The shapes of what a Flex operator gives in each world, if its kernel tells them."""
        values = [value for value in operands if value is not None and value not in self.opaque]
        if not node.is_custom or not self.is_flex(node.op) or len(values) < len(operands):
            return None
        with _refusals():
            found = flex_node(node.custom_options or b"")
            kernel = find_kernel(found.op)
            if kernel is not None and kernel.shape is not None:
                return [kernel.shape(found, [value.shapes[world] for value in values]) for world in range(WORLDS)]
        return None

    def _inferred(self, graph: Graph, node: Node, inputs: list[Any]) -> Sequence[Value] | None:
        """The operator with what its own prepare says of sizes that the file leaves open; ``None`` if that says
        nothing, or need not."""
        values = [value for value in inputs if isinstance(value, Value)]
        if not any(map(_is_open, [*values, *node.outputs])) or any(value in self.opaque for value in values):
            return None
        if node.op in CALLS:
            with suppress(_NoListsError):
                return self._call(graph, node, inputs)
            return None
        op = find_op(node.op, custom=node.is_custom)
        if op is None or node.is_custom or op.side_effects or any(isinstance(value, Handle) for value in inputs):
            return None
        types = [value.type for value in node.outputs]
        found: Sequence[Any] | None = None
        if node.op in SLICES:
            attributes = {
                name: AttrValue(i=value) for name, value in options_of(node).items() if name.endswith("_mask")
            }
            stored = NodeDef(op=SLICES[node.op], name=node.output.name, attr=attributes)
            found = self._lowered(Call(self, graph, stored, Attributes(stored), inputs))
        else:
            with graph.recorded(), _refusals():
                found = graph.add_many(node.op, inputs, len(types), types=types, **options_of(node))
        if found is None or [value.type for value in found] != types:
            return None
        for new, old in zip(found, node.outputs, strict=True):
            if new.node is not None and new not in inputs:
                new.name, new.quantization = old.name, old.quantization
        return found

    def _note(self, new: Value, old: Value, operands: Sequence[Value | None]) -> None:
        if not old.is_static or old in self.stored.unranked or any(value in self.opaque for value in operands):
            self.opaque.add(new)

    # -- operators of TensorFlow

    def _flex(self, graph: Graph, node: Node, inputs: list[Any]) -> Sequence[Any] | None:
        """What the operator becomes; ``None`` if it stays."""
        try:
            found = flex_node(node.custom_options or b"")
        except ConvertError:
            return None
        if not self._may_be_lowered(found, inputs):
            return None
        call = Call(self, graph, found.node, found.attributes, inputs)
        results = self._lowered(call)
        if results is None or not _fits(results, found, node):
            return None
        for old, new in zip(node.outputs, results, strict=True):
            if old in self.ends and new in inputs and (new.node is None or node.inputs[inputs.index(new)] in self.ends):
                return None  # what comes out is a tensor of its own
        for old, new in zip(node.outputs, results, strict=True):
            if isinstance(new, Value) and new.node is not None and new not in inputs:
                new.name = old.name
        return results

    def _may_be_lowered(self, node: FlexNode, inputs: Sequence[Any]) -> bool:
        if not node.is_known or any(value is None or value in self.opaque for value in inputs):
            return False
        if any(type == TensorType.VARIANT for type in types_of([*node.inputs, *node.outputs])):
            return self.lists and node.op.startswith(LISTS)
        types = [value.type for value in inputs if isinstance(value, Value)]
        return types == types_of(node.inputs) and len(types) == len(inputs) and may_be_builtin(node.op)

    def _lowered(self, call: Call) -> Sequence[Any] | None:
        lowering = lowers.find(call.op)
        if lowering is None:
            return None
        effects = len(call.graph.effects)
        with call.graph.recorded() as (made, _), _refusals() as refused:
            result = lowering(call)
            results = list(result) if isinstance(result, (list, tuple)) else [result]
            if not differs(call, made, results):
                return results
            refused.append("it computes in another type")
        del call.graph.effects[effects:]
        return None

    def _call(self, graph: Graph, node: Node, inputs: list[Any]) -> Sequence[Any]:
        """A loop or a branch that lists are handed to. Raises `_NoListsError`."""
        op, options = CALLS[node.op]
        names = {id(called): name for name, called in self.named.items()}
        functions = {
            name: AttrValue(func=NameAttrList(name=names[id(node.graphs[option])])) for name, option in options.items()
        }
        stored = NodeDef(op=op, name=node.op.lower(), attr=functions)
        results = self._lowered(Call(self, graph, stored, Attributes(stored), inputs))
        if results is None:
            raise _NoListsError(f"{node.op} takes lists of tensors")
        for old, new in zip(node.outputs, results, strict=True):
            if isinstance(new, Value) and new.node is not None:
                new.name = old.name
        return results

    # -- what lowerings ask of an importer

    def inline(self, graph: Graph, name: str, arguments: Sequence[Any]) -> list[Any]:
        """What a graph of the model gives for these arguments, its operators put into another graph."""
        source = self.named[name]
        values = dict(zip(source.inputs, arguments, strict=True))
        self._walk(graph, source, values)
        return [_become(old, values) for old in source.outputs]

    def handed_on(self, name: str) -> list[int | None]:
        """For each result of a graph, which argument it is, if it is one."""
        source = self.named[name]
        return [source.inputs.index(value) if value in source.inputs else None for value in source.outputs]

    def variable(self, node: NodeDef) -> Variable:
        """None is known here: operators on variables stay. Raises `Refused`."""
        raise Refused(f"{node.op} stands for a variable")

    def handle(self, node: NodeDef, make: Callable[[], Handle]) -> Handle:
        """None is known here: operators on tables stay. Raises `Refused`."""
        raise Refused(f"{node.op} stands for a resource")


def graph_name(number: int) -> str:
    """What a graph of the model is called where functions have names."""
    return f"subgraph {number}"


@contextmanager
def _refusals() -> Iterator[list[str]]:
    """A lowering may refuse, or trip over what no converter would write."""
    why: list[str] = []
    try:
        yield why
    except _NoListsError:
        raise
    except (GossamerError, *TRIPPED) as error:
        why.append(str(error))


def _size(old: Value, axis: int, number: int) -> int | Size:
    """A size of an input. The first, if it is open, is the same for all inputs; others are their own."""
    size = old.dims[axis]
    return size if size is not None else unknown(axis and axis + 8 * number, large=old.rank >= 4 and axis > 0)


def _is_open(value: Value) -> bool:
    """Whether its shape, or its value, depends on open sizes."""
    return not value.is_static or (value.known is not None and value.data is None)


def _like(old: Value) -> Value:
    new = Value(old.type, old.shapes, None, old.name, old.quantization)
    new.is_variable = old.is_variable
    return new


def _become(old: Value, values: dict[Value, Any]) -> Any:
    """What a value has become; a constant is what it was."""
    return values.get(old, old)


def _tensor(value: Any) -> Value:
    if not isinstance(value, Value):
        raise _NoListsError(f"{value!r} is taken as it is")
    return value


def _fits(results: Sequence[Any], node: FlexNode, stored: Node) -> bool:
    """Whether the results are what the operator declares, and what the file says of them."""
    types = types_of(node.outputs)
    if len(results) != len(types) or [old.type for old in stored.outputs] != types:
        return False
    for result, type in zip(results, types, strict=True):
        if isinstance(result, Value) and (result.type != type or type == TensorType.VARIANT):
            return False
    return True
