"""Control flow of TensorFlow 1 before and after it is raised to functions, by two small evaluators.

`V1` gives the meaning of ``Switch``, ``Merge`` and frames: a value is a number, or dead. `Functional` knows ``If`` and
``While``, and counts how often nodes with effects run.
"""

from __future__ import annotations

import itertools
import random
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from gossamer.convert.messages.tensorflow import (
    AttrValue,
    DataType,
    FunctionDef,
    FunctionDefLibrary,
    GraphDef,
    NodeDef,
    OpDef,
    TensorProto,
)
from gossamer.convert.sources.control_flow import CONTROL_FLOW, raise_control_flow
from gossamer.convert.sources.graph_def import Graph, parse_edge, read_graph_def, whole_graph
from gossamer.convert.sources.tensor_proto import tensor_array
from gossamer.errors import ConvertError
from tests.convert.arbitrary import argument, shape
from tests.convert.test_corpus import conversion_corpus

FLOAT, INT, BOOL = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_BOOL
DEAD = None

PURE: Mapping[str, Callable[..., Any]] = {
    "Identity": lambda x: x,
    "AddV2": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Less": lambda x, y: x < y,
    "Greater": lambda x, y: x > y,
    "Sin": np.sin,
    "Cos": np.cos,
    "Sum": lambda x, axes: x.sum(axis=tuple(np.ravel(axes))),
    "LoopCond": lambda x: x,
    "Print": lambda x, *_: x,
}


def value_of(node: NodeDef) -> Any:
    return tensor_array(node.attr["value"].tensor)


class V1:
    """Values by the meaning of TensorFlow 1; ``at`` are the numbers of the iterations of the loops around."""

    def __init__(self, nodes: Mapping[str, NodeDef], feeds: Mapping[str, Any]) -> None:
        self.nodes = nodes
        self.feeds = feeds
        self.known: dict[tuple[str, tuple[int, ...]], tuple[Any, ...]] = {}

    def __call__(self, text: str, at: tuple[int, ...] = ()) -> Any:
        edge = parse_edge(text)
        at = at[: self.depth(edge.node)]
        if (edge.node, at) not in self.known:
            self.known[edge.node, at] = self.outputs(self.nodes[edge.node], at)
        outputs = self.known[edge.node, at]
        if edge.control:  # a Switch is there, whatever it says
            return DEAD if all(item is DEAD for item in outputs) else True
        return outputs[edge.number]

    def depth(self, name: str) -> int:
        depths = self.__dict__.setdefault("depths", {})
        if name not in depths:
            node = self.nodes[name]
            given = [parse_edge(text).node for text in node.input]
            given = [item for item in given if self.nodes[item].op != "NextIteration"]
            depths[name] = max([self.depth(item) for item in given], default=0)
            depths[name] += {"Enter": 1, "Exit": -1}.get(node.op, 0)
        return depths[name]

    def outputs(self, node: NodeDef, at: tuple[int, ...]) -> tuple[Any, ...]:
        if node.name in self.feeds:
            return (self.feeds[node.name],)
        if node.op == "Merge":
            for number, text in enumerate(node.input):
                origin = self.nodes[parse_edge(text).node]
                looping = any(self.nodes[parse_edge(item).node].op == "NextIteration" for item in node.input)
                if looping and (origin.op == "NextIteration") != (at[-1] > 0):
                    continue
                back = (*at[:-1], at[-1] - 1) if looping and at[-1] else at
                found = self(text, back)
                if found is not DEAD:
                    return found, np.int32(number)
            return DEAD, DEAD
        if node.op == "Enter":
            later = at[-1] and not node.attr["is_constant"].b
            return (DEAD if later else self(node.input[0], at[:-1]),)
        if node.op == "Exit":
            for number in itertools.count():
                found = self(node.input[0], (*at, number))
                if found is not DEAD or number > 20:
                    return (found,)
        given = [self(text, at) for text in node.input]
        if any(item is DEAD for item in given):
            return DEAD, DEAD
        given = [item for item, text in zip(given, node.input, strict=True) if not text.startswith("^")]
        if node.op == "Switch":
            return (DEAD, given[0]) if given[1] else (given[0], DEAD)
        if node.op == "NextIteration":
            return (given[0],)
        return (value_of(node) if node.op == "Const" else PURE[node.op](*given), DEAD)


