"""Where axes are moved: the least that is needed.

Pictures come with channels first from most sources, and TFLite's convolutions want them last: each lowering puts a
TRANSPOSE before and after. Most operators between do not mind (`axes`). So there are two *layouts* of a region of the
graph, in which operators that do mind, inputs and outputs find their axes as they want them, and each operator may run
in either. What is paid for a choice is what has to be transposed where two choices meet: the cheapest choice is a least
cut (`cut`). It is made if it is cheaper than what is there.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from gossamer.convert.blocks.shapes import transpose
from gossamer.convert.graph import Graph, Node, Value
from gossamer.convert.patterns import whole
from gossamer.convert.patterns.activations import takes_activation
from gossamer.convert.patterns.axes import Carrier, Order, carrier, identity, is_free
from gossamer.convert.patterns.biases import LINEAR
from gossamer.convert.patterns.cut import ENDLESS, Network
from gossamer.convert.patterns.shapes import permutation

MOST_WORK = 8
"""How often a value is looked at on average to find layouts."""

MOST_SWEEPS = 3
"""How often each layout is tried."""

PASSES = 1 << 10
"""What it costs to move an element, where moving a one costs 1; half of it is the cost of another operator, and a
part of it that of standing between an operator and what it could take in, an activation or a bias."""


Orders = Mapping[Node, Mapping[Value, Order]]
"""Of nodes, the orders in which they take and give their values."""


def price(value: Value, order: Order, other: Order) -> int:
    """What it costs to bring a value from one order into another."""
    if order == other:
        return 0
    if is_free(value, order, other):
        return 1
    node = value.node
    while node is not None and node.op == "TRANSPOSE":
        node = node.input(0).node
    taken = 0 if node is None else 4 if node.op in LINEAR else 1 if takes_activation(node) else 0
    return PASSES * math.prod(value.shapes[0]) + PASSES // 2 + PASSES // 16 * taken


@whole
def least_moved(graph: Graph) -> bool:
    """Choose layouts, region by region."""
    nodes = graph.ordered()
    if not any(node.op == "TRANSPOSE" for node in nodes):
        return False
    changed = False
    for region in _regions(_carriers(graph, nodes)):
        if any(node.op == "TRANSPOSE" for node in region):  # what another one gave it may be another value now
            changed |= _Region(graph, _carriers(graph, region)).improve()
    return changed


def _carriers(graph: Graph, nodes: Iterable[Node]) -> dict[Node, Carrier]:
    return {node: found for node in nodes for found in [carrier(graph, node)] if found is not None}


def _regions(carriers: Mapping[Node, Carrier]) -> Iterator[list[Node]]:
    """Nodes that have values with orders in common, in the order of execution."""
    of: dict[Value, list[Node]] = {}
    for node, found in carriers.items():
        for value in found.names:
            of.setdefault(value, []).append(node)
    seen: set[Node] = set()
    place = {node: n for n, node in enumerate(carriers)}
    for first in carriers:
        if first in seen:
            continue
        seen.add(first)
        region, waiting = [first], [first]
        while waiting:
            node = waiting.pop()
            for value in carriers[node].names:
                for other in of.pop(value, ()):
                    if other not in seen:
                        seen.add(other)
                        region.append(other)
                        waiting.append(other)
        yield sorted(region, key=place.__getitem__)


class _Region:
    def __init__(self, graph: Graph, carriers: Mapping[Node, Carrier]) -> None:
        self.graph = graph
        self.nodes = list(carriers)
        self.carriers = carriers
        self.of: dict[Value, list[Node]] = {}
        for node in carriers:
            for value in self.carriers[node].names:
                self.of.setdefault(value, []).append(node)
        self.outputs = set(graph.outputs)

    def improve(self) -> bool:
        """Let parts of the region run in other layouts, as long as that is cheaper."""
        orders: dict[Node, Mapping[Value, Order]] = {
            node: {value: identity(value) for value in self.carriers[node].names} for node in self.nodes
        }
        cost = first = self._paid(orders)
        layouts = self._layouts()
        for _ in range(MOST_SWEEPS):
            before = cost
            for layout in layouts:
                tried = {**orders, **self._expansion(orders, layout)}
                paid = self._paid(tried)
                if paid < cost:
                    cost, orders = paid, tried
            if cost == before:
                break
        if cost == first:
            return False
        self._rebuild(orders)
        return True

    # -- layouts

    def _layouts(self) -> list[Orders]:
        """Layouts in which values are as they are wanted, large ones first."""
        weights = {value: self._weight(value) for value in self.of}
        left = dict.fromkeys(sorted((value for value in weights if weights[value]), key=weights.__getitem__)[::-1])
        found: list[Orders] = []
        work = MOST_WORK * (len(self.nodes) + MOST_WORK)
        while left and work > 0:
            orders, nodes = self._from(next(iter(left)))
            for value in [value for value in orders if orders[value] == identity(value)]:
                left.pop(value, None)
            work -= len(orders)
            found.append(nodes)
        return sorted(found, key=len, reverse=True)

    def _weight(self, value: Value) -> int:
        """How often a value is wanted as it is, times its elements."""
        times = sum(not self._carries(user, value) for user in set(value.users))
        times += (value in self.outputs) + (not self._carries(value.node, value))
        return times * math.prod(value.shapes[0])

    def _carries(self, node: Node | None, value: Value) -> bool:
        """Whether a node may have a value in another order."""
        return node is not None and node in self.carriers and value in self.carriers[node].names

    def _from(self, value: Value) -> tuple[dict[Value, Order], Orders]:
        """The orders of values, and the nodes that can run so, if one value is as it is."""
        orders: dict[Value, Order] = {value: identity(value)}
        nodes: dict[Node, dict[Value, Order]] = {}
        refused: set[Node] = set()
        waiting = deque([value])
        while waiting:
            value = waiting.popleft()
            for node in self.of[value]:
                if node in nodes or node in refused:
                    continue
                spread = self.carriers[node].spread(value, orders[value])
                if spread is None or any(
                    not is_free(other, order, orders.get(other, order)) for other, order in spread.items()
                ):
                    refused.add(node)
                    continue
                if len(spread) < len(self.carriers[node].names):
                    continue
                nodes[node] = spread
                for other, order in spread.items():
                    if other not in orders:
                        orders[other] = order
                        waiting.append(other)
        return orders, nodes

    # -- choices

    def _expansion(self, orders: Orders, layout: Orders) -> Orders:
        """The nodes of a layout that had better run in it, if the others run as they do."""
        network = Network()
        place = {node: network.node() for node in layout}
        for node in layout:
            network.edge(network.SOURCE, place[node], self._intrinsic(node, orders[node]))
        for value in dict.fromkeys(value for node in layout for value in self.carriers[node].names):
            self._charge(network, place, value, orders, layout)
        goes = network.cut()[1]
        return {node: layout[node] for node in layout if goes[place[node]]}

    def _charge(
        self, network: Network, place: Mapping[Node, int], value: Value, orders: Orders, layout: Orders
    ) -> None:
        """What is paid for a value, depending on which of its maker and its users go into a layout (with the source)
        and which stay."""
        plain = identity(value)
        made, at = plain, network.SINK
        new = next(layout[node][value] for node in self.of[value] if node in layout)
        if value.node is not None and self._carries(value.node, value):
            made, at = orders[value.node][value], place.get(value.node, network.SINK)
        stay: dict[Order, list[int]] = {}
        go: list[int] = []
        for user in dict.fromkeys(value.users):
            if self._carries(user, value):
                stay.setdefault(orders[user][value], []).append(place.get(user, network.SINK))
                go += [place[user]] if user in place else []
            else:
                stay.setdefault(plain, []).append(network.SINK)
        if value in self.outputs:
            stay.setdefault(plain, []).append(network.SINK)
        if stay.pop(new, None) is not None:  # then it is paid in any case if the maker stays
            network.edge(network.SOURCE, at, price(value, made, new))
        elif go:  # paid if the maker stays and one of these goes
            either = network.node()
            network.edge(either, at, price(value, made, new))
            for goer in go:
                network.edge(goer, either, ENDLESS)
        for order, stayers in stay.items():
            now, then = price(value, made, order), price(value, new, order)
            either = network.node()
            network.edge(at, either, max(then - now, 0))
            network.edge(network.SOURCE, either, min(now, then))
            for stayer in stayers:
                network.edge(either, stayer, ENDLESS)

    def _intrinsic(self, node: Node, orders: Mapping[Value, Order]) -> int:
        """What a node moves itself."""
        perm = permutation(node) if node.op == "TRANSPOSE" else None
        if perm is None:
            return 0
        x, taken = node.input(0), orders[node.input(0)]
        return price(x, taken, tuple([perm[axis] for axis in orders[node.output]]))

    def _paid(self, orders: Orders) -> int:
        """What a choice costs in truth."""
        cost = sum(self._intrinsic(node, orders[node]) for node in self.nodes)
        for value in self.of:
            plain = identity(value)
            carried = value.node is not None and self._carries(value.node, value)
            made = orders[value.node][value] if carried and value.node is not None else plain
            needs = {plain} if value in self.outputs else set()
            for user in value.users:
                needs.add(orders[user][value] if self._carries(user, value) else plain)
            cost += sum(price(value, made, order) for order in needs)
        return cost

    # -- the new graph

    def _moves(self, node: Node, orders: Mapping[Value, Order]) -> bool:
        """Whether a node has to be another one."""
        return any(order != identity(value) for value, order in orders.items())

    def _rebuild(self, orders_of: Orders) -> None:
        """Run the nodes in their orders. Those that move nothing, and take what is not moved, stay."""
        graph = self.graph
        chosen = {node: orders for node, orders in orders_of.items() if self._moves(node, orders)}
        stored: dict[Value, dict[Order, Value]] = {}

        def get(value: Value, order: Order) -> Value:
            orders = stored.setdefault(value, {identity(value): value})
            if order not in orders:
                have, made = next(iter(orders.items()))
                origins, position = ((), -1) if value.node is None else (value.node.origins, value.node.order[0])
                with graph.at(*origins, position=position):
                    orders[order] = transpose(graph, made, [have.index(axis) for axis in order])
            return orders[order]

        for node in self.nodes:
            if node not in chosen:
                continue
            orders = chosen[node]
            with graph.at(*node.origins, position=node.order[0]):
                taken = [value for value in node.inputs if value is not None and value in orders]
                outputs = self.carriers[node].build(
                    graph, orders, {value: get(value, orders[value]) for value in taken}
                )
            for old, new in zip(node.outputs, outputs, strict=True):
                if new.node is not None and not new.name:
                    new.name = old.name
                stored[old] = {orders.get(old, identity(old)): new}
        for node in chosen:
            for value in node.outputs:
                users = [user for user in value.users if user not in chosen]
                if not users and value not in graph.outputs:
                    continue
                new = get(value, identity(value))
                if value in graph.outputs:
                    new.name = value.name
                graph.replace(value, new)
