from __future__ import annotations

import numpy as np

from gossamer.codegen.basis import CELLS, PRELU
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.elementwise import Map
from gossamer.codegen.split import split
from gossamer.schema.enums import TensorType
from gossamer.targets.avx2 import TARGET
from gossamer.views import POINTWISE, Buffer, View

F32, I32, I16, INT8, F16 = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT16, TensorType.INT8, TensorType.FLOAT16)


def image(*shape: int, type: TensorType = F32) -> View:
    return Buffer(shape or (1, 4, 4, 8), type).view()


def mapped(expression: object, *operands: View, y: View) -> Kernel:
    return Kernel("map", list(operands), y, None, expression, 1)  # type: ignore[arg-type]


def test_one_function_is_of_one_piece() -> None:
    x, y = image(), image()
    assert split(mapped(("relu", 0), x, y=y)) == []
    assert split(mapped(0, x, y=y)) == []


def test_an_epilogue_becomes_a_map_that_works_in_place() -> None:
    x, y, weights, bias = image(), image(), image(8, 1, 1, 8), image(8)
    residual = image()
    kernel = Kernel("contract", [x, weights, bias, residual], y, POINTWISE, ("relu", ("add", 0, 1)), 3, ("CONV_2D 0",))
    product, map = split(kernel)
    assert (product.kind, product.epilogue, product.operands) == ("contract", 0, [x, weights, bias])
    assert product.y is y
    assert (map.kind, map.epilogue, map.operands, map.y) == ("map", kernel.epilogue, [y, residual], y)
    assert product.origin == map.origin == ("CONV_2D 0",)


def test_what_an_epilogue_reads_is_not_overwritten_before() -> None:
    x, y, weights, bias = image(), image(), image(8, 1, 1, 8), image(8)
    product, map = split(Kernel("contract", [x, weights, bias, y], y, POINTWISE, ("add", 0, 1), 3))
    assert product.y.buffer is not y.buffer
    assert map.operands == [product.y, y]


def test_short_rows_with_rests_are_not_written_where_they_are_read() -> None:
    x, weights, bias = image(), image(24, 1, 1, 8), image(24)
    for channels, is_in_place in ((24, False), (32, True)):
        y, slopes = image(1, 4, 4, channels), image(channels).broadcast((1, 4, 4, channels))
        product, map = split(Kernel("contract", [x, weights, bias, slopes], y, POINTWISE, ("prelu", 0, 1), 3))
        assert (product.y is y) == is_in_place
        assert (map.operands, map.y) == ([product.y, slopes], y)


def test_a_prelu_that_is_written_out_stays_together() -> None:
    x, slopes, other, y = image(), image(), image(), image()
    prelu, sum = split(
        mapped(("add", ("sub", ("relu", 0), ("mul", ("relu", ("neg", 0)), 1)), 2), x, slopes, other, y=y)
    )
    assert (prelu.epilogue, prelu.operands) == (PRELU, [x, slopes])
    assert (sum.epilogue, sum.operands, sum.y) == (("add", 0, 1), [prelu.y, other], y)
    assert PRELU in [spec.expression for spec in Map.ships(TARGET) if isinstance(spec, Map)]


def test_every_function_becomes_a_map() -> None:
    x, other, y = image(), image(), image()
    first, second, third = split(mapped(("mul", 0, ("exp", ("add", 0, 1))), x, other, y=y))
    assert [kernel.epilogue for kernel in (first, second, third)] == [("add", 0, 1), ("exp", 0), ("mul", 0, 1)]
    assert third.operands == [x, second.y]
    assert third.y is y


def test_recurrent_cells_fall_apart_into_what_ships() -> None:
    (of_state, _), (of_output, _), (of_candidate, _), (of_blend, _), _ = CELLS
    *gates, y = (image() for _ in range(9))
    one = View(Buffer((1,), F32), y.shape, (0,) * 4, 0)
    update = ("logistic", ("add", 0, 1))
    candidate = ("tanh", ("add", ("mul", ("logistic", ("add", 3, 4)), 5), 6))
    # As ONNX and torch have a GRU, whose product has its operands in the other order.
    blend = ("add", ("mul", update, 2), ("mul", candidate, ("sub", 7, update)))
    first, second = split(mapped(blend, *gates[:7], one, y=y))
    assert (first.epilogue, first.operands) == (of_candidate, gates[3:7])
    assert (second.epilogue, second.operands) == (of_blend, [*gates[:3], one, first.y])
    assert second.y is y
    state = ("add", ("mul", ("logistic", 1), 2), ("mul", ("logistic", 3), ("tanh", 4)))
    first, second = split(mapped(("mul", ("logistic", 0), ("tanh", state)), *gates[:5], y=y))
    assert (first.epilogue, first.operands) == (of_state, gates[1:5])
    assert (second.epilogue, second.operands) == (of_output, [gates[0], first.y])
    assert len(split(first)) == 6  # which are functions, where that does not ship


def test_cells_are_of_floats() -> None:
    x, y = image(type=INT8), image(type=INT8)
    gate = ("mul", ("logistic", ("tof32", 0)), ("tanh", ("tof32", 1)))
    assert CELLS[1][0] in [kernel.epilogue for kernel in split(mapped(gate, x, x, y=y))]
    assert CELLS[1][0] not in [kernel.epilogue for kernel in split(mapped(("mul", 0, 1), x, x, y=y))]


