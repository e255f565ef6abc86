"""Loops over the elements of a first axis, and loops whose shapes may grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gossamer.convert.blocks.indexing import broadcast_to
from gossamer.convert.blocks.shapes import shape_value, size_vector, sizes
from gossamer.convert.blocks.vectors import open_size
from gossamer.convert.graph import Graph, Shape, Value, refuse

MOST_UNROLLED = 8
"""Steps that are written one after the other instead of a loop."""


Shapes = tuple[Shape, ...]


class Turn(NamedTuple):
    """One turn of a loop: the graph that it is in, its number (int32), elements of what is walked along, the states,
    and other values that it needs."""

    graph: Graph
    number: Value
    elements: list[Value]
    states: list[Value]
    others: list[Value]


Step = Callable[[Turn], "tuple[Sequence[Value], Sequence[Value]]"]
"""Gives what a turn puts out, and the next states, of the same types and shapes."""


def scan(
    graph: Graph,
    step: Step,
    walked: Sequence[Value],
    states: Sequence[Value],
    others: Sequence[Value] = (),
    *,
    unroll: bool = False,
) -> tuple[list[Value], list[Value]]:
    """One turn for each element of the first axis of ``walked``: what the turns put out, stacked, and the last states.

    ``step`` may use constants as they are; other values of the graph it must get from its turn. A loop is a WHILE whose
    results are written into tensors of their final size; short ones of known length are unrolled, with ``unroll`` long
    ones too.
    """
    length = walked[0].dims[0]
    if length is not None and (0 < length <= MOST_UNROLLED or (unroll and length)):
        return _unrolled(graph, step, length, walked, states, others)
    number = graph.constant(0)
    if length is None:
        length_value = graph.add("STRIDED_SLICE", size_vector(graph, walked[0]), [0], [1], [1], shrink_axis_mask=1)
    else:
        length_value = graph.constant(length)
    trial = Graph()
    like = [argument(trial, value) for value in [*walked, *states, *others]]
    turn = _turn(trial, trial.constant(0), like, len(walked), len(states))
    results, _ = step(turn)
    stacks = []
    for result in results:
        shape = shape_value(graph, [walked[0].size(0), *sizes(result)], *walked, *states, *others)
        zero = graph.constant(np.zeros((1,) * (result.rank + 1), result.dtype), result.type)
        stacks.append(broadcast_to(graph, zero, shape))
    carried = [number, *stacks, *states]
    handed = [value for value in [length_value, *walked, *others] if value.data is None]
    first = len(carried)

    def inside(inner: Graph) -> tuple[list[Value], Value, list[Value]]:
        inner.inputs = []
        fresh = [argument(inner, value) for value in [*carried, *handed]]
        rest = iter(fresh[first:])
        given = [value if value.data is not None else next(rest) for value in [length_value, *walked, *others]]
        return fresh, given[0], given[1:]

    cond, body = Graph("scan_cond"), Graph("scan_body")
    fresh, limit, _ = inside(cond)
    cond.outputs = [cond.add("LESS", fresh[0], limit)]
    fresh, _, given = inside(body)
    known = [*given[: len(walked)], *fresh[1 + len(stacks) : first], *given[len(walked) :]]
    results, following = step(_turn(body, fresh[0], known, len(walked), len(states)))
    written = []
    for stack, result in zip(fresh[1 : 1 + len(stacks)], results, strict=True):
        update = body.add("EXPAND_DIMS", result, np.array(0, np.int32))
        zero = body.constant(np.zeros(result.rank, np.int32))
        place = body.add("RESHAPE", fresh[0], np.array([1], np.int32), new_shape=(1,))
        if result.rank:
            place = body.add("CONCATENATION", place, zero, axis=0)
        written.append(body.add("DYNAMIC_UPDATE_SLICE", stack, update, place))
    body.outputs = [body.add("ADD", fresh[0], 1), *written, *following, *fresh[first:]]
    values = graph.call(
        "WHILE",
        [*carried, *handed],
        [*carried, *handed],
        {"cond_subgraph_index": cond, "body_subgraph_index": body},
    )
    return values[1 : 1 + len(stacks)], values[1 + len(stacks) : first]


def _unrolled(
    graph: Graph, step: Step, length: int, walked: Sequence[Value], states: Sequence[Value], others: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    rows: list[Sequence[Value]] = []
    left = list(states)
    for number in range(length):
        turn = _turn(graph, graph.constant(number), [*walked, *left, *others], len(walked), len(states))
        results, following = step(turn)
        rows.append(results)
        left = list(following)
    return [graph.add("PACK", *column, values_count=length) for column in zip(*rows, strict=True)], left


def _turn(graph: Graph, number: Value, values: Sequence[Value], walked: int, states: int) -> Turn:
    elements = [graph.add("GATHER", value, number) for value in values[:walked]]
    return Turn(graph, number, elements, list(values[walked : walked + states]), list(values[walked + states :]))


def argument(graph: Graph, value: Value) -> Value:
    """A new input of a graph that is like a value of another one."""
    fresh = Value(value.type, value.shapes, None, value.name)
    graph.inputs.append(fresh)
    return fresh


def wider(first: Shapes, second: Shapes) -> Shapes:
    """The shapes of what is now the first and then the second, in all worlds: sizes that change are open, those that
    were so stay what they were. Raises `Refused` if the ranks differ."""
    if first == second:
        return first
    if len(first[0]) != len(second[0]):
        refuse(f"a tensor of {len(first[0])} dimensions comes back with {len(second[0])}; TFLite's tensors keep theirs")
    axes = []
    for column, other in zip(zip(*first, strict=True), zip(*second, strict=True), strict=True):
        stays = column == other or len(set(column)) > 1
        axes.append(column if stays else open_size().worlds)
    return tuple(zip(*axes, strict=True))
