"""How the axes of what operators take and give correspond, and how to run them with axes in another order.

An order of a value is a permutation: axis ``n`` of what is stored is axis ``order[n]`` of the value. `carrier` gives
for a node a `Carrier`, if there are several orders it can run in: ``spread`` tells, from the order of one of its
values, those of the others, and ``build`` runs it on stored ones. Sizes of one may be anywhere: moving them is a
reshape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer.convert.blocks.shapes import reshape, transpose
from gossamer.convert.graph import Array, Graph, Node, Value
from gossamer.convert.patterns.matching import again_many, broadcasts, is_elementwise, options
from gossamer.convert.patterns.shapes import REDUCES, RESHAPES, permutation

Order = tuple[int, ...]
Orders = Mapping[Value, Order]
Build = Callable[[Graph, Orders, Mapping[Value, Value]], Sequence[Value]]
"""Makes the outputs in their orders, of inputs that are stored in theirs."""

ALIKE = ("ADD_N", "QUANTIZE", "DEQUANTIZE", "FAKE_QUANT")
"""Elementwise operators that no kernel of random operands tells of."""

LAST = ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "FULLY_CONNECTED")
"""Operators along the last axis, which must stay the last."""


class Carrier:
    """A node that runs in several orders. ``names``: for each of its values, names of its axes; values with a common
    name have a common axis."""

    def __init__(
        self,
        node: Node,
        names: Mapping[Value, Sequence[Any]],
        build: Build,
        allowed: Callable[[Orders], bool] | None = None,
    ) -> None:
        self.node = node
        self.names = names
        self.build = build
        self.allowed = allowed

    def spread(self, value: Value, order: Order) -> dict[Value, Order] | None:
        """The orders of all values if one has this one; ``None`` if it cannot run like this. Axes that this one does
        not have stay behind those that they are behind."""
        names = [self.names[value][axis] for axis in order]
        found = {other: order if other is value else _order(axes, names) for other, axes in self.names.items()}
        return None if self.allowed is not None and not self.allowed(found) else found


def _order(axes: Sequence[Any], names: Sequence[Any]) -> Order:
    """The axes in the order of these names; others come behind the axis that they are behind."""
    found = [axes.index(name) for name in names if name in axes]
    for axis, name in enumerate(axes):
        if name not in names:
            found.insert(found.index(axis - 1) + 1 if axis else 0, axis)
    return tuple(found)


def identity(value: Value) -> Order:
    """The order of a value as it is."""
    return tuple(range(value.rank))


def is_free(value: Value, order: Order, other: Order) -> bool:
    """Whether orders differ in where sizes of one are, if at all."""
    kept = [axis for axis in order if value.size(axis) != 1]
    return kept == [axis for axis in other if value.size(axis) != 1]


def carrier(graph: Graph, node: Node) -> Carrier | None:
    """How a node carries axes; ``None`` if it needs them as they are."""
    if node.is_custom or node.graphs or any(value.quantization.scales.size > 1 for value in node.outputs):
        return None
    if node.op in ALIKE or is_elementwise(node.op):
        return _elementwise(node)
    make = _CARRIERS.get(node.op)
    return None if make is None else make(graph, node)


def computed(node: Node) -> list[Value]:
    """The inputs that are no constants, and the outputs; each once."""
    inputs = [value for value in node.inputs if value is not None and value.data is None]
    return list(dict.fromkeys([*inputs, *node.outputs]))


def _elementwise(node: Node) -> Carrier | None:
    rank = node.output.rank
    spreads = broadcasts(node.op)
    for value in node.inputs:
        if value is None or (value.data is None and value.rank != rank):
            return None
        if not spreads and value.shapes != node.output.shapes and not (value.data is not None and value.data.size == 1):
            return None

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        order = orders[node.output]
        inputs = [
            _constant(graph, node, value, order) if value.data is not None else stored[value]
            for value in map(node.input, range(len(node.inputs)))
        ]
        return again_many(graph, node, inputs, shapes=_shapes(node, orders))

    return Carrier(node, {value: range(rank) for value in computed(node)}, build)


def _constant(graph: Graph, node: Node, value: Value, order: Order) -> Value:
    """A constant operand that broadcasts, for others in this order: a view of it."""
    data = value.data
    if data is None or data.size == 1 or value.quantization.scales.size > 1:
        return value
    wide = data.reshape((1,) * (len(order) - data.ndim) + data.shape).transpose(order)
    least = wide.ndim if not broadcasts(node.op) else wide.ndim - 1 if node.op == "PRELU" else 1
    while wide.ndim > least and wide.shape[0] == 1:
        wide = wide[0]
    return graph.constant(wide, value.type, value.name)


def _shapes(node: Node, orders: Orders) -> list[list[Any]]:
    return [[value.size(axis) for axis in orders.get(value, identity(value))] for value in node.outputs]


def _concatenation(graph: Graph, node: Node) -> Carrier | None:
    axis = options(node).axis % max(node.output.rank, 1)

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        order = orders[node.output]
        inputs = [
            stored[value] if value.data is None else graph.constant(value.data.transpose(order), value.type, value.name)
            for value in map(node.input, range(len(node.inputs)))
        ]
        return again_many(graph, node, inputs, axis=order.index(axis))

    return Carrier(node, {value: range(value.rank) for value in computed(node)}, build)


def _reduction(graph: Graph, node: Node) -> Carrier | None:
    x, axes = node.input(0), node.constant(1)
    if axes is None or x.data is not None:
        return None
    reduced = {int(axis) % x.rank for axis in axes.reshape(-1)}
    kept = options(node).keep_dims

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        new = np.array(sorted(orders[x].index(axis) for axis in reduced), np.int32)
        return again_many(graph, node, [stored[x], new])

    names = list(range(x.rank)) if kept else [axis for axis in range(x.rank) if axis not in reduced]
    return _dropping(node, x, names, build)


def _dropping(node: Node, x: Value, names: Sequence[int], build: Build) -> Carrier:
    """An operator whose output has these axes of the input. One of two or less keeps its order: it is seldom a
    picture, and joins pictures that have nothing to do with each other."""
    if len(names) > 2:
        return Carrier(node, {x: range(x.rank), node.output: names}, build)
    return Carrier(
        node,
        {x: range(x.rank)},
        build,
        lambda orders: x not in orders or [axis for axis in orders[x] if axis in names] == sorted(names),
    )


def _arg(graph: Graph, node: Node) -> Carrier | None:
    x, axis = node.input(0), node.constant(1)
    if axis is None or x.data is not None:
        return None
    at = int(axis.reshape(())) % x.rank

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        return again_many(graph, node, [stored[x], np.full_like(axis, orders[x].index(at))])

    return _dropping(node, x, [n for n in range(x.rank) if n != at], build)


def _by_axis(*positions: int) -> Callable[[Graph, Node], Carrier | None]:
    """Operators with constant vectors or matrices that have a row for each axis of the first input."""

    def make(graph: Graph, node: Node) -> Carrier | None:
        x = node.input(0)
        rows = {position: node.constant(position) for position in positions}
        if x.data is not None or x.rank != node.output.rank or any(row is None for row in rows.values()):
            return None

        def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
            inputs: list[Any] = [stored[x], *node.inputs[1:]]
            for position, row in rows.items():
                if row is not None:
                    inputs[position] = row[list(orders[x])]
            return again_many(graph, node, inputs)

        return Carrier(node, {x: range(x.rank), node.output: range(x.rank)}, build)

    return make


def _split(graph: Graph, node: Node) -> Carrier | None:
    at, place = (0, 1) if node.op == "SPLIT" else (2, 0)
    x, axis = node.input(place), node.constant(at)
    if axis is None or x.data is not None:
        return None
    along = int(axis.reshape(())) % x.rank

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        inputs: list[Any] = list(node.inputs)
        inputs[place], inputs[at] = stored[x], np.full_like(axis, orders[x].index(along))
        return again_many(graph, node, inputs)

    return Carrier(node, {value: range(x.rank) for value in computed(node)}, build)


def _gather(graph: Graph, node: Node) -> Carrier | None:
    """GATHER of a vector of places along an axis, which stays where it is."""
    x, places = node.input(0), node.input(1)
    if x.data is not None or places.rank != 1 or options(node).batch_dims:
        return None
    along = options(node).axis % x.rank

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        return again_many(graph, node, [stored[x], places], axis=orders[x].index(along))

    return Carrier(node, {x: range(x.rank), node.output: range(x.rank)}, build)


def _reverse(graph: Graph, node: Node) -> Carrier | None:
    x, axes = node.input(0), node.constant(1)
    if axes is None or x.data is not None:
        return None

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        new = [orders[x].index(int(axis) % x.rank) for axis in axes.reshape(-1)]
        return again_many(graph, node, [stored[x], np.array(new, axes.dtype).reshape(axes.shape)])

    return Carrier(node, {x: range(x.rank), node.output: range(x.rank)}, build)


def _pack(graph: Graph, node: Node) -> Carrier | None:
    """PACK, of which the outer value has one axis more; UNPACK."""
    outer = node.output if node.op == "PACK" else node.input(0)
    along = options(node).axis % outer.rank
    inner = [axis for axis in range(outer.rank) if axis != along]
    inners = [value for value in computed(node) if value is not outer]
    if outer.rank < 3 or any(value is not None and value.data is not None for value in node.inputs):
        return None

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        inputs = [stored[value] for value in node.inputs if value is not None]
        return again_many(graph, node, inputs, axis=orders[outer].index(along))

    names: dict[Value, Sequence[int]] = dict.fromkeys(inners, inner)
    return Carrier(node, {outer: range(outer.rank), **names}, build)


def _strided_slice(graph: Graph, node: Node) -> Carrier | None:
    x = node.input(0)
    vectors = [node.constant(position) for position in (1, 2, 3)]
    masks = options(node)
    if x.data is not None or masks.ellipsis_mask or masks.new_axis_mask or any(v is None for v in vectors):
        return None
    begin, end, strides = (_entries(vector, fill, x.rank) for vector, fill in zip(vectors, (0, 0, 1), strict=True))
    rest = ((1 << x.rank) - 1) & ~((1 << len(vectors[0])) - 1)  # type: ignore[arg-type]
    bits = {"begin_mask": masks.begin_mask | rest, "end_mask": masks.end_mask | rest}
    bits["shrink_axis_mask"] = masks.shrink_axis_mask

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        order = list(orders[x])
        moved = {name: sum((mask >> axis & 1) << n for n, axis in enumerate(order)) for name, mask in bits.items()}
        return again_many(graph, node, [stored[x], begin[order], end[order], strides[order]], **moved)

    return _dropping(node, x, [axis for axis in range(x.rank) if not masks.shrink_axis_mask >> axis & 1], build)


def _entries(vector: Array | None, fill: int, rank: int) -> Array:
    found = np.full(rank, fill, np.int32)
    if vector is not None:
        found[: len(vector)] = vector
    return found


def _last(graph: Graph, node: Node) -> Carrier | None:
    x, y = node.input(0), node.output
    if x.data is not None or x.rank != y.rank:
        return None

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        return again_many(graph, node, [stored[x], *node.inputs[1:]])

    def allowed(orders: Orders) -> bool:
        return all(order[-1] == len(order) - 1 for order in orders.values())

    return Carrier(node, {x: range(x.rank), y: range(x.rank)}, build, allowed)


def _transpose(graph: Graph, node: Node) -> Carrier | None:
    x, perm = node.input(0), permutation(node)
    if perm is None or x.data is not None:
        return None

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        names = list(orders[x])
        return [transpose(graph, stored[x], [names.index(perm[axis]) for axis in orders[node.output]])]

    return Carrier(node, {x: range(x.rank), node.output: perm}, build)


def _shape(graph: Graph, node: Node) -> Carrier | None:
    x = node.input(0)

    def build(graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        sizes = again_many(graph, node, [stored[x]])[0]
        return [graph.add("GATHER", sizes, np.argsort(orders[x]).astype(np.int32), axis=0)]

    return Carrier(node, {x: range(x.rank)}, build)


class _Groups(Carrier):
    """A reshape: runs of axes of one value that make up runs of axes of the other."""

    def __init__(self, node: Node, groups: Sequence[tuple[list[int], list[int]]], weights: Sequence[Node]) -> None:
        self.node = node
        self.x, self.y = node.input(0), node.output
        self.groups = groups
        self.weights = weights
        self.names = {self.x: (), self.y: ()}

    def spread(self, value: Value, order: Order) -> dict[Value, Order] | None:
        source, target = (0, 1) if value is self.x else (1, 0)
        if self.weights:
            return self._flat(value, order)
        group_of = {axis: n for n, group in enumerate(self.groups) for axis in group[source]}
        walked: list[int] = []
        places = [axis for axis in order if axis in group_of]
        while places:
            number = group_of[places[0]]
            group = self.groups[number][source]
            if places[: len(group)] != group:
                return None
            walked.append(number)
            places = places[len(group) :]
        names = [axis for number in walked for axis in self.groups[number][target]]
        other = self.y if value is self.x else self.x
        return {value: order, other: _order(range(other.rank), names)}

    def _flat(self, value: Value, order: Order) -> dict[Value, Order] | None:
        """Rows that weights are multiplied with: any order will do, if the rows stay the rows."""
        if value is self.y:
            return {self.y: order} if order == identity(value) else None
        rows = self.groups[0][0]
        kept = [axis for axis in order if value.size(axis) != 1]
        return {self.x: order, self.y: identity(self.y)} if kept[: len(rows)] == rows else None

    def build(self, graph: Graph, orders: Orders, stored: Mapping[Value, Value]) -> Sequence[Value]:
        y = reshape(graph, stored[self.x], [self.y.size(axis) for axis in orders[self.y]])
        within = [axis for axis in orders[self.x] if axis in self.groups[-1][0]]
        for user in self.weights if within != sorted(within) else ():
            weights = user.input(1)
            data = user.constant(1)
            if data is not None:
                shape = [self.x.shapes[0][axis] for axis in sorted(within)]
                moved = data.reshape(-1, *shape).transpose(0, *[1 + sorted(within).index(axis) for axis in within])
                graph.set_input(user, 1, graph.constant(moved.reshape(data.shape), weights.type, weights.name))
        return [y]


def _reshape(graph: Graph, node: Node) -> Carrier | None:
    x, y = node.input(0), node.output
    groups = _grouped(x, y)
    if groups is None or x.data is not None:
        return None
    users = y.users
    flat = (
        y.rank == 2
        and y not in graph.outputs
        and len(groups) == 2
        and len(groups[1][1]) == 1
        and len(groups[1][0]) > 1
        and all(x.dims[axis] is not None for axis in groups[1][0])
        and all(
            user.op == "FULLY_CONNECTED"
            and user.inputs[0] is y
            and user.constant(1) is not None
            and user.input(1).size(1) == y.size(1)
            and user.input(1).quantization.scales.size <= 1
            for user in users
        )
    )
    return _Groups(node, groups, users if flat else ())


def _grouped(x: Value, y: Value) -> list[tuple[list[int], list[int]]] | None:
    """The least runs of axes of both, ones left out, that have as many elements in all worlds."""
    groups: list[tuple[list[int], list[int]]] = []
    before = [axis for axis in range(x.rank) if x.size(axis) != 1]
    after = [axis for axis in range(y.rank) if y.size(axis) != 1]

    def counts(value: Value, axes: Sequence[int]) -> list[int]:
        return [int(np.prod([shape[axis] for axis in axes], dtype=np.int64)) for shape in value.shapes]

    while before or after:
        if not before or not after:
            return None
        group = ([before.pop(0)], [after.pop(0)])
        while (many := counts(x, group[0])) != (few := counts(y, group[1])):
            side, rest = (1, after) if many[0] > few[0] else (0, before)
            if not rest:
                return None
            group[side].append(rest.pop(0))
        groups.append(group)
    return groups


_CARRIERS: dict[str, Callable[[Graph, Node], Carrier | None]] = {
    **dict.fromkeys(REDUCES, _reduction),
    **dict.fromkeys(LAST, _last),
    **dict.fromkeys(RESHAPES, _reshape),
    **dict.fromkeys(("SPLIT", "SPLIT_V"), _split),
    **dict.fromkeys(("PACK", "UNPACK"), _pack),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _arg),
    **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD", "TILE", "BROADCAST_TO"), _by_axis(1)),
    "SLICE": _by_axis(1, 2),
    "STRIDED_SLICE": _strided_slice,
    "CONCATENATION": _concatenation,
    "GATHER": _gather,
    "REVERSE_V2": _reverse,
    "TRANSPOSE": _transpose,
    "SHAPE": _shape,
}