class Functional:
    """Values of a graph whose loops and conditions are functions; ``ran`` says how often what printed."""

    def __init__(self, graph: Graph, feeds: Mapping[str, Any]) -> None:
        self.graph = graph
        self.feeds = feeds
        self.ran: dict[str, int] = {}

    def __call__(self, *outputs: str) -> list[Any]:
        return self.run(self.graph.nodes, self.feeds, outputs)

    def call(self, name: str, given: list[Any]) -> list[Any]:
        function = self.graph.functions[name]
        arguments = {item.name: value for item, value in zip(function.signature.input_arg, given, strict=True)}
        nodes = {node.name: node for node in function.node_def}
        return self.run(nodes, arguments, [function.ret[item.name] for item in function.signature.output_arg])

    def run(self, nodes: Mapping[str, NodeDef], known: Mapping[str, Any], outputs: Any) -> list[Any]:
        values = {name: [value] for name, value in known.items()}

        def value(text: str) -> Any:
            edge = parse_edge(text)
            if edge.node not in values:
                values[edge.node] = self.outputs(nodes[edge.node], value)
            return None if edge.control else values[edge.node][edge.number]

        return [value(text) for text in outputs]

    def outputs(self, node: NodeDef, value: Callable[[str], Any]) -> list[Any]:
        assert node.op.removeprefix("Ref") not in CONTROL_FLOW
        given = [value(text) for text in node.input]
        given = given[: len([text for text in node.input if not text.startswith("^")])]
        if node.op == "Print":
            self.ran[node.name] = self.ran.get(node.name, 0) + 1
        if node.op == "Const":
            return [value_of(node)]
        if node.op == "If":
            return self.call(node.attr["then_branch" if given[0] else "else_branch"].func.name, given[1:])
        if node.op == "While":
            assert len(node.attr["T"].list.type) == len(given)
            while self.call(node.attr["cond"].func.name, given)[0]:
                given = self.call(node.attr["body"].func.name, given)
            return given
        return given if node.op == "IdentityN" else [PURE[node.op](*given)]


class Building:
    """Makes graphs as ``tf.cond`` and ``tf.while_loop`` of TensorFlow 1 made them.

    A context is what is around: ``("cond", predicate, branch, pivot)`` or ``("loop", frame, pivot)``.
    """

    def __init__(self) -> None:
        self.nodes: list[NodeDef] = []
        self.around: dict[str, tuple[Any, ...]] = {}
        self.context: tuple[Any, ...] = ()
        self.brought: dict[Any, str] = {}

    def add(self, op: str, *inputs: str, kind: DataType = FLOAT, **attr: Any) -> str:
        name = f"{op}_{len(self.nodes)}"
        attr = {"T": AttrValue(type=kind), **attr}
        self.nodes.append(NodeDef(name=name, op=op, input=inputs, attr=attr))
        self.around[name] = self.context
        return name

    def at(self, context: tuple[Any, ...], op: str, *inputs: str, **attr: Any) -> str:
        before, self.context = self.context, context
        name = self.add(op, *inputs, **attr)
        self.context = before
        return name

    def constant(self, number: float, dtype: Any = np.float32) -> str:
        pivot = [f"^{self.context[-1][-1]}"] if self.context else []
        kind = {np.float32: FLOAT, np.int32: INT, np.bool_: BOOL}[dtype]
        stored = TensorProto(dtype=kind, tensor_shape=shape(), tensor_content=np.array(number, dtype).tobytes())
        return self.add("Const", *pivot, dtype=AttrValue(type=kind), value=AttrValue(tensor=stored))

    def use(self, text: str, kind: DataType = FLOAT) -> str:
        """The value inside of the contexts that are around now and not around it."""
        outer = self.around[parse_edge(text).node]
        for depth in range(len(outer), len(self.context)):
            key = text, self.context[: depth + 1]
            if key not in self.brought:
                self.brought[key] = self.bring(text, self.context[: depth + 1], kind)
            text = self.brought[key]
        return text

    def bring(self, text: str, context: tuple[Any, ...], kind: DataType) -> str:
        what, way, *rest = context[-1]
        if what == "loop":
            return self.at(context, "Enter", text, kind=kind, **self.frame(way, True))
        name = self.at(context, "Switch", text, way, kind=kind)
        return f"{name}:{rest[0]}"

    def frame(self, name: str, constant: bool) -> dict[str, AttrValue]:
        return {"frame_name": AttrValue(s=name.encode()), "is_constant": AttrValue(b=constant)}

    def cond(self, predicate: str, *branches: Callable[[], list[str]]) -> list[str]:
        """``branches``: if it is false, if it is true; they return as many values."""
        chosen = self.add("Identity", predicate, kind=BOOL)
        switch = self.add("Switch", predicate, predicate, kind=BOOL)
        outside, results = self.context, []
        for branch, make in enumerate(branches):
            pivot = self.add("Identity", f"{switch}:{branch}", kind=BOOL)
            self.context = (*outside, ("cond", chosen, branch, pivot))
            results.append([self.use(text) for text in make()])
            self.context = outside
        return [self.add("Merge", *pair) for pair in zip(*results, strict=True)]

    def loop(self, times: int, start: list[str], make: Callable[[list[str]], list[str]]) -> list[str]:
        name, outside = f"frame_{len(self.nodes)}", self.context
        kinds = [INT] + [FLOAT] * len(start)
        start = [self.constant(0, np.int32), *start]
        inside = (*outside, ("loop", name, ""))
        enters = [
            self.at(inside, "Enter", text, kind=kind, **self.frame(name, False))
            for text, kind in zip(start, kinds, strict=True)
        ]
        merges = [self.at(inside, "Merge", enter, enter, kind=kind) for enter, kind in zip(enters, kinds, strict=True)]
        self.context = (*outside, ("loop", name, merges[0]))
        decided = self.add("LoopCond", self.add("Less", merges[0], self.constant(times, np.int32), kind=INT))
        switches = [self.add("Switch", merge, decided, kind=kind) for merge, kind in zip(merges, kinds, strict=True)]
        values = [self.add("Identity", f"{item}:1", kind=kind) for item, kind in zip(switches, kinds, strict=True)]
        self.context = (*outside, ("loop", name, values[0]))
        for item in [*merges, *enters, *switches, *values]:
            self.around[item] = self.context
        count = self.add("AddV2", values[0], self.constant(1, np.int32), kind=INT)
        results = [count, *[self.use(text) for text in make(values[1:])]]
        for merge, result, kind in zip(merges, results, kinds, strict=True):
            closing = self.add("NextIteration", result, kind=kind)
            place = next(i for i, node in enumerate(self.nodes) if node.name == merge)
            self.nodes[place] = self.nodes[place].replace(input=(self.nodes[place].input[0], closing))
        self.context = outside
        return [self.add("Exit", switch, kind=kind) for switch, kind in zip(switches[1:], kinds[1:], strict=True)]

    def graph(self, functions: tuple[FunctionDef, ...] = ()) -> Graph:
        library = FunctionDefLibrary(function=functions)
        return whole_graph(GraphDef(node=tuple(self.nodes), library=library), {}, "graph")


