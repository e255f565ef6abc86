"""Loops and branches with sizes left open: filled in, they are the programs of these sizes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gossamer import Interpreter, InvokeError
from gossamer.delegates.jit import compiling, template
from gossamer.ops import _lstm
from gossamer.programs import plans
from gossamer.programs.program import NO_KERNEL
from gossamer.programs.team import Jump
from gossamer.schema import (
    FullyConnectedOptions,
    GatherOptions,
    IfOptions,
    PackOptions,
    ShapeOptions,
    StridedSliceOptions,
    UnidirectionalSequenceLSTMOptions,
    WhileOptions,
)
from tests.codegen.test_basis import made_of_what_ships, shipped
from tests.delegates.jit.running import TARGETS, outputs
from tests.delegates.jit.test_control_flow import BOOL, COUNTER, FLOAT, INT, Build, Kind, floats, number, op, subgraph
from tests.delegates.jit.test_loops import Body, counted, filling, replaced
from tests.delegates.jit.test_sequences import Lstm
from tests.delegates.jit.test_template import kernel_of
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

Array = NDArray[Any]
ROWS: Kind = ((5, 6), FLOAT)
PACK3 = PackOptions(values_count=3)


def as_long_as_its_input(
    kinds: Sequence[Kind],
    body: Body,
    others: Sequence[tuple[Sequence[Kind], Build]] = (),
    more: Sequence[tuple[Kind, Callable[[ModelMaker, int], int]]] = (),
) -> bytes:
    """for i in range(len(variables[0])): variables = body(i, variables), as layers of Keras have it. ``more``: further
    variables, and how they begin where there are so many rows."""
    make = ModelMaker()
    inputs = [make.tensor(*kind) for kind in kinds]
    rank = len(kinds[0][0])
    shape = op(make, "SHAPE", [inputs[0]], ((rank,), INT), ShapeOptions(out_type=INT))
    ends = [number(make, [at], INT) for at in (0, 1, 1)]
    count = op(make, "STRIDED_SLICE", [shape, *ends], COUNTER, StridedSliceOptions(shrink_axis_mask=1))
    begins = [*inputs, *(begin(make, count) for _, begin in more)]
    kinds = [*kinds, *(kind for kind, _ in more)]
    results = [make.tensor(*kind) for kind in (COUNTER, COUNTER, *kinds)]
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    make.op("WHILE", [number(make, 0, INT), count, *begins], results, options)
    make.io(inputs, [op(make, "NEG", [result], kind) for result, kind in zip(results[2:], kinds, strict=True)])
    every = [COUNTER, COUNTER, *kinds]
    subgraph(make, "condition", every, lambda make, v: [op(make, "LESS", [v[0], v[1]], ((), BOOL))])

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER), v[1], *body(make, v[0], v[2:])]

    subgraph(make, "body", every, turn)
    for of, build in others:
        subgraph(make, "other", of, build)
    return make.model()


def recurrent(units: int, batch: int = 1) -> bytes:
    """h = tanh(x[i] w + h u), and all of these."""
    x, h, all_h = ((8, batch, 6), FLOAT), ((batch, units), FLOAT), ((8, batch, units), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = op(make, "GATHER", [v[0], at], ((batch, 6), FLOAT), GatherOptions(axis=0))
        weights = [number(make, floats(units, 6)), number(make, floats(units, units) / units)]
        products = [
            op(make, "FULLY_CONNECTED", [of, weight, -1], h, FullyConnectedOptions())
            for of, weight in zip((v[1], row), weights[::-1], strict=True)
        ]
        new = op(make, "TANH", [op(make, "ADD", products, h)], h)
        item = op(make, "RESHAPE", [new, number(make, [1, batch, units], INT)], ((1, batch, units), FLOAT))
        return [v[0], new, replaced(make, v[2], all_h, 0, at, [item])]

    return as_long_as_its_input([x, h, all_h], body)


def from_zeros() -> bytes:
    """As Keras has it: the state and the list of all states begin as zeros, of one row they are the same."""
    x, h, all_h = ((8, 1, 6), FLOAT), ((1, 30), FLOAT), ((8, 1, 30), FLOAT)

    def zeros(make: ModelMaker, count: int) -> int:
        shape = op(make, "PACK", [count, number(make, 1, INT), number(make, 30, INT)], ((3,), INT), PACK3)
        return op(make, "FILL", [shape, number(make, 0.0)], all_h)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = op(make, "GATHER", [v[0], at], ((1, 6), FLOAT), GatherOptions(axis=0))
        product = op(make, "FULLY_CONNECTED", [row, number(make, floats(30, 6)), -1], h, FullyConnectedOptions())
        new = op(make, "TANH", [op(make, "ADD", [product, v[1]], h)], h)
        item = op(make, "RESHAPE", [new, number(make, [1, 1, 30], INT)], ((1, 1, 30), FLOAT))
        return [v[0], new, replaced(make, v[2], all_h, 0, at, [item])]

    begin: Callable[[ModelMaker, int], int] = lambda make, count: number(make, np.zeros((1, 30)))  # noqa: E731
    return as_long_as_its_input([x], body, more=[(h, begin), (all_h, zeros)])


def small() -> bytes:
    """A loop of small maps, which is one kernel, beside maps of any size."""
    x, y = ((5, 6), FLOAT), ((4,), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        return [v[0], op(make, "MUL", [op(make, "ADD", [v[1], number(make, 0.5)], y), number(make, 0.25)], y)]

    return as_long_as_its_input([x, y], body)


def branching() -> bytes:
    """Every other turn adds to rows of any number, the others halve them."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        rest = op(make, "FLOOR_MOD", [at, number(make, 2, INT)], COUNTER)
        flag = op(make, "EQUAL", [rest, number(make, 0, INT)], ((), BOOL))
        return [op(make, "IF", [flag, v[0]], ROWS, IfOptions(then_subgraph_index=3, else_subgraph_index=4))]

    def add(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "ADD", [v[0], number(make, 3)], ROWS)]

    def halve(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "TANH", [op(make, "MUL", [v[0], number(make, 0.5)], ROWS)], ROWS)]

    return as_long_as_its_input([ROWS], body, [([ROWS], add), ([ROWS], halve)])


