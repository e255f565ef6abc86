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
from gossamer.convert.sources.control_flow import CONTROL_FLOW, MAX_NESTING, raise_control_flow
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
        self.handed_in: set[str] = set()

    def add(self, op: str, *inputs: str, kind: DataType = FLOAT, **attr: Any) -> str:
        name = f"{op}_{len(self.nodes)}"
        attr = {**({} if op == "Const" else {"T": AttrValue(type=kind)}), **attr}
        loops = [around for around in self.context if around[0] == "loop"]
        if loops and inputs and op not in ("Enter", "Merge") and all(text in self.handed_in for text in inputs):
            inputs = (*inputs, f"^{loops[-1][-1]}")  # else it would run without end
        if op == "Enter" and attr["is_constant"].b:
            self.handed_in.add(name)
        if op == "Merge":
            attr["N"] = AttrValue(i=len(inputs))
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


def random_program(choose: random.Random, depth: int) -> tuple[Building, list[str], list[str]]:
    """Loops and conditions in each other, on values of each other; a graph, its inputs and outputs."""
    building = Building()
    inputs = [
        building.add("Placeholder", shape=AttrValue(shape=shape()), dtype=AttrValue(type=FLOAT)) for _ in range(3)
    ]

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

    return building, inputs, [building.add("Identity", text) for text in values(inputs, depth, 3)]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed: int) -> None:
    choose = random.Random(seed)
    building, inputs, outputs = random_program(choose, 3)
    for _ in range(4):
        check(building, outputs, **{name: np.float32(choose.uniform(-1, 1)) for name in inputs})


@pytest.mark.parametrize("seed", range(40))
def test_damaged_graphs(seed: int) -> None:
    """Edges and operators exchanged at random: a graph without control flow, or an error that says what is wrong."""
    choose = random.Random(seed)
    building, _, outputs = random_program(choose, 2)
    nodes = building.nodes
    for _ in range(50):
        damaged = list(nodes)
        for _ in range(choose.randint(1, 3)):
            place = choose.randrange(len(nodes))
            node = damaged[place]
            if choose.random() < 0.3:
                damaged[place] = node.replace(op=choose.choice(sorted(CONTROL_FLOW)))
            elif node.input:
                texts = list(node.input)
                way = choose.choice(["{}", "{}:1", "^{}"])
                texts[choose.randrange(len(texts))] = way.format(choose.choice(nodes).name)
                damaged[place] = node.replace(input=tuple(texts))
        try:
            graph = whole_graph(GraphDef(node=tuple(damaged)), {}, "graph")
            raised = raise_control_flow(graph, outputs)
        except ConvertError:
            continue
        every = [*raised.nodes.values(), *[node for item in raised.functions.values() for node in item.node_def]]
        assert not [node.name for node in every if node.op in CONTROL_FLOW]


def placeholder(building: Building, kind: DataType = FLOAT) -> str:
    return building.add("Placeholder", dtype=AttrValue(type=kind), shape=AttrValue(shape=shape()))


def test_a_graph_without_control_flow_is_itself() -> None:
    building = Building()
    output = building.add("Sin", placeholder(building))
    graph = building.graph()
    assert raise_control_flow(graph, [output]) is graph
    with pytest.raises(ConvertError, match="graph: the output 'y' is of no node of the graph"):
        raise_control_flow(graph, ["y"])


@pytest.mark.parametrize("decided", [True, False])
def test_merges_of_one_predicate_are_one_if(decided: bool) -> None:
    """What both need runs once; a branch may be constants alone, or hand a value through."""
    building = Building()
    x, p = placeholder(building), placeholder(building, BOOL)

    def true() -> list[str]:
        printed = building.add("Print", building.use(x))
        return [building.add("Sin", printed), building.add("Cos", printed), building.constant(3), building.use(x)]

    def false() -> list[str]:
        return [building.constant(1), building.use(x), building.constant(4), building.use(x)]

    merges = building.cond(p, false, true)
    functional = check(building, merges, **{x: np.float32(0.5), p: decided})
    assert operators(functional.graph).count("If") == 1
    assert list(functional.ran.values()) == ([1] if decided else [])
    node = next(node for node in functional.graph.nodes.values() if node.op == "If")
    assert node.input == (p, x)
    assert node.attr["Tcond"].type == BOOL
    assert node.attr["Tin"].list.type == (FLOAT,)
    assert node.attr["Tout"].list.type == (FLOAT,) * 4


