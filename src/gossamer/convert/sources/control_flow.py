"""TensorFlow 1's control flow raised to functions: ``Switch`` and ``Merge`` become ``If``, frames become ``While``.

A loop is a *frame*, which ``Enter`` leads into and ``Exit`` out of::

    Enter -> Merge -> Switch(_, LoopCond) --false--> Exit
               ^         `--true--> body -> NextIteration
               `-----------------------------'

Everything on that circle is a loop variable. An ``Enter`` that ``is_constant`` hands an outer value in; it becomes a
loop variable that hands itself on. Innermost frames are raised first.

A condition has no such mark: a value exists only if the predicates of the ``Switch`` nodes before it are as it takes.
These (predicate, branch) pairs are followed forward, along control edges too. A ``Merge`` joins two values that differ
in one predicate, and what depends on that predicate before it is the body of a branch.

In the result, edges are spelled ``node`` and ``node:index`` in the new functions too. Where the source is itself the
body of a function, edges that it spells ``node:output:index`` stay so, but for those of what is raised
(`gossamer.convert.sources.graph_def.parse_edge` reads both). ``Exit`` and ``Merge`` become ``Identity`` (``IdentityN``
where the index of a ``Merge`` is used) with the same name, so that their edges lead where they did.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from gossamer.convert.messages.tensorflow import (
    AttrValue,
    DataType,
    FunctionDef,
    FunctionDefLibrary,
    NameAttrList,
    NodeDef,
    OpDef,
    TensorProto,
    TensorShapeProto,
)
from gossamer.convert.sources.attributes import Attributes
from gossamer.convert.sources.graph_def import Edge, Graph, parse_edge, whole_graph
from gossamer.errors import ConvertError

CONTROL_FLOW = {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"}
"""What is raised; all but ``LoopCond`` have a form for references to variables, like ``RefSwitch``."""

OUTPUTS = {"output_false": 0, "output_true": 1, "value_index": 1}
"""The named outputs of these operators that are not ``output``, the first one."""

MAX_NESTING = 64
"""Loops around a node, and conditions around it."""

MAX_COPIES = 16
"""How often conditions on one predicate that depend on each other may repeat what they share, on the average."""

_EFFECTS = re.compile(
    r"(?!Stateless)(If$|While$|Case$|.*(Stateful|Random|Multinomial|TruncatedNormal|Variable|Assign|Resource|TensorArray"
    r"|Stack(Push|Pop|V2)|Queue|Table|Print|Assert|PyFunc|Write|Save|Send|Recv|Iterator))"
)
"""Operators that must not run twice for once, as far as their names say; a definition says it better."""

Literal = tuple[Edge, int]
"""A predicate, and which branch of it: 1 if it is true."""


class _Node(NamedTuple):
    """A node with its edges read; ``op`` is without ``Ref`` for what is raised."""

    name: str
    op: str
    data: tuple[Edge, ...]
    control: tuple[str, ...]
    definition: NodeDef

    def origins(self) -> list[str]:
        """The nodes that it takes something of or waits for."""
        return list(dict.fromkeys([*[edge.node for edge in self.data], *self.control]))

    def written(self) -> NodeDef:
        inputs = tuple([_spelled(edge) for edge in self.data] + [f"^{name}" for name in self.control])
        return self.definition if self.definition.input == inputs else self.definition.replace(input=inputs)


class _Frame:
    """A loop, or what is around all loops (``parent`` is None)."""

    def __init__(self, name: str, parent: _Frame | None) -> None:
        self.name = name
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.nodes: list[str] = []
        self.exits: list[str] = []

    def around(self) -> list[_Frame]:
        """This loop, the one around it, and so on."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found


class _Choice(NamedTuple):
    """What a ``Merge`` chooses by: a predicate, in a context; ``inputs`` are its inputs for false and true."""

    predicate: Edge
    context: frozenset[Literal]
    inputs: tuple[int, int]


class _Arguments:
    """What a loop or a condition gives to its functions: the outer edges, and the name and type of each inside."""

    def __init__(self, body: _Body) -> None:
        self.body = body
        self.inside: dict[Edge, Edge] = {}
        self.outer: list[Edge] = []
        self.declared: list[OpDef.ArgDef] = []
        self.waits: dict[str, None] = {}
        """Outer nodes to wait for."""

    def add(self, outer: Edge, data_type: DataType) -> Edge:
        name = self.body.fresh(f"{outer.node}/argument")
        self.outer.append(outer)
        self.declared.append(OpDef.ArgDef(name=name, type=data_type))
        self.body.types[name] = data_type
        return Edge(name)

    def capture(self, outer: Edge, data_type: DataType | None = None) -> Edge:
        """The edge inside for an outer one. Constants are not handed in but copied."""
        if outer.node in self.body.constants:
            return Edge(self.body.constants[outer.node])
        if outer not in self.inside:
            self.inside[outer] = self.add(outer, self.body.type_of(outer) if data_type is None else data_type)
        return self.inside[outer]


