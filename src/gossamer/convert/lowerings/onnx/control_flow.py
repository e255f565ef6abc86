"""If, Loop and Scan, sequences and optionals.

Bodies become graphs of their own; what they take from around them is handed to them, constants excepted. Sequences and
optionals exist only while a model is converted: loops over them are unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks import loops
from gossamer.convert.blocks.indexing import flip, slice_axis
from gossamer.convert.blocks.shapes import cast, reshape, sizes, transpose
from gossamer.convert.blocks.vectors import open_size
from gossamer.convert.graph import Graph, Refused, Value
from gossamer.convert.lowerings.onnx import Call, Nothing, TensorList, axis_of, lowers
from gossamer.convert.lowerings.onnx.moves import split_parts
from gossamer.convert.lowerings.onnx.shapes import known_size
from gossamer.convert.messages.onnx import GraphProto
from gossamer.convert.report import Unavailable
from gossamer.schema.enums import TensorType as T

MOST_TRIES = 6
"""Conversions of a body until its shapes stay."""

MOST_UNROLLED = 256
"""Turns of a loop that has to be unrolled."""

MOST_ROOM = 1 << 16
"""Turns for which a loop makes room for its results before it begins."""


class Captured:
    """What bodies take from around them: names of values that have to be handed to a graph, and of what need not."""

    def __init__(self, call: Call, bodies: Sequence[GraphProto]) -> None:
        names = dict.fromkeys([name for body in bodies for name in call.importer.free_names(body)])
        found = {name: call.importer.value(call.scope, name) for name in names}
        self.unavailable = next((one for one in found.values() if isinstance(one, Unavailable)), None)
        self.handed = {
            name: value
            for name, value in found.items()
            if isinstance(value, Value) and (value.data is None or value.node is not None)
        }
        for name, value in found.items():
            if isinstance(value, TensorList) and any(one.data is None for one in value):
                raise Refused(f"a body takes the sequence {name!r} from around it, which only TensorFlow could hand on")

    def inside(self, graph: Graph) -> dict[str, Value]:
        """The values as inputs of a graph."""
        return {name: loops.argument(graph, value) for name, value in self.handed.items()}

    def given(self, values: Sequence[Value]) -> dict[str, Value]:
        """The values by name."""
        return dict(zip(self.handed, values, strict=True))


@lowers("If")
def if_(call: Call) -> Any:
    """IF, or the branch itself if the condition is known."""
    graph, condition = call.graph, call.value(0)
    branches = [call.body("then_branch"), call.body("else_branch")]
    if condition.data is not None:
        chosen = branches[0 if condition.data.all() else 1]
        return call.importer.inline(call.scope, graph, chosen, {})
    captured = Captured(call, branches)
    if captured.unavailable is not None:
        return [captured.unavailable] * call.outputs
    inner = []
    for body, name in zip(branches, ("then", "else"), strict=True):
        other = Graph(f"{call.node.name or call.op}_{name}")
        results = call.importer.inline(call.scope, other, body, captured.inside(other))
        missing = next((one for one in results if isinstance(one, Unavailable)), None)
        if missing is not None:
            return [missing] * call.outputs
        other.outputs = [_tensor(one) for one in results]
        inner.append(other)
    like = []
    for first, second in zip(inner[0].outputs, inner[1].outputs, strict=True):
        if first.type != second.type or first.rank != second.rank:
            raise Refused(f"its branches give {first!r} and {second!r}")
        like.append(Value(first.type, loops.wider(first.shapes, second.shapes)))
    return graph.call(
        "IF",
        [reshape(graph, condition, []), *captured.handed.values()],
        like,
        {"then_subgraph_index": inner[0], "else_subgraph_index": inner[1]},
    )


def _tensor(found: Any) -> Value:
    if not isinstance(found, Value):
        raise Refused(f"a body gives a {type(found).__name__}, which is no tensor")
    return found


@lowers("Loop")
def loop(call: Call) -> Any:
    """WHILE. Unrolled if it carries sequences, which needs a known number of turns; also if those are few."""
    body = call.body("body")
    most, condition = call.optional(0), call.optional(1)
    states = list(call.inputs[2:])
    captured = Captured(call, [body])
    if captured.unavailable is not None:
        return [captured.unavailable] * call.outputs
    turns = None if most is None or most.data is None else int(most.data.reshape(()))
    if condition is not None and condition.data is not None and not condition.data.all():
        turns = 0
    lists = any(not isinstance(one, Value) for one in states)
    few = turns is not None and 0 < turns <= loops.MOST_UNROLLED
    if few or lists:
        found = _unrolled_loop(call, body, turns, states)
        if found is not None:
            return found
        if lists:
            raise Refused("carries sequences for a number of turns that is not known; TFLite has none")
    return _while(call, body, turns, most, condition, [_tensor(one) for one in states], captured)


def _unrolled_loop(call: Call, body: GraphProto, turns: int | None, states: list[Any]) -> list[Any] | None:
    """The turns one after the other; ``None`` if it is not known when the last one is."""
    graph = call.graph
    count = len(states)
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - count)]
    names = [value.name for value in body.input]
    number = 0
    goes_on: Any = graph.constant(np.array(True))
    while turns is None or number < turns:
        if number >= MOST_UNROLLED or not isinstance(goes_on, Value) or goes_on.data is None:
            return None
        if not goes_on.data.all():
            break
        given = dict(zip(names, [graph.constant(np.array(number, np.int64)), goes_on, *states], strict=True))
        results = call.importer.inline(call.scope, graph, body, given)
        missing = next((one for one in results if isinstance(one, Unavailable)), None)
        if missing is not None:
            return [missing] * call.outputs
        goes_on, states = results[0], list(results[1 : 1 + count])
        for column, value in zip(scanned, results[1 + count :], strict=True):
            column.append(_tensor(value))
        number += 1
    if any(not column for column in scanned):
        return None
    return [*states, *[graph.add("PACK", *column, values_count=len(column)) for column in scanned]]


def _while(
    call: Call,
    body: GraphProto,
    turns: int | None,
    most: Value | None,
    condition: Value | None,
    states: list[Value],
    captured: Captured,
) -> Any:
    """Carries the number of the turn, whether there is one more, states, results so far, and what bodies need."""
    graph = call.graph
    limit = graph.constant(np.array(np.iinfo(np.int64).max)) if most is None else reshape(graph, most, [])
    first = graph.constant(np.array(True)) if condition is None else reshape(graph, condition, [])
    names = [value.name for value in body.input]
    shapes = [state.shapes for state in states]
    kept: Sequence[Value] = []
    for _ in range(MOST_TRIES):
        trial = Graph()
        carried = [loops.argument(trial, Value(state.type, shape)) for state, shape in zip(states, shapes, strict=True)]
        head = [loops.argument(trial, Value(kind, ((), ()))) for kind in (T.INT64, T.BOOL)]
        given = {**captured.inside(trial), **dict(zip(names, [*head, *carried], strict=True))}
        results = call.importer.inline(call.scope, trial, body, given)
        missing = next((one for one in results if isinstance(one, Unavailable)), None)
        if missing is not None:
            return [missing] * call.outputs
        kept = [_tensor(one) for one in results]
        wide = [
            loops.wider(shape, result.shapes) for shape, result in zip(shapes, kept[1 : 1 + len(states)], strict=True)
        ]
        if wide == shapes:
            break
        shapes = wide
    else:
        raise Refused("the shapes of what it carries grow in more ways than can be followed")
    scanned = kept[1 + len(states) :]
    room = turns if turns is not None and 0 < turns <= MOST_ROOM else None
    stacks = [_room(call, value, room) for value in scanned]
    start = [graph.constant(np.array(0, np.int64)), first, *states, *stacks]
    like = [
        *start[:2],
        *[Value(state.type, shape) for state, shape in zip(states, shapes, strict=True)],
        *[Value(stack.type, stack.shapes) if room else _grown(stack) for stack in stacks],
    ]
    outside = [limit, *captured.handed.values()]
    count = len(start)

    def arguments(inner: Graph) -> tuple[list[Value], list[Value]]:
        fresh = [loops.argument(inner, Value(one.type, one.shapes)) for one in like]
        return fresh, [loops.argument(inner, one) for one in outside]

    test, turn = Graph(f"{call.node.name or call.op}_cond"), Graph(f"{call.node.name or call.op}_body")
    fresh, others = arguments(test)
    test.outputs = [test.add("LOGICAL_AND", test.add("LESS", fresh[0], others[0]), fresh[1])]
    fresh, others = arguments(turn)
    inputs = dict(zip(names, fresh[: 2 + len(states)], strict=True))
    results = call.importer.inline(call.scope, turn, body, {**captured.given(others[1:]), **inputs})
    found = [_tensor(one) for one in results]
    written = [
        _written(turn, stack, value, fresh[0], room)
        for stack, value in zip(fresh[2 + len(states) :], found[1 + len(states) :], strict=True)
    ]
    following = turn.add("ADD", fresh[0], turn.constant(np.array(1, np.int64)))
    turn.outputs = [following, reshape(turn, found[0], []), *found[1 : 1 + len(states)], *written, *others]
    values = graph.call(
        "WHILE",
        [*start, *outside],
        [*like, *outside],
        {"cond_subgraph_index": test, "body_subgraph_index": turn},
    )
    finished = values[2:count]
    if not room:
        results = [slice_axis(graph, stack, 0, 1, None) for stack in finished[len(states) :]]
        return [*finished[: len(states)], *results]
    if found[0].data is None and found[0] is not fresh[1]:
        last = cast(graph, reshape(graph, values[0], [1]), T.INT32)
        finished = [
            *finished[: len(states)],
            *[_first(call, stack, last) for stack in finished[len(states) :]],
        ]
    return finished


def _room(call: Call, value: Value, room: int | None) -> Value:
    """Where the results of all turns go; without a known number of them they follow a first row that is none of them:
    LiteRT's WHILE takes no tensor without elements."""
    if not value.is_static:
        raise Refused("puts together results whose sizes are open; give them with --shape")
    zero: Any = b"" if value.type == T.STRING else 0
    return call.graph.constant(np.full((room or 1, *value.shape), zero, value.dtype), value.type)


