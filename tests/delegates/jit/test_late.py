"""Shapes that only the run tells: programs for those that come up, and what is worked out from shapes before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, InvokeError, OpResolverType, PrepareError
from gossamer.arrays import NDArray
from gossamer.codegen.graph import KernelGraph
from gossamer.delegates.jit import compiling, late, sizing
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.delegates.jit.late import LateKernel
from gossamer.delegates.jit.lowered import Refused
from gossamer.errors import CompileError
from gossamer.schema import (
    ConcatenationOptions,
    GatherOptions,
    PackOptions,
    RandomOptions,
    ReducerOptions,
    ReshapeOptions,
    ShapeOptions,
    TensorType,
    TileOptions,
    UniqueOptions,
)
from tests.runtime.graphs import ModelMaker

Array = NDArray[Any]
INT = TensorType.INT32


def tiled() -> bytes:
    """exp(tile(x, multiples)), with multiples that come in."""
    make = ModelMaker()
    x, multiples = make.tensor((2, 3)), make.tensor((2,), INT)
    y, z = make.tensor((2, 3)), make.tensor((2, 3))
    make.op("TILE", [x, multiples], [y], TileOptions())
    make.op("EXP", [y], [z])
    make.io([x, multiples], [z])
    return make.model()


def late_kernel(interpreter: Interpreter) -> LateKernel:
    (kernel,) = [one for one in interpreter.delegate_kernels() if isinstance(one, LateKernel)]
    return kernel


def run(interpreter: Interpreter, *values: Array) -> Array:
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    result: Array = interpreter.get_tensor(output["index"])
    return result


X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_a_value_that_decides_shapes_is_what_a_program_is_made_for() -> None:
    interpreter = Interpreter(model_content=tiled())
    interpreter.allocate_tensors()
    kernel = late_kernel(interpreter)
    exact = Interpreter(model_content=tiled(), experimental_delegates=[])
    expected = np.exp(X)
    for multiples in ([1, 2], [3, 1], [1, 2], [3, 1], [2, 2], [1, 2], [1, 2], [1, 2], [3, 1]):
        for scale in (1, 2):
            y = run(interpreter, X * scale, np.int32(multiples))
            np.testing.assert_allclose(y, np.tile(expected**scale, multiples), rtol=1e-6)
            assert [step.stop for step in kernel.steps] == [2]
            assert all(step.program is not None for step in kernel.steps)
    assert kernel._made == 3  # the last with sizes left open
    assert exact is not interpreter


def test_sizes_that_the_file_leaves_open_are_known_when_it_runs() -> None:
    make = ModelMaker()
    x, k = make.tensor((1, 4), shape_signature=(-1, 4)), make.constant([3], np.int32, INT)
    y, indices, z = make.tensor((1, 3)), make.tensor((1, 3), INT), make.tensor((1, 3))
    make.op("TOPK_V2", [x, k], [y, indices])
    make.op("NEG", [y], [z])
    make.io([x], [z])
    interpreter = Interpreter(model_content=make.model())
    for rows in (1, 5):
        interpreter.resize_tensor_input(0, (rows, 4))
        interpreter.allocate_tensors()
        values = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
        np.testing.assert_array_equal(run(interpreter, values), -np.sort(values)[:, :0:-1])
        assert [(step.stop, step.program is not None) for step in late_kernel(interpreter).steps] == [(2, True)]


def test_what_runs_again_looks_whether_the_value_is_the_same() -> None:
    interpreter = Interpreter(model_content=tiled())
    interpreter.allocate_tensors()
    for _ in range(3):
        run(interpreter, X, np.int32([2, 1]))
    assert interpreter._engine.executor.sole is late_kernel(interpreter)
    y = run(interpreter, X, np.int32([1, 3]))
    assert y.shape == (2, 9)
    y = run(interpreter, X, np.int32([0, 3]))
    assert y.shape == (0, 9)
    y = run(interpreter, 2 * X, np.int32([2, 1]))
    np.testing.assert_allclose(y, np.exp(np.tile(2 * X, (2, 1))), rtol=1e-6)


def test_data_that_decides_no_shape_makes_no_program() -> None:
    """Small integers that are added up are values like any other, even beside those that decide shapes."""
    make = ModelMaker()
    x, multiples, n = make.tensor((3,), INT), make.tensor((1,), INT), make.tensor((1,), INT)
    y, z = make.tensor((3,), INT), make.tensor((3,), INT)
    make.op("TILE", [x, multiples], [y], TileOptions())
    make.op("ADD", [y, n], [z])
    make.io([x, multiples, n], [z])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    for number in range(9):
        z = run(interpreter, np.int32([1, 2, number]), np.int32([2]), np.int32([number]))
        assert np.array_equal(z, np.tile([1, 2, number], 2) + number)
    assert late_kernel(interpreter)._made == 1


def test_a_size_that_nodes_work_out_ends_a_program() -> None:
    """reshape(2 * x, (n + 1, -1)): the sum is known when a first program has run, and not computed in NumPy."""
    make = ModelMaker()
    x, n = make.tensor((12,)), make.tensor((), INT)
    one, rest = make.constant(1, np.int32, INT), make.constant(-1, np.int32, INT)
    rows, shape, double = make.tensor((), INT), make.tensor((2,), INT), make.tensor((12,))
    y, z = make.tensor((1, 1)), make.tensor((1, 1))
    make.op("ADD", [n, one], [rows])
    make.op("PACK", [rows, rest], [shape], PackOptions(values_count=2))
    make.op("ADD", [x, x], [double])
    make.op("RESHAPE", [double, shape], [y], ReshapeOptions())
    make.op("ABS", [y], [z])
    make.io([x, n], [z])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    x = np.arange(-6, 6, dtype=np.float32)
    for rows in (2, 3, 4, 2, 3, 4, 4):
        assert np.array_equal(run(interpreter, x, np.int32(rows - 1)), np.abs(2 * x).reshape(rows, -1))
    kinds = [type(kernel) for kernel in interpreter.delegate_kernels()]
    assert kinds == [JitKernel, LateKernel]
    kernel = late_kernel(interpreter)
    assert kernel._made == 3
    assert all(step.program is not None for step in kernel.steps)


def test_nodes_behind_data_stay_machine_code() -> None:
    """Only the values tell how many UNIQUE finds; what comes behind is made for two numbers, then for any."""
    make = ModelMaker()
    x = make.tensor((8,))
    u, which, y, z = make.tensor((1,)), make.tensor((8,), INT), make.tensor((1,)), make.tensor(())
    axis = make.constant([0], np.int32, INT)
    make.op("UNIQUE", [x], [u, which], UniqueOptions(idx_out_type=INT))
    make.op("EXP", [u], [y])
    make.op("SUM", [y, axis], [z], ReducerOptions())
    make.io([x], [z])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    for count in (1, 3, 8, 3, 1, 8):
        x = (np.arange(8) % count).astype(np.float32)
        z = run(interpreter, x)
        np.testing.assert_allclose(z, np.exp(np.arange(count)).sum(), rtol=1e-6)
        assert [step.program is None for step in late_kernel(interpreter).steps] == [False, False]
    assert late_kernel(interpreter)._made == 4


def test_sizes_that_never_come_back_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "MOST_IN_VAIN", 5)
    monkeypatch.setattr(sizing, "FIRST_TRIED", 0)
    interpreter = Interpreter(model_content=tiled())
    interpreter.allocate_tensors()
    for count in range(1, 12):
        y = run(interpreter, X, np.int32([count, 1]))
        np.testing.assert_allclose(y, np.tile(np.exp(X), (count, 1)), rtol=1e-6)
    assert late_kernel(interpreter)._made == 6
    assert late_kernel(interpreter).failure is not None


def test_an_index_out_of_range_is_told_as_ever() -> None:
    make = ModelMaker()
    x, multiples, at = make.tensor((4,)), make.tensor((1,), INT), make.tensor((2,), INT)
    y, z = make.tensor((4,)), make.tensor((2,))
    make.op("TILE", [x, multiples], [y], TileOptions())
    make.op("GATHER", [y, at], [z], GatherOptions())
    make.io([x, multiples, at], [z])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    x = np.float32([5, 6, 7, 8])
    for _ in range(3):
        assert run(interpreter, x, np.int32([2]), np.int32([1, 7])).tolist() == [6, 8]
        with pytest.raises(RuntimeError, match=r"GATHER"):
            run(interpreter, x, np.int32([1]), np.int32([1, 7]))
        with pytest.raises(RuntimeError, match=r"GATHER"):
            run(interpreter, x, np.int32([2]), np.int32([1, 8]))


def test_what_is_wrong_from_the_start_is_told_at_the_start() -> None:
    make = ModelMaker()
    x, multiples, y = make.tensor((2, 3)), make.tensor((3,), INT), make.tensor((2, 3))
    make.op("TILE", [x, multiples], [y], TileOptions())
    make.io([x, multiples], [y])
    with pytest.raises(PrepareError, match="TILE"):
        Interpreter(model_content=make.model()).allocate_tensors()


def test_a_resize_behind_which_shapes_are_late() -> None:
    interpreter = Interpreter(model_content=tiled())
    for rows in (2, 5, 2, 5):
        interpreter.resize_tensor_input(0, [rows, 3])
        interpreter.allocate_tensors()
        x = np.full((rows, 3), 0.5, np.float32)
        np.testing.assert_allclose(run(interpreter, x, np.int32([2, 1])), np.exp(np.tile(x, (2, 1))), rtol=1e-6)


def test_what_is_worked_out_from_shapes_is_known_before_the_run() -> None:
    """As TensorFlow writes a dense layer behind a sequence of any length: SHAPE, GATHER, REDUCE_PROD, PACK, RESHAPE."""
    make = ModelMaker()
    x = make.tensor((1, 1, 4), shape_signature=(1, -1, 4))
    shape, front, rows = make.tensor((3,), INT), make.tensor((2,), INT), make.tensor((), INT)
    axes, zero = make.constant([0, 1], np.int32, INT), make.constant([0], np.int32, INT)
    width, flat = make.constant(4, np.int32, INT), make.tensor((2,), INT)
    y, z = make.tensor((1, 4)), make.tensor((1, 4))
    make.op("SHAPE", [x], [shape], ShapeOptions(out_type=INT))
    make.op("GATHER", [shape, axes], [front], GatherOptions())
    make.op("REDUCE_PROD", [front, zero], [rows], ReducerOptions())
    make.op("PACK", [rows, width], [flat], PackOptions(values_count=2))
    make.op("RESHAPE", [x, flat], [y], ReshapeOptions())
    make.op("NEG", [y], [z])
    make.io([x], [z])
    interpreter = Interpreter(model_content=make.model())
    for length in (1, 7, 3, 7):
        interpreter.resize_tensor_input(0, [1, length, 4])
        interpreter.allocate_tensors()
        assert interpreter.get_output_details()[0]["shape"].tolist() == [length, 4]
        x = np.arange(4 * length, dtype=np.float32).reshape(1, length, 4)
        assert np.array_equal(run(interpreter, x), -x[0])
        (kernel,) = interpreter.delegate_kernels()
        assert isinstance(kernel, JitKernel)
        assert kernel.program is not None


def test_numbers_that_come_of_a_value_are_constants_for_it() -> None:
    make = ModelMaker()
    n, y = make.tensor((), INT), make.tensor((1,), INT)
    numbers, none, z = make.tensor((1,), INT), make.tensor((1,), INT), make.tensor((1,), INT)
    zero, one = make.constant(0, np.int32, INT), make.constant(1, np.int32, INT)
    make.op("RANGE", [zero, n, one], [numbers])
    make.op("RANGE", [n, n, one], [none])
    make.op("MUL", [numbers, numbers], [y])
    make.op("CONCATENATION", [y, none], [z], ConcatenationOptions())
    make.io([n], [z])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    for count in (3, 5, 3, 5, 5, 5):
        assert np.array_equal(run(interpreter, np.int32(count)), np.arange(count) ** 2)
    kernel = late_kernel(interpreter)
    assert kernel._made == 2
    assert interpreter._engine.executor.sole is kernel


def test_a_program_before_and_a_late_one_need_no_look_between() -> None:
    make = ModelMaker()
    x, n = make.tensor((2,)), make.tensor((1,), INT)
    twice, y = make.tensor((2,)), make.tensor((2,))
    make.op("ADD", [x, x], [twice])
    make.op("TILE", [twice, n], [y], TileOptions())
    make.io([x, n], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    for count in (1, 2, 2, 2, 3, 2):
        for number in (1, 2):
            x = np.float32([number, -number])
            assert np.array_equal(run(interpreter, x, np.int32([count])), np.tile(2 * x, count))
    steps = interpreter._subgraphs[0]._steps
    assert steps is not None
    assert all(step is not None and step.again is not None for _, step in steps)


def test_random_numbers_go_on_from_one_shape_to_the_next() -> None:
    make = ModelMaker()
    shape, y = make.tensor((1,), INT), make.tensor((1,))
    make.op("RANDOM_UNIFORM", [shape], [y], RandomOptions(seed=3, seed2=5))
    make.io([shape], [y])
    reference = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    ours, theirs = (
        Interpreter(model_content=make.model(), **keywords)
        for keywords in ({}, {"experimental_op_resolver_type": reference})
    )
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
    for size in (4, 8, 4, 4, 8, 12, 4):
        count = np.int32([size])
        assert np.array_equal(run(ours, count), run(theirs, count))
    assert [step.program is not None for step in late_kernel(ours).steps] == [True]


def in_three_steps() -> bytes:
    """Behind UNIQUE, which leaves its shape to the run: -round(exp(x))."""
    make = ModelMaker()
    x, first = make.tensor((8,)), make.tensor((8,), INT)
    u, v = make.tensor((1,)), make.tensor((1,))
    y, z = make.tensor((1,)), make.tensor((1,))
    make.op("UNIQUE", [x], [u, first], UniqueOptions(idx_out_type=INT))
    make.op("EXP", [u], [y])
    make.op("ROUND", [y], [v])
    make.op("NEG", [v], [z])
    make.io([x], [z])
    return make.model()


def test_a_node_whose_kernel_is_not_at_hand_costs_only_its_own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before it and behind it are programs, and values inside the partition reach it."""
    compiled_of = compiling.compiled_of

    def lacking(graph: KernelGraph, *arguments: Any) -> Any:
        if any(kernel.origin[0].startswith("ROUND") for kernel in graph.kernels):
            raise CompileError("no kernel rounds here")
        return compiled_of(graph, *arguments)

    monkeypatch.setattr(compiling, "compiled_of", lacking)
    interpreter = Interpreter(model_content=in_three_steps())
    interpreter.allocate_tensors()
    for count in (3, 5, 3, 5):
        x = (np.arange(8) % count).astype(np.float32)
        assert np.array_equal(run(interpreter, x), -np.round(np.exp(np.arange(count, dtype=np.float32))))
        kernel = late_kernel(interpreter)
        assert [(step.stop, step.program is not None) for step in kernel.steps] == [
            (1, True),
            (2, True),
            (3, False),
            (4, True),
        ]