def taking() -> bytes:
    """Turns add a row of x if its first element is positive; that it is one row is told when branches are lowered."""
    row: Kind = ((6,), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        first = op(make, "GATHER", [v[0], at], row, GatherOptions(axis=0))
        one = op(make, "STRIDED_SLICE", [first, *[number(make, [n], INT) for n in (0, 1, 1)]], ((1,), FLOAT))
        flag = op(make, "GREATER", [one, number(make, 0.0)], ((1,), BOOL))
        branches = IfOptions(then_subgraph_index=3, else_subgraph_index=4)
        return [v[0], op(make, "IF", [flag, at, v[0], v[1]], row, branches)]

    def add(make: ModelMaker, v: list[int]) -> list[int]:
        zero = number(make, 0, INT)
        begin, end = (
            op(make, "PACK", [at, zero], ((2,), INT), PackOptions(values_count=2))
            for at in (v[0], op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER))
        )
        options = StridedSliceOptions(begin_mask=2, end_mask=2, shrink_axis_mask=1)
        taken = make.tensor((6,), FLOAT)
        make.op("STRIDED_SLICE", [v[1], begin, end, number(make, [1, 1], INT)], [taken], options)
        return [op(make, "ADD", [v[2], taken], row)]

    kinds: list[Kind] = [COUNTER, ROWS, row]
    tanh: Build = lambda make, v: [op(make, "TANH", [v[2]], row)]  # noqa: E731
    return as_long_as_its_input([ROWS, row], body, [(kinds, add), (kinds, tanh)])


def scattering() -> bytes:
    """Row after row is scattered into zeros as large as x, as JAX puts rows into a list."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = op(make, "GATHER", [v[0], at], ((6,), FLOAT), GatherOptions(axis=0))
        rows = op(make, "RESHAPE", [row, number(make, [1, 6], INT)], ((1, 6), FLOAT))
        place = op(make, "RESHAPE", [at, number(make, [1, 1], INT)], ((1, 1), INT))
        shape = op(make, "SHAPE", [v[0]], ((2,), INT), ShapeOptions(out_type=INT))
        return [v[0], op(make, "ADD", [v[1], op(make, "SCATTER_ND", [place, rows, shape], ROWS)], ROWS)]

    return as_long_as_its_input([ROWS, ROWS], body)


def nested() -> bytes:
    """In each turn, a loop of three turns over rows of any number."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        options = WhileOptions(cond_subgraph_index=3, body_subgraph_index=4)
        results = [make.tensor(*COUNTER), make.tensor(*ROWS)]
        make.op("WHILE", [number(make, 0, INT), v[0]], results, options)
        return [op(make, "TANH", [results[1]], ROWS)]

    def goes_on(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "LESS", [v[0], number(make, 3, INT)], ((), BOOL))]

    def inner(make: ModelMaker, v: list[int]) -> list[int]:
        step = op(make, "ADD", [v[0], number(make, 1, INT)], COUNTER)
        return [step, op(make, "MUL", [v[1], number(make, 1.5)], ROWS)]

    return as_long_as_its_input([ROWS], body, [([COUNTER, ROWS], goes_on), ([COUNTER, ROWS], inner)])