@pytest.mark.parametrize("decided", [True, False])
def test_a_condition_behind_another_on_the_same_predicate(decided: bool) -> None:
    building = Building()
    x, p = placeholder(building), placeholder(building, BOOL)
    first = building.cond(p, lambda: [building.use(x)], lambda: [building.add("Sin", building.use(x))])
    second = building.cond(p, lambda: [building.constant(2)], lambda: [building.add("Cos", building.use(first[0]))])
    functional = check(building, [*first, *second], **{x: np.float32(0.5), p: decided})
    assert operators(functional.graph).count("If") == 2


@pytest.mark.parametrize("decided", [True, False])
def test_predicates_that_wait_for_each_other_are_still_one_if_each(decided: bool) -> None:
    """The second output of the second condition needs the first condition: it is there before the second is made."""
    building = Building()
    x, p, q = placeholder(building), placeholder(building, BOOL), placeholder(building, BOOL)
    first = building.cond(q, lambda: [building.use(x)], lambda: [building.add("Sin", building.use(x))])

    def true() -> list[str]:
        printed = building.add("Print", building.use(x))
        return [printed, building.add("AddV2", printed, building.use(first[0]))]

    second = building.cond(p, lambda: [building.constant(2), building.constant(2)], true)
    functional = check(building, second, **{x: np.float32(0.5), p: decided, q: True})
    assert operators(functional.graph).count("If") == 2
    assert list(functional.ran.values()) == ([1] if decided else [])


def test_effects_run_once_or_not_at_all() -> None:
    """A value with effects that two conditions need, one of which needs the other's result."""
    building = Building()
    x, p = placeholder(building), placeholder(building, BOOL)
    switch = building.add("Switch", x, p)
    printed = building.add("Print", f"{switch}:1")
    first = building.add("Merge", switch, printed)
    again = building.add("Switch", first, p)
    second = building.add("Merge", again, building.add("AddV2", printed, f"{again}:1"))
    with pytest.raises(ConvertError, match=r"'Print_\d+' \(Print\) has effects; conditions that depend on each other"):
        raise_control_flow(building.graph(), [second])
    nodes = [node.replace(op="Sin") if node.op == "Print" else node for node in building.nodes]
    building.nodes = nodes
    for decided in (True, False):
        check(building, [second], **{x: np.float32(0.5), p: decided})


@pytest.mark.parametrize("decided", [True, False])
def test_the_index_of_a_merge(decided: bool) -> None:
    building = Building()
    x, p = placeholder(building), placeholder(building, BOOL)
    switch = building.add("Switch", x, p)
    merge = building.add("Merge", f"{switch}:1", building.add("Sin", switch))
    output = building.add("AddV2", f"{merge}:1", f"{merge}:1", kind=INT)
    functional = check(building, [merge, f"{merge}:1", output], **{x: np.float32(0.5), p: decided})
    assert functional.graph.nodes[merge].op == "IdentityN"
    assert functional(output) == [0 if decided else 2]


@pytest.mark.parametrize("decided", [True, False])
def test_nodes_wait_inside_and_outside(decided: bool) -> None:
    """Control edges to the condition's own marks vanish, those to what has effects stay."""
    building = Building()
    x, p = placeholder(building), placeholder(building, BOOL)
    before = building.add("Print", x)

    def true() -> list[str]:
        printed = building.add("Print", building.use(x), f"^{before}")
        return [building.add("Sin", building.use(x), f"^{printed}")]

    merge = building.cond(p, lambda: [building.constant(2)], true)[0]
    functional = check(building, [merge], **{x: np.float32(0.5), p: decided})
    assert functional.ran[before] == 1
    assert list(functional.ran.values()) == [1] * (1 + decided)
    node = next(node for node in functional.graph.nodes.values() if node.op == "If")
    assert node.input == (p, x, f"^{before}")


