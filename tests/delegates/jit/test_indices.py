"""Indices that come from data: what machine code does with those that lead outside is what the reference kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.errors import InvokeError
from gossamer.programs.program import FAULT
from gossamer.schema import AddOptions, ConcatenationOptions, GatherOptions, StridedSliceOptions, TensorType
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs, reference
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")


def gathering() -> bytes:
    """[4] indices into [5, 3], and the sum of what comes out with itself."""
    make = ModelMaker()
    x, indices = make.tensor((5, 3)), make.tensor((4,), TensorType.INT32)
    picked, total = make.tensor((4, 3)), make.tensor((4, 3))
    make.op("GATHER", [x, indices], [picked], GatherOptions(axis=0))
    make.op("ADD", [picked, picked], [total], AddOptions())
    make.io([x, indices], [total, picked])
    return make.model()


X = np.arange(15, dtype=np.float32).reshape(5, 3)


def refusal(interpreter: Any, indices: list[int]) -> str:
    with pytest.raises(InvokeError) as failure:
        outputs(interpreter, {0: X, 1: np.array(indices, np.int32)})
    return str(failure.value)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_index_outside_is_refused_in_the_same_words(threads: int) -> None:
    interpreter, kernel = machine_code(gathering(), threads)
    expected = reference(gathering())
    expected.allocate_tensors()
    for indices in ([0, 5, 1, 2], [-1, 0, 0, 0], [0, 0, 0, 2**31 - 1]):
        assert refusal(expected, indices) in refusal(interpreter, indices)
        # Nothing is left of it.
        good = [4, 0, 0, 3]
        total, picked = outputs(interpreter, {0: X, 1: np.array(good, np.int32)})
        np.testing.assert_array_equal(picked, X[good])
        np.testing.assert_array_equal(total, 2 * X[good])
        assert kernel.program is not None
        assert kernel.program.memory[FAULT].view().cast("q")[0] == 0


@pytest.mark.parametrize("axis", [0, 1])
def test_an_element_of_an_axis_at_an_index_that_comes_in(axis: int) -> None:
    """x[i], which counts from the end if it is less than 0, and begins at 0 if there is nothing so far."""
    make = ModelMaker()
    x, i = make.tensor((5, 3)), make.tensor((1,), TensorType.INT32)
    zero, one = (make.constant([n], np.int32, TensorType.INT32) for n in (0, 1))
    after, y = make.tensor((1,), TensorType.INT32), make.tensor((3,) if axis == 0 else (5,))
    make.op("ADD", [i, one], [after], AddOptions())
    begin, end, strides = ([i], [after], [one]) if axis == 0 else ([zero, i], [zero, after], [one, one])
    for part in (begin, end, strides):
        if axis:
            joined = make.tensor((2,), TensorType.INT32)
            make.op("CONCATENATION", part, [joined], ConcatenationOptions())
            part[:] = [joined]
    make.op(
        *("STRIDED_SLICE", [x, *begin, *end, *strides], [y]),
        StridedSliceOptions(begin_mask=axis, end_mask=axis, shrink_axis_mask=1 << axis),
    )
    make.io([x, i], [y])
    interpreter, _ = machine_code(make.model())
    expected = reference(make.model())
    expected.allocate_tensors()
    for index in (0, 2, -1, -3, -99):
        inputs = {0: X, 1: np.array([index], np.int32)}
        np.testing.assert_array_equal(outputs(interpreter, inputs)[0], outputs(expected, inputs)[0])
    assert refusal(expected, [7]).splitlines()[0] in refusal(interpreter, [7])


@pytest.mark.parametrize("name", ["GATHER", "EMBEDDING_LOOKUP", "SCATTER_ND", "FLOOR_DIV", "FLOOR_MOD"])
def test_what_nobody_reads_fails_too(name: str) -> None:
    make = ModelMaker()
    x, wild = make.tensor((5,), TensorType.INT32), make.tensor((5, 1), TensorType.INT32)
    y, z = make.tensor((5,), TensorType.INT32), make.tensor((5,), TensorType.INT32)
    if name == "GATHER":
        make.op(name, [x, wild], [make.tensor((5, 1), TensorType.INT32)], GatherOptions(axis=0))
    elif name == "EMBEDDING_LOOKUP":
        table = make.constant(np.ones((3, 2)), np.float32, TensorType.FLOAT32)
        make.op(name, [x, table], [make.tensor((5, 2))])
    elif name == "SCATTER_ND":
        make.op(name, [wild, x, make.constant([7], np.int32, TensorType.INT32)], [z])
    else:
        make.op(name, [x, wild], [make.tensor((5, 5), TensorType.INT32)], version=2)
    make.op("ADD", [x, x], [y], AddOptions())
    make.io([x, wild], [y])
    interpreter, _ = machine_code(make.model())
    expected = reference(make.model())
    expected.allocate_tensors()
    for value, fails in ((1, False), (0, "FLOOR" in name), (99, "FLOOR" not in name)):
        values = {x: np.full(5, value, np.int32), wild: np.full((5, 1), value, np.int32)}
        for one in (interpreter, expected):
            if fails:
                with pytest.raises(InvokeError, match=r"division by 0|out of range"):
                    outputs(one, values)
            else:
                assert outputs(one, values)[0].tolist() == [2 * value] * 5


def test_what_the_reference_kernels_make_of_it_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are right even where they see no fault."""
    interpreter, _ = machine_code(gathering())
    gather = next(node.op for node in interpreter._subgraphs[0].nodes if node.op.name == "GATHER")
    monkeypatch.setattr(gather, "reference_function", lambda ctx: ctx.value(0)[ctx.value(1) % 5])
    total, picked = outputs(interpreter, {0: X, 1: np.array([5, 6, -1, 2], np.int32)})
    np.testing.assert_array_equal(picked, X[[0, 1, 4, 2]])
    np.testing.assert_array_equal(total, 2 * picked)


