"""The work of kernels is counted right, and the commands of a program are told as they are."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.codegen.build import build
from gossamer.codegen.expression import IDENTITY
from gossamer.codegen.graph import Boxes, Kernel, KernelGraph
from gossamer.codegen.passes.rows import Rows
from gossamer.codegen.report import Work, arguments_of, commands_of, total, work_of
from gossamer.schema.enums import TensorType
from gossamer.targets import all_targets
from gossamer.views import POINTWISE, Buffer, Geometry, View

F32, I8 = TensorType.FLOAT32, TensorType.INT8
TARGET = all_targets()["avx2"]
SAME = Geometry((3, 3), (1, 1), (1, 1), (1, 1), (4, 4))


def view(*shape: int, type: TensorType = F32) -> View:
    return Buffer(shape, type).view()


def constant(*shape: int) -> View:
    return Buffer(shape, F32, -1, np.ones(shape, np.float32)).view()


def test_convolution() -> None:
    node = Kernel("contract", [view(1, 4, 4, 8), view(16, 3, 3, 8), view(16)], view(1, 4, 4, 16), SAME, ("relu", 0))
    # 72 products and sums, the bias and the activation for each of 256 results.
    assert work_of(node) == Work(256 * (2 * 72 + 2), 4 * (128 + 1152 + 16), 4 * 256)


def test_grouped_convolution_sums_over_its_group() -> None:
    node = Kernel("contract", [view(1, 4, 4, 8), view(16, 1, 1, 2), view(16)], view(1, 4, 4, 16), POINTWISE)
    assert work_of(node).flops == 256 * (2 * 2 + 1)


def test_depthwise() -> None:
    node = Kernel("depthwise", [view(1, 4, 4, 8), view(3, 3, 8), view(8)], view(1, 4, 4, 8), SAME)
    assert work_of(node) == Work(128 * (2 * 9 + 1), 4 * (128 + 72 + 8), 4 * 128)


def test_matmul() -> None:
    x, y = view(2, 3, 5), view(1, 5, 7).broadcast((2, 5, 7))
    assert work_of(Kernel("matmul", [x, y], view(2, 3, 7))) == Work(42 * 10, 4 * (30 + 35), 4 * 42)
    assert work_of(Kernel("matmul", [x, y, view(7)], view(2, 3, 7))).flops == 42 * 11


def test_rows_are_three_kernels() -> None:
    expand = Kernel(
        "contract", [view(1, 4, 4, 8), view(16, 1, 1, 8), view(16)], view(1, 4, 4, 16), POINTWISE, ("relu", 0)
    )
    middle = Kernel("depthwise", [expand.y, view(3, 3, 16), view(16)], view(1, 4, 4, 16), SAME, ("relu6", 0))
    last = Kernel("contract", [middle.y, view(8, 1, 1, 16), view(8)], view(1, 4, 4, 8), POINTWISE, ("add", 0, 1), 3)
    last.operands.append(expand.operands[0])
    parts = [expand, middle, last]
    operands = [*expand.operands, *middle.operands[1:], *last.operands[1:]]
    rows = Rows((POINTWISE, expand.epilogue), SAME, middle.epilogue)
    fused = Kernel("rows", operands, last.y, rows, last.epilogue, 7)
    weights = 128 + 16 + 144 + 16 + 128 + 8
    # The residual is the image, which is read once.
    assert work_of(fused) == Work(sum(work_of(part).flops for part in parts), 4 * (128 + weights), 4 * 128)
    alone = Kernel("rows", [view(1, 4, 4, 16), *operands[3:7]], last.y, Rows(None, SAME, middle.epilogue))
    assert work_of(alone).flops == work_of(middle).flops + work_of(last).flops - 128  # which has the addition


def test_pools_reductions_and_softmax() -> None:
    image = view(1, 4, 4, 8)
    assert work_of(Kernel("window", [image], view(1, 4, 4, 8), ("max", SAME))).flops == 128 * 9
    assert work_of(Kernel("reduce", [image], view(1, 1, 1, 8), ("mean", (1, 2), IDENTITY))) == Work(128, 4 * 128, 4 * 8)
    assert work_of(Kernel("softmax", [view(2, 10)], view(2, 10), (1.0, False))) == Work(120, 80, 80)


def test_normalizations_and_resizes() -> None:
    x = view(2, 10)
    flops = {norm: work_of(Kernel("normalize", [x], x, {"norm": norm, "epsilon": 0})).flops for norm in ("layer", "l2")}
    assert flops == {"layer": 6 * 20, "l2": 3 * 20}
    assert work_of(Kernel("localresponse", [x], x, {"radius": 2})).flops == 8 * 20
    assert work_of(Kernel("localresponse", [x], x, {"radius": 9})).flops == 13 * 20
    image, larger = view(1, 2, 2, 3), view(1, 2, 4, 3)
    nearest = {"rows": [0, 1], "columns": [0, 0, 1, 1]}
    assert work_of(Kernel("resize", [image], larger, nearest)) == Work(0, 4 * 12, 4 * 24)
    between = {"rows": [(0, 1, 0.5)], "columns": [(0, 1, 0.5)]}
    assert work_of(Kernel("resize", [image], larger, between)).flops == 9 * 24


def test_expressions_count_functions_once_and_operands_as_they_lie() -> None:
    x, row = view(6, 8), view(8).broadcast((6, 8))
    twice = ("mul", ("add", 0, 1), ("logistic", ("add", 0, 1)))
    node = Kernel("map", [x, row], view(6, 8), epilogue=twice, arity=1)
    assert work_of(node) == Work(48 * 3, 4 * (48 + 8), 4 * 48)
    square = Kernel("map", [x, x], view(6, 8), epilogue=("mul", 0, 1), arity=1)
    assert work_of(square) == Work(48, 4 * 48, 4 * 48)
    part = Kernel("map", [x.slice(1, 0, 2)], view(6, 2), epilogue=("relu", 0))
    assert work_of(part).read == 4 * 12


def test_indexed_moves_count_what_they_move() -> None:
    table, indices = view(1000, 8), view(3, 1, type=TensorType.INT32)
    gather = Kernel("gather", [table, indices], view(3, 8), Boxes((0,), (1, 8)))
    assert work_of(gather) == Work(0, 4 * 24 + 4 * 3, 4 * 24)
    put = Kernel("put", [view(2, 8), indices.slice(0, 0, 1)], table, Boxes((0,), (2, 8)))
    assert work_of(put) == Work(0, 4 * 16 + 4, 4 * 16)


def test_moves_have_bytes_of_their_type() -> None:
    small = view(3, 5, type=I8)
    assert work_of(Kernel("copy", [small.permute((1, 0))], view(5, 3, type=I8))) == Work(0, 15, 15)
    one = view(type=I8).broadcast((5, 3))
    assert work_of(Kernel("copy", [one], view(5, 3, type=I8))) == Work(0, 1, 15)
    assert work_of(Kernel("border", [], view(1, 4, 6, 8), (1, 2, 0, 1))) == Work(0, 0, 4 * 8 * (7 * 7 - 4 * 6))
    assert work_of(Kernel("nonzero", [small], small)) == Work(0, 15, 15)


@pytest.fixture
def graph() -> KernelGraph:
    """y = a grouped 3x3 convolution of 1x1 convolution of x, with names of operators."""
    made = KernelGraph()
    made.inputs[0] = Buffer((1, 4, 4, 8), F32, 0)
    first = [made.inputs[0].view(), constant(16, 1, 1, 8), constant(16)]
    hidden = made.add("contract", first, (1, 4, 4, 16), F32, POINTWISE, origin="CONV_2D 0")
    second = [hidden, constant(8, 3, 3, 8), constant(8)]
    y = made.add("contract", second, (1, 4, 4, 8), F32, SAME, epilogue=IDENTITY, origin="CONV_2D 1")
    y.buffer.tensor, made.outputs[1] = 1, y.buffer
    return made


def test_commands_are_told_in_their_order(graph: KernelGraph) -> None:
    built = build(graph, TARGET)
    commands = commands_of(built)
    assert [(c.kind, c.operators, c.shape) for c in commands] == [
        ("border", ("CONV_2D 0",), (1, 4, 4, 16)),
        ("contract", ("CONV_2D 0",), (1, 4, 4, 16)),
        ("contract", ("CONV_2D 1",), (1, 4, 4, 8)),
        ("contract", ("CONV_2D 1",), (1, 4, 4, 8)),
    ]
    assert [built.plan.kernels[number] for number in built.plan.commands[:, 0]] == [c.kernel for c in commands]
    assert commands[0].calls == ()
    assert all(name.startswith("f32_") and name in built.specs for c in commands[1:] for name in c.calls)
    assert commands[1].operands == ((1, 4, 4, 8), (16, 1, 1, 8), (16,))
    # Each group is a command and half the work.
    first, second = commands[2].work, commands[3].work
    assert first == second
    assert total([first, second]) == work_of(graph.kernels[-1])
    assert total(c.work for c in commands).flops == 256 * 17 + 128 * 145
    assert total([]) == Work(0, 0, 0)


def test_what_prepares_for_a_kernel_has_no_work() -> None:
    made = KernelGraph()
    for tensor, shape in ((0, (4, 6)), (1, (6, 5))):
        made.inputs[tensor] = Buffer(shape, F32, tensor)
    operands = [made.inputs[0].view(), made.inputs[1].view(), constant(5)]
    y = made.add("matmul", operands, (4, 5), F32)
    y.buffer.tensor, made.outputs[2] = 2, y.buffer
    packs, multiplies = commands_of(build(made, TARGET))
    assert (packs.kind, packs.work) == ("matmul", Work(0, 0, 0))
    assert multiplies.work == Work(20 * 13, 4 * (24 + 30 + 5), 80)


def test_argument_blocks_are_told_by_name(graph: KernelGraph) -> None:
    built = build(graph, TARGET)
    border, pointwise, *groups = arguments_of(built)
    assert (border["images"], border["rows"]) == (1, 4)
    assert pointwise["a"] == "tensor0+0"
    assert str(pointwise["c"]).startswith("arena+")
    assert str(pointwise["b"]).startswith("weights+")
    assert [str(group["c"]) for group in groups] == ["tensor1+0", "tensor1+16"]
    names = {value for block in (pointwise, *groups) for value in block.values()}
    assert {name for command in commands_of(built) for name in command.calls} >= names & set(built.specs)
    assert names & set(built.specs)
