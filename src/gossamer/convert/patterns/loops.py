"""Control flow: what goes into loops and branches for nothing, and branches of which one is never taken.

Operands that are constant go into the graphs that are called; those that nobody needs there vanish, and results that
nobody needs outside. A graph that is called belongs to one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gossamer.convert.graph import Graph, Node, Value
from gossamer.convert.patterns import pattern, whole
from gossamer.convert.patterns.matching import again_many, option_values
from gossamer.ops import find_op


@whole
def smaller_calls(graph: Graph) -> bool:
    """Take from loops and branches what they do not need."""
    changed = False
    for node in graph.ordered():
        if node.op == "WHILE":
            changed |= _smaller_loop(graph, node)
        elif node.op == "IF":
            changed |= _smaller_branches(graph, node)
    return changed


def _smaller_loop(graph: Graph, node: Node) -> bool:
    cond, body = node.graphs["cond_subgraph_index"], node.graphs["body_subgraph_index"]
    if cond is body or {len(body.inputs), len(cond.inputs), len(body.outputs)} != {len(node.inputs)}:
        return False
    cond.ordered()
    body.ordered()
    gone: list[int] = []
    needed = _needed(node, graph, cond, body)
    for place in range(len(node.inputs)):
        operand, inner, result = node.input(place), body.inputs[place], node.outputs[place]
        is_same = body.outputs[place] is inner
        if is_same and operand.data is not None and operand.node is None:
            cond.replace(cond.inputs[place], operand)
            body.replace(inner, operand)
        elif place in needed and not (is_same and not inner.users and not _is_taken(cond, place)):
            continue
        if is_same and operand.shapes == result.shapes:
            graph.replace(result, operand)
        elif result.users or result in graph.outputs:
            continue
        gone.append(place)
    if len(gone) == len(node.inputs):
        gone.pop()  # a loop has something that goes round
    if not gone:
        return False
    kept = [place for place in range(len(node.inputs)) if place not in gone]
    _keep(graph, node, kept, kept)
    for called in (cond, body):
        called.inputs = [called.inputs[place] for place in kept]
    body.outputs = [body.outputs[place] for place in kept]
    body.ordered()
    return True


def _is_taken(graph: Graph, place: int) -> bool:
    value = graph.inputs[place]
    return bool(value.users) or value in graph.outputs


def _needed(node: Node, graph: Graph, cond: Graph, body: Graph) -> set[int]:
    """The operands of a loop on which its condition, an effect or a result that somebody needs depends."""
    needed = {
        place
        for place, result in enumerate(node.outputs)
        if result.users or result in graph.outputs or _is_taken(cond, place)
    }
    needed |= _sources(body, [value for effect in body.effects for value in effect.inputs if value is not None])
    while True:
        more = needed | _sources(body, [body.outputs[place] for place in needed])
        if more == needed:
            return needed
        needed = more


def _sources(graph: Graph, values: Iterable[Value]) -> set[int]:
    """The inputs of a graph on which values depend."""
    seen: set[Value] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value not in seen:
            seen.add(value)
            if value.node is not None:
                waiting += [one for one in value.node.inputs if one is not None]
    return {place for place, value in enumerate(graph.inputs) if value in seen}


def _smaller_branches(graph: Graph, node: Node) -> bool:
    branches = [node.graphs["then_subgraph_index"], node.graphs["else_subgraph_index"]]
    if branches[0] is branches[1] or any(len(branch.inputs) != len(node.inputs) - 1 for branch in branches):
        return False
    changed = False
    for place, result in enumerate(node.outputs):
        if not result.users and result not in graph.outputs:
            continue
        one, other = (branch.outputs[place] for branch in branches)
        if one in branches[0].inputs and other in branches[1].inputs:
            source = branches[0].inputs.index(one)
            operand = node.input(1 + source)
            if source == branches[1].inputs.index(other) and operand.shapes == result.shapes:
                graph.replace(result, operand)
                changed = True
    results = [place for place, value in enumerate(node.outputs) if value.users or value in graph.outputs]
    if not results and node.outputs:
        results = [0]  # it has an effect
    for branch in branches:
        branch.outputs = [branch.outputs[place] for place in results]
        branch.ordered()
    operands = []
    for place in range(len(branches[0].inputs)):
        operand = node.input(1 + place)
        if operand.data is not None and operand.node is None:
            for branch in branches:
                branch.replace(branch.inputs[place], operand)
        elif any(_is_taken(branch, place) for branch in branches):
            operands.append(place)
    changed |= len(results) < len(node.outputs) or len(operands) < len(branches[0].inputs)
    _keep(graph, node, [0, *[1 + place for place in operands]], results)
    for branch in branches:
        branch.inputs = [branch.inputs[place] for place in operands]
    return changed


def _keep(graph: Graph, node: Node, inputs: Sequence[int], outputs: Sequence[int]) -> None:
    """Leave a node with these of its inputs and outputs."""
    node.inputs = [node.inputs[place] for place in inputs]
    node.outputs = [node.outputs[place] for place in outputs]
    for index, value in enumerate(node.outputs):
        value.index = index
    graph.ordered()


@pattern("IF")
def taken(graph: Graph, node: Node) -> Sequence[Value] | None:
    """The branch that a constant condition takes, in place of the call, if order does not matter in it."""
    condition = node.constant(0)
    if condition is None:
        return None
    branch = node.graphs["then_subgraph_index" if condition.reshape(()) else "else_subgraph_index"]
    if _has_state(branch):
        return None
    values = inlined(graph, branch, [node.input(place) for place in range(1, len(node.inputs))], node.order[0])
    if any(new.shapes != old.shapes for new, old in zip(values, node.outputs, strict=True)):
        return None
    forget_effect(graph, node)
    return values


def _has_state(graph: Graph) -> bool:
    """Whether it matters when a graph runs, or how often."""
    for node in graph.ordered():
        op = find_op(node.op)
        state = node.is_custom or op is None or op.side_effects
        if any(map(_has_state, node.graphs.values())) if node.graphs else state:
            return True
    return bool(graph.effects)


def forget_effect(graph: Graph, node: Node) -> None:
    """A node without effects need not wait, nor others for it."""
    if node in graph.effects:
        for other in graph.effects:
            if other.after is node:
                other.after = node.after
        graph.effects.remove(node)


def inlined(graph: Graph, called: Graph, operands: Sequence[Value], position: int) -> list[Value]:
    """What a graph without state makes of operands, made in another one, at a position in its order."""
    values: dict[Value, Value] = dict(zip(called.inputs, operands, strict=True))

    def value_of(value: Value) -> Value:
        return values.get(value, value)

    for node in called.ordered():
        inputs = [None if value is None else value_of(value) for value in node.inputs]
        with graph.at(*(node.origins or graph.origins), position=position):
            made = _copied(graph, node, inputs)
        values.update(zip(node.outputs, made, strict=True))
    return [value_of(value) for value in called.outputs]


def _copied(graph: Graph, node: Node, inputs: Sequence[Value | None]) -> list[Value]:
    if node.graphs:
        graphs: Mapping[str, Graph] = node.graphs
        return graph.call(node.op, inputs, node.outputs, graphs, option_values(node))
    return again_many(graph, node, inputs)
