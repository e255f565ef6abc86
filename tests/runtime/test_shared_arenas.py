"""Subgraphs that operators call take turns in one arena."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Interpreter, OpResolverType
from gossamer.model import read_model
from gossamer.runtime.arenas import call_depths
from gossamer.schema import IfOptions, TensorType, WhileOptions
from tests.runtime.graphs import ModelMaker
from tests.runtime.test_control_flow import nested, run, stateful_branch

REFERENCE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES


def branches(sizes: tuple[int, int] = (4, 100), signature: bool = False) -> bytes:
    """y = sum of x over ``size`` copies, by one of two branches; each has three such tensors inside."""
    make = ModelMaker()
    c, x, y = make.tensor((), TensorType.BOOL), make.tensor((1,)), make.tensor((1,))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([c, x], [y])
    for name, size in zip(("then", "else"), sizes, strict=True):
        number = make.subgraph(name)
        x, y = make.tensor((1,)), make.tensor(())
        wide = [make.tensor((size,)) for _ in range(3)]
        make.op("ADD", [x, make.constant(np.zeros(size), np.float32, TensorType.FLOAT32)], [wide[0]])
        make.op("NEG", [wide[0]], [wide[1]])
        make.op("NEG", [wide[1]], [wide[2]])
        make.op("SUM", [wide[2], make.constant([0], np.int32, TensorType.INT32)], [y])
        make.io([x], [y])
        if signature and name == "else":
            make.signature("else", {"x": x}, {"y": y}, number)
    return make.model()


def reference(content: bytes, **settings: Any) -> Interpreter:
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=REFERENCE, **settings)
    interpreter.allocate_tensors()
    return interpreter


def test_branches_lie_in_one_block_and_run() -> None:
    interpreter = reference(branches())
    report = interpreter.memory_report()
    needed = [interpreter.memory_plan(index).size for index in range(3)]
    assert dict(report.arenas) == dict(enumerate(needed))
    assert [(block.subgraphs, block.bytes) for block in report.shared] == [((1, 2), max(needed[1:]))]
    assert report.saved == min(needed[1:]) > 0
    assert report.total == sum(needed) - report.saved + sum(report.persistent.values())
    for condition in (True, False, True):
        assert run(interpreter, condition, [2]) == [8 if condition else 200]


def test_each_plan_is_as_if_it_were_alone() -> None:
    shared, alone = reference(branches()), reference(branches(), experimental_preserve_all_tensors=False)
    for subgraph in alone._subgraphs:
        subgraph.shared_arena = None
        subgraph.reallocate()
    for index in range(3):
        assert shared.memory_plan(index) == alone.memory_plan(index)


def test_what_users_run_keeps_its_own() -> None:
    interpreter = reference(branches(signature=True))
    assert [block.subgraphs for block in interpreter.memory_report().shared] == [(1,)]
    assert interpreter.memory_report().saved == 0
    runner = interpreter.get_signature_runner("else")
    assert runner(x=np.float32([3]))["y"] == 300
    assert run(interpreter, True, [1]) == [4]
    assert interpreter.get_tensor(1, subgraph_index=2) == 300


@pytest.mark.filterwarnings("ignore:experimental_preserve_all_tensors")
def test_to_preserve_all_tensors_is_to_share_nothing() -> None:
    interpreter = reference(branches(), experimental_preserve_all_tensors=True)
    assert interpreter.memory_report().shared == ()
    run(interpreter, False, [2])
    run(interpreter, True, [2])
    assert interpreter.get_tensor(4, subgraph_index=2).tolist() == [2] * 100


@pytest.mark.parametrize("resolver", [OpResolverType.AUTO, REFERENCE], ids=["jit", "reference"])
def test_a_block_that_grows_takes_all_along(resolver: OpResolverType) -> None:
    make = ModelMaker()
    c, x, y = make.tensor((), TensorType.BOOL), make.tensor((2,), shape_signature=(-1,)), make.tensor((2,))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([c, x], [y])
    for name in ("then", "else"):
        make.subgraph(name)
        a, b, d = make.tensor((2,)), make.tensor((2,)), make.tensor((2,))
        make.op("NEG", [a], [b])
        make.op("ADD", [b, b] if name == "then" else [b, a], [d])
        make.io([a], [d])
    interpreter = Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver)
    for size in (2, 500, 3, 1000):
        interpreter.resize_tensor_input(1, [size])
        interpreter.allocate_tensors()
        for condition in (True, False):
            assert run(interpreter, condition, np.ones(size)) == [[-2.0 if condition else 0.0] * size]
    memories = {id(s._arenas[2]) for s in interpreter._subgraphs[1:]}
    assert len(memories) == 1


def test_depths_of_loops_in_loops() -> None:
    assert call_depths(read_model(nested())) == [0, 1, 1, 2, 2]
    shared = reference(nested()).memory_report().shared
    assert [block.subgraphs for block in shared] == [(1, 2), (3, 4)]


def test_the_longest_way_counts_and_circles_do_not() -> None:
    make = ModelMaker()

    def calls(*subgraphs: int) -> None:
        c, x, y = make.tensor((), TensorType.BOOL), make.tensor((1,)), make.tensor((1,))
        make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=subgraphs[0], else_subgraph_index=subgraphs[1]))
        make.io([c, x], [y])

    calls(1, 2)
    make.subgraph("1")
    calls(2, 2)
    make.subgraph("2")
    make.subgraph("3")
    calls(4, 99)
    make.subgraph("4")
    calls(3, 5)
    make.subgraph("5")
    assert call_depths(read_model(make.model())) == [0, 1, 2, None, None, None]


def test_a_call_that_no_option_names_finds_memory_of_its_own() -> None:
    """A custom operator may call any subgraph, also one at the depth of its own."""

    @gossamer.custom_op("Calls")
    class Calls:
        def prepare(self, ctx: Any) -> None:
            ctx.subgraph(2).allocate([(64,)])
            ctx.set_shape(0, (64,))

        def invoke(self, ctx: Any) -> Any:
            return ctx.subgraph(2).call([ctx.value(0)])

    make = ModelMaker()
    c, x, y = make.tensor((), TensorType.BOOL), make.tensor((64,)), make.tensor((64,))
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([c, x], [y])
    make.subgraph("1")
    x, a, b, y = (make.tensor((64,)) for _ in range(4))
    make.op("NEG", [x], [a])
    make.op("Calls", [a], [b], custom=True)
    make.op("ADD", [a, b], [y])
    make.io([x], [y])
    make.subgraph("2")
    x, a, b, y = (make.tensor((64,)) for _ in range(4))
    make.op("ADD", [x, x], [a])
    make.op("ADD", [a, x], [b])
    make.op("ADD", [a, b], [y])
    make.io([x], [y])
    interpreter = reference(make.model(), custom_ops=[Calls])
    for _ in range(2):
        assert run(interpreter, True, np.full(64, 1)) == [[-6.0] * 64]
        assert run(interpreter, False, np.full(64, 1)) == [[5.0] * 64]


def test_rooms_of_loops_are_reported() -> None:
    make = ModelMaker()
    i, end = make.tensor((8,)), make.tensor((8,))
    make.op("WHILE", [i], [end], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([i], [end])
    make.subgraph("cond")
    i, least, less = make.tensor((8,)), make.tensor(()), make.tensor((), TensorType.BOOL)
    make.op("REDUCE_MIN", [i, make.constant([0], np.int32, TensorType.INT32)], [least])
    make.op("LESS", [least, make.constant(5, np.float32, TensorType.FLOAT32)], [less])
    make.io([i], [less])
    make.subgraph("body")
    i, after = make.tensor((8,)), make.tensor((8,))
    make.op("ADD", [i, make.constant(1, np.float32, TensorType.FLOAT32)], [after])
    make.io([i], [after])
    interpreter = reference(make.model())
    assert interpreter.memory_report().loops == 0
    assert run(interpreter, np.zeros(8)) == [[5.0] * 8]
    assert interpreter.memory_report().loops == 32


def test_a_block_that_was_larger_before_saves_nothing_less() -> None:
    interpreter = Interpreter(model_content=stateful_branch())
    interpreter.allocate_tensors()
    report = interpreter.memory_report()
    (block,) = report.shared
    needed = [report.arenas[index] for index in block.subgraphs]
    assert report.saved == max(0, sum(needed) - block.bytes) >= 0
    assert report.total == report.arenas[0] + block.bytes + sum(report.persistent.values())
