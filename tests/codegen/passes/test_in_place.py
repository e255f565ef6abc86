from __future__ import annotations

import random

import numpy as np
import pytest

from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.passes import in_place
from gossamer.schema import TensorType
from gossamer.views import POINTWISE, Buffer, Geometry, View

F32 = TensorType.FLOAT32


def new(*shape: int) -> View:
    return Buffer(shape, F32).view()


def mapped(graph: KernelGraph, x: View) -> View:
    return graph.add("map", [x], x.shape, F32, epilogue=("neg", 0), arity=1)


def concat(graph: KernelGraph, *parts: View) -> View:
    """Along the last dimension."""
    whole = new(*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
    start = 0
    for part in parts:
        graph.copy(part, whole.slice(len(part.shape) - 1, start, part.shape[-1]))
        start += part.shape[-1]
    return whole


def convolution(graph: KernelGraph, x: View, size: int) -> View:
    geometry = Geometry((size, size), (1, 1), (1, 1), (size // 2, size // 2), x.shape[1:3])
    weights = new(16, size, size, x.shape[3])
    settings = POINTWISE if size == 1 else geometry
    return graph.add("contract", [x, weights, new(16)], (*x.shape[:3], 16), F32, settings)


def kinds(graph: KernelGraph) -> list[str]:
    in_place.run(graph)
    return [kernel.kind for kernel in graph.kernels]


def test_parts_are_written_into_the_whole() -> None:
    graph = KernelGraph()
    a, b = mapped(graph, new(1, 4, 4, 16)), mapped(graph, new(1, 4, 4, 32))
    whole = concat(graph, a, b)
    assert kinds(graph) == ["map", "map"]
    first, second = graph.kernels
    assert first.y.buffer is second.y.buffer is whole.buffer
    assert (first.y.offset, second.y.offset) == (0, 16)
    assert first.y.strides == second.y.strides == whole.strides


def test_a_chain_of_concatenations_moves_nothing() -> None:
    graph = KernelGraph()
    known = mapped(graph, new(1, 4, 4, 16))
    for _ in range(5):
        known = concat(graph, known, convolution(graph, known, 1))
    assert kinds(graph) == ["map", *["contract"] * 5]
    assert {id(kernel.y.buffer) for kernel in graph.kernels} == {id(known.buffer)}
    assert [kernel.operands[0].shape[3] for kernel in graph.kernels] == [16, 16, 32, 48, 64, 80]


def test_a_single_element_that_others_repeat_is_a_part() -> None:
    graph = KernelGraph()
    one = mapped(graph, new())
    mapped(graph, one.broadcast((5,)))
    whole = concat(graph, one.reshape((1,)), mapped(graph, new(3)))
    assert kinds(graph) == ["map", "map", "map"]
    repeated = graph.kernels[1].operands[0]
    assert (repeated.buffer, repeated.shape, repeated.strides) == (whole.buffer, (5,), (0,))


def test_a_part_that_is_reshaped() -> None:
    graph = KernelGraph()
    heads = [convolution(graph, new(1, size, size, 8), 1).reshape((1, size * size * 4, 4)) for size in (8, 4)]
    whole = new(1, 320, 4)
    for start, head in zip((0, 256), heads, strict=True):
        assert head is not None
        graph.copy(head, whole.slice(1, start, head.shape[1]))
    assert kinds(graph) == ["contract", "contract"]
    assert [kernel.y.shape for kernel in graph.kernels] == [(1, 8, 8, 16), (1, 4, 4, 16)]


def test_a_part_that_is_transposed() -> None:
    """As the heads of an attention become one row; the last dimension has to stay the last."""
    for axes, left in (((0, 2, 1, 3), ["matmul"]), ((0, 1, 3, 2), ["matmul", "copy"])):
        graph = KernelGraph()
        heads = graph.add("matmul", [new(1, 4, 8, 5), new(1, 4, 5, 16), new(16)], (1, 4, 8, 16), F32)
        x = heads.permute(axes)
        whole = new(*x.shape)
        graph.copy(x, whole)
        assert kinds(graph) == left
        if left == ["matmul"]:
            (product,) = graph.kernels
            assert product.y.buffer is whole.buffer
            np.testing.assert_array_equal(numbers(product.y), numbers(whole.permute(axes)))


def test_part_of_a_part_is_copied() -> None:
    graph = KernelGraph()
    x = mapped(graph, new(4, 8, 16)).slice(1, 2, 4)
    graph.copy(x, new(*x.shape))
    assert kinds(graph) == ["map", "copy"]


def test_what_lives_outside_stays_where_it_is() -> None:
    graph = KernelGraph()
    x = Buffer((1, 16), F32, 0).view()
    graph.inputs[0] = x.buffer
    y = mapped(graph, x)
    y.buffer.tensor = 1
    concat(graph, x, y, y)
    assert kinds(graph) == ["map", "copy", "copy", "copy"]


def test_a_part_that_is_there_twice_is_copied_once() -> None:
    graph = KernelGraph()
    x = mapped(graph, new(2, 16))
    concat(graph, x, x)
    assert kinds(graph) == ["map", "copy"]


def test_short_rows_of_a_map() -> None:
    for columns, left in ((8, ["map", "copy", "copy"]), (16, ["map", "copy"])):
        graph = KernelGraph()
        concat(graph, mapped(graph, new(4, columns)), new(4, 8))
        assert kinds(graph) == left


def test_borders() -> None:
    """What a convolution reads the border of lies for itself; what is put into such an image must have its shape."""
    graph = KernelGraph()
    x = mapped(graph, new(1, 4, 4, 16))
    convolution(graph, x, 3)
    concat(graph, x, new(1, 4, 4, 16))
    assert kinds(graph) == ["map", "contract", "copy", "copy"]

    for shape, left in (
        ((1, 4, 4, 16), ["map", "copy", "contract"]),
        ((4, 4, 16), ["map", "copy", "copy", "contract"]),
    ):
        graph = KernelGraph()
        part = mapped(graph, new(*shape)).reshape((1, 4, 4, 16))
        assert part is not None
        convolution(graph, concat(graph, part, new(1, 4, 4, 16)), 3)
        assert kinds(graph) == left


def test_what_is_overwritten() -> None:
    """A frame that is filled first, then its inside: the inside is written directly if it is computed after that."""
    for late in (False, True):
        graph = KernelGraph()
        whole = new(8, 64)
        if late:
            graph.copy(new(8, 64), whole)
        inside = mapped(graph, new(4, 32))
        if not late:
            graph.copy(new(8, 64), whole)
        graph.copy(inside, whole.slice(0, 2, 4).slice(1, 2, 32))
        assert kinds(graph) == (["copy", "map"] if late else ["map", "copy", "copy"])


def test_what_is_still_read_is_not_overwritten() -> None:
    for late in (False, True):
        graph = KernelGraph()
        x, whole = mapped(graph, new(4, 16)), new(4, 16)
        graph.copy(x, whole)
        if not late:
            mapped(graph, x)
        graph.copy(new(1, 16), whole.slice(0, 1, 1))
        if late:
            mapped(graph, x)
        assert kinds(graph) == (["map", "copy", "copy", "map"] if late else ["map", "map", "copy"])


def test_a_variable_is_read_before_it_is_written() -> None:
    for late in (False, True):
        graph = KernelGraph()
        state = Buffer((1, 16), F32, 0).view()
        graph.inputs[0] = state.buffer
        following = mapped(graph, new(1, 16))
        if late:
            mapped(graph, state)
        graph.copy(following, state)
        assert kinds(graph) == (["map", "map", "copy"] if late else ["map"])


def numbers(view: View) -> np.ndarray:
    """Which elements of its buffer a view sees."""
    found = np.full(view.shape, view.offset)
    for axis, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        found = found + stride * np.arange(size).reshape([-1 if n == axis else 1 for n in range(len(view.shape))])
    return found


def changed(choose: random.Random, view: View) -> View:
    """Some view of a view."""
    axis = choose.randrange(len(view.shape))
    size = view.shape[axis]
    way = choose.choice(["part", "steps", "back", "permute", "reshape", "broadcast"])
    if way == "part":
        count = choose.randint(1, size)
        return view.slice(axis, choose.randint(0, size - count), count)
    if way == "steps":
        return view.slice(axis, 0, -(-size // 2), 2)
    if way == "back":
        return view.slice(axis, size - 1, size, -1)
    if way == "permute":
        return view.permute(choose.sample(range(len(view.shape)), len(view.shape)))
    if way == "reshape":
        return view.reshape((view.size,)) or view
    return view.broadcast((2, *view.shape)) if len(view.shape) < 5 else view


@pytest.mark.parametrize("seed", range(200))
def test_moved_views_see_the_same_elements(seed: int) -> None:
    choose = random.Random(seed)
    part = new(*(choose.choice([1, 2, 3, 4]) for _ in range(3)))
    view = part
    for _ in range(choose.randint(0, 4)):
        view = changed(choose, view)
    whole = new(*(2 * size + 3 for size in part.shape))
    place = whole
    for axis, size in enumerate(part.shape):
        place = place.slice(axis, choose.randint(0, 2), size, choose.choice([1, 2]))
    seen = in_place.moved(view, place)
    if seen is not None:
        assert seen.buffer is whole.buffer
        np.testing.assert_array_equal(numbers(seen), numbers(place).reshape(-1)[numbers(view)])


def test_kinds_that_write_rows_one_after_the_other() -> None:
    graph = KernelGraph()
    x = new(4, 16)
    graph.kernels.append(Kernel("topk", [x], new(4, 16)))
    concat(graph, graph.kernels[0].y, new(4, 16))
    assert kinds(graph) == ["topk", "copy", "copy"]


def updated(expression: object, *reads: str) -> KernelGraph:
    """What a map makes of a state, and perhaps of its first element, is copied to the state."""
    graph, state = KernelGraph(), new(8)
    views = {"all": state, "first": state.slice(0, 0, 1).broadcast((8,)), "back": state.slice(0, 7, 8, -1)}
    made = graph.add("map", [views[name] for name in reads], (8,), F32, epilogue=expression, arity=1)
    graph.copy(made, state)
    return graph


def test_a_map_may_read_what_it_overwrites_element_by_element() -> None:
    assert kinds(updated(("neg", 0), "all")) == ["map"]
    assert kinds(updated(("add", 0, 1), "all", "all")) == ["map"]
    assert kinds(updated(("add", 0, 1), "all", "first")) == ["map", "copy"]
    assert kinds(updated(("neg", 0), "back")) == ["map", "copy"]


def test_nobody_else_may_read_it_afterwards() -> None:
    graph = updated(("neg", 0), "all")
    made, copy = graph.kernels
    late = mapped(graph, copy.y)
    graph.kernels = [made, graph.kernels[-1], copy]
    assert late.buffer is not copy.y.buffer
    assert kinds(graph) == ["map", "map", "copy"]


def test_other_kernels_may_not() -> None:
    graph, state = KernelGraph(), new(4, 8)
    graph.copy(graph.add("softmax", [state], (4, 8), F32, (1.0, False)), state)
    assert kinds(graph) == ["softmax", "copy"]


def test_a_loop_keeps_its_variables_where_they_are() -> None:
    graph, x = KernelGraph(), new(4)
    variable, flag = new(4), new(1)
    graph.copy(mapped(graph, x), variable)
    graph.kernels.append(Kernel("loop", [flag, variable], variable, regions=(KernelGraph(), KernelGraph())))
    whole = concat(graph, variable)
    assert kinds(graph) == ["map", "loop", "copy"]
    assert graph.kernels[0].y.buffer is variable.buffer
    assert whole.buffer is not variable.buffer
