"""Loops whose shapes change as the data have it: turn by turn, and what has come once is entered again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer import CancelledError, Interpreter
from gossamer.arrays import NDArray
from gossamer.delegates.jit import rounds, turns
from gossamer.delegates.jit.late import LateKernel
from gossamer.delegates.jit.turns import Turns
from gossamer.errors import InvokeError
from gossamer.schema import (
    BatchMatMulOptions,
    ConcatenationOptions,
    GatherOptions,
    IfOptions,
    RandomOptions,
    ReducerOptions,
    StridedSliceOptions,
    WhileOptions,
)
from tests.delegates.jit.running import TARGETS, outputs, reference
from tests.delegates.jit.test_control_flow import BOOL, COUNTER, FLOAT, INT, Kind, floats, number, op, subgraph
from tests.delegates.jit.test_loops import counted, growing, plus
from tests.delegates.jit.test_open_loops import as_long_as_its_input
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

Array = NDArray[Any]
LIST: Kind = ((2, 3), FLOAT)


def prepared(model: bytes) -> Interpreter:
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    return interpreter


def turns_of(interpreter: Interpreter) -> Turns:
    kernels = [one for one in interpreter.delegate_kernels() if isinstance(one, LateKernel)]
    (found,) = [made for kernel in kernels for made in kernel.turns.values() if made is not None]
    return found


def expected(model: bytes, inputs: dict[int, Array]) -> list[Array]:
    interpreter = reference(model)
    interpreter.allocate_tensors()
    return outputs(interpreter, inputs)


def check_all(model: bytes, all_inputs: list[dict[int, Array]], make: Callable[[bytes], Interpreter] = prepared) -> Any:
    """Compare with the reference kernels; the third time, when circuits are there, no stage is made."""
    interpreter = make(model)
    found = [outputs(interpreter, inputs) for inputs in all_inputs]
    for inputs in all_inputs:
        outputs(interpreter, inputs)
    made = turns_of(interpreter).made
    again = [outputs(interpreter, inputs) for inputs in all_inputs]
    assert turns_of(interpreter).made == made > 0
    for first, second, inputs in zip(found, again, all_inputs, strict=True):
        for a, b, want in zip(first, second, expected(model, inputs), strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(a, want)
    return interpreter


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_as_many_turns_as_only_the_run_tells(axis: int, threads: int) -> None:
    def make(model: bytes) -> Interpreter:
        interpreter = Interpreter(model_content=model, num_threads=threads)
        interpreter.allocate_tensors()
        return interpreter

    inputs = [{0: floats(2, 3) * n, 1: np.int32(n)} for n in (2, 0, 5, 1, 9, 9, 3)]
    check_all(growing(axis, LIST, None), inputs, make)


def test_lengths_below_the_longest_are_known() -> None:
    model = growing(0, LIST, None)
    interpreter = prepared(model)
    outputs(interpreter, {0: floats(2, 3), 1: np.int32(12)})
    made = turns_of(interpreter).made
    for n in (3, 11, 1, 12):
        result, _ = outputs(interpreter, {0: -floats(2, 3), 1: np.int32(n)})
        np.testing.assert_array_equal(result, expected(model, {0: -floats(2, 3), 1: np.int32(n)})[0])
    assert turns_of(interpreter).made == made
    # Where the last row is, depends on the length: an address in the words of a program that all lengths share.
    assert len(turns_of(interpreter)._last) <= 5


def attending() -> bytes:
    """A list of rows, and once more what its last row finds in it: of zeros and a factor, there are as many as rows."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        scores = op(make, "BATCH_MATMUL", [v[1], v[0]], ((1, 2), FLOAT), BatchMatMulOptions(adj_y=True))
        scaled = op(make, "MUL", [scores, number(make, 0.125)], ((1, 2), FLOAT))
        row = op(make, "BATCH_MATMUL", [scaled, v[0]], ((1, 3), FLOAT), BatchMatMulOptions())
        return [op(make, "CONCATENATION", [v[0], row], LIST, ConcatenationOptions(axis=0)), row]

    return counted([LIST, ((1, 3), FLOAT)], body)


