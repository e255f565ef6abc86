"""Reshapes, slices and moves that do less than they could, and shapes that need not be computed.

Only one size of a constant shape can be open (-1); of a slice, all those that reach to the end. Where the sizes that
are known in each world say so, the operand is a constant, and the operators that computed it vanish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gossamer.convert.blocks.shapes import reshape, sizes, transpose
from gossamer.convert.graph import Array, Graph, Node, Shape, Value
from gossamer.convert.patterns import pattern
from gossamer.convert.patterns.matching import again, is_elementwise, made_by, only_use, options
from gossamer.ops import find_op

RESHAPES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")

SELECTS = ("SLICE", "PAD", "PADV2", "MIRROR_PAD", "TILE", "BROADCAST_TO", *RESHAPES)
"""Operators whose output, if it is shaped like the first input, is that input."""

REDUCES = ("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL")


def is_reshapable(value: Value) -> bool:
    """Whether a constant can give the shape."""
    return value.dims.count(None) <= 1


def reshaped(graph: Graph, x: Value, like: Value) -> Value | None:
    """A value in the shape of another one, if a constant can give it."""
    return reshape(graph, x, sizes(like)) if is_reshapable(like) else None


def permutation(node: Node) -> list[int] | None:
    """The permutation of a TRANSPOSE, if it is constant."""
    perm = node.constant(1)
    return None if perm is None else [int(axis) % len(perm) for axis in perm]


def keeps_order(x: Value, perm: Sequence[int]) -> bool:
    """Whether a permutation of the axes of a value only moves sizes of one."""
    kept = [axis for axis in perm if x.size(axis) != 1]
    return kept == sorted(kept)


@pattern(*SELECTS)
def same(graph: Graph, node: Node) -> Value | None:
    """What changes nothing."""
    x = node.input(0)
    rest = [value for value in node.inputs[1:] if value is not None]
    alike = x.shapes == node.output.shapes and all(value.known is not None for value in rest)
    return x if alike and x.type == node.output.type and x.quantization == node.output.quantization else None


@pattern("CAST")
def cast_to_same(graph: Graph, node: Node) -> Value | None:
    return node.input(0) if node.input(0).type == node.output.type else None


@pattern(*RESHAPES)
def constant_shape(graph: Graph, node: Node) -> Value | None:
    """A reshape of whatever kind to a shape that a constant can give, past the reshapes before it."""
    x = node.input(0)
    while (inner := made_by(x, *RESHAPES)) is not None:
        x = inner.input(0)
    if not is_reshapable(node.output):
        return None
    is_plain = node.op == "RESHAPE" and (len(node.inputs) < 2 or node.constant(1) is not None)
    return None if is_plain and x is node.input(0) else reshaped(graph, x, node.output)


@pattern("TRANSPOSE")
def transposed(graph: Graph, node: Node) -> Value | None:
    """Transposes one after the other are one; those that only move ones are reshapes, or nothing."""
    perm, x = permutation(node), node.input(0)
    if perm is None:
        return None
    inner = made_by(x, "TRANSPOSE")
    first = None if inner is None else permutation(inner)
    if inner is not None and first is not None:
        return transpose(graph, inner.input(0), [first[axis] for axis in perm])
    if perm == sorted(perm):
        return x
    return reshaped(graph, x, node.output) if keeps_order(x, perm) else None


@pattern("TRANSPOSE")
def transposed_reshape(graph: Graph, node: Node) -> Value | None:
    """A transpose that moves ones which a reshape put there, and nothing else, is part of the reshape."""
    inner, perm = made_by(node.input(0), "RESHAPE"), permutation(node)
    if inner is None or perm is None or not keeps_order(node.input(0), perm):
        return None
    return reshaped(graph, inner.input(0), node.output)


@pattern("RESHAPE")
def ones_before_transpose(graph: Graph, node: Node) -> Value | None:
    """A reshape that only drops or adds ones, after a transpose of what is reshaped or sliced already: it is done
    before, where it is part of that."""
    moved = made_by(node.input(0), "TRANSPOSE")
    perm = None if moved is None else permutation(moved)
    if moved is None or perm is None or not only_use(graph, moved.output):
        return None
    x, y = moved.input(0), node.output
    before = made_by(x, "RESHAPE", "STRIDED_SLICE")
    walked = [axis for axis in perm if x.size(axis) != 1]
    places = [axis for axis in range(y.rank) if y.size(axis) != 1]
    if before is None or not only_use(graph, x) or [x.size(a) for a in walked] != [y.size(a) for a in places]:
        return None
    shape, order = sizes(y), list(range(y.rank))
    for place, axis in zip(places, sorted(walked), strict=True):
        shape[place] = x.size(axis)
        order[places[walked.index(axis)]] = place
    if sum(not isinstance(size, int) for size in shape) > 1:
        return None
    return transpose(graph, reshape(graph, x, shape), order)


@pattern("RESHAPE")
def dropped_by_slice(graph: Graph, node: Node) -> Value | None:
    """A slice of one index along axes that are dropped next drops them itself."""
    part = made_by(node.input(0), "STRIDED_SLICE")
    if part is None or not only_use(graph, part.output):
        return None
    begin, end, strides = (part.constant(position) for position in (1, 2, 3))
    if begin is None or end is None or strides is None:
        return None
    masks, x, y = options(part), part.input(0), node.output
    if masks.ellipsis_mask or masks.new_axis_mask or masks.offset or masks.shrink_axis_mask:
        return None
    drops, axis = 0, 0
    for number, size in enumerate(sizes(part.output)):
        if axis < y.rank and y.size(axis) == size:
            axis += 1
        elif size == 1 and number < len(begin) and x.size(number) != 1 and strides[number] == 1:
            drops |= 1 << number
            if masks.begin_mask >> number & 1:
                return None
        else:
            return None
    return again(graph, part, shrink_axis_mask=drops) if axis == y.rank and drops else None


@pattern("SHAPE")
def shape_of_same(graph: Graph, node: Node) -> Value | None:
    """The shape of what elementwise operators make of a value is that of the value."""
    x = node.input(0)
    while x.node is not None and is_elementwise(x.node.op):
        same = [value for value in x.node.inputs if value is not None and value.shapes == x.shapes]
        if not same or same[0].data is not None:
            break
        x = same[0]
    return again(graph, node, x) if x is not node.input(0) else None


@pattern("SLICE")
def slice_to_end(graph: Graph, node: Node) -> Value | None:
    """Sizes that are computed, and reach to the end, are -1."""
    x, begin, size = node.input(0), node.input(1), node.input(2)
    if begin.data is None or size.data is not None or size.known is None:
        return None
    new = [int(n) for n in size.known[0]]
    for axis, dim in enumerate(node.output.dims):
        if any(int(w[axis]) != new[axis] for w in size.known) or dim is None:
            new[axis] = -1
            if any(s[axis] != o[axis] + begin.data[axis] for s, o in zip(x.shapes, node.output.shapes, strict=True)):
                return None
    return again(graph, node, x, begin, np.array(new, size.dtype))


@pattern("STRIDED_SLICE")
def strided_slice_from_end(graph: Graph, node: Node) -> Value | None:
    """Begins and ends that are computed from the size of their dimension count from its end."""
    x, strides = node.input(0), node.constant(3)
    masks = options(node)
    plain = not (masks.ellipsis_mask or masks.new_axis_mask or masks.offset)
    if strides is None or not plain or not (strides > 0).all():
        return None
    if node.constant(1) is not None and node.constant(2) is not None:
        return None
    begins = [_from_end(x, node.input(1), axis) for axis in range(len(strides))]
    ends = [_from_end(x, node.input(2), axis) for axis in range(len(strides))]
    shrinks = masks.shrink_axis_mask
    end_mask = masks.end_mask
    new_ends = []
    for axis, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if begin is None:
            return None
        if shrinks >> axis & 1:
            end = begin + 1 or 1  # not looked at; 0 would be an empty range to some readers
        if end == 0 and node.constant(2) is None:
            end_mask |= 1 << axis
        elif end is None:
            return None
        new_ends.append(end)
    vectors = [np.array(numbers, np.int32) for numbers in (begins, new_ends)]
    return again(graph, node, x, *vectors, strides, end_mask=end_mask)


def _from_end(x: Value, vector: Value, axis: int) -> int | None:
    """An entry that is the same in all worlds, or as far from the end of its dimension in all: then negative, or 0
    for the end itself. ``None`` otherwise."""
    if vector.known is None or axis >= x.rank:
        return None
    entries = [int(known[axis]) for known in vector.known]
    if len(set(entries)) == 1:
        return entries[0] if entries[0] or vector.data is not None else None if x.dims[axis] is None else 0
    behind = {entry - shape[axis] for entry, shape in zip(entries, x.shapes, strict=True)}
    return behind.pop() if len(behind) == 1 and max(behind) <= 0 else None


@pattern("STRIDED_SLICE")
def slice_of_all(graph: Graph, node: Node) -> Value | None:
    """A slice that takes every element in order only reshapes."""
    x, strides = node.input(0), node.constant(3)
    if strides is None or not (strides > 0).all() or any(v is None or v.known is None for v in node.inputs[1:3]):
        return None
    if not all(_reaches_to_end(node, axis) for axis, size in enumerate(x.dims) if size is None):
        return None
    pairs = zip(x.shapes, node.output.shapes, strict=True)
    if any(math.prod(before) != math.prod(after) or not math.prod(before) for before, after in pairs):
        return None
    return reshaped(graph, x, node.output)


def _reaches_to_end(node: Node, axis: int) -> bool:
    """Whether a slice takes an open dimension to its end, however large it is: not if the end is a number."""
    masks, end = options(node), node.input(2)
    if masks.ellipsis_mask or masks.new_axis_mask or masks.offset or end.known is None:
        return False
    if axis >= end.shape[0] or masks.end_mask >> axis & 1:
        return True
    return len({int(known[axis]) for known in end.known}) > 1 or int(end.known[0][axis]) >= np.iinfo(np.int32).max


@pattern(*REDUCES)
def reduction_of_ones(graph: Graph, node: Node) -> Value | None:
    """A reduction of sizes of one only reshapes."""
    x, axes = node.input(0), node.constant(1)
    if axes is None or x.type != node.output.type or any(x.size(int(axis)) != 1 for axis in axes.reshape(-1)):
        return None
    return reshaped(graph, x, node.output) if x.quantization == node.output.quantization else None


@pattern("PACK")
def packed_parts(graph: Graph, node: Node) -> Value | None:
    """What was unpacked and is packed again in order; a pack of one value is a reshape."""
    if len(node.inputs) == 1:
        return reshaped(graph, node.input(0), node.output)
    parts = _all_parts(node, "UNPACK")
    if parts is None:
        return None
    x = parts.input(0)
    source, target = options(parts).axis % x.rank, options(node).axis % x.rank
    perm = [axis for axis in range(x.rank) if axis != source]
    perm.insert(target, source)
    return transpose(graph, x, perm)


@pattern("CONCATENATION")
def joined_parts(graph: Graph, node: Node) -> Value | None:
    """What was split and is joined again in order; a concatenation of one value is that value."""
    if len(node.inputs) == 1:
        return node.input(0)
    parts = _all_parts(node, "SPLIT", "SPLIT_V")
    if parts is None:
        return None
    x, axis = (parts.input(1), parts.constant(0)) if parts.op == "SPLIT" else (parts.input(0), parts.constant(2))
    if axis is None or (int(axis.reshape(())) - options(node).axis) % x.rank:
        return None
    return x


def _all_parts(node: Node, *ops: str) -> Node | None:
    """The node whose outputs are the inputs, all of them in order."""
    parts = made_by(node.inputs[0], *ops)
    return parts if parts is not None and parts.outputs == node.inputs else None


@pattern("CONCATENATION")
def nested_concatenation(graph: Graph, node: Node) -> Value | None:
    """Concatenations along one axis, of which nobody else needs the inner ones, are one."""
    axis = options(node).axis % max(node.output.rank, 1)
    inputs: list[Value] = []
    for position in range(len(node.inputs)):
        value = node.input(position)
        inner = made_by(value, "CONCATENATION")
        alike = inner is not None and options(inner).axis % max(value.rank, 1) == axis
        if inner is not None and alike and only_use(graph, value) and value.quantization == node.output.quantization:
            inputs += [one for one in inner.inputs if one is not None]
        else:
            inputs.append(value)
    return again(graph, node, *inputs) if len(inputs) > len(node.inputs) else None


@pattern("CONCATENATION")
def stacked(graph: Graph, node: Node) -> Value | None:
    """A concatenation of values that were given an axis to be joined along."""
    axis = options(node).axis % max(node.output.rank, 1)
    parts = []
    for position in range(len(node.inputs)):
        value = node.input(position)
        shaped = made_by(value, "RESHAPE")
        flat = tuple([(*shape[:axis], *shape[axis + 1 :]) for shape in value.shapes])
        if value.size(axis) != 1:
            return None
        if value.data is not None:
            parts.append(graph.constant(value.data.reshape(flat[0]), value.type, value.name))
        elif shaped is not None and shaped.input(0).shapes == flat:
            parts.append(shaped.input(0))
        else:
            return None
    return graph.add("PACK", *parts, values_count=len(parts), axis=axis)


@pattern("SPLIT", "SPLIT_V")
def split_in_one(graph: Graph, node: Node) -> Value | None:
    if len(node.outputs) > 1:
        return None
    return node.input(1 if node.op == "SPLIT" else 0)


@pattern(
    "ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW", "FLOOR_DIV", "FLOOR_MOD",
    "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "SELECT_V2",
)  # fmt: skip
def broadcast_operand(graph: Graph, node: Node) -> Value | None:
    """Operators that broadcast do not need it done for them, nor ones put in front."""
    inputs = [_before_broadcast(value) for value in node.inputs if value is not None]
    if inputs == node.inputs:
        return None
    shapes = [np.broadcast_shapes(*[value.shapes[world] for value in inputs]) for world in range(len(inputs[0].shapes))]
    return again(graph, node, *inputs) if tuple(shapes) == node.output.shapes else None


def _without_leading_ones(shape: Shape) -> Shape:
    while shape and shape[0] == 1:
        shape = shape[1:]
    return shape


def _before_broadcast(value: Value) -> Value:
    node = made_by(value, "BROADCAST_TO", "TILE", "FILL", "RESHAPE")
    if node is None:
        return value
    if node.op == "FILL":
        return node.input(1)
    x = node.input(0)
    if node.op == "RESHAPE":
        short = [list(map(_without_leading_ones, one.shapes)) for one in (x, value)]
        return x if short[0] == short[1] else value
    pairs = zip(x.shapes, value.shapes, strict=True)
    spread = all(a in (1, b) for before, after in pairs for a, b in zip(before[::-1], after[::-1], strict=False))
    return x if spread and x.rank <= value.rank else value


@pattern()
def common(graph: Graph, node: Node) -> Sequence[Value] | None:
    """What is computed already."""
    if node.graphs or node.is_custom or not node.inputs:
        return None
    op = find_op(node.op)
    computed = [value for value in node.inputs if value is not None and (value.node or value.data is None)]
    if op is None or op.side_effects or not computed:
        return None
    for other in computed[0].users:
        if (
            other is not node
            and other.op == node.op
            and (other.order, id(other)) < (node.order, id(node))
            and not other.is_custom
            and other.options == node.options
            and len(other.outputs) == len(node.outputs)
            and len(other.inputs) == len(node.inputs)
            and all(_same_value(one, another) for one, another in zip(other.inputs, node.inputs, strict=True))
            and all(_same_kind(one, another) for one, another in zip(other.outputs, node.outputs, strict=True))
            and not any(value is not None and value.is_variable for value in node.inputs)
        ):
            return other.outputs
    return None


def _same_kind(one: Value, other: Value) -> bool:
    return (one.type, one.shapes) == (other.type, other.shapes) and one.quantization == other.quantization


def _same_value(one: Value | None, other: Value | None) -> bool:
    if one is other:
        return True
    if one is None or other is None or one.data is None or other.data is None or not _same_kind(one, other):
        return False
    return _same_array(one.data, other.data)


def _same_array(one: Array, other: Array) -> bool:
    if one is other:
        return True
    if one.dtype.hasobject:
        return bool(one.tolist() == other.tolist())
    same_memory = one.ctypes.data == other.ctypes.data and one.strides == other.strides and one.shape == other.shape
    return same_memory or (one.nbytes <= 1 << 16 and one.tobytes() == other.tobytes())
