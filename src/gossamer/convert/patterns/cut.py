"""The least cut of a network: which nodes go with the source if what is paid for parting them is least (Dinic)."""

from __future__ import annotations

from collections import deque

ENDLESS = 1 << 60
"""More than all that can be paid."""


class Network:
    """Directed edges with capacities between nodes 0 (the source), 1 (the sink) and those that `node` makes."""

    SOURCE, SINK = 0, 1

    def __init__(self) -> None:
        self.edges: list[list[int]] = [[], []]
        self.target: list[int] = []
        self.room: list[int] = []

    def node(self) -> int:
        """A new node."""
        self.edges.append([])
        return len(self.edges) - 1

    def edge(self, first: int, second: int, capacity: int) -> None:
        """``capacity`` is paid if the first node goes with the source and the second one with the sink."""
        if capacity and first != second:
            for one, other, room in ((first, second, capacity), (second, first, 0)):
                self.edges[one].append(len(self.target))
                self.target.append(other)
                self.room.append(room)

    def cut(self) -> tuple[int, list[bool]]:
        """What is paid at least, and for each node whether it goes with the source then."""
        paid = 0
        while True:
            level = self._levels()
            if level[self.SINK] < 0:
                return paid, [depth >= 0 for depth in level]
            at = [0] * len(self.edges)
            while pushed := self._push(level, at):
                paid += pushed

    def _levels(self) -> list[int]:
        level = [-1] * len(self.edges)
        level[self.SOURCE] = 0
        waiting = deque([self.SOURCE])
        while waiting:
            node = waiting.popleft()
            for edge in self.edges[node]:
                other = self.target[edge]
                if self.room[edge] and level[other] < 0:
                    level[other] = level[node] + 1
                    waiting.append(other)
        return level

    def _push(self, level: list[int], at: list[int]) -> int:
        """One more path, and how much goes along it."""
        path: list[int] = []
        node = self.SOURCE
        while node != self.SINK:
            while at[node] < len(self.edges[node]):
                edge = self.edges[node][at[node]]
                if self.room[edge] and level[self.target[edge]] == level[node] + 1:
                    break
                at[node] += 1
            else:
                if not path:
                    return 0
                node = self.target[path.pop() ^ 1]
                at[node] += 1
                continue
            path.append(edge)
            node = self.target[edge]
        least = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= least
            self.room[edge ^ 1] += least
        return least