def test_lengths_share_a_program_that_reads_zeros() -> None:
    model = attending()
    interpreter = prepared(model)
    for n in (40, 38, 25):
        inputs = {0: floats(2, 3), 1: floats(1, 3), 2: np.int32(n)}
        for found, want in zip(outputs(interpreter, inputs), expected(model, inputs), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-5)
    (((_, step),),) = [[*routine.kernel.path()] for routine in (turns_of(interpreter)._body,)]
    assert step.shared is not None
    assert step.shared[0].fitted is not None


def test_a_new_turn_knows_its_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads what has been counted and the limit, not the list that grows: these lie in few places."""
    monkeypatch.setattr(rounds, "FEWEST_TURNS", 1000)
    interpreter = prepared(growing(0, LIST, None))
    for n in (20, 12):
        outputs(interpreter, {0: floats(2, 3), 1: np.int32(n)})
    turns = turns_of(interpreter)
    bodies = [places for is_body, places in turns._stages if is_body]
    assert len(bodies) > 20
    assert len(turns._stages) - len(bodies) <= 4


def test_a_beginning_without_elements() -> None:
    """A cache of keys that grows from nothing along its second axis."""
    inputs = [{0: floats(2, 0), 1: floats(2, 1) * n, 2: np.int32(n)} for n in (4, 1, 6)]

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        item = op(make, "ADD", [v[1], number(make, 0.25)], ((2, 1), FLOAT))
        return [op(make, "CONCATENATION", [v[0], item], LIST, ConcatenationOptions(axis=1)), item]

    check_all(counted([((2, 0), FLOAT), ((2, 1), FLOAT)], body), inputs)


def rows() -> bytes:
    """As many rows as the run tells, which the loop itself leaves in the output."""
    make = ModelMaker()
    row, limit = make.tensor((1, 3), FLOAT), make.tensor(*COUNTER)
    kinds: list[Kind] = [COUNTER, COUNTER, ((1, 3), FLOAT), ((1, 3), FLOAT)]
    nothing = op(make, "SLICE", [row, number(make, [0, 0], INT), number(make, [0, 3], INT)], ((0, 3), FLOAT))
    results = [make.tensor(*kind) for kind in kinds]
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    make.op("WHILE", [number(make, 0, INT), limit, row, nothing], results, options)
    make.io([row, limit], [results[3]])

    def condition(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "LESS", [v[0], v[1]], ((), BOOL))]

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        more = op(make, "CONCATENATION", [v[3], v[2]], LIST, ConcatenationOptions(axis=0))
        return [op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER), v[1], v[2], more]

    subgraph(make, "condition", kinds, condition)
    subgraph(make, "body", kinds, body)
    return make.model()


def test_no_rows_after_another_allocation() -> None:
    interpreter = Interpreter(model_content=rows())
    for n, count in ((1, 0), (2, 0), (1, 2), (3, 0)):
        interpreter.resize_tensor_input(0, (n, 3))
        interpreter.allocate_tensors()
        (found,) = outputs(interpreter, {0: floats(n, 3), 1: np.int32(count)})
        np.testing.assert_array_equal(found, np.tile(floats(n, 3), (count, 1)))
    assert turns_of(interpreter).made


def test_a_loop_of_nothing_says_nothing_of_others() -> None:
    """With rows it is a part of a program; whether there have been none before does not decide its bits."""
    make = ModelMaker()
    row, limit = make.tensor((1, 3), FLOAT), make.tensor(*COUNTER)
    kinds: list[Kind] = [COUNTER, COUNTER, ((1, 3), FLOAT), ((1, 3), FLOAT)]
    count = op(make, "RESHAPE", [limit, number(make, [1], INT)], ((1,), INT))
    sizes = op(make, "CONCATENATION", [count, number(make, [3], INT)], ((2,), INT), ConcatenationOptions())
    first = op(make, "FILL", [sizes, number(make, 0.5)], ((1, 3), FLOAT))
    results = [make.tensor(*kind) for kind in kinds]
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    make.op("WHILE", [number(make, 0, INT), limit, row, first], results, options)
    make.io([row, limit], [results[3]])

    def condition(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "LESS", [v[0], v[1]], ((), BOOL))]

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        more = op(make, "ADD", [v[3], v[2]], ((1, 3), FLOAT))
        return [op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER), v[1], v[2], more]

    subgraph(make, "condition", kinds, condition)
    subgraph(make, "body", kinds, body)
    interpreter = prepared(make.model())
    (kernel,) = [one for one in interpreter.delegate_kernels() if isinstance(one, LateKernel)]
    for n in (0, 2, 0, 3):
        (found,) = outputs(interpreter, {0: floats(1, 3), 1: np.int32(n)})
        np.testing.assert_allclose(found, np.tile(0.5 + n * floats(1, 3), (n, 1)), rtol=1e-6)
        assert all(step.alone is None for step in kernel.steps) == (n > 0)


def picking() -> bytes:
    """x = x ++ x[i] * items[i]: an element at what has been counted, of a vector as long as the model says."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        index = op(make, "RESHAPE", [at, number(make, [1], INT)], ((1,), INT))
        item = op(make, "GATHER", [v[1], index], ((1,), FLOAT), GatherOptions())
        return [op(make, "CONCATENATION", [v[0], item], ((2,), FLOAT), ConcatenationOptions()), v[1]]

    return counted([((2,), FLOAT), ((5,), FLOAT)], body)