def picking() -> bytes:
    """Rows at indices that are read, which may be outside: a fault ends the loop."""
    x, at_all = ((5, 6), FLOAT), ((5,), INT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        index = op(make, "GATHER", [v[0], at], ((), INT), GatherOptions(axis=0))
        row = op(make, "GATHER", [v[1], index], ((6,), FLOAT), GatherOptions(axis=0))
        return [v[0], v[1], op(make, "ADD", [v[2], row], ((6,), FLOAT))]

    return as_long_as_its_input([at_all, x, ((6,), FLOAT)], body)


Feed = Callable[[int], dict[int, Array]]


def feeds(model: str) -> tuple[bytes, Feed]:
    """A model, and what it is given for a length."""

    def whole(n: int) -> Array:
        return (np.arange(n) * 7 % n).astype(np.int32)

    if model == "filled":
        return counted([ROWS, ROWS], filling(ROWS, 0)), lambda n: {0: floats(n, 6), 1: floats(n, 6), 2: np.int32(n)}
    if model.startswith("recurrent"):
        _, units, batch = map(int, model.replace("recurrent", "0").split("_"))
        zeros = np.zeros
        return recurrent(units, batch), lambda n: {
            0: floats(n, batch, 6),
            1: zeros((batch, units), np.float32),
            2: zeros((n, batch, units), np.float32),
        }
    if model == "from_zeros":
        return from_zeros(), lambda n: {0: floats(n, 1, 6)}
    if model == "scattering":
        return scattering(), lambda n: {0: floats(n, 6), 1: floats(n, 6)}
    if model == "small":
        return small(), lambda n: {0: floats(n, 6), 1: floats(4)}
    if model == "picking":
        return picking(), lambda n: {0: whole(n), 1: floats(n, 6), 2: floats(6)}
    if model == "taking":
        return taking(), lambda n: {0: floats(n, 6), 1: floats(6)}
    return {"branching": branching, "nested": nested}[model](), lambda n: {0: floats(n, 6)}


MODELS = [
    "filled",
    "recurrent_10_1",
    "recurrent_40_3",
    "from_zeros",
    "small",
    "branching",
    "taking",
    "scattering",
    "nested",
    "picking",
]


def given(interpreter: Any, inputs: dict[int, Array]) -> list[Array]:
    """What it makes of inputs of any shapes."""
    for index, value in inputs.items():
        interpreter.resize_tensor_input(index, np.shape(value))
    interpreter.allocate_tensors()
    return outputs(interpreter, inputs)


SEEN = [5]
"""Before there is a template."""


def check_filled(model: str, lengths: Sequence[int], threads: int = 1) -> Any:
    """Plans are those of the length alone, made by a template; the interpreter."""
    content, feed = feeds(model)
    interpreter = Interpreter(model_content=content, num_threads=threads)
    for length in SEEN:
        given(interpreter, feed(length))
        assert not kernel_of(interpreter).is_filled
    for length in lengths:
        inputs, alone = feed(length), Interpreter(model_content=content, num_threads=threads)
        found, wanted = given(interpreter, inputs), given(alone, inputs)
        assert [one.tobytes() for one in found] == [one.tobytes() for one in wanted], length
        kernel, fresh = kernel_of(interpreter), kernel_of(alone)
        assert kernel.is_filled, length
        assert kernel.program is not None
        assert fresh.program is not None
        assert plans.plain(kernel.program.plan) == plans.plain(fresh.program.plan)
    templates = kernel_of(interpreter)._templates
    assert templates is not None
    assert not any(template.closed for template in templates._made)
    assert all(template.is_cast for template in templates._made)
    return interpreter


@pytest.mark.parametrize("model", MODELS)
def test_filled_in_it_is_what_the_length_alone_would_become(model: str) -> None:
    interpreter = check_filled(model, [12, 64, 2])
    kernel = kernel_of(interpreter)
    assert kernel.program is not None
    assert kernel.built is not None  # what there is to say of commands is about those that run
    assert len(kernel.built.steps) == len(kernel.program.plan.commands)


def test_a_single_row() -> None:
    check_filled("from_zeros", [12, 1, 7])


def test_threads_go_through_it_together() -> None:
    check_filled("recurrent_40_3", [70], threads=2)


@pytest.mark.parametrize("model", ["recurrent_10_1", "branching", "small"])
def test_without_a_compiler_it_is_the_same_of_what_ships(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compiling, template):
        monkeypatch.setattr(module, "at_hand_for", lambda target: shipped(target).__contains__)
    monkeypatch.setattr(compiling, "compiled_of", made_of_what_ships)
    interpreter = check_filled(model, [12])
    kernel = kernel_of(interpreter)
    assert kernel.program is not None
    assert set(kernel.program.plan.kernels) <= shipped(kernel.target).keys()


def test_a_fault_ends_it() -> None:
    interpreter = check_filled("picking", [12])
    with pytest.raises(InvokeError, match="GATHER"):
        given(interpreter, {0: np.int32([0, 1, 9, 2, 3, 4, 5]), 1: floats(7, 6), 2: floats(6)})
    assert kernel_of(interpreter).is_filled


def test_many_weights_are_read_back_and_forth() -> None:
    """Each other turn has commands of its own; rows of zeros are no longer passed over, which gives the same bits."""
    content, feed = feeds("recurrent_384_1")
    interpreter = Interpreter(model_content=content)
    for length in SEEN:
        given(interpreter, feed(length))
    found, wanted = given(interpreter, feed(12)), given(Interpreter(model_content=content), feed(12))
    assert [one.tobytes() for one in found] == [one.tobytes() for one in wanted]
    kernel = kernel_of(interpreter)
    assert kernel.is_filled
    assert kernel.program is not None
    jumps = kernel.program.plan.commands[:, 0] == NO_KERNEL
    blocks = kernel.program.plan.commands[jumps, 1] // 8
    assert kernel.program.plan.words[blocks].tolist() == [Jump.GO, Jump.UNLESS, Jump.BACK]


def sequence(seed: int) -> tuple[bytes, Sequence[int]]:
    """An LSTM, which keeps its states, and the shape of its input with -1 for the time."""
    net = Lstm(seed)
    shape = (-1, net.batch, net.inputs) if net.time_major else (net.batch, -1, net.inputs)
    x = net.make.tensor(net.order(net.inputs), shape_signature=shape)
    operands = [x, *net.operands(_lstm.WEIGHT_NAMES), *net.states()]
    operands += net.operands(_lstm.NORM_NAMES) if net.norm else []
    y = net.make.tensor(net.order(net.outputs))
    options = UnidirectionalSequenceLSTMOptions(
        time_major=net.time_major,
        fused_activation_function=net.activation,
        diagonal_recurrent_tensors=net.is_diagonal,
    )
    net.make.op("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y], options, version=4)
    net.make.io((x,), [y])
    return net.make.model(), shape


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_sequences_of_any_length_are_loops(seed: int) -> None:
    """Call after call, so that states stay."""
    content, shape = sequence(seed)
    interpreter = Interpreter(model_content=content)
    for length in (*SEEN, 12, 33):
        x = floats(*[length if size < 0 else size for size in shape])
        alone = Interpreter(model_content=content)
        for one in (interpreter, alone):
            one.resize_tensor_input(0, x.shape)
            one.allocate_tensors()
        for values in (x, 0.5 * x):
            (found,), (wanted,) = outputs(interpreter, {0: values}), outputs(alone, {0: values})
            assert found.tobytes() == wanted.tobytes()
    kernel, fresh = kernel_of(interpreter), kernel_of(alone)
    assert kernel.is_filled
    assert kernel.program is not None
    assert fresh.program is not None
    assert kernel.program.plan.has_loops
    assert plans.plain(kernel.program.plan) == plans.plain(fresh.program.plan)


def test_sequences_of_any_length_are_made_of_what_ships(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compiling, template):
        monkeypatch.setattr(module, "at_hand_for", lambda target: shipped(target).__contains__)
    monkeypatch.setattr(compiling, "compiled_of", made_of_what_ships)
    content, shape = sequence(1)
    interpreter = Interpreter(model_content=content)
    for length in (*SEEN, 12):
        given(interpreter, {0: floats(*[length if size < 0 else size for size in shape])})
    kernel = kernel_of(interpreter)
    assert kernel.is_filled
    assert kernel.program is not None
    assert kernel.program.plan.has_loops
    assert set(kernel.program.plan.kernels) <= shipped(kernel.target).keys()