def _grown(stack: Value) -> Value:
    size = open_size()
    return Value(stack.type, tuple([(size.worlds[n], *shape[1:]) for n, shape in enumerate(stack.shapes)]))


def _written(graph: Graph, stack: Value, value: Value, number: Value, room: int | None) -> Value:
    update = graph.add("EXPAND_DIMS", value, np.array(0, np.int32))
    if not room:
        return graph.add("CONCATENATION", stack, update, axis=0)
    place = reshape(graph, cast(graph, number, T.INT32), [1])
    if value.rank:
        place = graph.add("CONCATENATION", place, np.zeros(value.rank, np.int32), axis=0)
    return graph.add("DYNAMIC_UPDATE_SLICE", stack, update, place)


def _first(call: Call, stack: Value, count: Value) -> Value:
    """As many of the first elements as there were turns."""
    rest = np.array(stack.shape[1:], np.int32)
    ends = call.add("CONCATENATION", count, rest, axis=0) if len(rest) else count
    begin, ones = np.zeros(stack.rank, np.int32), np.ones(stack.rank, np.int32)
    return call.add("STRIDED_SLICE", stack, begin, ends, ones, shape=(open_size(), *stack.shape[1:]))


@lowers("Scan")
def scan(call: Call) -> Any:
    """A loop over elements of axes; before version 9 for each element of the batch."""
    body = call.body("body")
    captured = Captured(call, [body])
    if captured.unavailable is not None:
        return [captured.unavailable] * call.outputs
    count = call.int("num_scan_inputs")
    if call.version < 9:
        return _scan_8(call, body, captured, call.values(1), count)
    values = call.values()
    states, walked = values[: len(values) - count], values[len(values) - count :]
    ways = call.ints("scan_input_directions", [0] * count)
    axes = call.ints("scan_input_axes", [0] * count)
    outputs = len(body.output) - len(states)
    last, results = _scanned(call, body, captured, states, walked, axes, ways)
    ways = call.ints("scan_output_directions", [0] * outputs)
    axes = call.ints("scan_output_axes", [0] * outputs)
    placed = []
    for result, axis, way in zip(results, axes, ways, strict=True):
        turned = flip(call.graph, result, [0]) if way else result
        to = axis_of(axis, result.rank)
        order = list(range(1, result.rank))
        order.insert(to, 0)
        placed.append(transpose(call.graph, turned, order))
    return [*last, *placed]


