from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.kernels.turns import Statement
from gossamer.codegen.passes import turns
from gossamer.schema import TensorType
from gossamer.views import Buffer, View

F32, I32, BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL


def new(*shape: int, type: TensorType = F32) -> View:
    return Buffer(shape, type).view()


def number(value: float) -> View:
    return Buffer((), F32, -1, np.array(value, np.float32)).view()


def looping(x: View, body: KernelGraph, condition: KernelGraph, flag: View) -> Kernel:
    """A loop with the variable x, after the pass."""
    graph = KernelGraph([Kernel("loop", [flag, x], x, regions=(body, condition))])
    turns.run(graph)
    return graph.kernels[0]


def below(x: View, limit: float) -> tuple[KernelGraph, View]:
    condition = KernelGraph()
    first = View(x.buffer, (), (), x.offset)
    flag = condition.add("map", [first, number(limit)], (), BOOL, epilogue=("less", 0, 1), arity=1)
    return condition, flag


def test_small_maps_become_statements() -> None:
    x, body = new(1), KernelGraph()
    body.copy(body.add("map", [x, number(0.5)], (1,), F32, epilogue=("mul", 0, 1), arity=1), x)
    turn = looping(x, body, *below(x, 3.0)).settings
    assert [view.shape for view in turn.places] == [(1,), (), ()]
    assert (turn.variables, turn.others) == ((("f32", 1),), (("f32", 1), ("f32", 1)))
    assert turn.statements == (
        Statement(("mul", 0, 1), (0, 1), ("f32", 1)),
        Statement(("less", 0, 1), (3, 2), ("bool", 1)),
    )
    assert (turn.following, turn.going) == ((3,), 4)


def test_a_map_that_writes_the_variable_itself_is_one_too() -> None:
    x, body = new(8), KernelGraph()
    body.kernels.append(Kernel("map", [x], x, None, ("neg", 0), 1))
    flag = new(type=BOOL)
    condition = KernelGraph([Kernel("map", [number(1.0)], flag, None, ("less", 0, 0), 1)])
    assert looping(x, body, condition, flag).settings.following == (2,)


@pytest.mark.parametrize("shape", [(257,), (100, 100)])
def test_large_values_stay_in_memory(shape: tuple[int, ...]) -> None:
    x, body = new(*shape), KernelGraph()
    body.copy(body.add("map", [x], shape, F32, epilogue=("neg", 0), arity=1), x)
    assert looping(x, body, *below(x, 3.0)).settings is None


def test_other_kernels_stay_commands() -> None:
    x, body = new(4), KernelGraph()
    body.copy(body.add("softmax", [x], (4,), F32, (1.0, False)), x)
    assert looping(x, body, *below(x, 3.0)).settings is None


def test_single_elements_of_variables_and_parts_of_what_is_computed_stay_in_memory() -> None:
    x, body = new(4), KernelGraph()
    body.copy(body.add("map", [x], (4,), F32, epilogue=("neg", 0), arity=1), x)
    assert looping(x, body, *below(x, 3.0)).settings is None
    body = KernelGraph()
    body.kernels.append(Kernel("map", [x], x.slice(0, 0, 2), None, ("neg", 0), 1))
    assert looping(x, body, KernelGraph(), new(type=BOOL)).settings is None


def test_a_condition_that_nothing_computes_stays_a_command() -> None:
    x, body = new(1), KernelGraph()
    body.copy(body.add("map", [x], (1,), F32, epilogue=("neg", 0), arity=1), x)
    assert looping(x, body, KernelGraph(), new(type=BOOL)).settings is None
