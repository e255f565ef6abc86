"""Nodes that call subgraphs into the kernel graph: what is called becomes a part of it, or regions of a kernel.

A region reads what lies outside where it lies. Results of a branch, and variables of a loop that change, have buffers
outside, which the regions write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from gossamer.affine import Affine, Element
from gossamer.codegen.graph import Kernel, KernelGraph, same, seen
from gossamer.delegates.delegate import CalleeInfo, NodeInfo
from gossamer.delegates.jit import batching, twins
from gossamer.delegates.jit.lowered import Lower, Lowered, Refused
from gossamer.delegates.jit.numbers import conditions_of, constant_of, numbers_of, truth_of
from gossamer.errors import PrepareError
from gossamer.views import Buffer, Shape, View


def call(node: NodeInfo, subgraph: int, operands: Sequence[View], lowered: Lowered, lower: Lower) -> list[View]:
    """Lower a subgraph for these inputs: its outputs. Raises `Refused`."""
    callee = _given(_callee(node, subgraph, operands), range(len(operands)), operands, lowered)
    return _lower(callee, subgraph, operands, lowered, lower)


def branch(
    node: NodeInfo,
    flags: Sequence[View],
    subgraphs: Sequence[int],
    operands: Sequence[View],
    lowered: Lowered,
    lower: Lower,
    origin: str,
) -> list[View]:
    """See `Lowering.branch`. Raises `Refused`."""
    if not flags:
        return call(node, subgraphs[0], operands, lowered, lower)
    first, second = _region(lowered), _region(lowered)
    some = call(node, subgraphs[0], operands, first, lower)
    other = branch(node, flags[1:], subgraphs[1:], operands, second, lower, origin)
    if not some:
        raise Refused("it has no results")
    shapes = zip(node.outputs, some, other, strict=True)
    if any(tensor.is_dynamic and a.shape != b.shape for tensor, a, b in shapes):
        raise Refused("its branches differ in shapes, and which one runs is only known when the model runs")
    return _either(lowered.graph, flags[0], [first.graph, second.graph], [some, other], origin)


def either(graph: KernelGraph, flag: View, regions: Sequence[KernelGraph], views: Sequence[View], origin: str) -> View:
    """See `Lowering.either`: what two regions compute, as one of them will."""
    (result,) = _either(graph, flag, regions, [[view] for view in views], origin)
    return result


def _either(
    graph: KernelGraph, flag: View, regions: Sequence[KernelGraph], views: Sequence[Sequence[View]], origin: str
) -> list[View]:
    results = [Buffer(view.shape, view.type).view() for view in views[0]]
    for region, own in zip(regions, views, strict=True):
        for view, result in zip(own, results, strict=True):
            region.copy(_reshaped(view, result.shape), result, origin)
    _add(graph, "branch", flag, regions, results, origin)
    return results


def loop(
    node: NodeInfo, condition: int, body: int, operands: Sequence[View], lowered: Lowered, lower: Lower, origin: str
) -> Sequence[View]:
    """See `Lowering.loop`. Raises `Refused`."""
    try:
        return _repeated(node, condition, body, operands, lowered, lower, origin)
    except _Unfit as reason:
        try:
            return _unrolled(node, condition, body, operands, lowered, lower)
        except Refused:
            raise Refused(str(reason)) from None


class _Unfit(Refused):
    """A body that is not the same for every turn."""


def _repeated(
    node: NodeInfo, condition: int, body: int, operands: Sequence[View], lowered: Lowered, lower: Lower, origin: str
) -> Sequence[View]:
    """A kernel with a body. What this hands on as it is stays what it is outside; the others are variables."""
    callee = _callee(node, body, operands)
    kept = [given.index == taken.index for given, taken in zip(callee.outputs, callee.inputs, strict=True)]
    if all(kept):
        raise Refused("nothing changes in the loop")
    staying = [at for at, stays in enumerate(kept) if stays]
    callee = _given(callee, staying, operands, lowered)
    values = [view if stays else _copy(view, lowered.graph, origin) for view, stays in zip(operands, kept, strict=True)]
    changing = [at for at, stays in enumerate(kept) if not stays]
    variables = [values[at] for at in changing]
    first = _firsts(operands, values, changing, lowered.graph)
    while True:
        turn, test = _region(lowered), _region(lowered)
        (flag,) = call(node, condition, values, test, lower)
        least = {element: number for element, (number, _) in first.items()}
        turn.ranges = lowered.ranges.within(least, conditions_of(flag, test.graph))
        try:
            following = _lower(callee, body, values, turn, lower)
        except Refused as reason:
            raise _Unfit(str(reason)) from None
        falling = {
            element for element, (_, at) in first.items() if not _rises(element, following[at], values[at], turn.graph)
        }
        if not falling & turn.ranges.asked:
            break
        first = {element: start for element, start in first.items() if element not in falling}
        callee = _given(_callee(node, body, operands), staying, operands, lowered)
    for at in changing:
        if following[at].size != values[at].size:
            raise _Unfit(f"variable {at} of shape {list(values[at].shape)} becomes one of {list(following[at].shape)}")
    batching.run(turn.graph, lowered.graph, variables, following, turn.ranges)
    becoming = [following[at] for at in changing]
    twin_of = twins.find([operands[at] for at in changing], variables, becoming, turn.graph)
    instead = {}
    for variable, number in zip(variables, twin_of, strict=True):
        if variable is not variables[number]:
            instead[id(variable.buffer)] = variables[number].buffer
            for region in (turn, test):
                region.graph.replace(variable, variables[number])
    single = [at for at, number in enumerate(twin_of) if number == at]
    variables, becoming = [variables[at] for at in single], [seen(becoming[at], instead) for at in single]
    values, flag = [seen(view, instead) for view in values], seen(flag, instead)
    add_loop(lowered.graph, flag, turn.graph, test.graph, variables, becoming, (), origin)
    return values


def add_loop(
    graph: KernelGraph,
    flag: View,
    turn: KernelGraph,
    condition: KernelGraph,
    variables: Sequence[View],
    following: Sequence[View],
    into: Sequence[View],
    origin: str,
) -> None:
    """A kernel whose turns let variables become what follows, and write ``into`` others, as long as the flag is set."""
    _update(variables, following, turn, origin)
    _add(graph, "loop", flag, [turn, condition], [*variables, *into], origin)


def _unrolled(
    node: NodeInfo, condition: int, body: int, operands: Sequence[View], lowered: Lowered, lower: Lower
) -> Sequence[View]:
    """One turn after the other, as many as the condition is known to hold for: each may have shapes of its own."""
    values = operands
    while True:
        (flag,) = call(node, condition, values, lowered, lower)
        holds = truth_of(flag, lowered.graph)
        if holds is None:
            raise Refused("shapes change from one turn to the next, and only the run tells how many turns there are")
        if not holds:
            return values
        values = [_known(view, lowered.graph) for view in call(node, body, values, lowered, lower)]


def _known(view: View, graph: KernelGraph) -> View:
    """A view, or the constant that is there."""
    array = constant_of(view, graph)
    return view if array is None else Buffer(view.shape, view.type, -1, array).view()


def _firsts(
    operands: Sequence[View], values: Sequence[View], changing: Sequence[int], graph: KernelGraph
) -> dict[Element, tuple[int, int]]:
    """The single integers among variables that begin with a number that is known: that, and which variable it is."""
    found = {}
    for at in changing:
        numbers = numbers_of(operands[at], graph) if operands[at].size == 1 else None
        if numbers and numbers[0].is_constant:
            found[values[at].buffer, values[at].offset] = numbers[0].constant, at
    return found


def _rises(element: Element, following: View, variable: View, graph: KernelGraph) -> bool:
    """Whether a turn adds to a variable a number that is not negative."""
    numbers = numbers_of(following, graph)
    if not numbers or following.type != variable.type:
        return False
    step = numbers[0] - Affine(0, {element: 1})
    return step.is_constant and step.constant >= 0


def _callee(node: NodeInfo, subgraph: int, operands: Sequence[View]) -> CalleeInfo:
    try:
        callee = node.callee(subgraph, [view.shape for view in operands])
    except PrepareError as error:
        raise Refused(str(error)) from None
    for tensor in (*callee.inputs, *callee.outputs):
        if tensor.is_variable:
            raise Refused(f'"{tensor.name}" of subgraph {subgraph} is a variable')
    return callee


def _given(callee: CalleeInfo, positions: Iterable[int], operands: Sequence[View], lowered: Lowered) -> CalleeInfo:
    """A callee that knows those of some operands that are small integers and constant: they may decide shapes."""
    found = {at: constant_of(operands[at], lowered.graph) for at in positions}
    values = {at: value for at, value in found.items() if value is not None}
    try:
        return callee.given(values) if values else callee
    except PrepareError as error:
        raise Refused(str(error)) from None


def _lower(callee: CalleeInfo, subgraph: int, operands: Sequence[View], lowered: Lowered, lower: Lower) -> list[View]:
    lowered.calls.take(subgraph, len(callee.nodes))
    inner = Lowered(
        lowered.graph, subgraph=subgraph, calls=lowered.calls, ranges=lowered.ranges, guesses=lowered.guesses
    )
    for tensor, view in zip(callee.inputs, operands, strict=True):
        if tensor.index in inner.values:
            raise Refused(f'"{tensor.name}" is more than one input of subgraph {subgraph}')
        inner.values[tensor.index] = view
    for node in callee.nodes:
        _lower_node(node, subgraph, inner, lower)
    return [inner.value(tensor, callee.constant(tensor)) for tensor in callee.outputs]


def _lower_node(node: NodeInfo, subgraph: int, lowered: Lowered, lower: Lower) -> None:
    try:
        lower(node, lowered)
    except (PrepareError, Refused) as reason:  # it may have let other nodes be prepared
        raise Refused(f"{node.op.name} (node {node.node_index} of subgraph {subgraph}): {reason}") from None


def _region(lowered: Lowered) -> Lowered:
    return Lowered(subgraph=lowered.subgraph, calls=lowered.calls, ranges=lowered.ranges, guesses=lowered.guesses)


def _update(variables: Sequence[View], following: Sequence[View], body: KernelGraph, origin: str) -> None:
    """Let variables become what follows. What is another variable now is taken before anything changes."""
    changing = {id(view.buffer) for view in variables}
    taken: list[Kernel] = []
    updates = []
    for variable, result in zip(variables, following, strict=True):
        value = _reshaped(result, variable.shape)
        if id(value.buffer) in changing and not same(value, variable):
            before = Buffer(value.shape, value.type).view()
            taken.append(Kernel("copy", [value], before, origin=(origin,)))
            value = before
        updates.append((value, variable))
    body.kernels[:0] = taken
    for value, variable in updates:
        if not same(value, variable):
            body.copy(value, variable, origin)


def _add(
    graph: KernelGraph, kind: str, flag: View, regions: Sequence[KernelGraph], results: Sequence[View], origin: str
) -> None:
    """A kernel with regions, once these are complete."""
    written = {id(view.buffer) for view in results}
    outside = {id(view.buffer): view.buffer for view in results}
    flag = View(flag.buffer, (), (), flag.offset)
    for region in regions:
        inside = {id(view.buffer) for part in region.parts() for kernel in part.kernels for view in kernel.results}
        read = [view.buffer for kernel in region.kernels for view in kernel.operands]
        region.outer = {
            id(buffer): buffer
            for buffer in (*read, *(view.buffer for view in results), flag.buffer)
            if not buffer.is_constant and (id(buffer) not in inside - written or buffer is flag.buffer)
        }
        region.remove_unread()
        outside |= region.outer
    outside.pop(id(flag.buffer), None)
    operands = [flag, *(buffer.view() for buffer in outside.values())]
    y, *also = results
    graph.kernels.append(
        Kernel(kind, operands, y, regions=tuple(regions), also=tuple(also), origin=(origin,) if origin else ())
    )


def _copy(view: View, graph: KernelGraph, origin: str) -> View:
    copied = Buffer(view.shape, view.type).view()
    graph.copy(view, copied, origin)
    return copied


def _reshaped(view: View, shape: Shape) -> View:
    """The same elements under a shape that differs in dimensions of size 1 at most. Raises `Refused` if there are
    others."""
    reshaped = view.reshape(shape) if view.size == prod(shape) else None
    if reshaped is None:
        raise Refused(f"a subgraph gives shape {list(view.shape)} for {list(shape)}")
    return reshaped