def test_what_occurs_twice_is_computed_once() -> None:
    x, y = image(), image()
    maps = split(mapped(("mul", ("exp", 0), ("add", ("exp", 0), 0)), x, y=y))
    assert [kernel.epilogue[0] for kernel in maps if not isinstance(kernel.epilogue, int)] == ["exp", "add", "mul"]


def test_functions_that_have_a_kernel_stay_together() -> None:
    x, deviation, scale, offset, y = (image() for _ in range(5))
    scaled = ("relu", ("add", ("mul", 0, 1), 2))
    kernel = mapped(("relu", ("add", ("mul", ("mul", 0, 1), 2), 3)), x, deviation, scale, offset, y=y)
    first, second = split(kernel, lambda map: map.epilogue == scaled)
    assert (first.epilogue, first.operands) == (("mul", 0, 1), [x, deviation])
    assert (second.epilogue, second.operands, second.y) == (scaled, [first.y, scale, offset], y)


def test_what_they_share_is_one_operand() -> None:
    x, other, y = image(), image(), image()
    silu, total = ("mul", 0, ("logistic", 0)), ("add", 0, 1)
    kernel = mapped(("mul", total, ("logistic", total)), x, other, y=y)
    sum, activation = split(kernel, lambda map: map.epilogue == silu)
    assert (sum.epilogue, activation.epilogue, activation.operands) == (total, silu, [sum.y])


def test_conversions_are_maps_of_their_own() -> None:
    x, y = image(type=INT8), image(type=INT8)
    maps = split(mapped(("add", ("toi32", 0), ("toi32", 0)), x, y=y))
    assert [kernel.epilogue for kernel in maps] == [0, ("add", 0, 1), 0]
    assert [kernel.y.type for kernel in maps] == [I32, I32, INT8]
    half = image(type=F16)
    maps = split(mapped(("relu", 0), half, y=image(type=F16)))
    assert [kernel.y.type for kernel in maps] == [F32, F32, F16]


def test_what_was_several_operators_is_these_first() -> None:
    x, other, y = image(type=I16), image(type=I16), image(type=I16)
    words = [View(Buffer((6,), I32), x.shape, (0,) * 4, 0) for _ in range(4)]
    table, first, second, to = words
    looked_up = ("toi16", ("tanh16", ("toi32", 1), 5))
    added = ("add", ("scalein", ("toi32", looked_up), 2), ("scalein", ("toi32", 0), 3))
    function, sum = split(mapped(("scaleout", added, 4), other, x, first, second, to, table, y=y))
    assert (function.epilogue, function.operands) == (("tanh16", ("toi32", 0), 1), [x, table])
    assert sum.epilogue == ("scaleout", ("add", ("scalein", ("toi32", 0), 2), ("scalein", ("toi32", 1), 3)), 4)
    assert sum.operands == [function.y, other, first, second, to]
    assert (function.y.type, sum.y) == (I16, y)
    assert len(split(sum)) > 3  # an operator is its functions


def test_what_is_written_as_another_type_is_converted_first() -> None:
    x, y = image(), image()
    first, second = split(mapped(("toi32", ("add", 0, ("mul", 0, 0))), x, y=y))
    assert (first.epilogue, first.y.type) == (("add", 0, ("mul", 0, 0)), I32)
    assert (second.epilogue, second.operands, second.y) == (0, [first.y], y)


def test_operands_come_in_order() -> None:
    x, other = image(), image()
    (map,) = split(mapped(("max", 1, 0), x, other, y=image()))
    assert (map.epilogue, map.operands) == (("max", 0, 1), [other, x])


def test_what_is_the_same_everywhere_is_computed_once() -> None:
    """The deviation of each row, not of each element."""
    x, variance = image(1, 4, 4, 8), image(1, 4, 4, 1).broadcast((1, 4, 4, 8))
    row, product = split(mapped(("mul", 0, ("rsqrt", 1)), x, image(1, 1, 1, 8).broadcast(x.shape), y=image()))
    assert row.y.buffer.shape == (1, 1, 1, 8)
    assert product.operands[1].strides[1:] == (0, 0, 1)
    row, _ = split(mapped(("mul", 0, ("rsqrt", 1)), x, variance, y=image()))
    assert row.y.buffer.shape == (1, 4, 4, 8)  # the last dimension stays, for rows are contiguous


def test_parameters_stay_parameters() -> None:
    numbers = Buffer((6,), I32, -1, np.zeros(6, np.int32)).view()
    parameters = View(numbers.buffer, (1, 4, 4, 8), (0,) * 4, 0)
    x, y = image(type=INT8), image(type=INT8)
    sum, lookup = split(mapped(("qadd", ("qadd", 0, 0, 1), 0, 1), x, parameters, y=y))
    assert (sum.epilogue, lookup.epilogue) == (("qadd", 0, 1, 2), ("qadd", 0, 1, 2))
    assert sum.operands[2].buffer is lookup.operands[2].buffer is numbers.buffer