def test_a_loop_runs_as_often_as_it_says() -> None:
    building = Building()
    x, y = placeholder(building), placeholder(building)

    def body(given: list[str]) -> list[str]:
        printed = building.add("Print", given[0])
        return [building.add("AddV2", printed, building.use(y)), building.constant(2)]

    exits = building.loop(5, [x, x], body)
    functional = check(building, exits, **{x: np.float32(1), y: np.float32(10)})
    assert functional(*exits) == [51, 2]
    assert set(functional.ran.values()) == {10}  # five times in each of two runs
    node = next(node for node in functional.graph.nodes.values() if node.op == "While")
    assert node.attr["T"].list.type == (INT, FLOAT, FLOAT, FLOAT)
    assert len(node.input) == 4
    body = functional.graph.functions[node.attr["body"].func.name]
    assert body.ret["output_3"] == body.signature.input_arg[3].name
    cond = functional.graph.functions[node.attr["cond"].func.name]
    assert cond.signature.input_arg == body.signature.input_arg
    assert [item.type for item in cond.signature.output_arg] == [BOOL]


def test_constants_go_into_the_functions() -> None:
    building = Building()
    x, two = placeholder(building), building.constant(2)

    def inner() -> list[str]:
        return [building.add("Mul", building.use(x), building.use(two))]

    def outer(given: list[str]) -> list[str]:
        decided = building.add("Greater", given[0], building.use(two))
        return [building.add("AddV2", given[0], building.cond(decided, inner, inner)[0])]

    functional = check(building, building.loop(3, [x], outer), **{x: np.float32(1)})
    node = next(node for node in functional.graph.nodes.values() if node.op == "While")
    assert two not in node.input
    holding = [
        name for name, item in functional.graph.functions.items() if two in {inside.name for inside in item.node_def}
    ]
    assert len(holding) == 3  # the loop's body, then, else


def test_unused_outputs_are_gone_and_nodes_without_control_flow_stay() -> None:
    building = Building()
    x, p, unused = placeholder(building), placeholder(building, BOOL), placeholder(building)
    alone = building.add("Sin", unused)
    first, second = building.cond(
        p, lambda: [building.use(x), building.use(x)], lambda: [building.constant(1), building.constant(2)]
    )
    raised = raise_control_flow(building.graph(), [first])
    assert {x, p, unused, alone, first} < set(raised.nodes)
    assert second not in raised.nodes
    node = next(node for node in raised.nodes.values() if node.op == "If")
    assert len(node.attr["Tout"].list.type) == 1


def test_forms_for_references() -> None:
    building = Building()
    x, p = placeholder(building), placeholder(building, BOOL)
    switch = building.add("RefSwitch", x, p)
    merge = building.add("RefMerge", f"{switch}:1", building.add("Sin", switch))
    raised = raise_control_flow(building.graph(), [merge])
    for decided, expected in ((True, 0.5), (False, np.sin(np.float32(0.5)))):
        assert Functional(raised, {x: np.float32(0.5), p: decided})(merge) == [expected]


def test_functions_are_raised_too() -> None:
    """Their edges name outputs; those of what is raised become numbers, the others stay."""
    nodes = (
        NodeDef(name="s", op="Switch", input=("x", "p"), attr={"T": AttrValue(type=FLOAT)}),
        NodeDef(name="n", op="Sin", input=("s:output_true:0",), attr={"T": AttrValue(type=FLOAT)}),
        NodeDef(name="m", op="Merge", input=("s:output_false:0", "n:y:0"), attr={"T": AttrValue(type=FLOAT)}),
        NodeDef(name="i", op="Identity", input=("m:value_index:0",), attr={"T": AttrValue(type=INT)}),
        NodeDef(name="z", op="Sin", input=("m:output:0",), attr={"T": AttrValue(type=FLOAT)}),
    )
    signature = OpDef(
        name="f",
        input_arg=(argument("x", FLOAT), argument("p", BOOL)),
        output_arg=(argument("a", FLOAT), argument("b", INT), argument("c", INT)),
    )
    function = FunctionDef(
        signature=signature, node_def=nodes, ret={"a": "z:y:0", "b": "i:output:0", "c": "m:value_index:0"}
    )
    building = Building()
    output = placeholder(building)
    raised = raise_control_flow(building.graph((function,)), [output])
    assert raised.functions["f"].ret == {"a": "z:y:0", "b": "i:output:0", "c": "m:1"}
    assert list(raised.functions) == ["f", "m/If/then", "m/If/else"]
    assert raised.functions["m/If/then"].ret["output_0"] == "n:y:0"
    for decided, expected in ((True, np.sin(np.float32(0.5))), (False, np.float32(0.5))):
        found = Functional(raised, {}).call("f", [np.float32(0.5), decided])
        assert found == [np.sin(expected), int(decided), int(decided)]


