"""What TFLite's calibrator takes for the value of an operand that its operator has written over.

It looks at operands when the operator is done. Where the planner lets an operator write its output over one of them
(IdentifyInPlaceTensors in arena_planner.cc), both are seen there: the operand before, as what another operator gave,
and the output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gossamer.dtypes import numpy_dtype
from gossamer.model.model import Model
from gossamer.ops import find_op
from gossamer.planner.lifetimes import GraphInfo, lifetimes
from gossamer.planner.planner import AllocationType
from gossamer.runtime.arenas import call_depths

Range = tuple[float, float]


class _Tensor(NamedTuple):
    bytes: int
    allocation_type: int


class _Node(NamedTuple):
    inputs: Sequence[int]
    outputs: Sequence[int]
    in_place: int
    temporaries: Sequence[int] = ()


def with_outputs(model: Model, ranges: Mapping[tuple[int, int], Range]) -> dict[tuple[int, int], Range]:
    """The ranges, by the numbers of subgraph and tensor, with those of outputs where operands are written over: in the
    subgraphs that nobody calls, others it does not get through."""
    found = dict(ranges)
    for number in [number for number, depth in enumerate(call_depths(model)) if depth == 0]:
        for operand, output in _overwritten(model, number):
            if (number, operand) in found and (number, output) in found:
                (low, high), (least, most) = found[number, operand], found[number, output]
                found[number, operand] = min(low, least), max(high, most)
    return found


def _overwritten(model: Model, number: int) -> Iterator[tuple[int, int]]:
    """Operands and the outputs that take their places, in the order of execution."""
    subgraph = model.subgraphs[number]
    constant = [(data := model.tensor_data(tensor)) is not None and data.size > 0 for tensor in subgraph.tensors]
    tensors = [
        _Tensor(
            math.prod(tensor.shape) * numpy_dtype(tensor.type).itemsize,
            AllocationType.MMAP_RO if stored else AllocationType.ARENA_RW,
        )
        for tensor, stored in zip(subgraph.tensors, constant, strict=True)
    ]
    nodes = [
        _Node(operator.inputs, operator.outputs, 0 if op is None else int(op.in_place))
        for operator in subgraph.operators
        for op in (find_op(model.operator_name(operator)),)
    ]
    owners = lifetimes(GraphInfo(tensors, nodes, subgraph.inputs, subgraph.outputs)).owners
    for node in nodes:
        owner = owners.get(node.outputs[0]) if node.outputs else None
        for operand in node.inputs:
            if owner is not None and operand >= 0 and owners.get(operand, operand) == owner:
                yield operand, node.outputs[0]
