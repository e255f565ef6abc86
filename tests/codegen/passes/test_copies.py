from __future__ import annotations

import numpy as np

from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.passes import copies
from gossamer.schema import TensorType
from gossamer.views import Buffer, View

F32 = TensorType.FLOAT32


def negated(graph: KernelGraph, x: View) -> View:
    return graph.add("map", [x], x.shape, F32, epilogue=("neg", 0), arity=1)


def kinds(graph: KernelGraph) -> list[str]:
    copies.run(graph)
    return [kernel.kind for kernel in graph.kernels]


def test_what_can_be_read_as_it_lies() -> None:
    graph = KernelGraph()
    x = negated(graph, Buffer((4, 6), F32, 0).view())
    negated(graph, x.slice(1, 2, 3))
    negated(graph, x.slice(0, 3, 2, -2))
    negated(graph, Buffer((1,), F32, 1).view().broadcast((4, 6)))
    graph.copy(x.permute((1, 0)), Buffer((6, 4), F32).view())
    graph.add("softmax", [x.permute((1, 0)).slice(1, 0, 1)], (6, 1), F32)
    assert kinds(graph) == ["map"] * 4 + ["copy", "softmax"]


def test_what_cannot_is_copied_once() -> None:
    graph = KernelGraph()
    x = Buffer((4, 6), F32, 0).view()
    negated(graph, x.permute((1, 0)))
    negated(graph, x.permute((1, 0)))
    graph.add("softmax", [x.slice(1, 5, 6, -1)], (4, 6), F32)
    assert kinds(graph) == ["copy", "map", "map", "copy", "softmax"]
    copied = graph.kernels[0].y
    assert copied.shape == (6, 4)
    assert copied.is_dense
    assert graph.kernels[1].operands == graph.kernels[2].operands == [copied]


def test_what_changes_is_copied_again() -> None:
    graph = KernelGraph()
    state = Buffer((4, 6), F32, 0).view()
    graph.inputs[0] = state.buffer
    graph.copy(negated(graph, state.permute((1, 0))).permute((1, 0)), state)
    negated(graph, state.permute((1, 0)))
    assert kinds(graph) == ["copy", "map", "copy", "copy", "map"]


def test_constants_are_turned_now() -> None:
    graph = KernelGraph()
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    negated(graph, Buffer((2, 3), F32, -1, array).view().permute((1, 0)).slice(0, 2, 3, -1))
    assert kinds(graph) == ["map"]
    (x,) = graph.kernels[0].operands
    np.testing.assert_array_equal(x.buffer.array, array.T[::-1])
    assert x.is_whole