def test_many_loops_and_conditions_in_a_row() -> None:
    """No recursion, and no more than linear time."""
    building = Building()
    value, p = placeholder(building), placeholder(building, BOOL)
    first = value
    for _ in range(300):
        value = building.cond(p, lambda: [building.use(value)], lambda: [building.constant(1)])[0]  # noqa: B023 called now
        value = building.loop(1, [value], lambda given: given)[0]
    for _ in range(3000):
        value = building.add("Identity", value)
    raised = raise_control_flow(building.graph(), [value])
    assert operators(raised).count("If") == operators(raised).count("While") == 300
    assert first in raised.nodes


def test_copies_have_a_limit() -> None:
    """Conditions on one predicate, each of which needs the one before and the same many nodes."""
    building = Building()
    x, p = placeholder(building), placeholder(building, BOOL)
    shared = building.add("Switch", x, p) + ":1"
    for _ in range(200):
        shared = building.add("Sin", shared)
    value = x
    for _ in range(100):
        switch = building.add("Switch", value, p)
        value = building.add("Merge", switch, building.add("AddV2", f"{switch}:1", shared))
    with pytest.raises(ConvertError, match="conditions repeat their nodes more than 16 times"):
        raise_control_flow(building.graph(), [value])


def nodes_of(*nodes: tuple[Any, ...]) -> Graph:
    made = []
    for name, op, *inputs in nodes:
        attr = {"T": AttrValue(type=FLOAT)}
        if op == "Enter":
            attr["frame_name"] = AttrValue(s=name[0].encode())
        made.append(NodeDef(name=name, op=op, input=tuple(inputs), attr=attr))
    return whole_graph(GraphDef(node=tuple(made)), {}, "graph")


X, P = ("x", "Placeholder"), ("p", "Placeholder")
LOOP = (
    X,
    ("f1", "Enter", "x"),
    ("m", "Merge", "f1", "n"),
    ("c", "LoopCond", "m"),
    ("s", "Switch", "m", "c"),
    ("n", "NextIteration", "s:1"),
    ("y", "Exit", "s"),
)


def changed(**nodes: tuple[Any, ...]) -> Graph:
    """The loop with other or more nodes."""
    own = {node[0]: node for node in LOOP}
    return nodes_of(*{**own, **{name: (name, *node) for name, node in nodes.items()}}.values())


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (nodes_of(X, ("y", "Merge", "x", "x")), r"graph: node 'y' \(Merge\) joins x and x; no Switch decides"),
        (nodes_of(X, ("y", "Merge", "x")), r"node 'y' \(Merge\) has 1 inputs, must have 2"),
        (nodes_of(X, P, ("y", "Switch", "x", "p")), r"node 'y' \(Switch\) is wanted, but exists only if 'p' is False"),
        (nodes_of(X, P, ("s", "Switch", "x", "p"), ("y", "Sin", "s:1")), r"node 'y' \(Sin\) is wanted, .* is True"),
        (
            nodes_of(X, P, ("s", "Switch", "x", "p"), ("a", "Add", "s", "s:1"), ("y", "Merge", "a", "s")),
            r"node 'a' \(Add\) needs 'p' to be true and to be false",
        ),
        (nodes_of(X, P, ("s", "Switch", "x", "p"), ("y", "Merge", "s", "s:2")), "has two outputs, not number 2"),
        (
            nodes_of(
                X,
                P,
                ("q", "Placeholder"),
                ("s", "Switch", "x", "p"),
                ("t", "Switch", "x", "q"),
                ("a", "Add", "s", "t"),
                ("b", "Add", "s:1", "t:1"),
                ("y", "Merge", "a", "b"),
            ),
            "more than one predicate decides",
        ),
        (nodes_of(X, ("a", "Add", "x", "y"), ("y", "Merge", "a", "x")), "is in a cycle that no NextIteration closes"),
        (nodes_of(("a", "Sin", "y"), ("y", "Exit", "a")), "is in a cycle"),
        (nodes_of(X, ("y", "Exit", "x")), r"node 'y' \(Exit\) is in no loop: no Enter leads to it"),
        (changed(c=("Identity", "m")), "the loop 'f' has 0 nodes LoopCond, must have one"),
        (changed(d=("LoopCond", "m"), n=("NextIteration", "s:1", "^d")), "has 2 nodes LoopCond"),
        (changed(i=("Identity", "f1"), m=("Merge", "i", "n")), r"joins 'n' and 'i' \(Identity\), must join an Enter"),
        (changed(m=("Merge", "x", "n"), c=("LoopCond", "f1")), "the loop 'f' has no variables"),
        (changed(n=("NextIteration", "x")), r"node 'n' \(NextIteration\) is in no loop"),
        (changed(m=("Merge", "n", "n")), "is in no loop|must join an Enter"),
        (changed(y=("Exit", "m")), r"node 'y' \(Exit\) must take the first output of a Switch on the LoopCond"),
        (changed(y=("Sin", "s:1")), r"node 'y' \(Sin\) is in the loop 'f'; no Exit leads out of it"),
        (changed(n=("NextIteration", "s")), r"node 's' \(Switch\) leaves its loop by an output that only an Exit"),
        (changed(c=("LoopCond", "m:1")), r"node 'm' \(Merge\) tells whether its loop runs for the first time"),
        (changed(s=("Switch", "f1", "c")), "hands out what is no variable of its loop|used where it has no meaning"),
        (
            changed(g1=("Enter", "x"), a=("Add", "s:1", "g1"), n=("NextIteration", "a")),
            "takes values of the loops 'f' and 'g'",
        ),
    ],
)
def test_refused(graph: Graph, words: str) -> None:
    with pytest.raises(ConvertError, match=words):
        raise_control_flow(graph, ["y"])


