from __future__ import annotations

import numpy as np

from gossamer.codegen.graph import KernelGraph, same
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
    assert all(same(kernel.operands[0], copied) for kernel in graph.kernels[1:3])


def test_what_repeats_is_copied_once() -> None:
    graph = KernelGraph()
    x = Buffer((4, 1, 2), F32, 0).view()
    graph.add(
        "map", [x.slice(2, 1, 1).permute((2, 1, 0)).broadcast((9, 5, 4))], (9, 5, 4), F32, epilogue=("neg", 0), arity=1
    )
    assert kinds(graph) == ["copy", "map"]
    copy, map = graph.kernels
    assert copy.y.shape == (1, 1, 4)
    assert map.operands[0].strides == (0, 0, 1)


def summed(graph: KernelGraph, x: View, y: View) -> View:
    """A quantized sum."""
    numbers = Buffer((7,), TensorType.INT32, -1, np.zeros(7, np.int32)).view()
    return graph.add("map", [x, y, numbers], x.shape, TensorType.INT8, epilogue=("qadd", 0, 1, 2), arity=1)


def test_short_rows_of_bytes_are_joined() -> None:
    graph = KernelGraph()
    x = Buffer((30, 30, 3), TensorType.INT8, 0).view()
    even, odd = x.slice(1, 0, 15, 2), x.slice(1, 1, 15, 2)
    summed(graph, even, odd)
    summed(graph, odd, even)
    assert kinds(graph) == ["copy", "copy", "map", "map"]
    assert all(view.is_dense for kernel in graph.kernels[2:] for view in kernel.operands)


def test_factors_of_short_rows_are_repeated() -> None:
    graph = KernelGraph()
    x = Buffer((4, 64, 8), TensorType.INT8, 0).view()
    summed(graph, x, Buffer((64, 1), TensorType.INT8, 1).view().broadcast((4, 64, 8)))
    assert kinds(graph) == ["copy", "map"]
    copy, map = graph.kernels
    assert copy.y.shape == (1, 64, 8)
    assert map.operands[1].strides == (0, 8, 1)


def test_short_rows_of_floats_stay() -> None:
    graph = KernelGraph()
    negated(graph, Buffer((30, 30, 3), F32, 0).view().slice(1, 0, 15, 2))
    assert kinds(graph) == ["map"]


def test_many_short_rows_are_reduced_across() -> None:
    graph = KernelGraph()
    x = Buffer((2, 100, 3), F32, 0).view()
    graph.add("reduce", [x], (2, 100, 1), F32, ("sum", (2,), 0))
    graph.add("arg_reduce", [x], (2, 100), TensorType.INT32, {"axis": 2, "greatest": True})
    assert kinds(graph) == ["copy", "reduce", "copy", "arg_reduce"]
    copy, reduce = graph.kernels[:2]
    assert copy.operands[0].strides == (1, 300, 3)
    assert reduce.operands[0].buffer is copy.y.buffer
    assert (reduce.operands[0].shape, reduce.operands[0].strides) == ((2, 100, 3), (100, 1, 200))


def test_few_or_long_rows_are_reduced_as_they_lie() -> None:
    graph = KernelGraph()
    for shape in ((10, 3), (1000, 17), (1000, 1)):
        graph.add("reduce", [Buffer(shape, F32, 0).view()], (shape[0], 1), F32, ("sum", (1,), 0))
    graph.add("reduce", [Buffer((3, 1000), F32, 0).view()], (1, 1000), F32, ("sum", (0,), 0))
    assert kinds(graph) == ["reduce"] * 4


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