def raise_control_flow(graph: Graph, outputs: Iterable[str], what: str = "graph") -> Graph:
    """The graph with ``While`` and ``If`` nodes and new functions for what is `CONTROL_FLOW`; itself if there is none.

    ``outputs`` are names of the tensors (or ``^node``) that are wanted: of what depends on control flow only that is
    kept which they need. Functions of the graph are raised as well. The type of a captured value is ``DT_INVALID``
    where the graph has no definition of the operator that makes it. Raises `ConvertError` for control flow that no
    loop and no condition is; ``what`` names the graph.
    """
    outputs = list(outputs)
    for text in outputs:
        if parse_edge(text, what).node not in graph.nodes:
            raise ConvertError(f"{what}: the output {text!r} is of no node of the graph")
    bodies = [graph.nodes.values(), *[function.node_def for function in graph.functions.values()]]
    if not any(_operator(node) in CONTROL_FLOW for nodes in bodies for node in nodes):
        return graph
    taken = {*graph.nodes, *graph.functions}
    for function in graph.functions.values():
        taken |= {node.name for node in function.node_def} | {item.name for item in _signature(function).input_arg}
    made: list[FunctionDef] = []
    main = _Body(graph, graph.nodes.values(), (), taken, made, what)
    edges = [main.edge(text) for text in outputs]
    nodes = main.raised([e for e in edges if not e.control], [e.node for e in edges if e.control])
    functions = [
        _raised_function(graph, function, taken, made, f"{what}: function {name!r}")
        for name, function in graph.functions.items()
    ]
    library = graph.definition.library or FunctionDefLibrary()
    definition = graph.definition.replace(node=tuple(nodes), library=library.replace(function=(*functions, *made)))
    return whole_graph(definition, graph.op_defs, what)


def _raised_function(
    graph: Graph, function: FunctionDef, taken: set[str], made: list[FunctionDef], what: str
) -> FunctionDef:
    if not any(_operator(node) in CONTROL_FLOW for node in function.node_def):
        return function
    body = _Body(graph, function.node_def, _signature(function).input_arg, taken, made, what)
    returned = [body.edge(text) for text in function.ret.values()]
    nodes = body.raised(returned, list(function.control_ret.values()))
    return function.replace(node_def=tuple(nodes), ret=dict(zip(function.ret, map(_spelled, returned), strict=True)))


def _signature(function: FunctionDef) -> OpDef:
    return function.signature or OpDef()


def _operator(node: NodeDef) -> str:
    short = node.op.removeprefix("Ref")
    return short if short in CONTROL_FLOW else node.op


def _spelled(edge: Edge) -> str:
    if edge.output:
        return f"{edge.node}:{edge.output}:{edge.number}"
    return f"{edge.node}:{edge.number}" if edge.number else edge.node


