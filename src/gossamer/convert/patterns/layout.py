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
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gossamer.convert.blocks.shapes import transpose
from gossamer.convert.graph import Graph, Node, Value
from gossamer.convert.patterns import whole
from gossamer.convert.patterns.axes import Carrier, Order, carrier, identity, is_free
from gossamer.convert.patterns.cut import ENDLESS, Network
from gossamer.convert.patterns.shapes import permutation

MOST_LAYOUTS = 4
"""Layouts of a region that are looked at."""

PASSES = 1 << 10
"""What it costs to move an element, where moving a one costs 1; half of it is the cost of another operator."""


class Layout(NamedTuple):
    """Orders of values, and of those of each node that can run so."""

    orders: dict[Value, Order]
    nodes: dict[Node, dict[Value, Order]]


def price(value: Value, order: Order, other: Order) -> int:
    """What it costs to bring a value from one order into another."""
    if order == other:
        return 0
    if is_free(value, order, other):
        return 1
    return PASSES * math.prod(value.shapes[0]) + PASSES // 2


@whole
def least_moved(graph: Graph) -> bool:
    """Choose layouts, region by region."""
    nodes = graph.ordered()
    if not any(node.op == "TRANSPOSE" for node in nodes):
        return False
    carriers = {node: found for node in nodes for found in [carrier(graph, node)] if found is not None}
    changed = False
    for region in _regions(carriers):
        if any(node.op == "TRANSPOSE" for node in region):
            changed |= _Region(graph, region, carriers).improve()
    return changed


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
    def __init__(self, graph: Graph, nodes: list[Node], carriers: Mapping[Node, Carrier]) -> None:
        self.graph = graph
        self.nodes = nodes
        self.carriers = {node: carriers[node] for node in nodes}
        self.of: dict[Value, list[Node]] = {}
        for node in nodes:
            for value in self.carriers[node].names:
                self.of.setdefault(value, []).append(node)
        self.wanted = {value: weight for value in self.of for weight in [self._weight(value)] if weight}

    def _weight(self, value: Value) -> int:
        """How often a value is wanted as it is, times its elements."""
        times = sum(not self._carries(user, value) for user in set(value.users))
        times += value in self.graph.outputs
        times += not self._carries(value.node, value)
        return times * math.prod(value.shapes[0])

    def _carries(self, node: Node | None, value: Value) -> bool:
        """Whether a node may have a value in another order."""
        return node in self.carriers and value in self.carriers[node].names

    def improve(self) -> bool:
        """Choose between two layouts for every node, if it is cheaper than what is there."""
        cost = sum(map(self._cost, self.nodes))
        best: tuple[int, dict[Node, dict[Value, Order]]] | None = None
        layouts = self._layouts()
        for n, first in enumerate(layouts):
            for second in layouts[n:]:
                paid, chosen = self._choice(first, second)
                if paid < (cost if best is None else best[0]):
                    best = paid, chosen
        if best is None:
            return False
        self._rebuild(best[1])
        return True

    # -- layouts

    def _layouts(self) -> list[Layout]:
        """The layouts in which most elements are as they are wanted."""
        left = dict(sorted(self.wanted.items(), key=lambda item: -item[1]))
        found: list[Layout] = []
        while left and len(found) < MOST_LAYOUTS:
            layout = self._from(next(iter(left)))
            for value in [value for value in left if layout.orders.get(value) == identity(value)]:
                del left[value]
            found.append(layout)
        return found

    def _from(self, value: Value) -> Layout:
        """The layout in which a value is as it is."""
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
        return Layout(orders, nodes)

    # -- the choice between two

    def _choice(self, first: Layout, second: Layout) -> tuple[int, dict[Node, dict[Value, Order]]]:
        """What two layouts cost at least, and the orders of the values of the nodes that run in one of them."""
        network = Network()
        place: dict[Node, int] = {}
        for node in self.nodes:
            if node in first.nodes or node in second.nodes:
                place[node] = network.node()
                if node not in second.nodes:
                    network.edge(network.SOURCE, place[node], ENDLESS)
                if node not in first.nodes:
                    network.edge(place[node], network.SINK, ENDLESS)
        for value in self.of:
            self._charge(network, place, value, first, second)
        paid, is_first = network.cut()
        chosen = {node: (first if is_first[at] else second).nodes[node] for node, at in place.items()}
        return self._paid(chosen) if paid < ENDLESS else paid, chosen

    def _charge(self, network: Network, place: Mapping[Node, int], value: Value, first: Layout, second: Layout) -> None:
        """What has to be paid for a value, depending on where its maker and its users run."""
        plain = identity(value)
        one, other = first.orders.get(value, plain), second.orders.get(value, plain)
        users = dict.fromkeys(value.users)
        free = [place[user] for user in users if user in place and self._carries(user, value)]
        fixed = value in self.graph.outputs or len(free) < len(users)
        maker = place.get(value.node) if value.node is not None and self._carries(value.node, value) else None
        between = price(value, one, other)
        ends = [network.SOURCE if plain == one else None, network.SINK if plain == other else None]
        end = next((side for side in ends if side is not None), None)
        if between == 0:
            return
        if maker is None and end is None:
            for user in free:
                network.edge(user, network.SINK, price(value, plain, one))
                network.edge(network.SOURCE, user, price(value, plain, other))
            return
        if fixed and end is None and maker is not None:
            network.edge(maker, network.SINK, price(value, one, plain))
            network.edge(network.SOURCE, maker, price(value, other, plain))
        elif fixed and end is not None:
            free.append(end)
        source = maker if maker is not None else end
        if source is not None and free:
            _once(network, source, free, between)

    def _paid(self, chosen: Mapping[Node, Mapping[Value, Order]]) -> int:
        """What a choice costs in truth."""
        cost = 0
        for value in self.of:
            plain = identity(value)
            maker = chosen.get(value.node) if value.node is not None else None
            made = plain if maker is None else maker.get(value, plain)
            needs = {plain} if value in self.graph.outputs else set()
            for user in value.users:
                needs.add(chosen[user].get(value, plain) if user in chosen else plain)
            cost += sum(price(value, made, order) for order in needs)
        return cost + sum(self._cost(node) for node in self.nodes if node not in chosen)

    def _cost(self, node: Node) -> int:
        """What a node moves as it is."""
        perm = permutation(node) if node.op == "TRANSPOSE" else None
        return 0 if perm is None else price(node.input(0), identity(node.input(0)), tuple(perm))

    # -- the new graph

    def _rebuild(self, chosen: Mapping[Node, Mapping[Value, Order]]) -> None:
        """Run the chosen nodes in their orders."""
        graph = self.graph
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
        for node in self.nodes:
            for value in node.outputs if node in chosen else ():
                users = [user for user in value.users if user not in chosen]
                if not users and value not in graph.outputs:
                    continue
                new = get(value, identity(value))
                if value in graph.outputs:
                    new.name = value.name
                graph.replace(value, new)


def _once(network: Network, maker: int, users: list[int], cost: int) -> None:
    """A cost that is paid once if any of the users goes with the other side than the maker."""
    if len(users) == 1:
        network.edge(maker, users[0], cost)
        network.edge(users[0], maker, cost)
        return
    first, second = network.node(), network.node()
    network.edge(maker, first, cost)
    network.edge(second, maker, cost)
    for user in users:
        network.edge(first, user, ENDLESS)
        network.edge(user, second, ENDLESS)
