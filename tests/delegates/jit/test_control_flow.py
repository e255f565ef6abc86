"""Loops and branches as machine code: what they compute, what they leave to the reference kernels, how they end."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gossamer
from gossamer import Interpreter
from gossamer.delegates.jit.delegate import JitKernel
from gossamer.errors import InvokeError
from gossamer.programs.program import FAULT
from gossamer.programs.team import Jump
from gossamer.schema import (
    CastOptions,
    FullyConnectedOptions,
    GatherOptions,
    IfOptions,
    ReducerOptions,
    ShapeOptions,
    StablehloCaseOptions,
    StableHLOCompositeOptions,
    StridedSliceOptions,
    TensorType,
    TransposeOptions,
    WhileOptions,
)
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs, reference
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

Array = NDArray[Any]
Kind = tuple[tuple[int, ...], TensorType]
Build = Callable[[ModelMaker, list[int]], list[int]]

FLOAT, INT, BOOL = TensorType.FLOAT32, TensorType.INT32, TensorType.BOOL
COUNTER: Kind = ((), INT)


def subgraph(make: ModelMaker, name: str, kinds: Sequence[Kind], build: Build) -> int:
    """Another subgraph of inputs of these kinds."""
    index = make.subgraph(name)
    inputs = [make.tensor(*kind) for kind in kinds]
    make.io(inputs, build(make, inputs))
    return index


def op(make: ModelMaker, name: str, inputs: Sequence[int], kind: Kind, options: Any = None) -> int:
    result = make.tensor(*kind)
    make.op(name, inputs, [result], options)
    return result


def number(make: ModelMaker, value: Any, type: TensorType = FLOAT) -> int:
    return make.constant(value, {FLOAT: np.float32, INT: np.int32, BOOL: np.bool_}[type], type)


def below(limit: int, shape: tuple[int, ...] = ()) -> Build:
    """Whether variable 0 is less than a number."""
    return lambda make, v: [op(make, "LESS", [v[0], number(make, np.full(shape, limit), INT)], (shape, BOOL))]


def counting(body: Build, shape: tuple[int, ...] = ()) -> Build:
    """A body of the variables behind a counter, and the counter."""

    def build(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "ADD", [v[0], number(make, np.full(shape, 1), INT)], (shape, INT)), *body(make, v[1:])]

    return build


def loop(kinds: Sequence[Kind], condition: Build, body: Build, *others: tuple[Sequence[Kind], Build]) -> bytes:
    """A WHILE that is all of the model; ``others`` are subgraphs 3 and so on."""
    make = ModelMaker()
    inputs, results = ([make.tensor(*kind) for kind in kinds] for _ in range(2))
    make.op("WHILE", inputs, results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io(inputs, results)
    subgraph(make, "condition", kinds, condition)
    subgraph(make, "body", kinds, body)
    for more, build in others:
        subgraph(make, "other", more, build)
    return make.model()


def affine(kind: Kind) -> Build:
    """x * 0.9 + 0.5."""

    def build(make: ModelMaker, v: list[int]) -> list[int]:
        product = op(make, "MUL", [v[0], number(make, 0.9)], kind)
        return [op(make, "ADD", [product, number(make, 0.5)], kind)]

    return build


def floats(*shape: int) -> Array:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def start(value: int, *others: Array) -> dict[int, Array]:
    return dict(enumerate((np.int32(value), *others)))


def kernel_of(interpreter: Interpreter) -> JitKernel:
    (kernel,) = interpreter.delegate_kernels()
    assert isinstance(kernel, JitKernel)
    return kernel


def kinds_of(kernel: JitKernel) -> list[list[str]]:
    """The kinds of kernels of the graph, and of the regions in it."""
    built = kernel.built
    assert built is not None
    return [[node.kind for node in part.kernels] for part in built.graph.parts()]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("begin", [0, 6, 7, 9])
def test_turns_and_none(begin: int, threads: int) -> None:
    x: Kind = ((3, 5), FLOAT)
    check(loop([COUNTER, x], below(7), counting(affine(x))), start(begin, floats(3, 5)), threads=[threads])


def test_large_variables_are_shared_by_threads() -> None:
    x: Kind = ((300, 500), FLOAT)
    model = loop([COUNTER, x], below(7), counting(affine(x)))
    check(model, start(0, floats(300, 500)), threads=(1, 2, 3))
    _, kernel = machine_code(model)
    assert kernel.program is not None
    jumps = kernel.program.plan.commands[:, 0] == -1
    blocks = kernel.program.plan.commands[jumps, 1] // 8
    assert kernel.program.plan.words[blocks].tolist() == [Jump.GO, Jump.BACK]


@pytest.mark.parametrize("shape", [(), (1,)])
def test_conditions_of_one_element(shape: tuple[int, ...]) -> None:
    x: Kind = ((4,), FLOAT)
    model = loop([(shape, INT), x], below(5, shape), counting(affine(x), shape))
    check(model, {0: np.zeros(shape, np.int32), 1: floats(4)})


def test_variables_that_only_the_shape_of_one_element_tells_apart() -> None:
    def body(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "ADD", [v[0], number(make, [1], INT)], ((1,), INT))]

    check(loop([COUNTER], below(5), body), start(0))


@pytest.mark.parametrize("size", [3, 200, 300])
def test_variables_may_change_places(size: int) -> None:
    x: Kind = ((size,), FLOAT)

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        return [v[1], op(make, "ADD", [v[0], v[1]], x)]

    model = loop([COUNTER, x, x], below(10), counting(body))
    ones = np.ones(size, np.float32)
    check(model, start(0, 0 * ones, ones))
    interpreter, _ = machine_code(model)
    assert outputs(interpreter, start(0, 0 * ones, ones))[1][0] == 55
    model = loop([COUNTER, x, x, x], below(5), counting(lambda make, v: [v[2], v[0], v[1]]))
    check(model, start(0, floats(size), 2 * floats(size), 3 * floats(size)))


def test_variables_may_become_views_of_others() -> None:
    x: Kind = ((3, 3), FLOAT)

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        turned = op(make, "TRANSPOSE", [v[0], number(make, [1, 0], INT)], x, TransposeOptions())
        return [turned, op(make, "SUB", [v[1], v[0]], x)]

    check(loop([COUNTER, x, x], below(3), counting(body)), start(0, floats(3, 3), 2 * floats(3, 3)))


def test_one_value_may_become_two_variables() -> None:
    x: Kind = ((6,), FLOAT)

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        total = op(make, "ADD", [v[0], v[1]], x)
        return [total, total]

    check(loop([COUNTER, x, x], below(3), counting(body)), start(0, floats(6), 2 * floats(6)))


def test_a_variable_may_become_a_constant() -> None:
    model = loop([COUNTER, ((2,), FLOAT)], below(3), counting(lambda make, v: [number(make, [7.0, 8.0])]))
    check(model, start(0, floats(2)))
    check(model, start(5, floats(2)))


def test_what_the_body_hands_on_is_read_where_it_lies() -> None:
    x, w = ((1, 20), FLOAT), ((20, 20), FLOAT)

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "FULLY_CONNECTED", [*v, -1], x, FullyConnectedOptions()), v[1]]

    model = loop([COUNTER, x, w], below(4), counting(body))
    check(model, start(0, floats(1, 20), floats(20, 20) / 20), within=1e-6)
    _, kernel = machine_code(model)
    (_, *regions) = kinds_of(kernel)
    assert regions == [["map", "matmul", "copy"], ["map"]]


def test_maps_write_where_the_variable_lies() -> None:
    x: Kind = ((300,), FLOAT)
    _, kernel = machine_code(loop([COUNTER, x], below(4), counting(affine(x))))
    assert kinds_of(kernel) == [["copy", "copy", "loop"], ["map", "map"], ["map"]]


def test_small_maps_are_one_kernel() -> None:
    x: Kind = ((16,), FLOAT)
    _, kernel = machine_code(loop([COUNTER, x], below(4), counting(affine(x))))
    assert kernel.program is not None
    assert [name.split("_")[0] for name in kernel.program.plan.kernels].count("turns") == 1


def decomposed(subgraph: int) -> StableHLOCompositeOptions:
    empty = np.zeros(0, np.uint8)
    return StableHLOCompositeOptions(name="part", decomposition_subgraph_index=subgraph, composite_attributes=empty)


def recurrent(size: int, first: float | None = None) -> bytes:
    """h = tanh(W h + b), ten times. ``first``: a weight."""
    random = np.random.default_rng(3)
    h: Kind = ((1, size), FLOAT)

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        matrix = random.normal(size=(size, size)) / size
        if first is not None:
            matrix[0, 0] = first
        weights, bias = number(make, matrix), number(make, random.normal(size=size))
        product = op(make, "FULLY_CONNECTED", [v[0], weights, bias], h, FullyConnectedOptions())
        return [op(make, "TANH", [product], h)]

    return loop([COUNTER, h], below(10), counting(body))


def test_a_recurrent_cell() -> None:
    check(recurrent(32), start(0, floats(1, 32)), within=1e-5)


@pytest.mark.parametrize(("begin", "size"), [(3, 384), (4, 384), (9, 384), (10, 384), (3, 96)])
def test_turns_read_weights_back_and_forth(begin: int, size: int) -> None:
    """Many of them, or those whose panels stay in the first-level cache."""
    check(recurrent(size), start(begin, floats(1, size)), within=1e-5, threads=(1, 2, 3))
    interpreter, kernel = machine_code(recurrent(size))
    seen: list[list[int]] = []
    kernel.observe(lambda times: seen.append([t.runs for t in times if t.kernel.startswith("x8_contract_state")]))
    outputs(interpreter, start(begin, floats(1, size)))
    assert seen == [[(11 - begin) // 2, (10 - begin) // 2]]
    assert kernel.program is not None
    jumps = kernel.program.plan.commands[:, 0] == -1
    blocks = kernel.program.plan.commands[jumps, 1] // 8
    kinds = kernel.program.plan.words[blocks].tolist()
    assert [kind for kind in kinds if kind not in (Jump.PART, Jump.JOIN)] == [Jump.GO, Jump.UNLESS, Jump.BACK]


@pytest.mark.parametrize("size", [96, 100, 384])
@pytest.mark.parametrize("first", [None, np.inf, np.nan])
def test_a_state_of_zeros_gives_the_bits_of_the_product(size: int, first: float | None) -> None:
    """Zeros with a sign are multiplied."""
    model, zeros = recurrent(size, first), np.zeros((1, size), np.float32)
    for threads in (1, 2):
        for begin in (8, 9):
            interpreter, kernel = machine_code(model, threads)
            assert kernel.program is not None
            assert any(name.startswith("x8_contract_state") for name in kernel.program.plan.kernels)
            found, want = (outputs(interpreter, start(begin, x))[1] for x in (zeros, -zeros))
            assert found.tobytes() == want.tobytes()
            assert np.isnan(found).any() == (first is not None)


def branching(make: ModelMaker, v: list[int]) -> list[int]:
    """If the counter is a multiple of 3, x * x, else x less the counter; and the next counter."""
    rest = op(make, "FLOOR_MOD", [v[0], number(make, 3, INT)], COUNTER)
    flag = op(make, "EQUAL", [rest, number(make, 0, INT)], ((), BOOL))
    options = IfOptions(then_subgraph_index=3, else_subgraph_index=4)
    x = op(make, "IF", [flag, v[1], v[0]], ((5,), FLOAT), options)
    return [
        op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER),
        op(make, "MUL", [x, number(make, 0.5)], ((5,), FLOAT)),
    ]


def branches() -> list[tuple[list[Kind], Build]]:
    kinds: list[Kind] = [((5,), FLOAT), COUNTER]

    def less(make: ModelMaker, v: list[int]) -> list[int]:
        count = op(make, "CAST", [v[1]], ((), FLOAT), CastOptions(in_data_type=INT, out_data_type=FLOAT))
        return [op(make, "SUB", [v[0], count], ((5,), FLOAT))]

    return [(kinds, lambda make, v: [op(make, "MUL", [v[0], v[0]], ((5,), FLOAT))]), (kinds, less)]


@pytest.mark.parametrize("begin", [0, 1, 2, 8])
def test_a_branch_in_a_loop(begin: int) -> None:
    check(loop([COUNTER, ((5,), FLOAT)], below(8), branching, *branches()), start(begin, floats(5)))


def nested(inner: int) -> bytes:
    """Six times: x + y times (1.5, 0.5, 2, -1) to the power of the counter. The inner loop counts up to the outer one's
    counter."""
    x: Kind = ((inner,), FLOAT)

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        total = op(make, "ADD", [v[1], v[2]], x)
        results = [make.tensor(*COUNTER), make.tensor(*x), make.tensor(*COUNTER)]
        options = WhileOptions(cond_subgraph_index=3, body_subgraph_index=4)
        make.op("WHILE", [number(make, 0, INT), total, v[0]], results, options)
        return [op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER), results[1], v[2]]

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        factors = np.resize([1.5, 0.5, 2, -1], inner)
        count = op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER)
        return [count, op(make, "MUL", [v[1], number(make, factors)], x), v[2]]

    within: list[Kind] = [COUNTER, x, COUNTER]
    condition: Build = lambda make, v: [op(make, "LESS", [v[0], v[2]], ((), BOOL))]  # noqa: E731
    return loop([COUNTER, x, x], below(6), body, (within, condition), (within, turn))


@pytest.mark.parametrize("size", [4, 40_000])
def test_a_loop_in_a_loop(size: int) -> None:
    check(nested(size), start(0, floats(size), 2 * floats(size)), threads=(1, 2))


def choosing(flag: Kind) -> bytes:
    """IF over subgraphs x * x and -x, and the sum of its result with x."""
    x: Kind = ((7,), FLOAT)
    make = ModelMaker()
    inputs = [make.tensor(*flag), make.tensor(*x)]
    y = op(make, "IF", inputs, x, IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io(inputs, [y, op(make, "ADD", [y, inputs[1]], x)])
    subgraph(make, "then", [x], lambda make, v: [op(make, "MUL", [v[0], v[0]], x)])
    subgraph(make, "else", [x], lambda make, v: [op(make, "NEG", [v[0]], x)])
    return make.model()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("flag", [False, True])
def test_one_of_two_branches_runs(flag: bool, shape: tuple[int, ...]) -> None:
    check(choosing((shape, BOOL)), {0: np.full(shape, flag), 1: floats(7)})


def test_a_program_without_loops_needs_no_look_around() -> None:
    interpreter = Interpreter(model_content=choosing(((), BOOL)))
    interpreter.allocate_tensors()
    for _ in range(2):
        outputs(interpreter, {0: np.True_, 1: floats(7)})
    assert kernel_of(interpreter).again is not None
    for flag in (False, True, False):
        (y, _) = outputs(interpreter, {0: np.bool_(flag), 1: floats(7)})
        np.testing.assert_array_equal(y, floats(7) ** 2 if flag else -floats(7))


@pytest.mark.parametrize("branch", [-1, 0, 1, 2, 3, 4, 2**31 - 1, -(2**31)])
def test_one_of_several_branches_runs(branch: int) -> None:
    x: Kind = ((3,), FLOAT)
    make = ModelMaker()
    inputs = [make.tensor(*COUNTER), make.tensor(*x)]
    y = op(make, "STABLEHLO_CASE", inputs, x, StablehloCaseOptions(branch_subgraph_indices=(1, 2, 3, 4)))
    make.io(inputs, [y])
    for name in ("NEG", "ABS", "SQUARE", "FLOOR"):
        subgraph(make, name, [x], lambda make, v, name=name: [op(make, name, [v[0]], x)])  # type: ignore[misc]
    check(make.model(), start(branch, floats(3)))


def test_a_decomposition_is_fused_with_what_is_around_it() -> None:
    x: Kind = ((3,), FLOAT)
    make = ModelMaker()
    a = make.tensor(*x)
    make.io([a], [op(make, "NEG", [op(make, "STABLEHLO_COMPOSITE", [a], x, decomposed(1))], x)])
    subgraph(make, "square", [x], lambda make, v: [op(make, "SQUARE", [v[0]], x)])
    _, kernel = machine_code(make.model())
    assert kinds_of(kernel) == [["map"]]
    check(make.model(), {a: floats(3)})


def refusals(model: bytes, **settings: Any) -> list[dict[int, str]]:
    """By subgraph, what is left to the reference kernels."""
    interpreter = Interpreter(model_content=model, **settings)
    interpreter.allocate_tensors()
    claims = [interpreter.delegate_claims(index) for index in range(interpreter.num_subgraphs())]
    return [dict(each[0].refusals) if each else {-1: "not asked"} for each in claims]


def test_what_is_taken_is_not_looked_at_again() -> None:
    assert refusals(recurrent(8)) == [{}, {-1: "not asked"}, {-1: "not asked"}]


@gossamer.custom_op("Halve", shape="x", trace=False)
def halve(x: Array) -> Array:
    return x / 2


def test_a_body_that_cannot_be_taken_runs_by_itself() -> None:
    x: Kind = ((4,), FLOAT)

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        result = make.tensor(*x)
        make.op("Halve", v, [result], custom=True)
        return [op(make, "NEG", [result], x)]

    model = loop([COUNTER, x], below(3), counting(body))
    reason = "trace=False"
    assert refusals(model, custom_ops=[halve]) == [{0: f"Halve (node 1 of subgraph 2): {reason}"}, {}, {1: reason}]
    interpreter = Interpreter(model_content=model, custom_ops=[halve])
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(outputs(interpreter, start(0, floats(4)))[1], -floats(4) / 8)


def test_shapes_that_change_are_left_to_the_reference_kernels() -> None:
    kinds: list[Kind] = [COUNTER, ((2,), FLOAT)]
    grow = counting(lambda make, v: [op(make, "CONCATENATION", [v[0], v[0]], ((4,), FLOAT))])
    assert refusals(loop(kinds, below(3), grow))[0][0] == "variable 1 of shape [2] becomes one of [4]"


def endless() -> bytes:
    x: Kind = ((4,), FLOAT)
    always = lambda make, v: [op(make, "LOGICAL_NOT", [number(make, [False], BOOL)], ((1,), BOOL))]  # noqa: E731
    return loop([x], always, lambda make, v: [op(make, "NEG", [v[0]], x)])


def test_a_loop_in_which_nothing_changes_is_left_to_the_reference_kernels() -> None:
    x: Kind = ((4,), FLOAT)
    never = lambda make, v: [op(make, "LOGICAL_NOT", [number(make, [True], BOOL)], ((1,), BOOL))]  # noqa: E731
    model = loop([x], never, lambda make, v: [v[0]])
    assert refusals(model)[0] == {0: "nothing changes in the loop"}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_endless_loop_lets_us_look_around(threads: int) -> None:
    interpreter, kernel = machine_code(endless(), threads)
    program = kernel.program
    assert program is not None
    interpreter.set_tensor(0, np.ones(4, np.float32))
    places = {base: np.ones(4, np.float32) for base in program._unbound}
    addresses = {base: array.ctypes.data for base, array in places.items()}
    looks: list[float] = []

    def look() -> None:
        looks.append(time.perf_counter())
        if len(looks) == 5:
            raise InterruptedError

    for _ in range(2):
        looks.clear()
        with pytest.raises(InterruptedError):
            program.run(threads, addresses, look)
        assert len(looks) == 5


@pytest.mark.parametrize("threads", [1, 2])
def test_an_endless_loop_can_be_interrupted(threads: int) -> None:
    """Also in a process that was started with SIGINT ignored, as shells start what runs in the background."""
    interpreter, _ = machine_code(endless(), threads)
    interpreter.set_tensor(0, np.ones(4, np.float32))
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - it may come before the loop begins
            threading.Timer(0.2, _thread.interrupt_main).start()
            interpreter.invoke()
    finally:
        signal.signal(signal.SIGINT, former)


def long(size: int, turns: int) -> bytes:
    """A loop of some 10 ms slices, with something large before it and behind."""
    x: Kind = ((size,), FLOAT)
    make = ModelMaker()
    inputs = [make.tensor(*COUNTER), make.tensor(*x)]
    negated = op(make, "NEG", [inputs[1]], x)
    results = [make.tensor(*COUNTER), make.tensor(*x)]
    make.op("WHILE", [inputs[0], negated], results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io(inputs, [results[0], op(make, "NEG", [results[1]], x)])
    subgraph(make, "condition", [COUNTER, x], below(turns))
    subgraph(make, "body", [COUNTER, x], counting(lambda make, v: [op(make, "ADD", [v[0], number(make, 1.0)], x)]))
    return make.model()


@pytest.mark.parametrize(("size", "turns"), [(16, 12_000_000), (300, 400_000), (100_000, 20_000)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_goes_on_where_it_stopped(size: int, turns: int, threads: int) -> None:
    interpreter, kernel = machine_code(long(size, turns), threads)
    program, stops = kernel.program, []
    assert program is not None
    plain = program.run
    program.run = lambda count, poll: plain(count, poll=lambda: stops.append(poll()))  # type: ignore[method-assign]
    count, y = outputs(interpreter, start(0, np.zeros(size, np.float32)))
    assert count == turns
    np.testing.assert_array_equal(y, np.full(size, -turns, np.float32))
    assert stops


def gathering(limit: int) -> bytes:
    """x = x[index], index - 1, until the counter is there."""
    x, index = ((5, 3), FLOAT), ((5,), INT)

    def body(make: ModelMaker, v: list[int]) -> list[int]:
        picked = op(make, "GATHER", v, x, GatherOptions(axis=0))
        return [picked, op(make, "SUB", [v[1], number(make, 1, INT)], index)]

    return loop([COUNTER, x, index], below(limit), counting(body))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("limit", [3, 4, 2**31 - 1])
def test_an_index_out_of_range_ends_the_loop(limit: int, threads: int) -> None:
    model = gathering(limit)
    interpreter, kernel = machine_code(model, threads)
    expected = reference(model)
    expected.allocate_tensors()
    inputs = start(0, floats(5, 3), np.array([4, 3, 2, 3, 4], np.int32))
    if limit == 3:
        for got, wanted in zip(outputs(interpreter, inputs), outputs(expected, inputs), strict=True):
            np.testing.assert_array_equal(got, wanted)
        return
    texts = []
    for each in (expected, interpreter):
        with pytest.raises(InvokeError) as failure:
            outputs(each, inputs)
        texts.append(str(failure.value).splitlines()[0])
    assert texts[0] in texts[1]
    assert kernel.program is not None
    assert kernel.program.memory[FAULT].view().cast("q")[0] == 0


def test_commands_in_a_loop_are_timed_and_counted() -> None:
    interpreter, kernel = machine_code(recurrent(8))
    seen: list[dict[str, int]] = []
    kernel.observe(lambda times: seen.append({time.kernel.split("__")[0]: time.runs for time in times}))
    outputs(interpreter, start(3, floats(1, 8)))
    outputs(interpreter, start(10, floats(1, 8)))
    (turns, none) = seen
    assert turns["x8_contract_single"] == 7
    assert turns["i32_i32_bool_map_less_vv"] == 8
    assert none["x8_contract_single"] == 0
    assert none["i32_i32_bool_map_less_vv"] == 1


def test_subgraphs_that_call_too_much_are_left_to_the_reference_kernels() -> None:
    x: Kind = ((2,), FLOAT)
    make = ModelMaker()
    inputs = [make.tensor(*x)]

    def twice(callee: int) -> Build:
        def build(make: ModelMaker, v: list[int]) -> list[int]:
            options = decomposed(callee)
            return [op(make, "STABLEHLO_COMPOSITE", [op(make, "STABLEHLO_COMPOSITE", v, x, options)], x, options)]

        return build

    make.io(inputs, twice(1)(make, inputs))
    for depth in range(1, 12):
        subgraph(make, str(depth), [x], twice(depth + 1))
    subgraph(make, "last", [x], lambda make, v: [op(make, "NEG", v, x)])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    reasons = interpreter.delegate_claims()[0].refusals
    assert list(reasons) == [0, 1]
    assert all(reason.endswith("it calls too many nodes") for reason in reasons.values())


def test_a_known_plan_has_the_loop(tmp_path: Any) -> None:
    path = tmp_path / "loop.tflite"
    path.write_bytes(recurrent(8))
    results = []
    for _ in range(2):
        interpreter = Interpreter(model_path=str(path))
        interpreter.allocate_tensors()
        results.append(outputs(interpreter, start(0, floats(1, 8))))
        known = kernel_of(interpreter).is_known
    assert known
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


def test_shapes_may_change_between_calls() -> None:
    x: Kind = ((4,), FLOAT)
    interpreter = Interpreter(model_content=loop([COUNTER, x], below(3), counting(affine(x))))
    for size in (4, 9, 4):
        interpreter.resize_tensor_input(1, [size])
        interpreter.allocate_tensors()
        assert kernel_of(interpreter).program is not None
        value = floats(size)
        expected = value
        for _ in range(3):
            expected = expected * np.float32(0.9) + np.float32(0.5)
        np.testing.assert_array_equal(outputs(interpreter, start(0, value))[1], expected)


def recurrence() -> bytes:
    """The states of a recurrent cell over any number of rows, as converters write it; and all rows, squared if the last
    state has a positive sum, else negated."""
    make = ModelMaker()
    rows, state = ((4, 8), FLOAT), ((1, 8), FLOAT)
    kinds: list[Kind] = [COUNTER, state, COUNTER, rows]
    x = make.tensor(*rows)
    shape = op(make, "SHAPE", [x], ((2,), INT), ShapeOptions(out_type=INT))
    ends = [number(make, [end], INT) for end in (0, 1, 1)]
    length = op(make, "STRIDED_SLICE", [shape, *ends], COUNTER, StridedSliceOptions(shrink_axis_mask=1))
    results = [make.tensor(*kind) for kind in kinds]
    operands = [number(make, 0, INT), number(make, np.zeros((1, 8))), length, x]
    make.op("WHILE", operands, results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    total = op(make, "SUM", [results[1], number(make, [0, 1], INT)], ((), FLOAT), ReducerOptions())
    flag = op(make, "GREATER", [total, number(make, 0.0)], ((), BOOL))
    y = op(make, "IF", [flag, x], rows, IfOptions(then_subgraph_index=3, else_subgraph_index=4))
    make.io([x], [results[1], y])

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        row = op(make, "GATHER", [v[3], v[0]], ((8,), FLOAT), GatherOptions())
        weights = number(make, floats(8, 8))
        product = op(make, "FULLY_CONNECTED", [v[1], weights, -1], state, FullyConnectedOptions())
        following = op(make, "TANH", [op(make, "ADD", [product, row], state)], state)
        return [op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER), following, v[2], v[3]]

    subgraph(make, "condition", kinds, lambda make, v: [op(make, "LESS", [v[0], v[2]], ((), BOOL))])
    subgraph(make, "body", kinds, turn)
    subgraph(make, "then", [rows], lambda make, v: [op(make, "MUL", [v[0], v[0]], rows)])
    subgraph(make, "else", [rows], lambda make, v: [op(make, "NEG", [v[0]], rows)])
    return make.model()


def test_loops_and_branches_with_sizes_left_open() -> None:
    content = recurrence()
    interpreter = Interpreter(model_content=content)
    for number, length in enumerate((5, 6, 9, 1, 30, 300, 7)):
        alone, found = Interpreter(model_content=content), []
        for one in (interpreter, alone):
            one.resize_tensor_input(0, [length, 8])
            one.allocate_tensors()
            one.set_tensor(0, floats(length, 8))
            one.invoke()
            found.append([one.get_tensor(output["index"]).tobytes() for output in one.get_output_details()])
        assert found[0] == found[1]
        kernel = kernel_of(interpreter)
        assert kernel.is_filled == bool(number)
    assert kinds_of(kernel)[0].count("loop") == kinds_of(kernel)[0].count("branch") == 1


@pytest.mark.emulator
def test_loops_and_branches_on_aarch64() -> None:
    check(nested(4), start(0, floats(4), 2 * floats(4)))
    check(nested(2000), start(0, floats(2000), 2 * floats(2000)))
    check(loop([COUNTER, ((5,), FLOAT)], below(8), branching, *branches()), start(0, floats(5)))
    check(recurrent(16), start(0, floats(1, 16)), within=1e-5)