class _Body:
    """The nodes of a graph or a function while they are raised, and what is known of them.

    ``types`` are those of arguments, ``constants`` the ``Const`` node whose value a node has, ``effects`` whether a
    loop or a condition that was made contains operators with effects.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: Iterable[NodeDef],
        arguments: Iterable[OpDef.ArgDef],
        taken: set[str],
        made: list[FunctionDef],
        what: str,
    ) -> None:
        self.op_defs = graph.op_defs
        self.taken = taken
        self.made = made
        self.what = what
        self.types = {item.name: item.type for item in arguments}
        definitions = {node.name: node for node in nodes}
        self.operators = {name: _operator(node) for name, node in definitions.items()}
        self.nodes: dict[str, _Node] = {}
        for name, node in definitions.items():
            edges = [self.edge(text) for text in node.input]
            data = tuple([edge for edge in edges if not edge.control])
            control = tuple([edge.node for edge in edges if edge.control])
            self.nodes[name] = _Node(name, self.operators[name], data, control, node)
            wanted = 2 if self.operators[name] in ("Switch", "Merge") else 1
            if self.operators[name] in CONTROL_FLOW and len(data) != wanted:
                raise self.error(self.nodes[name], f"has {len(data)} inputs, must have {wanted}")
        self.constants: dict[str, str] = {}
        self.frame: dict[str, _Frame] = {}
        self.effects: dict[str, bool] = {}
        self.counts: dict[str, int] = {}

    def edge(self, text: str) -> Edge:
        """An edge as it is written; outputs of what is raised go by their number."""
        edge = parse_edge(text, self.what)
        if edge.output and self.operators.get(edge.node) in CONTROL_FLOW:
            return Edge(edge.node, "", OUTPUTS.get(edge.output, 0) + edge.number)
        return edge

    def error(self, node: _Node, words: str) -> ConvertError:
        return ConvertError(f"{self.what}: node {node.name!r} ({node.definition.op}) {words}")

    def fresh(self, name: str) -> str:
        """This name, or one that is like it and is not taken."""
        unused = name
        while unused in self.taken:
            self.counts[name] = self.counts.get(name, 0) + 1
            unused = f"{name}_{self.counts[name]}"
        self.taken.add(unused)
        return unused

    def raised(self, returned: list[Edge], controls: list[str]) -> list[NodeDef]:
        """What these edges and nodes need without control flow, and all nodes that depend on none."""
        independent = self._independent()
        roots = [*[edge.node for edge in returned], *controls, *independent]
        order = self.ordered(_reached(self.nodes, roots))
        self._find_constants(order)
        for frame in sorted(self._find_frames(order), key=lambda frame: -frame.depth):
            self._raise_loop(frame)
        for root in roots:
            if root in self.frame and self.frame[root].depth:
                raise self.error(self.nodes[root], f"is in the loop {self.frame[root].name!r}; no Exit leads out of it")
        conditions = _Conditions(self, _reached(self.nodes, roots))
        return [node.written() for node in conditions.raised(returned, [*controls, *independent])]

    def _independent(self) -> list[str]:
        """The nodes that depend on no control flow."""
        users: dict[str, list[str]] = {}
        for node in self.nodes.values():
            for origin in node.origins():
                users.setdefault(origin, []).append(node.name)
        waiting = [node.name for node in self.nodes.values() if node.op in CONTROL_FLOW]
        depending = set(waiting)
        while waiting:
            for user in users.get(waiting.pop(), ()):
                if user not in depending:
                    depending.add(user)
                    waiting.append(user)
        return [name for name in self.nodes if name not in depending]

    def _is_closing(self, node: _Node, origin: str) -> bool:
        """Whether an edge closes the circle of a loop variable."""
        return node.op == "Merge" and origin in self.nodes and self.nodes[origin].op == "NextIteration"

    def ordered(self, nodes: Mapping[str, _Node]) -> list[_Node]:
        """The nodes, each behind what it takes, else as they come; edges that close a loop do not count.

        Raises `ConvertError` if there are other cycles.
        """
        before = {
            node.name: [name for name in node.origins() if name in nodes and not self._is_closing(node, name)]
            for node in nodes.values()
        }
        users = _users(before)
        pending = {name: len(origins) for name, origins in before.items()}
        place = {name: number for number, name in enumerate(nodes)}
        ready = [(number, name) for name, number in place.items() if not pending[name]]
        order = []
        while ready:
            _, name = heappop(ready)
            order.append(nodes[name])
            for user in users[name]:
                pending[user] -= 1
                if not pending[user]:
                    heappush(ready, (place[user], user))
        if len(order) < len(nodes):
            name = next(name for name, count in pending.items() if count)
            passed: set[str] = set()
            while name not in passed:  # backwards, until a node comes again
                passed.add(name)
                name = next(origin for origin in before[name] if pending[origin])
            raise self.error(nodes[name], "is in a cycle that no NextIteration closes")
        return order

    def _find_constants(self, order: Iterable[_Node]) -> None:
        for node in order:
            passing = node.op in ("Identity", "Switch") or (node.op == "Enter" and self._is_constant(node))
            if node.op == "Const":
                self.constants[node.name] = node.name
            elif passing and node.data and node.data[0].node in self.constants:
                self.constants[node.name] = self.constants[node.data[0].node]

    def _is_constant(self, enter: _Node) -> bool:
        return Attributes(enter.definition).bool("is_constant", False)

    def data_type(self, node: _Node, name: str = "T") -> DataType:
        value = node.definition.attr.get(name, AttrValue())
        if value.which("value") != "type":
            raise self.error(node, f"has no type as attribute {name!r}")
        return value.type

    def type_of(self, edge: Edge) -> DataType:
        """The type of a value, ``DT_INVALID`` where nothing says it."""
        if edge.node in self.types:
            return self.types[edge.node]
        node = self.nodes[edge.node]
        if node.op in CONTROL_FLOW or node.op == "Identity":
            return DataType.DT_INT32 if node.op == "Merge" and edge.number else self.data_type(node)
        if node.op in ("Const", "Placeholder"):
            return self.data_type(node, "dtype")
        return _output_type(node.definition, self.op_defs.get(node.op), edge)

    def has_effects(self, node: _Node) -> bool:
        """Whether it makes a difference how often a node runs."""
        if node.name in self.effects:
            return self.effects[node.name]
        if node.op in self.op_defs:
            return self.op_defs[node.op].is_stateful
        return bool(_EFFECTS.match(node.op))

    def function(
        self, name: str, arguments: _Arguments, nodes: Mapping[str, _Node], results: list[Edge], types: list[DataType]
    ) -> AttrValue:
        """Adds a function of these nodes, whose conditions are raised; returns what refers to it."""
        order = _Conditions(self, nodes).raised(results, [])
        outputs = tuple([OpDef.ArgDef(name=f"output_{i}", type=kind) for i, kind in enumerate(types)])
        signature = OpDef(name=self.fresh(name), input_arg=tuple(arguments.declared), output_arg=outputs)
        returned = {item.name: _spelled(edge) for item, edge in zip(outputs, results, strict=True)}
        body = tuple([node.written() for node in order])
        self.made.append(FunctionDef(signature=signature, node_def=body, ret=returned))
        return AttrValue(func=NameAttrList(name=signature.name))

    def _find_frames(self, order: list[_Node]) -> list[_Frame]:
        """The loops; fills ``frame``. A value from around a loop may be used inside: it does not change there."""
        outermost = _Frame("", None)
        frames: dict[tuple[_Frame, str], _Frame] = {}
        for node in order:
            home = outermost
            for origin in node.origins():
                if origin not in self.frame or self._is_closing(node, origin):
                    continue
                other = self.frame[origin]
                inner, outer = (home, other) if home.depth > other.depth else (other, home)
                if outer not in inner.around():
                    raise self.error(node, f"takes values of the loops {home.name!r} and {other.name!r}")
                home = inner
            if node.op == "Enter":
                name = Attributes(node.definition).text("frame_name")
                if not name:
                    raise self.error(node, "has an empty frame_name")
                if home.depth == MAX_NESTING:
                    raise self.error(node, f"is inside of {MAX_NESTING} loops; no more are allowed")
                home = frames.setdefault((home, name), _Frame(name, home))
            elif node.op in ("Exit", "NextIteration", "LoopCond"):
                if home.parent is None:
                    raise self.error(node, "is in no loop: no Enter leads to it")
                if node.op == "Exit":
                    home.exits.append(node.name)
                    home = home.parent
            self.frame[node.name] = home
            home.nodes.append(node.name)
        return list(frames.values())

    def _raise_loop(self, frame: _Frame) -> None:
        """Puts a ``While`` in the place of a loop that contains no other any more."""
        loop = _Loop(self, frame)
        arguments = loop.arguments
        cond, decided = _cut(self.nodes, [loop.condition.data[0]], loop.in_condition, loop.wait)
        body, results = _cut(self.nodes, loop.nexts, loop.in_body, loop.wait)
        for shared in cond.keys() & body.keys():
            if self.has_effects(self.nodes[shared]):
                raise self.error(self.nodes[shared], "has effects; both condition and body of its loop need it")
        results += [Edge(item.name) for item in arguments.declared[len(results) :]]
        types = [item.type for item in arguments.declared]
        name = self.fresh(frame.name)
        attr = {
            "cond": self.function(f"{name}/cond", arguments, cond, decided, [DataType.DT_BOOL]),
            "body": self.function(f"{name}/body", arguments, body, results, types),
            "T": AttrValue(list=AttrValue.ListValue(type=tuple(types))),
        }
        self.effects[name] = any(map(self.has_effects, [*cond.values(), *body.values()]))
        self.nodes[name] = _made(name, "While", arguments.outer, arguments.waits, attr)
        outer = frame.parent or frame
        self.frame[name] = outer
        outer.nodes.append(name)
        for name_of_exit in frame.exits:
            node = self.nodes[name_of_exit]
            result = loop.result(node, name)
            if result.node in self.constants:
                self.constants[node.name] = self.constants[result.node]
            control = [waited for waited in node.control if waited in self.frame and self.frame[waited] is outer]
            self.nodes[node.name] = _made(
                node.name, "Identity", [result], control, {"T": AttrValue(type=self.data_type(node))}
            )


class _Loop:
    """One loop: what its variables are, and what an edge inside of it is in the functions for condition and body."""

    def __init__(self, body: _Body, frame: _Frame) -> None:
        self.body = body
        self.frame = frame
        self.arguments = _Arguments(body)
        self.variables: dict[str, int] = {}
        """The number of each variable by its ``Merge``."""
        self.nexts: list[Edge] = []
        nodes = [body.nodes[name] for name in frame.nodes]
        around = f"{body.what}: the loop {frame.name!r}"
        conditions = [node for node in nodes if node.op == "LoopCond"]
        if len(conditions) != 1:
            raise ConvertError(f"{around} has {len(conditions)} nodes LoopCond, must have one")
        self.condition = conditions[0]
        for node in nodes:
            if node.op == "Enter":
                self.arguments.waits.update(dict.fromkeys(node.control))
            closing = [body.nodes[edge.node] for edge in node.data if body._is_closing(node, edge.node)]
            if closing:
                self._add_variable(node, closing)
        if not self.nexts:
            raise ConvertError(f"{around} has no variables: no NextIteration leads to a Merge")

    def _add_variable(self, merge: _Node, closing: list[_Node]) -> None:
        first = [edge.node for edge in merge.data if edge.node in self.body.nodes and edge.node != closing[0].name]
        enter = self.body.nodes[first[0]] if first else closing[0]
        if enter.op != "Enter" or self.body._is_constant(enter) or self.body.frame[enter.name] is not self.frame:
            raise self.body.error(
                merge, f"joins {closing[0].name!r} and {enter.name!r} ({enter.op}), must join an Enter"
            )
        if self.body.frame.get(closing[0].name) is not self.frame:
            raise self.body.error(closing[0], f"is not in the loop {self.frame.name!r} of {merge.name!r}")
        self.variables[merge.name] = len(self.nexts)
        self.arguments.add(enter.data[0], self.body.data_type(enter))
        self.nexts.append(closing[0].data[0])

    def in_body(self, edge: Edge) -> Edge:
        node = self.body.nodes.get(edge.node)
        if node is not None and self._decides(node):
            if edge.number != 1:
                raise self.body.error(node, "leaves its loop by an output that only an Exit may take")
            edge = node.data[0]
        return self.in_condition(edge)

    def in_condition(self, edge: Edge) -> Edge:
        node = self.body.nodes.get(edge.node)
        if node is None or self.body.frame[edge.node] is not self.frame:
            return self.arguments.capture(edge)
        if edge.node in self.variables:
            if edge.number:
                raise self.body.error(node, "tells whether its loop runs for the first time, which no While does")
            return Edge(self.arguments.declared[self.variables[edge.node]].name)
        if node.op == "Enter" and self.body._is_constant(node):
            return self.arguments.capture(node.data[0], self.body.data_type(node))
        if node.op in ("Enter", "NextIteration", "LoopCond") or self._decides(node):
            raise self.body.error(node, f"is used where it has no meaning in the loop {self.frame.name!r}")
        return edge

    def _decides(self, node: _Node) -> bool:
        """Whether a ``Switch`` leads out of the loop or into its body."""
        return node.op == "Switch" and node.data[1].node == self.condition.name

    def wait(self, name: str) -> str | None:
        """The node to wait for inside, ``None`` for what is there when the functions begin."""
        node = self.body.nodes.get(name)
        if node is None or self.body.frame[name] is not self.frame:
            self.arguments.waits[name] = None
            return None
        source = self.body.nodes.get(node.data[0].node) if node.op == "Identity" and not node.control else None
        while source is not None and self._decides(source):
            source = self.body.nodes.get(source.data[0].node)
        loop_nodes = ("Enter", "NextIteration", "LoopCond")
        begins = [one for one in (node, source) if one is not None]
        if any(one.name in self.variables or one.op in loop_nodes or self._decides(one) for one in begins):
            return None
        return name

    def result(self, node: _Node, loop: str) -> Edge:
        """What an ``Exit`` hands out."""
        edge = node.data[0]
        switch = self.body.nodes[edge.node]
        if not self._decides(switch) or edge.number:
            raise self.body.error(node, "must take the first output of a Switch on the LoopCond")
        source = self.body.nodes.get(switch.data[0].node)
        if source is not None and source.name in self.variables and not switch.data[0].number:
            return Edge(loop, "", self.variables[source.name])
        if source is not None and source.op == "Enter" and self.body._is_constant(source):
            return source.data[0]
        raise self.body.error(node, "hands out what is no variable of its loop")


class _Conditions:
    """Nodes without loops, of which every ``Merge`` joins what an ``If`` chooses.

    ``exists`` is for each node what its predicates must be.
    """

    def __init__(self, body: _Body, nodes: Mapping[str, _Node]) -> None:
        self.body = body
        self.nodes = dict(nodes)
        self.exists: dict[str, frozenset[Literal]] = {}
        self.choices: dict[str, _Choice] = {}
        self.original: dict[str, Edge] = {}
        self.placed: set[str] = set()
        self.copied = 0

    def raised(self, returned: list[Edge], controls: list[str]) -> list[_Node]:
        """What these edges and nodes need, in order."""
        if any(node.op in ("Switch", "Merge") for node in self.nodes.values()):
            self._follow()
            for root in [*returned, *[Edge(name, control=True) for name in controls]]:
                self._check_unconditional(root)
            indexed = {e.node for node in self.nodes.values() for e in node.data if e.number} | {
                edge.node for edge in returned if edge.number
            }
            self._raise_merges({name for name in indexed if name in self.choices})
            roots = [*returned, *map(Edge, controls)]
            self.nodes, _ = _cut(self.nodes, roots, lambda edge: edge, self._behind_switch)
        return self.body.ordered(self.nodes)

    def _check_unconditional(self, root: Edge) -> None:
        for predicate, branch in self._exists(root):
            words = f"is wanted, but exists only if {_spelled(predicate)!r} is {bool(branch)}; a Merge must join it"
            raise self.body.error(self.nodes[root.node], words)

    def _original(self, edge: Edge) -> Edge:
        """A predicate before it went through ``Identity``."""
        return edge if edge.number else self.original.get(edge.node, edge)

    def _literal(self, switch: _Node, number: int) -> Literal:
        if number > 1:
            raise self.body.error(switch, f"has two outputs, not number {number}")
        return self._original(switch.data[1]), number

    def _exists(self, edge: Edge) -> frozenset[Literal]:
        """What predicates must be for a value to be there."""
        if edge.node not in self.nodes:
            return frozenset()
        node = self.nodes[edge.node]
        known = self.exists[edge.node]
        return known | {self._literal(node, edge.number)} if node.op == "Switch" and not edge.control else known

    def _follow(self) -> None:
        """Fills ``exists`` and ``choices``."""
        for node in self.body.ordered(self.nodes):
            edges = [*node.data, *[Edge(name, control=True) for name in node.control]]
            if node.op == "Merge":
                choice = self._choice(node)
                self.choices[node.name] = choice
                needed = choice.context.union(*map(self._exists, edges[2:]))
            else:
                needed = frozenset[Literal]().union(*map(self._exists, edges))
            if node.op == "Identity" and node.data:
                self.original[node.name] = self._original(node.data[0])
            for predicate, branch in needed:
                if (predicate, 1 - branch) in needed:
                    raise self.body.error(node, f"needs {_spelled(predicate)!r} to be true and to be false")
            if len(needed) > MAX_NESTING:
                raise self.body.error(node, f"depends on more than {MAX_NESTING} predicates")
            self.exists[node.name] = needed

    def _choice(self, merge: _Node) -> _Choice:
        first, second = map(self._exists, merge.data)
        deciding = [(predicate, branch) for predicate, branch in first if (predicate, 1 - branch) in second]
        if len(deciding) != 1:
            words = "more than one predicate decides" if deciding else "no Switch decides"
            raise self.body.error(
                merge, f"joins {' and '.join(map(_spelled, merge.data))}; {words} which of them exists"
            )
        predicate, branch = deciding[0]
        context = (first | second) - {(predicate, 0), (predicate, 1)}
        for outer, _ in context:
            if any(inner == predicate for inner, _ in self._exists(outer)):
                raise self.body.error(merge, f"joins a value that exists only if {_spelled(outer)!r} is known")
        return _Choice(predicate, context, (1, 0) if branch else (0, 1))

    def _raise_merges(self, indexed: set[str]) -> None:
        """Makes one ``If`` of all ``Merge`` of a predicate, of several where they depend on each other.

        Nodes are gone through in order; each ``Merge`` waits until all those that belong to it wait as well, or
        nothing else is left to do.
        """
        before = {node.name: [name for name in node.origins() if name in self.nodes] for node in self.nodes.values()}
        users = _users(before)
        pending = {name: len(origins) for name, origins in before.items()}
        left: dict[tuple[Edge, frozenset[Literal]], int] = {}
        for choice in self.choices.values():
            left[choice[:2]] = left.get(choice[:2], 0) + 1
        waiting: dict[tuple[Edge, frozenset[Literal]], list[str]] = {}
        whole: deque[tuple[Edge, frozenset[Literal]]] = deque()
        ready = deque([name for name, count in pending.items() if not count])

        def pass_on(name: str) -> None:
            for user in users[name]:
                pending[user] -= 1
                if not pending[user]:
                    ready.append(user)

        while ready or waiting:
            if ready:
                name = ready.popleft()
                if name not in self.choices:
                    pass_on(name)
                    continue
                key = self.choices[name][:2]
                waiting.setdefault(key, []).append(name)
                if len(waiting[key]) == left[key]:
                    whole.append(key)
                continue
            key = whole.popleft() if whole else next(iter(waiting))
            members = waiting.pop(key)
            left[key] -= len(members)
            self._raise_condition(members, indexed)
            for name in members:
                pass_on(name)

    def _raise_condition(self, members: list[str], indexed: set[str]) -> None:
        """Puts an ``If`` in the place of these ``Merge``, which have one predicate and context."""
        merges = [self.nodes[name] for name in members]
        choices = [self.choices[name] for name in members]
        predicate, context, _ = choices[0]
        arguments = _Arguments(self.body)
        name = self.body.fresh(f"{members[0]}/If")
        types: list[DataType] = []
        places: list[list[Edge]] = []
        for merge in merges:
            kinds = [self.body.data_type(merge)] + [DataType.DT_INT32] * (merge.name in indexed)
            places.append([Edge(name, "", len(types) + i) for i in range(len(kinds))])
            types += kinds
        branches = {}
        self.body.effects[name] = False
        parts = []
        for branch in (1, 0):
            scope = _Branch(self, arguments, (predicate, branch), context)
            roots = [merge.data[choice.inputs[branch]] for merge, choice in zip(merges, choices, strict=True)]
            nodes, found = _cut(self.nodes, roots, scope.inside, scope.wait)
            results = []
            for merge, choice, edge in zip(merges, choices, found, strict=True):
                results.append(edge)
                if merge.name in indexed:
                    index = _constant(self.body.fresh(f"{merge.name}/value_index"), choice.inputs[branch])
                    nodes[index.name] = index
                    results.append(Edge(index.name))
            self._place(nodes.values(), name)
            parts.append((("else_branch", "then_branch")[branch], nodes, results))
        for role, nodes, results in parts:  # the arguments are known only now
            branches[role] = self.body.function(f"{name}/{role.partition('_')[0]}", arguments, nodes, results, types)
        attr = {
            **branches,
            "Tcond": AttrValue(type=DataType.DT_BOOL),
            "Tin": AttrValue(list=AttrValue.ListValue(type=tuple([item.type for item in arguments.declared]))),
            "Tout": AttrValue(list=AttrValue.ListValue(type=tuple(types))),
        }
        made = _made(name, "If", [predicate, *arguments.outer], arguments.waits, attr)
        self.nodes[name] = self.body.nodes[name] = made
        self.exists[name] = context
        for merge, edges in zip(merges, places, strict=True):
            one = AttrValue(type=self.body.data_type(merge))
            many = AttrValue(list=AttrValue.ListValue(type=(one.type, DataType.DT_INT32)))
            op, kind = ("IdentityN", many) if merge.name in indexed else ("Identity", one)
            self.nodes[merge.name] = _made(merge.name, op, edges, merge.control, {"T": kind})

    def _place(self, nodes: Iterable[_Node], name: str) -> None:
        """Notes what is inside of a condition now. Raises `ConvertError` if something with effects was so before."""
        for node in nodes:
            self.copied += 1
            if self.copied > MAX_COPIES * len(self.nodes):
                raise self.body.error(node, f"is repeated; conditions repeat their nodes more than {MAX_COPIES} times")
            if self.body.has_effects(node):
                self.body.effects[name] = True
                if node.name in self.placed:
                    raise self.body.error(node, "has effects; conditions that depend on each other both need it")
                self.placed.add(node.name)

    def _behind_switch(self, name: str) -> str | None:
        """To wait for a ``Switch``, or for its output alone, is to wait for what it takes."""
        node = self.nodes.get(name)
        if node is not None and node.op == "Identity" and not node.control:
            source = self.nodes.get(node.data[0].node)
            node = source if source is not None and source.op == "Switch" else node
        if node is None or node.op != "Switch":
            return name
        source = self.nodes.get(node.data[0].node)
        return None if source is None or source.op in ("Switch", "Const", "Placeholder") else source.name


class _Branch:
    """What an edge is in the function for one branch of a condition."""

    def __init__(
        self, conditions: _Conditions, arguments: _Arguments, literal: Literal, context: frozenset[Literal]
    ) -> None:
        self.conditions = conditions
        self.arguments = arguments
        self.literal = literal
        self.context = context

    def inside(self, edge: Edge) -> Edge:
        known = None
        while True:
            node = self.conditions.nodes.get(edge.node)
            if node is None:
                return self.arguments.capture(edge, known)
            if node.op == "Switch":
                literal = self.conditions._literal(node, edge.number)
                known = self.conditions.body.data_type(node)
                source = node.data[0]
                if literal == self.literal or (
                    literal in self.context and self.literal in self.conditions._exists(source)
                ):
                    edge = source
                    continue
                return self.arguments.capture(edge, known)
            if self.literal in self.conditions.exists[edge.node]:
                return edge
            return self.arguments.capture(edge, known)

    def wait(self, name: str) -> str | None:
        found = self.conditions._behind_switch(name)
        if found is None or found == self.literal[0].node:
            return None
        if found in self.conditions.nodes and self.literal in self.conditions.exists[found]:
            return found
        self.arguments.waits[found] = None
        return None


def _reached(nodes: Mapping[str, _Node], roots: Iterable[str]) -> dict[str, _Node]:
    """The nodes that these need, in the order of the graph."""
    found: set[str] = set()
    waiting = [name for name in roots if name in nodes]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [origin for origin in nodes[name].origins() if origin in nodes]
    return {name: node for name, node in nodes.items() if name in found}


def _users(before: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {name: [] for name in before}
    for name, origins in before.items():
        for origin in origins:
            users[origin].append(name)
    return users


def _cut(
    nodes: Mapping[str, _Node],
    roots: Iterable[Edge],
    inside: Callable[[Edge], Edge],
    wait: Callable[[str], str | None],
) -> tuple[dict[str, _Node], list[Edge]]:
    """The nodes that a function for these edges needs, and the edges in it.

    ``inside`` is what an edge becomes there, ``wait`` the node to wait for instead of one.
    """
    picked: dict[str, _Node] = {}
    results = [inside(edge) for edge in roots]
    waiting = [edge.node for edge in results]
    while waiting:
        name = waiting.pop()
        if name in picked or name not in nodes:
            continue
        data = tuple([inside(edge) for edge in nodes[name].data])
        control = [waited for waited in map(wait, nodes[name].control) if waited is not None]
        picked[name] = nodes[name]._replace(data=data, control=tuple(dict.fromkeys(control)))
        waiting += [*[edge.node for edge in data], *control]
    return picked, results


def _made(name: str, op: str, data: Iterable[Edge], control: Iterable[str], attr: Mapping[str, AttrValue]) -> _Node:
    return _Node(name, op, tuple(data), tuple(control), NodeDef(name=name, op=op, attr=attr))


def _constant(name: str, value: int) -> _Node:
    tensor = TensorProto(dtype=DataType.DT_INT32, tensor_shape=TensorShapeProto(), int_val=np.array([value], np.int32))
    attr = {"dtype": AttrValue(type=DataType.DT_INT32), "value": AttrValue(tensor=tensor)}
    return _made(name, "Const", (), (), attr)


_LISTED = {"If": "Tout", "Case": "Tout", "While": "T", "IdentityN": "T"}
"""The attribute with the types of all outputs."""


def _output_type(node: NodeDef, op_def: OpDef | None, edge: Edge) -> DataType:
    """The type of an output by the operator's definition, ``DT_INVALID`` without one."""
    values = Attributes(node, op_def).values
    empty = AttrValue()

    def listed(name: str) -> tuple[DataType, ...]:
        stored = values.get(name, empty).list
        return stored.type if stored is not None else ()

    number = edge.number
    outputs = op_def.output_arg if op_def is not None else ()
    if op_def is None and node.op.removeprefix("Stateless") in _LISTED:
        outputs = (OpDef.ArgDef(type_list_attr=_LISTED[node.op.removeprefix("Stateless")]),)
    for output in outputs:
        if edge.output and output.name and output.name != edge.output:
            continue
        if output.type_list_attr:
            types = listed(output.type_list_attr)
            if number < len(types):
                return types[number]
            number -= len(types)
            continue
        count = values.get(output.number_attr, empty).i if output.number_attr else 1
        if number < count:
            return output.type or values.get(output.type_attr, empty).type
        number -= count
    return DataType.DT_INVALID
