from __future__ import annotations

import numpy as np

from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.passes import pads
from gossamer.schema import TensorType
from gossamer.views import Buffer


def test_boxes_around_the_elements_do_not_meet() -> None:
    graph = KernelGraph()
    x = Buffer((2, 3, 4), TensorType.INT8, 0).view()
    value = Buffer((1,), TensorType.INT8, -1, np.array([7], np.int8)).view()
    y = graph.add("pad", [x, value], (3, 3, 9), TensorType.INT8, (1, 0, 2))
    pads.run(graph)
    assert [kernel.kind for kernel in graph.kernels] == ["copy"] * 4
    count = np.zeros(y.size, int)
    for kernel in graph.kernels:
        assert kernel.operands[0].shape == kernel.y.shape
        view = kernel.y
        np.lib.stride_tricks.as_strided(count[view.offset :], view.shape, [8 * s for s in view.strides])[...] += 1
    assert (count == 1).all()
    assert [kernel.y.shape for kernel in graph.kernels] == [(1, 3, 9), (2, 3, 2), (2, 3, 3), (2, 3, 4)]
    assert graph.kernels[-1].operands[0] is x
    assert all(set(kernel.operands[0].strides) == {0} for kernel in graph.kernels[:-1])