def test_what_a_turn_meets_wrong_is_told_as_ever() -> None:
    model = picking()
    interpreter = check_all(model, [{0: floats(2), 1: floats(5), 2: np.int32(n)} for n in (5, 2)])
    with pytest.raises(InvokeError, match=r"GATHER .*position 5 is out of range"):
        outputs(interpreter, {0: floats(2), 1: floats(5), 2: np.int32(6)})
    for n in (3, 5):
        inputs = {0: floats(2), 1: -floats(5), 2: np.int32(n)}
        np.testing.assert_array_equal(outputs(interpreter, inputs)[0], expected(model, inputs)[0])


def test_an_element_whose_index_has_been_counted() -> None:
    """A slice that begins at i, which is looked at: it decides how a turn goes on."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        begin = op(make, "RESHAPE", [at, number(make, [1], INT)], ((1,), INT))
        end = op(make, "ADD", [begin, number(make, [1], INT)], ((1,), INT))
        options = StridedSliceOptions(shrink_axis_mask=1)
        item = op(make, "STRIDED_SLICE", [v[1], begin, end, number(make, [1], INT)], COUNTER[:1] + (FLOAT,), options)
        row = op(make, "RESHAPE", [item, number(make, [1], INT)], ((1,), FLOAT))
        return [op(make, "CONCATENATION", [v[0], row], ((2,), FLOAT), ConcatenationOptions()), v[1]]

    model = counted([((2,), FLOAT), ((5,), FLOAT)], body)
    check_all(model, [{0: floats(2), 1: floats(5) * n, 2: np.int32(n)} for n in (5, 2, 4)])


def test_random_numbers_begin_anew_where_shapes_change() -> None:
    """As in TFLite, which prepares a body anew then."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = op(make, "RANDOM_UNIFORM", [number(make, [1, 3], INT)], ((1, 3), FLOAT), RandomOptions(seed=5, seed2=7))
        return [op(make, "CONCATENATION", [v[0], row], LIST, ConcatenationOptions())]

    model = counted([LIST], body)
    interpreter, wanted = prepared(model), reference(model)
    wanted.allocate_tensors()
    for n in (3, 1, 3, 1, 1, 2):
        inputs = {0: floats(2, 3), 1: np.int32(n)}
        np.testing.assert_array_equal(outputs(interpreter, inputs)[0], outputs(wanted, inputs)[0])


