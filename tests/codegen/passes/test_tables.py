from __future__ import annotations

import numpy as np

from gossamer.codegen.expression import Expression
from gossamer.codegen.graph import Kernel, KernelGraph
from gossamer.codegen.passes import fuse, tables
from gossamer.schema import TensorType
from gossamer.views import Buffer, View

I8, U8, F32, I32 = TensorType.INT8, TensorType.UINT8, TensorType.FLOAT32, TensorType.INT32
SHAPE = (4, 6)


def constant(values: np.ndarray, type: TensorType) -> Buffer:
    return Buffer(values.shape, type, -1, values)


def array(values: np.ndarray, type: TensorType = I32) -> View:
    """Parameters."""
    return View(constant(values, type), SHAPE, (0, 0), 0)


def table() -> View:
    return array(np.arange(256, dtype=np.uint8).view(np.int8), I8)


def numbers() -> View:
    return array(np.zeros(7, np.int32))


def mapped(graph: KernelGraph, expression: Expression, *operands: View, type: TensorType = I8) -> View:
    return graph.add("map", operands, SHAPE, type, epilogue=expression, arity=1)


def image(tensor: int = 0, type: TensorType = I8) -> View:
    return Buffer(SHAPE, type, tensor).view()


def expressions(graph: KernelGraph) -> list[Expression]:
    graph.kernels[-1].y.buffer.tensor = 99
    fuse.run(graph)
    tables.run(graph)
    return [kernel.epilogue for kernel in graph.kernels]


LOOKUP: Expression = ("lookup", 0, 1)


def test_a_tensor_times_its_table_is_a_table() -> None:
    graph = KernelGraph()
    x = image()
    inner = mapped(graph, LOOKUP, x, table())
    mapped(graph, ("qmul", 0, 1, 2), x, inner, numbers())
    assert expressions(graph) == [("qmul", 0, ("lookup", 0, 1), 2), LOOKUP]
    filling, looking = graph.kernels
    every = filling.operands[0].buffer.array
    assert every is not None
    assert every.view(np.uint8).tolist() == list(range(256))
    assert looking.operands[0].buffer is x.buffer
    assert looking.operands[1].buffer is filling.y.buffer
    assert filling.y.shape == (256,)
    assert graph.known() >= {id(filling.y.buffer)}
    assert id(looking.y.buffer) not in graph.known()


def test_a_table_behind_a_table_is_one() -> None:
    graph = KernelGraph()
    mapped(graph, LOOKUP, mapped(graph, LOOKUP, image(), table()), table())
    assert expressions(graph) == [("lookup", ("lookup", 0, 1), 2), LOOKUP]


def test_floats_in_between_are_not_computed() -> None:
    graph = KernelGraph()
    real = mapped(graph, ("tof32", 0), image(), type=F32)
    mapped(graph, ("neg", 0), real)
    assert expressions(graph) == [("neg", ("tof32", 0)), LOOKUP]
    assert graph.kernels[0].y.type == I8


def test_floats_in_between_that_are_part_of_a_map_are_not_computed() -> None:
    graph = KernelGraph()
    one = View(constant(np.ones(1, np.float32), F32), SHAPE, (0, 0), 0)
    negated = mapped(graph, ("toi8", ("roundaway", ("neg", ("mul", ("tof32", 0), 1)))), image(), one)
    mapped(graph, ("qmul", 0, 1, 2), negated, image(1), numbers())
    filling, scaled = expressions(graph)
    assert filling == ("toi8", ("roundaway", ("neg", ("mul", ("tof32", 0), 1))))
    assert scaled == ("qmul", ("lookup", 0, 3), 1, 2)
    assert graph.kernels[1].operands[3].buffer is graph.kernels[0].y.buffer


def test_constants_of_one_element_are_part_of_a_table() -> None:
    graph = KernelGraph()
    one = constant(np.array([3], np.int8), I8).view().broadcast(SHAPE)
    mapped(graph, LOOKUP, mapped(graph, ("qadd", 0, 1, 2), one, image(), numbers()), table())
    assert expressions(graph) == [("lookup", ("qadd", 0, 1, 2), 3), LOOKUP]
    assert graph.kernels[1].operands[0].buffer.tensor == 0


def test_types_may_change() -> None:
    graph = KernelGraph()
    middle = mapped(graph, LOOKUP, image(), array(np.zeros(256, np.uint8), U8), type=U8)
    mapped(graph, LOOKUP, middle, table())
    assert expressions(graph)[-1] == LOOKUP
    assert [view.type for view in (graph.kernels[1].operands[0], graph.kernels[1].y)] == [I8, I8]


def test_what_stays() -> None:
    graph = KernelGraph()
    channels = constant(np.arange(6, dtype=np.int8), I8).view().broadcast(SHAPE)
    cases: list[tuple[Expression, tuple[View, ...], TensorType]] = [
        (LOOKUP, (image(), table()), I8),  # is one
        (("max", 0, 1), (image(), image(1)), I8),  # one function, and two tensors
        (("lookup", ("qadd", 0, 1, 2), 3), (image(), image(1), numbers(), table()), I8),  # two tensors
        (("lookup", ("max", 0, 1), 2), (image(), channels, table()), I8),  # differs from channel to channel
        (("tof32", ("lookup", 0, 1)), (image(), table()), F32),  # to floats
        (("neg", ("toi8", 0)), (image(0, F32),), I8),  # of floats
        (("neg", 0), (image(),), I8),  # as quick
    ]
    for expression, operands, type in cases:
        graph = KernelGraph()
        mapped(graph, expression, *operands, type=type)
        assert expressions(graph) == [expression]


