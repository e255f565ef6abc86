"""Loops and choices. Their jaxprs become graphs of their own; constants go into them as they are, other values of the
function around them are operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.loops import Turn
from gossamer.convert.blocks.loops import scan as scanned
from gossamer.convert.blocks.moves import moved
from gossamer.convert.blocks.shapes import cast, reshape
from gossamer.convert.graph import Graph, Value, refuse
from gossamer.convert.lowerings.jax import Call, like, lowers, stored
from gossamer.convert.patterns.matching import made_by
from gossamer.schema.enums import TensorType

_CHOSEN = "cpu"
"""Of what is written for several platforms the part that is taken."""


class _Inside:
    """A graph that an operator calls, with an input for each of ``handed``."""

    def __init__(self, call: Call, name: str, handed: Sequence[Value]) -> None:
        self.graph = Graph(name)
        self.graph.origins = call.graph.origins
        self._inputs = {}
        for value in handed:
            fresh = Value(value.type, value.shapes, None, value.name)
            self.graph.inputs.append(fresh)
            self._inputs[value] = fresh

    def of(self, values: Sequence[Value]) -> list[Value]:
        """What values are in this graph: constants that are not handed over themselves."""
        return [self._inputs.get(value, value) for value in values]


def _handed(*groups: Sequence[Value]) -> list[Value]:
    """Values that a graph has to be given, each once."""
    return list(dict.fromkeys([value for group in groups for value in group if value.data is None]))


@lowers("while")
def while_(call: Call) -> list[Value]:
    """What is carried changes, so constants among that are operands as well; other operands are handed on."""
    params = call.params
    first, second = int(params["cond_nconsts"]), int(params["cond_nconsts"]) + int(params["body_nconsts"])
    given = call.values()
    # A value that is carried twice, or is handed on as well, is another operand each time.
    carried = [Value(value.type, value.shapes) for value in given[second:]]
    others = _handed(given[:second])
    test, body = _Inside(call, "while_cond", [*carried, *others]), _Inside(call, "while_body", [*carried, *others])
    (verdict,) = call.run(params["cond_jaxpr"], test.graph, test.of([*given[:first], *carried]))
    test.graph.outputs = [reshape(test.graph, verdict, [])]
    results = call.run(params["body_jaxpr"], body.graph, body.of([*given[first:second], *carried]))
    for state, result in zip(carried, results, strict=True):
        if state.shapes != result.shapes or state.type != result.type:
            refuse(f"a turn makes {result!r} of {state!r}; loops keep shapes and types")
    body.graph.outputs = [*[stored(body.graph, result) for result in results], *body.of(others)]
    operands = [*given[second:], *others]
    made = call.graph.call(
        "WHILE", operands, operands, {"cond_subgraph_index": test.graph, "body_subgraph_index": body.graph}
    )
    return made[: len(carried)]


@lowers("scan")
def scan(call: Call) -> list[Value]:
    params = call.params
    first, count = int(params["num_consts"]), int(params["num_carry"])
    given = call.values()
    consts, states, walked = given[:first], given[first : first + count], given[first + count :]
    axis = np.array([0], np.int32)
    if params.get("reverse"):
        walked = [moved(call.graph, "REVERSE_V2", value, axis) for value in walked]
    length = call.size(params["length"])
    if not walked:
        if not isinstance(length, int):
            refuse("a scan over nothing, of a length that is open")
        walked = [call.graph.constant(np.arange(length, dtype=np.int32))]
    extra = len(walked) - len(given[first + count :])

    def step(turn: Turn) -> tuple[list[Value], list[Value]]:
        operands = [*turn.others, *turn.states, *turn.elements[extra:]]
        results = [stored(turn.graph, one) for one in call.run(params["jaxpr"], turn.graph, operands)]
        return results[count:], results[:count]

    outputs, last = scanned(call.graph, step, walked, states, consts)
    if params.get("reverse"):
        outputs = [moved(call.graph, "REVERSE_V2", value, axis) for value in outputs]
    return [*last, *outputs]


@lowers("cond")
def cond(call: Call) -> list[Value]:
    """IF within IF for each branch but the last; a number outside of them is that of the nearest one."""
    branches, which = call.params["branches"], call.inputs[0]
    return _choice(call, call.graph, which, 0, branches, call.values()[1:])


def _choice(
    call: Call, graph: Graph, which: Value, number: int, branches: Sequence[Any], given: Sequence[Value]
) -> list[Value]:
    if which.data is not None:
        return call.run(branches[int(np.clip(which.data, 0, len(branches) - 1))], graph, given)
    if number == len(branches) - 1:
        return call.run(branches[number], graph, given)
    handed = _handed([which], given)
    then, other = _Inside(call, "cond_branch", handed), _Inside(call, "cond_other", handed)
    then.graph.outputs = [stored(then.graph, one) for one in call.run(branches[number], then.graph, then.of(given))]
    (inner,) = other.of([which])
    rest = _choice(call, other.graph, inner, number + 1, branches, other.of(given))
    other.graph.outputs = [stored(other.graph, one) for one in rest]
    for one, two in zip(then.graph.outputs, other.graph.outputs, strict=True):
        if one.shapes != two.shapes or one.type != two.type:
            refuse(f"its branches give {one!r} and {two!r}")
    truth = made_by(which, "CAST")
    if number == 0 and len(branches) == 2 and truth is not None and truth.input(0).type == TensorType.BOOL:
        condition, order = truth.input(0), (other, then)
    else:
        condition, order = graph.add("LESS_EQUAL", which, like(graph, which, number)), (then, other)
    return graph.call(
        "IF",
        [reshape(graph, cast(graph, condition, TensorType.BOOL), []), *handed],
        then.graph.outputs,
        {"then_subgraph_index": order[0].graph, "else_subgraph_index": order[1].graph},
    )


@lowers("platform_index")
def platform_index(call: Call) -> Value:
    """The number of the branch that is written for processors, or for all platforms."""
    groups = call.params["platforms"]
    for number, group in enumerate(groups):
        if group is None or _CHOSEN in group:
            return call.graph.constant(np.array(number, np.int32))
    return refuse("is written for other platforms alone")


@lowers("pallas_call", "shard_map", "pmap", "xla_pmap", "custom_linear_solve", "run_state")
def machines(call: Call) -> Value:
    """Whatever jaxprs they have are not what they compute."""
    return refuse(f"{call.name} has no counterpart in TFLite; use plain functions of jax.numpy")