def halving() -> bytes:
    """While the sum of a list is less than 10: the list, and once more if its first element is positive."""
    make = ModelMaker()
    kind: Kind = ((2,), FLOAT)
    x, y = make.tensor(*kind), make.tensor(*kind)
    make.op("WHILE", [x], [y], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x], [y])
    total = ReducerOptions(keep_dims=False)

    def condition(make: ModelMaker, v: list[int]) -> list[int]:
        size = op(make, "SUM", [v[0], number(make, [0], INT)], ((), FLOAT), total)
        return [op(make, "LESS", [size, number(make, 10.0)], ((), BOOL))]

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        least = op(make, "REDUCE_MIN", [v[0], number(make, [0], INT)], ((), FLOAT), total)
        flag = op(make, "GREATER", [least, number(make, 1.0)], ((), BOOL))
        longer = op(make, "IF", [flag, v[0]], kind, IfOptions(then_subgraph_index=3, else_subgraph_index=4))
        return [op(make, "ADD", [longer, number(make, 0.5)], kind)]

    def twice(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "CONCATENATION", [v[0], v[0]], kind, ConcatenationOptions())]

    subgraph(make, "condition", [kind], condition)
    subgraph(make, "body", [kind], body)
    subgraph(make, "twice", [kind], twice)
    subgraph(make, "once", [kind], lambda make, v: [v[0]])
    return make.model()


def test_branches_that_differ_in_shapes() -> None:
    values = [np.array(v, np.float32) for v in ((0.1, 0.2), (1.5, 1.5), (-2, 3), (0.75, 0.8), (20, 1))]
    check_all(halving(), [{0: value} for value in values])


