from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.codegen.expression import Expression
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.passes import repeats
from gossamer.schema import TensorType
from gossamer.views import POINTWISE, Buffer, Geometry, View

I8, F32 = TensorType.INT8, TensorType.FLOAT32


def made(shape: Sequence[int], *operands: View, expression: Expression = ("max", 0, 1)) -> KernelGraph:
    graph = KernelGraph()
    views = [view if view.shape == tuple(shape) else view.broadcast(shape) for view in operands]
    y = graph.add("map", views, shape, operands[0].type, epilogue=expression, arity=1)
    y.buffer.tensor = 99
    return graph


def shapes(graph: KernelGraph) -> list[tuple[str, tuple[int, ...]]]:
    repeats.run(graph)
    return [(kernel.kind, kernel.y.shape) for kernel in graph.kernels]


def tensor(*shape: int, type: TensorType = I8, number: int = 0) -> View:
    return Buffer(shape, type, number).view()


def test_channels_are_written_down_several_times() -> None:
    image, channels = tensor(1, 56, 56, 16), tensor(1, 1, 1, 16, number=1)
    graph = made((1, 56, 56, 16), image, channels)
    assert shapes(graph) == [("copy", (32, 16)), ("map", (98, 32, 16))]
    copy, map = graph.kernels
    assert copy.operands[0].strides == (0, 1)
    assert map.operands[0].strides == map.y.strides == (512, 16, 1)
    assert map.operands[1].strides == (0, 16, 1)
    assert map.operands[1].buffer is copy.y.buffer


def test_rows_are_whole_lines_of_the_cache_where_they_can_be() -> None:
    for count, times in ((144, 4), (96, 8), (672, 2), (700, 1), (576, 1), (120, 8)):
        graph = made((56, 56, count), tensor(56, 56, count), tensor(count, number=1))
        assert shapes(graph)[-1][1][-2:] == (times if times > 1 else 56, count)


def test_only_what_is_in_front_of_the_row() -> None:
    image, channels = tensor(12, 60, 24), tensor(12, 1, 24, number=1)
    assert shapes(made((12, 60, 24), image, channels)) == [("map", (12, 60, 24))]
    alike = tensor(60, 24, number=1)
    assert shapes(made((12, 60, 24), image, alike)) == [("map", (12, 60, 24))]


def test_what_has_long_rows_or_is_small_stays() -> None:
    for shape in ((40, 700), (9, 16), (9000, 1)):
        row = tensor(shape[-1], number=1)
        assert shapes(made(shape, tensor(*shape), row)) == [("map", shape)]
    floats = tensor(600, 16, type=F32), tensor(16, type=F32, number=1)
    assert shapes(made((600, 16), *floats)) == [("map", (600, 16))]
    single = tensor(1, number=1)
    assert shapes(made((500, 30), tensor(500, 30), single)) == [("map", (500, 30))]
    assert shapes(made((500, 30), tensor(500, 30), tensor(500, 30, number=1))) == [("map", (500, 30))]


def test_parameters_follow() -> None:
    numbers = View(Buffer((7,), TensorType.INT32, -1, np.zeros(7, np.int32)), (600, 16), (0, 0), 0)
    graph = made((600, 16), tensor(600, 16), tensor(16, number=1), numbers, expression=("qadd", 0, 1, 2))
    assert shapes(graph) == [("copy", (40, 16)), ("map", (15, 40, 16))]
    assert graph.kernels[1].operands[2].strides == (0, 0, 0)


def test_images_with_a_border_are_seen_as_they_are() -> None:
    graph = made((1, 56, 56, 16), tensor(1, 56, 56, 16), tensor(16, number=1))
    y = graph.kernels[0].y
    y.buffer.tensor = -1
    weights = tensor(16, 3, 3, 16, type=F32, number=2)
    geometry = Geometry((3, 3), (1, 1), (1, 1), (1, 1), (56, 56))
    graph.add("contract", [y, weights, tensor(16, number=3)], y.shape, I8, geometry)
    assert shapes(graph)[0] == ("map", (1, 56, 56, 16))
    graph.kernels[1].settings = POINTWISE
    assert shapes(graph)[0] == ("copy", (32, 16))