def test_epilogues() -> None:
    graph = KernelGraph()
    y = graph.add("contract", [image(), table(), numbers()], SHAPE, I8, epilogue=0, arity=3)
    product = graph.kernels[0]
    product.operands += [table(), numbers(), numbers()]
    product.epilogue = ("qmul", 0, ("lookup", 0, 1), 2)
    tables.run(graph)
    filling, product = graph.kernels
    assert (filling.kind, filling.epilogue) == ("map", ("qmul", 0, ("lookup", 0, 1), 2))
    assert product.epilogue == LOOKUP
    assert (product.arity, len(product.operands)) == (3, 4)
    assert product.operands[3].buffer is filling.y.buffer
    assert product.y is y


def test_epilogues_with_a_row_of_one_number() -> None:
    for values, is_table in (([5] * 6, True), (list(range(6)), False)):
        graph = KernelGraph()
        graph.add("quantized_contract", [image(), table(), numbers()], SHAPE, I8, epilogue=0, arity=3)
        (product,) = graph.kernels
        product.operands += [constant(np.array(values, np.int8), I8).view().broadcast(SHAPE), numbers()]
        product.epilogue = ("qmul", 0, 1, 2)
        tables.run(graph)
        assert [kernel.kind for kernel in graph.kernels] == ["map"] * is_table + ["quantized_contract"]
        assert product.epilogue == (LOOKUP if is_table else ("qmul", 0, 1, 2))


def test_parameters_are_not_fused_away() -> None:
    graph = KernelGraph()
    entries = graph.add("map", [constant(np.arange(256, dtype=np.uint8).view(np.int8), I8).view()], (256,), I8,
                        epilogue=("neg", 0), arity=1)  # fmt: skip
    mapped(graph, LOOKUP, image(), View(entries.buffer, SHAPE, (0, 0), 0))
    assert expressions(graph) == [("neg", 0), LOOKUP]


LARGE = (64, 256)


def large(expression: Expression, *operands: View, type: TensorType = I8) -> list[Kernel]:
    """The kernels that a large map becomes; its inputs are broadcast, and so are parameters."""
    graph = KernelGraph()
    graph.add("map", [view.broadcast(LARGE) for view in operands], LARGE, type, epilogue=expression, arity=1)
    graph.kernels[-1].y.buffer.tensor = 99
    tables.run(graph)
    return graph.kernels


def of_shape(shape: tuple[int, ...], tensor: int, type: TensorType = I8) -> View:
    return Buffer(shape, type, tensor).view()


def parameters(count: int) -> View:
    return View(constant(np.zeros(count, np.int32), I32), LARGE, (0, 0), 0)


def test_a_function_of_bytes_and_one_byte_of_each_row_is_a_matrix() -> None:
    x, mean, p = of_shape(LARGE, 0), of_shape((64, 1), 1), parameters(4)
    inner: Expression = ("sqrdiff", ("scalein", ("toi32", 0), 2), ("scalein", ("toi32", 1), 3))
    filling, looking = large(("scaleout", inner, 4), x, mean, p, parameters(4), parameters(6))
    assert looking.epilogue == ("lookuprow", 0, 1, 2)
    assert [view.buffer for view in looking.operands] == [x.buffer, mean.buffer, filling.y.buffer]
    assert filling.epilogue == ("toi8", ("scaleout", ("sqrdiff", ("scalein", ("toi32", 0), 2), inner[2]), 4))
    columns, rows = filling.operands[:2]
    assert (filling.y.shape, columns.strides, rows.strides) == ((256, 256), (0, 1), (1, 0))


def test_parts_of_an_expression_are_tables_once() -> None:
    factor = ("qmul", 0, 1, 2)
    expression: Expression = ("qadd", ("qmul", 3, factor, 4), ("qmul", 5, factor, 6), 7)
    operands = (of_shape((64, 1), 0), of_shape((256,), 1), parameters(6), of_shape(LARGE, 2), parameters(6),
                of_shape((64, 1), 3), parameters(6), parameters(7))  # fmt: skip
    *fillings, looking = large(expression, *operands)
    scaled = ("lookuprow", 1, 0, 6)
    assert looking.epilogue == ("qadd", ("qmul", 2, scaled, 3), ("lookuprow", scaled, 4, 7), 5)
    assert [kernel.epilogue for kernel in fillings] == [("qmul", 1, 0, 2), ("qmul", 1, 0, 2)]
    assert [view.buffer for view in looking.operands[6:]] == [kernel.y.buffer for kernel in fillings]


def test_a_function_behind_sums_is_a_table() -> None:
    sums, one = of_shape(LARGE, 0, I32), constant(np.array([3], np.int8), I8).view()
    expression: Expression = ("qmul", ("toi8", ("scaleout", 0, 1)), 2, 3)
    filling, looking = large(expression, sums, parameters(6), one, parameters(6))
    assert looking.epilogue == ("lookup", ("toi8", ("scaleout", 0, 1)), 2)
    assert (filling.y.shape, filling.epilogue) == ((256,), ("qmul", 0, 1, 2))


def test_what_stays_of_large_maps() -> None:
    x, y, row = of_shape(LARGE, 0), of_shape(LARGE, 1), of_shape((64, 1), 2)
    for expression, operands in (
        (("qmul", 0, 1, 2), (x, y, parameters(6))),  # both differ from element to element
        (("max", 0, 1), (x, row)),  # as quick
        (("toi8", ("sub", ("toi32", 0), ("toi32", 1))), (x, of_shape((64, 1), 2, U8))),  # of two types
    ):
        (kernel,) = large(expression, *operands)
        assert kernel.epilogue == expression