def appending(ahead: int) -> bytes:
    """A list, to which each turn appends an element of x, so many ahead, if that of the turn is positive."""
    x, kind = ((8,), FLOAT), ((1,), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        item = op(make, "GATHER", [v[0], at], ((), FLOAT), GatherOptions(axis=0))
        flag = op(make, "GREATER", [item, number(make, 0.0)], ((), BOOL))
        branches = IfOptions(then_subgraph_index=3, else_subgraph_index=4)
        return [v[0], op(make, "IF", [flag, at, v[0], v[1]], kind, branches)]

    def append(make: ModelMaker, v: list[int]) -> list[int]:
        ends = [
            op(make, "RESHAPE", [plus(make, v[0], more), number(make, [1], INT)], ((1,), INT))
            for more in (ahead, ahead + 1)
        ]
        item = make.tensor((1,), shape_signature=(-1,))
        make.op("STRIDED_SLICE", [v[1], *ends, number(make, [1], INT)], [item], StridedSliceOptions())
        return [op(make, "CONCATENATION", [v[2], item], kind, ConcatenationOptions())]

    kinds = [COUNTER, x, kind]
    others = [(kinds, append), (kinds, lambda make, v: [v[2]])]
    return as_long_as_its_input([x, kind], body, others)


def test_branches_that_append() -> None:
    x = np.array([1, -1, 2, 3, -4, -5, 6, 7], np.float32)
    inputs = [{0: values, 1: floats(1)} for values in (x, -x, abs(x), x[::-1])]
    interpreter = check_all(appending(0), inputs)
    steps = [step for routine in (turns_of(interpreter)._body,) for _, step in routine.kernel.path()]
    assert all(step.program is not None for step in steps)
    assert any(step.shared is not None for step in steps)  # a branch is the same program for all lengths


def test_lengths_that_have_never_been_take_no_stage() -> None:
    model = growing(0, LIST, None)
    interpreter = prepared(model)
    for n in (5, 12, 12, 12):
        outputs(interpreter, {0: floats(2, 3), 1: np.int32(n)})
    turns = turns_of(interpreter)
    made, taken = turns.made, turns.taken
    for n in (90, 40, 11, 150):  # more than a circuit takes at once, and than there was room for
        inputs = {0: floats(2, 3) * n, 1: np.int32(n)}
        np.testing.assert_array_equal(outputs(interpreter, inputs)[0], expected(model, inputs)[0])
    assert turns.made - made <= 4
    assert turns.taken - taken > 0.9 * (90 + 40 + 11 + 150)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_order_of_branches_that_has_never_been(threads: int) -> None:
    model = appending(0)
    interpreter = Interpreter(model_content=model, num_threads=threads)
    interpreter.allocate_tensors()
    numbers = np.random.default_rng(7)
    for _ in range(40):
        inputs = {0: numbers.normal(size=8).astype(np.float32), 1: floats(1)}
        for found, want in zip(outputs(interpreter, inputs), expected(model, inputs), strict=True):
            np.testing.assert_array_equal(found, want)
    turns = turns_of(interpreter)
    made, taken = turns.made, turns.taken
    for _ in range(10):
        outputs(interpreter, {0: numbers.normal(size=8).astype(np.float32), 1: floats(1)})
    assert turns.made - made < 4
    assert turns.taken - taken > 40


def test_a_branch_that_has_never_been_gone() -> None:
    """A circuit leaves in the middle of a turn, which begins anew."""
    model, interpreter = appending(0), prepared(appending(0))
    x = np.array([1, 2, 3, 4, 5, 6, 7, 8], np.float32)
    for values in (x, x, x, x, x * [1, 1, 1, 1, 1, -1, 1, 1], -x, x * [1, -1, 1, -1, 1, -1, 1, 1]):
        inputs = {0: values.astype(np.float32), 1: floats(1)}
        for found, want in zip(outputs(interpreter, inputs), expected(model, inputs), strict=True):
            np.testing.assert_array_equal(found, want)
    assert turns_of(interpreter).taken


def test_what_a_circuit_meets_wrong_is_told_as_ever() -> None:
    model, x = picking(), floats(5)
    interpreter = prepared(model)
    for n in (5, 5, 5, 5):
        outputs(interpreter, {0: floats(2), 1: x, 2: np.int32(n)})
    assert turns_of(interpreter).taken
    for _ in range(2):
        with pytest.raises(InvokeError, match=r"GATHER .*position 5 is out of range"):
            outputs(interpreter, {0: floats(2), 1: x, 2: np.int32(30)})
        inputs = {0: floats(2), 1: -x, 2: np.int32(5)}
        np.testing.assert_array_equal(outputs(interpreter, inputs)[0], expected(model, inputs)[0])


def test_slices_that_reach_outside_are_found_out() -> None:
    """Where they begin is only counted: they are taken for as long as they say, unless a fault tells otherwise."""
    x = np.array([1, -1, 2, 3, -4, -5, 6, 7], np.float32)
    model, interpreter = appending(2), prepared(appending(2))
    for values in (x, -x, abs(x)):
        inputs = {0: values, 1: floats(1)}
        for found, want in zip(outputs(interpreter, inputs), expected(model, inputs), strict=True):
            np.testing.assert_array_equal(found, want)


def endless() -> bytes:
    """A list twice, and every third element of that, for ever."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        longer = op(make, "CONCATENATION", [v[0], v[0]], ((8,), FLOAT), ConcatenationOptions())
        third = [number(make, [n], INT) for n in (0, 0, 3)]
        options = StridedSliceOptions(end_mask=1)
        return [op(make, "STRIDED_SLICE", [longer, *third], ((3,), FLOAT), options)]

    return counted([((4,), FLOAT)], body, step=0)


def test_a_loop_without_end_can_be_cancelled() -> None:
    interpreter = Interpreter(model_content=endless())
    interpreter.allocate_tensors()
    asked = 0

    def check() -> bool:
        nonlocal asked
        asked += 1
        return asked > 400

    interpreter.set_cancellation_function(check)
    with pytest.raises(CancelledError):
        outputs(interpreter, {0: floats(4), 1: np.int32(-1)})
    assert turns_of(interpreter).made


def test_stages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_KEPT", 4096)
    model = growing(0, LIST, None)
    interpreter = prepared(model)
    for n in (20, 7, 20):
        inputs = {0: floats(2, 3), 1: np.int32(n)}
        np.testing.assert_array_equal(outputs(interpreter, inputs)[0], expected(model, inputs)[0])
    assert turns_of(interpreter).kept_bytes <= 2 * 4096


def test_variables_that_lie_elsewhere_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_BEGUN", 0)
    inputs = [{0: floats(2, 3) * n, 1: np.int32(n)} for n in (2, 0, 5)]
    check_all(growing(1, LIST, None), inputs)
