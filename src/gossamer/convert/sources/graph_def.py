"""TensorFlow's graphs: frozen ``.pb`` files, and the graph of a SavedModel.

A graph names its edges ``node`` (its first output), ``node:1`` and ``^node`` (a control edge). A function's body names
them ``argument`` or ``node:output:index``, where outputs have the names of the operator's definition.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gossamer.convert.files import map_file
from gossamer.convert.messages.tensorflow import FunctionDef, GraphDef, NodeDef, OpDef
from gossamer.convert.wire import read
from gossamer.errors import ConvertError

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Edge(NamedTuple):
    """Where an input comes from: output ``number`` of a node, of its output with this name in a function's body."""

    node: str
    output: str = ""
    number: int = 0
    control: bool = False


class Graph(NamedTuple):
    """A graph that is whole: names are unique, and every edge begins at a node or an argument that is there.

    ``op_defs`` are the definitions of operators that came with it, by name; a file of a graph alone has none.
    """

    definition: GraphDef
    nodes: Mapping[str, NodeDef]
    functions: Functions
    op_defs: Mapping[str, OpDef]


def read_graph_def(source: str | os.PathLike[str] | Buffer) -> Graph:
    """Reads a GraphDef from a file, which is mapped, or from bytes, which are referenced and must not change.

    Constants become arrays with `gossamer.convert.sources.tensor_proto.tensor_array`. Raises `ConvertError` for a file
    that cannot be opened or is damaged, has no nodes or contradicts itself.
    """
    name = "graph"
    if isinstance(source, (str, os.PathLike)):
        name, source = os.fspath(source), map_file(source)
    definition = read(GraphDef, source, name)
    if not definition.node:
        raise ConvertError(f"{name}: a GraphDef without nodes")
    return whole_graph(definition, {}, name)


def whole_graph(definition: GraphDef, op_defs: Mapping[str, OpDef], what: str) -> Graph:
    """The graph, if it is whole; its functions are looked at when they are asked for. Raises `ConvertError`; ``what``
    names the graph."""
    nodes = _nodes(definition.node, (), what)
    functions: dict[str, FunctionDef] = {}
    for function in definition.library.function if definition.library is not None else ():
        if function.signature is None or not function.signature.name:
            raise ConvertError(f"{what}: function {len(functions)} has no name")
        name = function.signature.name
        if name in functions:
            raise ConvertError(f"{what}: two functions are called {name!r}")
        functions[name] = function
    return Graph(definition, nodes, Functions(functions, what), op_defs)


class Functions(Mapping[str, FunctionDef]):
    """The functions of a graph by name. To ask for one that is not whole raises `ConvertError`."""

    def __init__(self, stored: Mapping[str, FunctionDef], what: str) -> None:
        self._stored = stored
        self._what = what
        self._whole: set[str] = set()

    def __getitem__(self, name: str) -> FunctionDef:
        function = self._stored[name]
        if name not in self._whole:
            _check_function(function, f"{self._what}: function {name!r}")
            self._whole.add(name)
        return function

    def __contains__(self, name: object) -> bool:
        return name in self._stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def without(self, names: Container[str]) -> Functions:
        """All but these, which nobody looks at."""
        return Functions({name: one for name, one in self._stored.items() if name not in names}, self._what)


def _check_function(function: FunctionDef, what: str) -> None:
    signature = function.signature or OpDef()
    arguments = {argument.name for argument in signature.input_arg}
    known = arguments | _nodes(function.node_def, arguments, what).keys()
    for output in signature.output_arg:
        if output.name not in function.ret:
            raise ConvertError(f"{what}: nothing is returned as {output.name!r}")
    for text in [*function.ret.values(), *[f"^{node}" for node in function.control_ret.values()]]:
        if parse_edge(text, what).node not in known:
            raise ConvertError(f"{what}: what it returns ({text!r}) comes from nowhere")


def _nodes(nodes: Iterable[NodeDef], arguments: Container[str], what: str) -> dict[str, NodeDef]:
    """The nodes by name."""
    named: dict[str, NodeDef] = {}
    for node in nodes:
        if not node.name or not node.op:
            raise ConvertError(f"{what}: node {len(named)} ({node.name!r}) has no name or no operator ({node.op!r})")
        if node.name in named or node.name in arguments:
            raise ConvertError(f"{what}: two nodes or arguments are called {node.name!r}")
        named[node.name] = node
    for node in named.values():
        for text in node.input:
            if text in named:  # as most are: the first output
                continue
            origin = parse_edge(text, what).node
            if origin not in named and origin not in arguments:
                raise ConvertError(f"{what}: input {text!r} of node {node.name!r} ({node.op}) comes from nowhere")
    return named


def parse_edge(text: str, what: str = "graph") -> Edge:
    """The edge that an input of a node, a returned value or a tensor's name names. Raises `ConvertError`."""
    if text.startswith("^"):
        return Edge(text[1:], control=True)
    node, *rest = text.split(":")
    if not rest:
        return Edge(node)
    output, index = rest if len(rest) == 2 else ("", rest[0])
    if len(rest) > 2 or not (index.isascii() and index.isdigit() and len(index) < 10):
        raise ConvertError(f"{what}: {text!r} names no edge; allowed are node, node:index, node:output:index and ^node")
    return Edge(node, output, int(index))
