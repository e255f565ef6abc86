"""A reduction of what a map makes of a single tensor computes the map itself: a sum of squares reads what is squared.

Then the map's tensor, which is as large as the operand, is neither written nor read.
"""

from __future__ import annotations

from gossamer.codegen.expression import IDENTITY, Expression, canonical, operand_count, substitute, type_of
from gossamer.codegen.graph import MAP, REDUCE, Kernel, KernelGraph, same
from gossamer.schema.enums import TensorType
from gossamer.views import View


def run(graph: KernelGraph) -> None:
    """Where nobody else reads what the map writes."""
    readers, writers = graph.readers(), graph.writers()
    given = {id(buffer) for buffer in graph.inputs.values()}
    # Variables, and what is written piece by piece: no reader may pass a writer.
    changed = {id(buffer) for buffer, found in writers.items() if len(found) > 1 or id(buffer) in given} | {
        *graph.outer
    }
    gone: set[int] = set()
    for kernel in graph.kernels:
        if kernel.kind != REDUCE or kernel.settings[2] != IDENTITY:
            continue
        x = kernel.operands[0]
        found = writers.get(x.buffer, [])
        if len(found) != 1 or len(readers[x.buffer]) != 1 or graph.is_boundary(x.buffer):
            continue
        source = _of_one(found[0]) if same(x, found[0].y) else None
        if source is None or id(source.buffer) in changed:
            continue
        reduction, axes, _ = kernel.settings
        kernel.operands[0] = source
        kernel.settings = (reduction, axes, _of_operand_0(found[0]))
        kernel.origin = (*found[0].origin, *(o for o in kernel.origin if o not in found[0].origin))
        gone.add(id(found[0]))
    graph.kernels = [kernel for kernel in graph.kernels if id(kernel) not in gone]


def _of_one(map: Kernel) -> View | None:
    """The one tensor of floats that a map reads, in its whole; ``None`` if it is not of that kind."""
    source = map.operands[0]
    floats = {map.y.type, *(view.type for view in map.operands)} == {TensorType.FLOAT32}
    if map.kind != MAP or not floats or not source.is_whole or not all(same(view, source) for view in map.operands):
        return None
    whole = type_of(map.epilogue, ["f32"] * len(map.operands)) == "f32"
    return source if whole and map.epilogue != IDENTITY else None


def _of_operand_0(map: Kernel) -> Expression:
    return canonical(substitute(map.epilogue, dict.fromkeys(range(operand_count(map.epilogue)), 0)))