def test_constant_indices_are_looked_at_when_a_node_is_claimed() -> None:
    make = ModelMaker()
    x, y = make.tensor((5, 3)), make.tensor((2, 3))
    make.op("GATHER", [x, make.constant([1, 5], np.int32, TensorType.INT32)], [y], GatherOptions(axis=0))
    make.io([x], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    assert interpreter.delegate_claims()[0].refusals == {0: "an index is out of range"}


@pytest.mark.parametrize("step", [1, -2, 0])
def test_constant_indices_that_are_evenly_apart_move_nothing(step: int) -> None:
    make = ModelMaker()
    x, y, z = make.tensor((2, 5, 3)), make.tensor((2, 3, 3)), make.tensor((2, 3, 3))
    indices = 4 * (step < 0) + step * np.arange(3)
    make.op("GATHER", [x, make.constant(indices, np.int64, TensorType.INT64)], [y], GatherOptions(axis=1))
    make.op("ADD", [y, y], [z], AddOptions())
    make.io([x], [z])
    _, kernel = machine_code(make.model())
    assert kernel.built is not None
    assert [kernel.kind for kernel in kernel.built.graph.kernels] == ["map"]
    check(make.model(), {x: np.arange(30, dtype=np.float32).reshape(2, 5, 3)})


@pytest.mark.parametrize("starts", [(0, 0, 0), (1, 2, 1), (-3, 9, 1), (2**40, -(2**40), 0)])
def test_a_box_is_put_where_it_fits(starts: tuple[int, ...]) -> None:
    make = ModelMaker()
    x, box = make.tensor((3, 5, 4)), make.tensor((2, 3, 3))
    at, y = make.tensor((3,), TensorType.INT64), make.tensor((3, 5, 4))
    make.op("DYNAMIC_UPDATE_SLICE", [x, box, at], [y], version=2)
    make.io([x, box, at], [y])
    values = np.arange(60, dtype=np.float32).reshape(3, 5, 4)
    check(make.model(), {x: values, box: -values[:2, :3, :3] - 1, at: np.array(starts)})
