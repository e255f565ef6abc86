"""While, If and Case: their functions become graphs of their own.

A loop hands on what its body does not change: constants and what exists only while a model is converted (variables,
tables) go into the body as they are, so that only what changes is left among the operands. Shapes that change from turn
to turn are open; how far, is found by converting the body again until nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gossamer.convert.blocks.shapes import cast, sizes
from gossamer.convert.graph import Graph, Refused, Value, unknown
from gossamer.convert.lowerings.tensorflow import Call, Handle, lowers
from gossamer.convert.lowerings.tensorflow.tensor_lists import TensorList
from gossamer.convert.report import Unavailable
from gossamer.schema.enums import TensorType

MOST_TRIES = 6
"""Conversions of a body until its shapes stay."""

OPEN = 20
"""Number of the first open size of what changes its shape in a loop, or differs between branches."""


class _Split(NamedTuple):
    """Arguments of a function: tensors that become inputs of its graph, by position, and how to put them together."""

    values: list[Value]
    join: Callable[[Sequence[Value]], list[Any]]


def _split(arguments: Sequence[Any], keeps: Callable[[int, Any], bool]) -> _Split:
    """Takes tensors out of the arguments; what ``keeps`` says stays as it is."""
    values: list[Value] = []
    parts: list[tuple[str, Any]] = []
    for position, argument in enumerate(arguments):
        if keeps(position, argument):
            parts.append(("kept", argument))
        elif isinstance(argument, TensorList):
            if argument.value is None:
                parts.append(("kept", argument))
            else:
                parts.append(("list", argument))
                values.append(argument.value)
        elif isinstance(argument, Value):
            parts.append(("value", argument))
            values.append(argument)
        else:
            parts.append(("kept", argument))

    def join(given: Sequence[Value]) -> list[Any]:
        left = iter(given)
        return [
            argument if kind == "kept" else next(left) if kind == "value" else argument.with_value(next(left))
            for kind, argument in parts
        ]

    return _Split(values, join)


def _input(graph: Graph, like: Value, shapes: tuple[tuple[int, ...], ...], number: int) -> Value:
    value = Value(like.type, shapes, None, like.name or f"argument_{number}")
    graph.inputs.append(value)
    return value


def _of(results: Sequence[Any], what: str) -> list[Value]:
    """The tensors among results. Raises `Refused` for one that is none."""
    values = []
    for result in results:
        if isinstance(result, TensorList):
            if result.value is None:
                raise Refused(f"{what} returns a list of tensors of unknown shape")
            values.append(result.value)
        elif isinstance(result, Value):
            values.append(result)
        elif not isinstance(result, Handle):
            raise Refused(f"{what} returns {result!r}, which is no tensor")
    return values


@lowers("While", "StatelessWhile")
def while_(call: Call) -> Any:
    """WHILE, its body without what it only hands on."""
    cond, body = call.attributes.function("cond").name, call.attributes.function("body").name
    operands = list(call.inputs)
    same = call.importer.handed_on(body)
    bound = [_is_bound(operand, same[n] == n) for n, operand in enumerate(operands)]
    for _ in range(MOST_TRIES):
        attempt = _loop(call, cond, body, operands, bound)
        if attempt is not None:
            return attempt
    raise Refused("the shapes of what goes round in it grow in more ways than can be followed")


def _is_bound(operand: Any, is_same: bool) -> bool:
    """Whether an operand goes into the graphs as it is."""
    if isinstance(operand, TensorList):
        return False
    if isinstance(operand, Value):
        return is_same and operand.data is not None
    return True


def _loop(call: Call, cond: str, body: str, operands: list[Any], bound: Sequence[bool]) -> Any:
    """One try; changes ``operands`` and gives ``None`` if their shapes must be others."""
    split = _split(operands, lambda n, _: bound[n])
    shapes = [value.shapes for value in split.values]
    for _ in range(MOST_TRIES):
        inner = Graph(f"{call.node.name}_body")
        inputs = [
            _input(inner, value, shape, n) for n, (value, shape) in enumerate(zip(split.values, shapes, strict=True))
        ]
        results = call.importer.inline(inner, body, split.join(inputs))
        unavailable = next((one for one in results if isinstance(one, Unavailable)), None)
        if unavailable is not None:
            return [unavailable] * len(operands)
        if _lists_are_known(call, operands, results):
            return None
        outputs = _of([one for n, one in enumerate(results) if not bound[n]], f"the body {body!r}")
        wider = [_wider(shape, output.shapes, n) for n, (shape, output) in enumerate(zip(shapes, outputs, strict=True))]
        if wider == shapes:
            break
        shapes = wider
    else:
        return None
    inner.outputs = outputs
    test = Graph(f"{call.node.name}_cond")
    tested = [_input(test, value, shape, n) for n, (value, shape) in enumerate(zip(split.values, shapes, strict=True))]
    verdict = call.importer.inline(test, cond, split.join(tested))[0]
    if isinstance(verdict, Unavailable):
        return [verdict] * len(operands)
    test.outputs = [_verdict(test, verdict)]
    like = [Value(value.type, shape) for value, shape in zip(split.values, shapes, strict=True)]
    effect = bool(inner.effects or test.effects)
    values = call.graph.call(
        "WHILE",
        split.values,
        like,
        {"cond_subgraph_index": test, "body_subgraph_index": inner},
        effect=effect,
    )
    return split.join(values)


def _lists_are_known(call: Call, operands: list[Any], results: Sequence[Any]) -> bool:
    """Gives lists that were nothing but a length the elements that the body puts into them. Whether there were any."""
    sources = [operand for operand in operands if isinstance(operand, Value)]
    sources += [one.value for one in operands if isinstance(one, TensorList) and one.value is not None]
    found = False
    for n, (operand, result) in enumerate(zip(operands, results, strict=True)):
        if not isinstance(operand, TensorList) or not isinstance(result, TensorList):
            continue
        if operand.value is None and result.value is not None:
            operands[n] = operand.of_elements(call.graph, sizes(result.value)[1:], *sources)
            found = True
    return found


def _verdict(graph: Graph, value: Any) -> Value:
    if not isinstance(value, Value):
        raise Refused(f"its condition is {value!r}, no tensor")
    return cast(graph, value, TensorType.BOOL)


def _wider(
    first: tuple[tuple[int, ...], ...], second: tuple[tuple[int, ...], ...], number: int
) -> tuple[tuple[int, ...], ...]:
    """The shapes with sizes open where these differ. Raises `Refused` if their ranks do."""
    if first == second:
        return first
    if len(first[0]) != len(second[0]):
        raise Refused(
            f"a tensor of {len(first[0])} dimensions comes back with {len(second[0])}; TFLite's tensors keep theirs"
        )
    open_ = [unknown(OPEN + 8 * number + axis).worlds for axis in range(len(first[0]))]
    return tuple(
        [
            tuple(
                [
                    size
                    if all(one[axis] == other[axis] for one, other in zip(first, second, strict=True))
                    else worlds[world]
                    for axis, (size, worlds) in enumerate(zip(first[world], open_, strict=True))
                ]
            )
            for world in range(len(first))
        ]
    )


@lowers("If", "StatelessIf")
def if_(call: Call) -> Any:
    """IF; only the branch itself if the condition is a constant."""
    branches = [call.attributes.function(name).name for name in ("then_branch", "else_branch")]
    return _choose(call, call.value(0), branches, call.inputs[1:])


@lowers("Case", "StatelessCase")
def case(call: Call) -> Any:
    """IF within IF, for each branch but the last; an index outside of them takes that, as in TensorFlow."""
    names = [function.name for function in call.attributes.functions("branches")]
    index = call.value(0)
    if index.data is not None:
        number = int(index.data)
        return call.importer.inline(call.graph, names[number if 0 <= number < len(names) else -1], call.inputs[1:])
    return _case(call, call.graph, index, 0, names, call.inputs[1:])


def _case(call: Call, graph: Graph, index: Value, number: int, names: Sequence[str], arguments: Sequence[Any]) -> Any:
    if number == len(names) - 1:
        return call.importer.inline(graph, names[-1], arguments)
    is_it = graph.add("EQUAL", index, graph.constant(number, index.type))

    def then(inner: Graph, given: Sequence[Any]) -> list[Any]:
        return call.importer.inline(inner, names[number], given[1:])

    def otherwise(inner: Graph, given: Sequence[Any]) -> list[Any]:
        found: list[Any] = _case(call, inner, given[0], number + 1, names, given[1:])
        return found

    return _branches(call, graph, is_it, (then, otherwise), [index, *arguments])


def _choose(call: Call, condition: Value, names: Sequence[str], arguments: Sequence[Any]) -> Any:
    if condition.data is not None:
        return call.importer.inline(call.graph, names[0 if bool(condition.data.all()) else 1], arguments)

    def branch(name: str) -> Callable[[Graph, Sequence[Any]], list[Any]]:
        return lambda inner, given: call.importer.inline(inner, name, given)

    return _branches(call, call.graph, _truth(call.graph, condition), (branch(names[0]), branch(names[1])), arguments)


def _truth(graph: Graph, value: Value) -> Value:
    """What a condition means for TensorFlow: a number other than 0, a tensor that is not empty."""
    if value.rank:
        raise Refused(f"its condition has the shape {list(value.dims)}, it must be a scalar")
    return cast(graph, value, TensorType.BOOL)


def _branches(
    call: Call,
    graph: Graph,
    condition: Value,
    branches: Sequence[Callable[[Graph, Sequence[Any]], list[Any]]],
    arguments: Sequence[Any],
) -> Any:
    split = _split(arguments, lambda _, one: isinstance(one, Value) and one.data is not None)
    graphs, results = [], []
    for number, branch in enumerate(branches):
        inner = Graph(f"{call.node.name}_{'else' if number else 'then'}")
        inputs = [_input(inner, value, value.shapes, n) for n, value in enumerate(split.values)]
        found = branch(inner, split.join(inputs))
        unavailable = next((one for one in found if isinstance(one, Unavailable)), None)
        if unavailable is not None:
            return [unavailable] * len(found)
        inner.outputs = _of(found, "a branch")
        graphs.append(inner)
        results.append(found)
    like = []
    for n, (one, other) in enumerate(zip(graphs[0].outputs, graphs[1].outputs, strict=True)):
        if one.type != other.type:
            raise Refused(f"its branches return {one!r} and {other!r}")
        like.append(Value(one.type, _wider(one.shapes, other.shapes, n)))
    values = graph.call(
        "IF",
        [condition, *split.values],
        like,
        {"then_subgraph_index": graphs[0], "else_subgraph_index": graphs[1]},
        effect=any(inner.effects for inner in graphs),
    )
    rest = iter(values)
    return [
        one.with_value(next(rest)) if isinstance(one, TensorList) else next(rest) if isinstance(one, Value) else one
        for one in results[0]
    ]