def test_a_frame_has_a_name() -> None:
    graph = nodes_of(*LOOP)
    assert "While" in operators(raise_control_flow(graph, ["y"]))
    for attr, words in (({}, "attribute 'frame_name' of node 'f1'"), ({"frame_name": AttrValue(s=b"")}, "an empty")):
        nodes = [node.replace(attr=attr) if node.op == "Enter" else node for node in graph.definition.node]
        with pytest.raises(ConvertError, match=words):
            raise_control_flow(whole_graph(GraphDef(node=tuple(nodes)), {}, "graph"), ["y"])


@pytest.mark.parametrize("way", ["loop", "cond"])
def test_nesting_has_a_limit(way: str) -> None:
    building = Building()
    x, y = placeholder(building), placeholder(building)

    def nested(depth: int) -> list[str]:
        if not depth:
            return [building.use(x)]
        if way == "loop":
            return building.loop(1, [building.use(x)], lambda _: nested(depth - 1))
        decided = building.add("Greater", building.use(x), building.use(y))
        return building.cond(decided, lambda: [building.constant(0)], lambda: nested(depth - 1))

    check(building, nested(20), **{x: np.float32(1), y: np.float32(0)})
    too_deep = nested(MAX_NESTING + 1)
    with pytest.raises(ConvertError, match=f"{MAX_NESTING} (loops; no more are allowed|predicates)"):
        raise_control_flow(building.graph(), too_deep)


@pytest.mark.corpus
def test_the_corpus() -> None:
    """Frozen graphs of TensorFlow 1 compute what they did."""
    place = conversion_corpus()
    if place is None:
        pytest.skip("the conversion corpus is not here (beside GOSSAMER_CORPUS or in ../shared/convert)")
    seen = 0
    for archive, cases in (
        ("loops", ("two_v1", "while_v1", "while_v1_data", "while_v1_nested")),
        ("conds", ("cond_v1", "cond_v1_data", "raw_switch_merge")),
    ):
        with zipfile.ZipFile(place / "v1" / f"{archive}.zip") as files:
            for case in cases:
                graph = raise_control_flow(read_graph_def(files.read(f"{case}/g.pb")), ["out0"])
                for step in itertools.count():
                    if f"{case}/i{step}.0.npy" not in files.namelist():
                        break
                    names = ["p", "x"] if f"{case}/i{step}.1.npy" in files.namelist() else ["x"]
                    feeds = {}
                    for number, name in enumerate(names):
                        with files.open(f"{case}/i{step}.{number}.npy") as file:
                            feeds[name] = np.load(file)
                    with files.open(f"{case}/o{step}.0.npy") as file:
                        expected = np.load(file)
                    np.testing.assert_allclose(Functional(graph, feeds)("out0")[0], expected, rtol=1e-6, atol=1e-6)
                    seen += 1
            if archive == "loops":
                graph = raise_control_flow(read_graph_def(files.read("while_v1_tensorarray/g.pb")), ["out0"])
                assert "While" in operators(graph)
    assert seen > 10
