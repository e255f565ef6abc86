"""Graphs that nobody has drawn up, before and after: operators at random, transposed back and forth, with constants,
several users and several outputs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from gossamer.convert import patterns
from gossamer.convert.blocks.shapes import transpose
from gossamer.convert.graph import Graph, Refused, Value, unknown
from gossamer.convert.patterns import rewrite
from gossamer.schema.enums import Padding, TensorType
from tests.convert.patterns.running import graph_of, ops_of, rewritten
from tests.convert.patterns.test_layout import conv, normalized

UNARY = ("RELU", "RELU6", "TANH", "LOGISTIC", "NEG", "ABS", "SQUARE", "HARD_SWISH", "SIN")
BINARY = ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
REDUCES = ("SUM", "MEAN", "REDUCE_MAX")


class Random:
    """A graph of ``count`` random operators on small values, the first of batches that are open."""

    def __init__(self, seed: int, count: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph = Graph()
        first = unknown(0) if seed % 2 else 2
        shapes = [(first, 3, 4, 5), (first, 4, 6), (first, 3, 1, 5), (first, 1, 4, 5)]
        self.values = [self.graph.input(f"x{n}", TensorType.FLOAT32, shape) for n, shape in enumerate(shapes)]
        while len(self.values) < count:
            with suppress(Refused):
                self.values.append(self.step())
        loose = [value for value in self.values if not value.users and value.node is not None]
        self.graph.outputs = [*loose, self.pick()]

    def pick(self, rank: int = 0) -> Value:
        fitting = [value for value in self.values if not rank or value.rank == rank] or self.values
        recent = fitting[-6:] if self.rng.random() < 0.7 else fitting
        return recent[self.rng.integers(len(recent))]

    def array(self, *shape: int) -> np.ndarray:
        return self.rng.choice([-1, 0.5, 1, 1.5, 2], shape).astype(np.float32)

    def axis(self, x: Value) -> int:
        return int(self.rng.integers(x.rank))

    def constant(self, x: Value) -> np.ndarray:
        """One that broadcasts to a value."""
        sizes = [size if size is not None and self.rng.random() < 0.5 else 1 for size in x.dims]
        return self.array(*sizes[self.rng.integers(len(sizes)) :])

    def step(self) -> Value:
        kinds = (self.unary, self.binary, self.with_constant, self.move, self.move, self.shaped, self.reduced)
        more = (self.convolved, self.joined, self.cut, self.padded, self.product, self.normalized)
        choices = (*kinds, *more)
        return choices[self.rng.integers(len(choices))]()

    def unary(self) -> Value:
        return self.graph.add(str(self.rng.choice(UNARY)), self.pick())

    def binary(self) -> Value:
        x = self.pick()
        return self.graph.add(str(self.rng.choice(BINARY)), x, self.pick(x.rank))

    def with_constant(self) -> Value:
        x = self.pick()
        pair = [x, self.constant(x)]
        if self.rng.random() < 0.3:
            pair.reverse()
        return self.graph.add(str(self.rng.choice(BINARY)), *pair)

    def move(self) -> Value:
        x = self.pick()
        perms = {4: [(0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3)], 3: [(0, 2, 1), (1, 0, 2)]}.get(x.rank)
        return transpose(self.graph, x, perms[self.rng.integers(len(perms))] if perms else self.rng.permutation(x.rank))

    def shaped(self) -> Value:
        x = self.pick()
        sizes = [-1 if size is None else size for size in x.dims]
        at = self.axis(x)
        if self.rng.random() < 0.5 and at + 1 < x.rank and -1 not in sizes[at : at + 2]:
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        elif sizes[at] > 2 and sizes[at] % 2 == 0:
            sizes[at : at + 1] = [sizes[at] // 2, 2]
        elif sizes[at] == 1:
            del sizes[at]
        elif x.rank < 5:
            sizes.insert(at, 1)
        return self.graph.add("RESHAPE", x, np.array(sizes, np.int32))

    def reduced(self) -> Value:
        x = self.pick()
        kept = bool(self.rng.random() < 0.6) or x.rank < 3
        return self.graph.add(str(self.rng.choice(REDUCES)), x, [self.axis(x)], keep_dims=kept)

    def convolved(self) -> Value:
        x = self.pick(4)
        depth = x.dims[-1]
        if x.rank != 4 or depth is None:
            raise Refused("no picture")
        padding = Padding(int(self.rng.integers(2)))
        outputs = int(self.rng.integers(1, 6))
        filter = self.array(outputs, 2, 2, depth) / 4
        return self.graph.add("CONV_2D", x, filter, self.array(outputs), stride_h=1, stride_w=1, padding=padding)

    def joined(self) -> Value:
        x = self.pick()
        y = self.graph.add(str(self.rng.choice(UNARY)), x)
        return self.graph.add("CONCATENATION", x, y, axis=self.axis(x))

    def cut(self) -> Value:
        x = self.pick()
        at = self.axis(x)
        if x.dims[at] is not None and self.rng.random() < 0.5:
            return self.graph.add_many("SPLIT", [np.array(at, np.int32), x], 2, num_splits=2)[1]
        begin, size = np.zeros(x.rank, np.int32), np.full(x.rank, -1, np.int32)
        size[at] = 1
        return self.graph.add("SLICE", x, begin, size)

    def padded(self) -> Value:
        x = self.pick()
        pads = np.zeros((x.rank, 2), np.int32)
        pads[self.axis(x)] = self.rng.integers(0, 2, 2)
        return self.graph.add("PAD", x, pads)

    def product(self) -> Value:
        x = self.pick()
        depth = x.dims[-1]
        if depth is None:
            raise Refused("no rows")
        return self.graph.add("FULLY_CONNECTED", x, self.array(3, depth) / 4, keep_num_dims=True)

    def normalized(self) -> Value:
        x = self.pick()
        if self.rng.random() < 0.5:
            return self.graph.add("SOFTMAX", x, beta=1.0)
        mean = self.graph.add("MEAN", x, [x.rank - 1], keep_dims=True)
        return self.graph.add("SUB", x, mean)


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs(seed: int) -> None:
    graph = Random(seed, 30).graph
    before = len(graph.ordered())
    transposes = ops_of(graph).count("TRANSPOSE")
    after = rewritten(graph, {unknown(0): 3}, low=-1, high=1, rtol=2e-3, atol=2e-3)
    assert len(after) <= before + transposes


def test_work_grows_with_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tries of patterns for each operator in a graph of four times the size."""
    tries = 0
    applied = patterns.apply

    def counted(*arguments: Any) -> Any:
        nonlocal tries
        tries += 1
        return applied(*arguments)

    monkeypatch.setattr(patterns, "apply", counted)
    rates = []
    for blocks in (10, 40):
        graph = graph_of((unknown(0), 4, 8, 8), make=lambda g, x, blocks=blocks: net(g, x, blocks))
        nodes, tries = len(graph.ordered()), 0
        rewrite(graph)
        rates.append(tries / nodes)
        assert ops_of(graph).count("TRANSPOSE") == 2
    assert rates[1] < 1.2 * rates[0]


def net(graph: Graph, x: Value, blocks: int) -> Value:
    x = conv(graph, x, 4)
    for _ in range(blocks):
        y = graph.add("RELU", normalized(graph, conv(graph, x, 4)))
        y = graph.add("MUL", y, graph.add("LOGISTIC", conv(graph, graph.add("MEAN", y, [2, 3], keep_dims=True), 4, 1)))
        x = graph.add("ADD", x, conv(graph, y, 4))
    return x
