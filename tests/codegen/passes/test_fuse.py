from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.codegen.expression import Expression, name_of
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.passes import fuse
from gossamer.schema import TensorType
from gossamer.views import Buffer, View

F32, F16, I32, BOOL = TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32, TensorType.BOOL
SHAPE = (2, 3, 4)


class Maps(KernelGraph):
    """A graph that is easily filled."""

    def input(self, type: TensorType = F32, shape: tuple[int, ...] = SHAPE) -> View:
        buffer = Buffer(shape, type, len(self.inputs))
        self.inputs[buffer.tensor] = buffer
        return buffer.view()

    def map(self, expression: Expression, *operands: View, type: TensorType = F32) -> View:
        return self.add("map", operands, operands[0].shape, type, epilogue=expression, arity=1)

    def contract(self, x: View) -> View:
        weights, bias = (Buffer(shape, F32, -1, np.zeros(shape)).view() for shape in ((4, 1, 1, 4), (4,)))
        return self.add("contract", [x, weights, bias], x.shape, F32)

    def fused(self) -> list[Kernel]:
        fuse.run(self)
        return self.kernels


@pytest.fixture
def graph() -> Any:
    return Maps()


def test_a_chain_becomes_one(graph: Maps) -> None:
    x, y = graph.input(), graph.input()
    graph.map(("relu", 0), graph.map(("mul", 0, 1), graph.map(("add", 0, 1), x, y), y))
    (kernel,) = graph.fused()
    assert kernel.operands == [x, y]
    assert kernel.epilogue == ("relu", ("mul", ("add", 0, 1), 1))


def test_an_epilogue(graph: Maps) -> None:
    x, y = graph.input(shape=(1, 1, 6, 4)), graph.input(shape=(1, 1, 6, 4))
    graph.map(("relu", 0), graph.map(("sub", 1, 0), graph.contract(x), y))
    (kernel,) = graph.fused()
    assert kernel.kind == "contract"
    assert kernel.extras == [y]
    assert kernel.epilogue == ("relu", ("sub", 1, 0))


def test_what_others_read_stays(graph: Maps) -> None:
    x = graph.input()
    total = graph.map(("exp", 0), x)
    graph.map(("relu", 0), total)
    graph.map(("neg", 0), total)
    assert len(graph.fused()) == 3


def test_types_are_converted_where_buffers_did(graph: Maps) -> None:
    x, y, z = graph.input(I32), graph.input(), graph.input()
    total = graph.map(("add", 0, 0), x, type=F32)
    truncated = graph.map(("mul", 0, 1), total, y, type=I32)
    graph.map(("select", ("less", 0, 1), 2, 3), graph.map(0, truncated, type=F32), y, z, z)
    (kernel,) = graph.fused()
    assert kernel.operands == [x, y, z]
    number = ("tof32", ("toi32", ("mul", ("tof32", ("add", 0, 0)), 1)))
    assert kernel.epilogue == ("select", ("less", number, 1), 2, 2)
    assert kernel.y.type == F32


def test_the_last_type_is_that_of_the_result(graph: Maps) -> None:
    x, y = graph.input(), graph.input()
    graph.map(("not", 0), graph.map(("less", 0, 1), x, y, type=BOOL), type=BOOL)
    (kernel,) = graph.fused()
    assert kernel.epilogue == ("not", ("less", 0, 1))
    assert kernel.y.type == BOOL


def test_float16_is_rounded_in_between(graph: Maps) -> None:
    x = graph.input(F16)
    graph.map(("mul", 0, 0), graph.map(("add", 0, 0), x, type=F16), type=F16)
    assert len(graph.fused()) == 2


def test_float16_may_be_read_and_written(graph: Maps) -> None:
    x = graph.input(F16)
    graph.map(("mul", 0, 0), graph.map(0, x), type=F16)
    (kernel,) = graph.fused()
    assert (kernel.epilogue, kernel.y.type) == (("mul", 0, 0), F16)


@pytest.mark.parametrize("of", [I32, F16])
def test_epilogues_are_of_float32(graph: Maps, of: TensorType) -> None:
    x, y = graph.input(shape=(1, 1, 6, 4)), graph.input(of, (1, 1, 6, 4))
    graph.map(("add", 0, ("tof32", 1)), graph.contract(x), y)
    graph.map(0, graph.contract(x), type=of)
    assert [kernel.kind for kernel in graph.fused()] == ["contract", "map", "contract", "map"]


def test_epilogues_convert_what_they_have_truncated(graph: Maps) -> None:
    x, y = graph.input(shape=(1, 1, 6, 4)), graph.input(shape=(1, 1, 6, 4))
    truncated = graph.map(0, graph.map(0, graph.contract(x), type=I32), type=F32)
    graph.map(("mul", 0, 1), truncated, y, type=F32)
    (kernel,) = graph.fused()
    assert kernel.kind == "contract"
    assert kernel.epilogue == ("mul", ("tof32", ("toi32", 0)), 1)


def test_expressions_do_not_grow_without_end(graph: Maps) -> None:
    x = graph.input()
    for _ in range(100):
        x = graph.map(("mul", 0, 0), x)
    kernels = graph.fused()
    assert len(kernels) == 17
    assert max(len(name_of(kernel.epilogue)) for kernel in kernels) < 1000