def check(building: Building, outputs: list[str], **feeds: Any) -> Functional:
    """Both evaluators find the same values; returns the one for the raised graph."""
    graph = building.graph()
    raised = raise_control_flow(graph, outputs)
    nodes = [*raised.nodes.values(), *[node for item in raised.functions.values() for node in item.node_def]]
    assert not [node.name for node in nodes if node.op in CONTROL_FLOW]
    expected = [V1(graph.nodes, feeds)(text) for text in outputs]
    assert not any(item is DEAD for item in expected)
    functional = Functional(raised, feeds)
    np.testing.assert_array_equal(functional(*outputs), expected)
    return functional


def operators(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes.values()]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed: int) -> None:
    """Loops and conditions in each other, on values of each other."""
    choose = random.Random(seed)
    building = Building()
    inputs = [building.add("Placeholder", dtype=AttrValue(type=FLOAT)) for _ in range(3)]

    def value(known: list[str], depth: int) -> str:
        """A value made of known ones."""
        kind = choose.choice(["use", "const", "math", "cond", "cond", "loop"])
        if kind == "use" or (depth == 0 and kind in ("cond", "loop")):
            return building.use(choose.choice(known))
        if kind == "const":
            return building.constant(choose.uniform(-1, 1))
        if kind == "math":
            return building.add(choose.choice(["AddV2", "Sub"]), *[building.use(choose.choice(known)) for _ in "ab"])
        count = choose.randint(1, 3)
        if kind == "cond":
            decided = building.add("Greater", *[building.use(choose.choice(known)) for _ in "ab"])
            found = building.cond(decided, *[lambda: values(known, depth - 1, count)] * 2)
            if choose.random() < 0.3:  # once more on the same predicate
                found += building.cond(decided, *[lambda: values([*known, *found], depth - 1, count)] * 2)
        else:
            start = [building.use(choose.choice(known)) for _ in range(count)]
            found = building.loop(choose.randint(0, 3), start, lambda inner: values([*known, *inner], depth - 1, count))
        return choose.choice(found)

    def values(known: list[str], depth: int, count: int) -> list[str]:
        known = list(known)
        for _ in range(count + 1):
            known.append(value(known, depth))
        return known[-count:]

    outputs = [building.add("Identity", text) for text in values(inputs, 3, 3)]
    for _ in range(4):
        check(building, outputs, **{name: np.float32(choose.uniform(-1, 1)) for name in inputs})