def test_what_a_node_alone_writes_for_others_is_read_by_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of the partition that another of its nodes reads."""
    make = ModelMaker()
    x, multiples = make.tensor((2, 3)), make.tensor((2,), INT)
    y, z = make.tensor((2, 3)), make.tensor((2, 3))
    make.op("TILE", [x, multiples], [y], TileOptions())
    make.op("EXP", [y], [z])
    make.io([x, multiples], [y, z])
    add = late._add
    monkeypatch.setattr(late, "_add", lambda node, *rest: node.op.name != "TILE" and add(node, *rest))
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    for factors in ((2, 1), (1, 3), (2, 1), (2, 1)):
        interpreter.set_tensor(x, X)
        interpreter.set_tensor(multiples, np.array(factors, np.int32))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(y), np.tile(X, factors))
        np.testing.assert_allclose(interpreter.get_tensor(z), np.exp(np.tile(X, factors)), rtol=1e-6)
    assert [step.program is not None for step in late_kernel(interpreter).steps] == [False, True]


def test_many_steps_of_one_run_are_not_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late, "MOST_IN_VAIN", 2)

    def refused(node: Any, lowered: Any) -> None:
        raise Refused("never")

    monkeypatch.setattr(late, "lower", refused)
    interpreter = Interpreter(model_content=in_three_steps())
    interpreter.allocate_tensors()
    for count in (2, 3):
        run(interpreter, (np.arange(8) % count).astype(np.float32))
    assert len(late_kernel(interpreter).steps) == 4
    assert late_kernel(interpreter).failure is None


def test_nothing_is_chosen_from_rows() -> None:
    """As with a mask that is false everywhere: what GATHER would check is not left in the program of the others."""
    make = ModelMaker()
    x, mask, places = make.tensor((3,)), make.tensor((3,), TensorType.BOOL), make.tensor((1, 1), TensorType.INT64)
    flat, y = make.tensor((1,), TensorType.INT64), make.tensor((1,))
    minus = make.constant([-1], np.int32, INT)
    make.op("WHERE", [mask], [places])
    make.op("RESHAPE", [places, minus], [flat], ReshapeOptions())
    make.op("GATHER", [x, flat], [y], GatherOptions())
    make.io([x, mask], [y])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    for chosen in ([], [0, 2], [], [1], [], [0, 1, 2]):
        truth = np.isin(np.arange(3), chosen)
        np.testing.assert_array_equal(run(interpreter, X.ravel()[:3], truth), X.ravel()[chosen])
        assert late_kernel(interpreter).steps[0].program is not None


@pytest.mark.parametrize("operator", ["SUM", "PROD", "MAX", "MIN"])
def test_many_ids_of_segments_decide_no_shape(operator: str) -> None:
    make = ModelMaker()
    rows, y = make.tensor((500, 3), INT), make.tensor((4, 3), INT)
    ids, count = make.tensor((500,), INT), make.constant(4, np.int32, INT)
    make.op(f"UNSORTED_SEGMENT_{operator}", [rows, ids, count], [y])
    make.io([rows, ids], [y])
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    engines = [
        Interpreter(model_content=make.model()),
        Interpreter(model_content=make.model(), experimental_op_resolver_type=resolver),
    ]
    for engine in engines:
        engine.allocate_tensors()
    numbers = np.random.default_rng(0).integers(-3, 4, (500, 3), np.int32)
    for segments in (np.arange(500) % 5 - 1, np.arange(500)[::-1] // 125):
        ours, wanted = (run(engine, numbers, segments.astype(np.int32)) for engine in engines)
        assert np.array_equal(ours, wanted)
    (kernel,) = engines[0].delegate_kernels()
    assert isinstance(kernel, JitKernel)
    assert kernel.program is not None
    with pytest.raises(InvokeError, match="segment id 4 must be less than num_segments 4"):
        run(engines[0], numbers, np.full(500, 4, np.int32))