def _scanned(
    call: Call,
    body: GraphProto,
    captured: Captured,
    states: Sequence[Value],
    walked: Sequence[Value],
    axes: Sequence[int],
    ways: Sequence[int],
) -> tuple[list[Value], list[Value]]:
    graph = call.graph
    first = []
    for value, axis, way in zip(walked, axes, ways, strict=True):
        at = axis_of(axis, value.rank)
        moved = transpose(graph, value, [at, *[n for n in range(value.rank) if n != at]])
        first.append(flip(graph, moved, [0]) if way else moved)
    names = [value.name for value in body.input]

    def step(turn: loops.Turn) -> tuple[Sequence[Value], Sequence[Value]]:
        given = {**captured.given(turn.others), **dict(zip(names, [*turn.states, *turn.elements], strict=True))}
        results = call.importer.inline(call.scope, turn.graph, body, given)
        found = [_tensor(one) for one in results]
        return found[len(states) :], found[: len(states)]

    results, last = loops.scan(graph, step, first, states, list(captured.handed.values()))
    return last, results


def _scan_8(call: Call, body: GraphProto, captured: Captured, values: list[Value], count: int) -> list[Value]:
    if call.optional(0) is not None:
        raise Refused("scans sequences of different lengths (sequence_lens), in a version that nobody exports any more")
    states = values[: len(values) - count]
    ways = call.ints("directions", [0] * count)
    rows = []
    for n in range(known_size(values[0], 0)):
        one = [reshape(call.graph, slice_axis(call.graph, value, 0, n, n + 1), sizes(value)[1:]) for value in values]
        last, results = _scanned(call, body, captured, one[: len(states)], one[len(states) :], [0] * count, ways)
        rows.append([*last, *results])
    return [call.add("PACK", *column, values_count=len(column)) for column in zip(*rows, strict=True)]