def test_rows_of_few_floats_are_repeated_beside_single_numbers() -> None:
    image, channels, one = tensor(1, 64, 64, 3, type=F32), tensor(3, type=F32, number=1), tensor(type=F32, number=2)
    graph = made((1, 64, 64, 3), image, channels, one, expression=("add", ("mul", 0, 1), 2))
    assert shapes(graph) == [("copy", (64, 3)), ("map", (64, 64, 3))]
    assert graph.kernels[1].operands[2].strides == (0, 0, 0)
    for count, times in ((15, 16), (16, 1), (17, 1)):
        graph = made((64, 64, count), tensor(64, 64, count, type=F32), tensor(count, type=F32, number=1))
        assert shapes(graph)[-1][1] == ((4096 // times, times, count) if times > 1 else (64, 64, count))


def copied(operand: View) -> KernelGraph:
    graph = KernelGraph()
    y = Buffer(operand.shape, operand.type, 99).view()
    graph.copy(operand, y)
    return graph


def test_what_is_repeated_as_a_whole_is_gathered_once() -> None:
    heads = tensor(64, 4, 4, type=F32)  # [tokens, heads, depth]
    graph = copied(View(heads.buffer, (4, 8, 64, 4), (4, 0, 16, 1), 0))
    assert shapes(graph) == [("copy", (4, 1, 64, 4)), ("copy", (4, 8, 64, 4))]
    once, again = graph.kernels
    assert once.operands[0].strides == (4, 0, 16, 1)
    assert again.operands[0].strides == (256, 0, 4, 1)
    assert again.operands[0].buffer is once.y.buffer
    assert again.y.buffer.tensor == 99


def test_copies_that_would_gain_nothing_stay() -> None:
    def stays(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
        view = View(tensor(size, type=F32).buffer, tuple(shape), tuple(strides), 0)
        return shapes(copied(view)) == [("copy", tuple(shape))]

    assert stays((4, 2, 64, 4), (4, 0, 16, 1), 1024)  # small
    assert stays((4, 64, 8, 4), (4, 16, 0, 1), 1024)  # rows that are repeated are short
    assert stays((4, 8, 64, 16), (16, 0, 64, 1), 4096)  # rows fill a line of the cache
    assert stays((4, 8, 64, 4), (4, 1024, 16, 1), 8192)  # nothing is repeated


def test_maps_with_an_element_for_each_short_row_go_along_the_columns() -> None:
    ones, rows = tensor(5, 32, 32, 3, 1, type=F32), tensor(3, type=F32, number=1)
    graph = made((5, 32, 32, 3, 3), ones, rows)
    assert shapes(graph) == [("map", (3, 5, 32, 32, 3)), ("copy", (5, 32, 32, 3, 3))]
    map, copy = graph.kernels
    assert map.operands[0].strides == (0, 3072, 96, 3, 1)
    assert map.operands[1].strides == (1, 0, 0, 0, 0)
    assert copy.operands[0].buffer is map.y.buffer
    assert copy.operands[0].strides == (3072, 96, 3, 1, 15360)
    assert copy.y.buffer.tensor == 99


def test_what_is_dense_is_turned_too() -> None:
    image, ones = tensor(1, 80, 1, 50, 3, type=F32), tensor(1, 80, 1, 50, 1, type=F32, number=1)
    graph = made((1, 80, 1, 50, 3), image, ones)
    assert graph.kernels[0].y.size >= repeats.LEAST
    assert shapes(graph) == [("copy", (3, 80, 50)), ("map", (3, 80, 50)), ("copy", (80, 50, 3))]
    turn, map, _ = graph.kernels
    assert turn.operands[0].strides == (1, 150, 3)
    assert map.operands[0].buffer is turn.y.buffer
    assert map.operands[1].strides == (0, 50, 1)


def test_what_goes_along_rows_stays() -> None:
    for shape in ((1000, 16), (2000, 3), (9000, 1)):  # rows that fill a line, few elements, rows of one
        graph = made(shape, tensor(*shape, type=F32), tensor(shape[0], 1, type=F32, number=1))
        assert shapes(graph) == [("map", shape)]
    partly = tensor(1, 500, 1, type=F32, number=1)
    assert shapes(made((10, 500, 3), tensor(10, 500, 3, type=F32), partly)) == [("map", (10, 500, 3))]
    single = tensor(1, 1, type=F32, number=1)
    assert shapes(made((5000, 3), tensor(5000, 3, type=F32), single)) == [("map", (5000, 3))]