# -- sequences


def _list(call: Call, position: int) -> TensorList:
    found = call.inputs[position]
    if not isinstance(found, TensorList):
        raise Refused(f"input {position} is a {type(found).__name__}, no sequence")
    return found


def _place(call: Call, position: int, default: int) -> int:
    if call.optional(position) is None:
        return default
    return int(call.constant(position, "the position in a sequence").reshape(()))


@lowers("SequenceEmpty")
def sequence_empty(call: Call) -> Any:
    return TensorList()


@lowers("SequenceConstruct")
def sequence_construct(call: Call) -> Any:
    return TensorList(call.values())


@lowers("SequenceInsert")
def sequence_insert(call: Call) -> Any:
    given = list(_list(call, 0))
    place = _place(call, 2, len(given))
    given.insert(place + len(given) if place < 0 else place, call.value(1))
    return TensorList(given)


@lowers("SequenceErase")
def sequence_erase(call: Call) -> Any:
    given = list(_list(call, 0))
    del given[_place(call, 1, -1)]
    return TensorList(given)


@lowers("SequenceAt")
def sequence_at(call: Call) -> Any:
    return _list(call, 0)[_place(call, 1, 0)]


@lowers("SequenceLength")
def sequence_length(call: Call) -> Value:
    return call.graph.constant(np.array(len(_list(call, 0)), np.int64))


@lowers("ConcatFromSequence")
def concat_from_sequence(call: Call) -> Value:
    values, axis = list(_list(call, 0)), call.int("axis")
    rank = values[0].rank + (1 if call.flag("new_axis") else 0)
    at = axis_of(axis, rank)
    if call.flag("new_axis"):
        return call.add("PACK", *values, values_count=len(values), axis=at)
    return values[0] if len(values) == 1 else call.add("CONCATENATION", *values, axis=at)


@lowers("SplitToSequence")
def split_to_sequence(call: Call) -> Any:
    x = call.value(0)
    axis = axis_of(call.int("axis"), x.rank)
    size = known_size(x, axis)
    given = call.optional(1)
    if given is None:
        parts = split_parts(call, x, [1] * size, axis)
        if not call.flag("keepdims", True):
            shape = [one for n, one in enumerate(sizes(x)) if n != axis]
            parts = [reshape(call.graph, part, shape) for part in parts]
        return TensorList(parts)
    numbers = call.constant(1, "split")
    if numbers.ndim == 0:
        chunk = int(numbers)
        counts = [chunk] * (size // chunk) + ([size % chunk] if size % chunk else [])
    else:
        counts = [int(n) for n in numbers]
    return TensorList(split_parts(call, x, counts, axis))


@lowers("SequenceMap")
def sequence_map(call: Call) -> Any:
    """The body once for each element."""
    body = call.body("body")
    names = [value.name for value in body.input]
    count = len(_list(call, 0))
    columns: list[list[Any]] = [[] for _ in body.output]
    for n in range(count):
        given = [one[n] if isinstance(one, TensorList) else one for one in call.inputs]
        results = call.importer.inline(call.scope, call.graph, body, dict(zip(names, given, strict=True)))
        for column, result in zip(columns, results, strict=True):
            column.append(_tensor(result))
    return [TensorList(column) for column in columns]


# -- optionals


@lowers("Optional")
def optional(call: Call) -> Any:
    return call.inputs[0] if call.inputs and call.inputs[0] is not None else Nothing()


@lowers("OptionalHasElement")
def optional_has_element(call: Call) -> Value:
    found = call.inputs[0] if call.inputs else None
    return call.graph.constant(np.array(found is not None and not isinstance(found, Nothing)))


@lowers("OptionalGetElement")
def optional_get_element(call: Call) -> Any:
    if isinstance(call.inputs[0], Nothing) or call.inputs[0] is None:
        raise Refused("takes the element of an optional that holds nothing")
    return call.inputs[0]
