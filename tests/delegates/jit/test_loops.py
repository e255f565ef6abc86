"""Loops that read and replace a part of a variable, at an index that they count: what they compute, and what not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gossamer
from gossamer.codegen.basis import basis
from gossamer.codegen.commands import contract
from gossamer.codegen.graph import KernelGraph
from gossamer.codegen.kernels.contract24 import narrows
from gossamer.codegen.layout import lay_out
from gossamer.codegen.library import ensure
from gossamer.delegates.jit import compiling
from gossamer.delegates.jit.delegate import JitDelegate
from gossamer.errors import InvokeError
from gossamer.programs.program import ARENA
from gossamer.schema import (
    ConcatenationOptions,
    FullyConnectedOptions,
    GatherOptions,
    QuantizationParameters,
    ReducerOptions,
    SliceOptions,
    SoftmaxOptions,
    StridedSliceOptions,
    TensorType,
    WhileOptions,
)
from gossamer.targets import Target, all_targets
from tests.delegates.jit.running import TARGETS, check, machine_code, outputs, reference
from tests.delegates.jit.test_control_flow import (
    BOOL,
    COUNTER,
    FLOAT,
    INT,
    Kind,
    floats,
    kinds_of,
    number,
    op,
    refusals,
    subgraph,
)
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

Array = NDArray[Any]
Body = Callable[[ModelMaker, int, list[int]], list[int]]
"""What follows variables, of the counter and of them."""


def counted(kinds: Sequence[Kind], body: Body, limit: int | None = None, *, step: int = 1, first: int = 0) -> bytes:
    """for i in range(first, limit, step): variables = body(i, variables). Without a limit it is an input of the model,
    behind the variables. What is left at last is negated, so that something comes after the loop."""
    make = ModelMaker()
    inputs = [make.tensor(*kind) for kind in kinds]
    counts = [make.tensor(*COUNTER) if limit is None else number(make, limit, INT)]
    results = [make.tensor(*kind) for kind in (COUNTER, COUNTER, *kinds)]
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    make.op("WHILE", [number(make, first, INT), *counts, *inputs], results, options)
    behind = [op(make, "NEG", [result], kind) for result, kind in zip(results[2:], kinds, strict=True)]
    make.io([*inputs, *(counts if limit is None else [])], [*behind, results[0]])
    every = [COUNTER, COUNTER, *kinds]
    less = "LESS" if step > 0 else "GREATER"

    def condition(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, less, [v[0], v[1] if limit is None else number(make, limit, INT)], ((), BOOL))]

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "ADD", [v[0], number(make, step, INT)], COUNTER), v[1], *body(make, v[0], v[2:])]

    subgraph(make, "condition", every, condition)
    subgraph(make, "body", every, turn)
    return make.model()


def vector(make: ModelMaker, axis: int, rank: int, at: int, other: int) -> int:
    """The index ``at`` for an axis, another number for the others."""
    parts = [number(make, [other], INT) for _ in range(rank)]
    parts[axis] = op(make, "RESHAPE", [at, number(make, [1], INT)], ((1,), INT))
    return op(make, "CONCATENATION", parts, ((rank,), INT), ConcatenationOptions())


def plus(make: ModelMaker, at: int, more: int) -> int:
    return op(make, "ADD", [at, number(make, more, INT)], COUNTER)


def replaced(make: ModelMaker, x: int, kind: Kind, axis: int, at: int, items: Sequence[int], width: int = 1) -> int:
    """x[:at] ++ items ++ x[at + width:], as TensorFlow's converter writes an item into a list."""
    rank = len(kind[0])
    zeros, rest = number(make, [0] * rank, INT), number(make, [-1] * rank, INT)
    open_ = Tensors(make, kind, axis)
    before = open_.op("SLICE", [x, zeros, vector(make, axis, rank, at, -1)], SliceOptions())
    behind = open_.op("SLICE", [x, vector(make, axis, rank, plus(make, at, width), 0), rest], SliceOptions())
    return op(make, "CONCATENATION", [before, *items, behind], kind, ConcatenationOptions(axis=axis))


class Tensors:
    """Results whose size along an axis only the run tells."""

    def __init__(self, make: ModelMaker, kind: Kind, axis: int) -> None:
        self._make = make
        self._kind = kind
        self._axis = axis

    def op(self, name: str, inputs: Sequence[int], options: Any) -> int:
        shape = [1 if dim == self._axis else size for dim, size in enumerate(self._kind[0])]
        signature = [-1 if dim == self._axis else size for dim, size in enumerate(self._kind[0])]
        result = self._make.tensor(shape, self._kind[1], shape_signature=tuple(signature))
        self._make.op(name, inputs, [result], options)
        return result


def picked(make: ModelMaker, x: int, kind: Kind, axis: int, at: int, width: int = 1) -> int:
    """x[at:at + width] along an axis."""
    rank = len(kind[0])
    shape = tuple([width if dim == axis else size for dim, size in enumerate(kind[0])])
    size = number(make, shape, INT)
    return op(make, "SLICE", [x, vector(make, axis, rank, at, 0), size], (shape, kind[1]), SliceOptions())


def filling(kind: Kind, axis: int, width: int = 1) -> Body:
    """Replace a part of a variable by a part of another one, doubled."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        item = picked(make, v[1], kind, axis, at, width)
        shape = tuple([width if dim == axis else size for dim, size in enumerate(kind[0])])
        return [replaced(make, v[0], kind, axis, at, [op(make, "ADD", [item, item], (shape, FLOAT))], width), v[1]]

    return body


def check_errors(model: bytes, inputs: dict[int, Array]) -> None:
    """Machine code says what is wrong with the words of the reference kernels."""
    interpreter, _ = machine_code(model)
    expected = reference(model)
    expected.allocate_tensors()
    texts = []
    for each in (expected, interpreter):
        with pytest.raises(InvokeError) as failure:
            outputs(each, inputs)
        texts.append(str(failure.value).splitlines()[0])
    assert texts[0] in texts[1]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("width", "limit"), [(1, 5), (1, 2), (2, 4), (1, 0), (4, 1)])
def test_a_part_of_a_variable_is_replaced(axis: int, width: int, limit: int) -> None:
    kind: Kind = ((5, 6, 7), FLOAT)
    model = counted([kind, kind], filling(kind, axis, width), limit)
    check(model, {0: floats(5, 6, 7), 1: 3 * floats(5, 6, 7)})


def test_it_is_replaced_where_it_lies() -> None:
    kind: Kind = ((5, 6), FLOAT)
    _, kernel = machine_code(counted([kind, kind], filling(kind, 0), 5))
    graph, body, _ = kinds_of(kernel)
    assert graph == ["copy", "copy", "loop", "map", "map"]
    assert body == ["map", "gather", "map", "put", "copy"]  # of the counter


@pytest.mark.parametrize(
    ("axis", "way", "is_aimed"),
    [(0, "added", True), (1, "added", False), (0, "kept", False), (0, "of a variable", False), (0, "twice", True)],
)
def test_rows_are_read_where_they_are(axis: int, way: str, is_aimed: bool) -> None:
    """Unless their elements are not neighbours, a variable becomes the row, or what they are of changes."""
    kind: Kind = ((5, 6), FLOAT)
    row: Kind = ((1, 6) if axis == 0 else (5, 1), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        item = picked(make, v[0], kind, axis, at)
        matrix = op(make, "ADD", [v[0], v[0]], kind) if way == "of a variable" else v[0]
        if way == "twice":
            item = op(make, "MUL", [item, picked(make, v[0], kind, axis, plus(make, at, 1))], row)
        state = item if way == "kept" else op(make, "TANH", [op(make, "ADD", [v[1], item], row)], row)
        return [matrix, state, op(make, "ADD", [v[2], state], row)]

    model = counted([kind, row, row], body, 3)
    check(model, {0: floats(5, 6), 1: floats(*row[0]), 2: floats(*row[0])}, within=1e-6, threads=(1, 2, 3))
    _, kernel = machine_code(model)
    assert kernel.program is not None
    numbers = kernel.program.plan.commands[:, 0].tolist()
    names = [kernel.program.plan.kernels[at].split("__")[0] for at in numbers if at >= 0]
    assert names.count("x64_aim_i32") == (1 + (way == "twice") if is_aimed else 0)
    assert any("_gather_" in name for name in names) is not is_aimed


def test_what_was_there_before_can_be_read_later() -> None:
    kind: Kind = ((5, 6), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        new = replaced(make, v[0], kind, 0, at, [picked(make, v[1], kind, 0, at)])
        return [new, op(make, "ADD", [v[1], v[0]], kind)]

    check(counted([kind, kind], body, 5), {0: floats(5, 6), 1: 3 * floats(5, 6)})


def test_several_pieces_may_be_put_in() -> None:
    kind: Kind = ((8, 3), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        items = [picked(make, v[1], kind, 0, plus(make, at, more)) for more in (2, 0, 1)]
        return [replaced(make, v[0], kind, 0, plus(make, at, 1), items, 3), v[1]]

    check(counted([kind, kind], body, 5), {0: floats(8, 3), 1: 3 * floats(8, 3)})


@pytest.mark.parametrize("limit", [-3, 0, 1, 4, 5])
def test_how_often_may_be_an_input(limit: int) -> None:
    kind: Kind = ((5, 6), FLOAT)
    inputs = {0: floats(5, 6), 1: 2 * floats(5, 6), 2: np.array(limit, np.int32)}
    check(counted([kind, kind], filling(kind, 0)), inputs)


@pytest.mark.parametrize("axis", [0, 1])
def test_outside_is_an_error(axis: int) -> None:
    kind: Kind = ((5, 5), FLOAT)
    check_errors(counted([kind, kind], filling(kind, axis)), {0: floats(5, 5), 1: floats(5, 5), 2: np.int32(6)})

    def half(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        return [replaced(make, v[0], kind, axis, at, [picked(make, v[1], kind, axis, zero(make))]), v[1]]

    check_errors(counted([kind, kind], half), {0: floats(5, 5), 1: floats(5, 5), 2: np.int32(6)})


def zero(make: ModelMaker) -> int:
    return number(make, 0, INT)


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(2, 7, rng.integers(1, 4)))
    axis = int(rng.integers(len(shape)))
    width, first, step = (int(rng.integers(low, high)) for low, high in ((1, 3), (0, 2), (1, 3)))
    limit = int(rng.integers(first, shape[axis] - width + 2))
    kind: Kind = (shape, FLOAT)
    model = counted([kind, kind], filling(kind, axis, width), limit, step=step, first=first)
    check(model, {0: floats(*shape), 1: 3 * floats(*shape)})


@pytest.mark.parametrize("limit", [0, 1, 4])
@pytest.mark.parametrize(
    ("begins", "steps", "left"),
    [
        ((0, 0), (1, 1), 2),
        ((2, 2), (-1, -1), 2),
        ((0, 1), (1, 1), 4),  # no counter is the other, so no state is
        ((0, 0), (1, 2), 4),  # states would be, if counters were
    ],
)
def test_variables_that_are_the_same_are_one(
    limit: int, begins: tuple[int, int], steps: tuple[int, int], left: int
) -> None:
    """Two counters, a state for each, and the first state under another shape, as lists of one element have it."""
    kinds: list[Kind] = [COUNTER, COUNTER, COUNTER, ((2, 3), FLOAT), ((2, 3), FLOAT), ((1, 6), FLOAT)]
    make = ModelMaker()
    x = make.tensor(*kinds[3])
    starts = [number(make, begin, INT) for begin in (7, *begins)]
    starts += [number(make, np.ones(shape)) for shape, _ in kinds[3:]]
    results = [make.tensor(*kind) for kind in (*kinds, kinds[3])]
    make.op("WHILE", [*starts, x], results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x], [op(make, "NEG", [result], kind) for result, kind in zip(results, kinds, strict=False)])

    def condition(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "LESS", [v[0], number(make, 7 + limit, INT)], ((), BOOL))]

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        counts = [plus(make, counter, step) for counter, step in zip(v[:3], (1, *steps), strict=True)]
        states = []
        for counter, state in zip(v[1:3], v[3:5], strict=True):
            factor = op(make, "CAST", [counter], ((), FLOAT))
            product = op(make, "MUL", [state, factor], kinds[3])
            states.append(op(make, "SUB", [product, v[6]], kinds[3]))
        return [*counts, *states, op(make, "RESHAPE", [states[0], number(make, (1, 6), INT)], kinds[5]), v[6]]

    subgraph(make, "condition", [*kinds, kinds[3]], condition)
    subgraph(make, "body", [*kinds, kinds[3]], turn)
    model = make.model()
    check(model, {0: floats(2, 3)})
    _, kernel = machine_code(model)
    assert kernel.built is not None
    (loop,) = [node for node in kernel.built.graph if node.kind == "loop"]
    assert len(loop.results) == 1 + left


@pytest.mark.parametrize("begin", [1.0, 2.0])
def test_a_state_and_a_copy_of_it_may_begin_apart(begin: float) -> None:
    """What is left of the copy, when no turn has run, is what it began with."""
    kind: Kind = ((2, 3), FLOAT)
    make = ModelMaker()
    limit = make.tensor(*COUNTER)
    starts = [zero(make), limit, number(make, np.ones((2, 3))), number(make, np.full((2, 3), begin))]
    results = [make.tensor(*each) for each in (COUNTER, COUNTER, kind, kind)]
    make.op("WHILE", starts, results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([limit], [op(make, "NEG", [result], kind) for result in results[2:]])

    def condition(make: ModelMaker, v: list[int]) -> list[int]:
        return [op(make, "LESS", v[:2], ((), BOOL))]

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        state = op(make, "ADD", [v[2], v[2]], kind)
        return [plus(make, v[0], 1), v[1], state, state]

    subgraph(make, "condition", [COUNTER, COUNTER, kind, kind], condition)
    subgraph(make, "body", [COUNTER, COUNTER, kind, kind], turn)
    for turns in (0, 2):
        check(make.model(), {0: np.int32(turns)})
    _, kernel = machine_code(make.model())
    assert kernel.built is not None
    (loop,) = [node for node in kernel.built.graph if node.kind == "loop"]
    assert len(loop.results) == (2 if begin == 1 else 3)


def test_loops_in_loops() -> None:
    """x[i, j] = y[j, i], one element after the other."""
    kind: Kind = ((3, 4), FLOAT)
    row: Kind = ((1, 4), FLOAT)
    make = ModelMaker()
    x, y = make.tensor(*kind), make.tensor(*kind)
    results = [make.tensor(*each) for each in (COUNTER, kind, kind)]
    make.op("WHILE", [zero(make), x, y], results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([x, y], [results[1]])

    def below(limit: int) -> Any:
        return lambda make, v: [op(make, "LESS", [v[0], number(make, limit, INT)], ((), BOOL))]

    def outer(make: ModelMaker, v: list[int]) -> list[int]:
        inner = [make.tensor(*each) for each in (COUNTER, row, COUNTER, kind)]
        given = [zero(make), picked(make, v[1], kind, 0, v[0]), v[0], v[2]]
        make.op("WHILE", given, inner, WhileOptions(cond_subgraph_index=3, body_subgraph_index=4))
        return [plus(make, v[0], 1), replaced(make, v[1], kind, 0, v[0], [inner[1]]), v[2]]

    def within(make: ModelMaker, v: list[int]) -> list[int]:
        item = picked(make, picked(make, v[3], kind, 0, v[2]), row, 1, v[0])
        twice = op(make, "ADD", [item, item], ((1, 1), FLOAT))
        return [plus(make, v[0], 1), replaced(make, v[1], row, 1, v[0], [twice]), v[2], v[3]]

    subgraph(make, "condition", [COUNTER, kind, kind], below(3))
    subgraph(make, "body", [COUNTER, kind, kind], outer)
    subgraph(make, "condition", [COUNTER, row, COUNTER, kind], below(4))
    subgraph(make, "body", [COUNTER, row, COUNTER, kind], within)
    check(make.model(), {0: floats(3, 4), 1: 3 * floats(3, 4)})


def test_an_index_that_falls() -> None:
    kind: Kind = ((5, 6), FLOAT)
    check(counted([kind, kind], filling(kind, 0), -1, step=-1, first=4), {0: floats(5, 6), 1: 2 * floats(5, 6)})


# Begins and ends as STRIDED_SLICE has them


def strided(make: ModelMaker, x: int, kind: Kind, axis: int, at: int, end: int, **options: int) -> int:
    """x[at:end] along an axis, as Python writes it."""
    rank = len(kind[0])
    others = (1 << rank) - 1 - (1 << axis)
    result = make.tensor([1 if dim == axis else size for dim, size in enumerate(kind[0])], kind[1])
    shrinks = options.get("shrink_axis_mask", 0)
    if shrinks:
        result = make.tensor([size for dim, size in enumerate(kind[0]) if dim != axis], kind[1])
    vectors = [vector(make, axis, rank, at, 0), vector(make, axis, rank, end, 0), number(make, [1] * rank, INT)]
    masks = StridedSliceOptions(**{"begin_mask": others, "end_mask": others, **options})
    make.op("STRIDED_SLICE", [x, *vectors], [result], masks)
    return result


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("limit", [None, 5])
def test_an_element_of_an_axis(axis: int, limit: int | None) -> None:
    """x[i] with a dimension less, which must be there."""
    kind: Kind = ((5, 5), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        item = strided(make, v[0], kind, axis, at, plus(make, at, 1), shrink_axis_mask=1 << axis)
        return [v[0], op(make, "ADD", [v[1], item], ((5,), FLOAT))]

    model = counted([kind, ((5,), FLOAT)], body, limit)
    inputs = {0: floats(5, 5), 1: floats(5)}
    if limit is None:
        inputs[2] = np.array(4, np.int32)
    check(model, inputs)
    if limit is None:
        check_errors(model, inputs | {2: np.array(7, np.int32)})


@pytest.mark.parametrize("width", [1, 2])
def test_a_part_of_an_axis(width: int) -> None:
    """x[i:i + width], which the condition keeps inside: otherwise it would be shorter."""
    kind: Kind = ((5, 3), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        item = strided(make, v[0], kind, 0, at, plus(make, at, width))
        return [v[0], op(make, "ADD", [v[1], item], ((width, 3), FLOAT))]

    kinds: list[Kind] = [kind, ((width, 3), FLOAT)]
    check(counted(kinds, body, 6 - width), {0: floats(5, 3), 1: floats(width, 3)})
    reason = "whether begin or end is outside is only known"
    not_claimed(counted(kinds, body), {0: floats(5, 3), 1: floats(width, 3), 2: np.array(3, np.int32)}, reason)


def test_a_part_is_replaced_between_strided_slices() -> None:
    """x[:i] ++ item ++ x[i + 1:]."""
    kind: Kind = ((2, 5), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        item = strided(make, v[1], kind, 1, at, plus(make, at, 1))
        after = plus(make, at, 1)
        before = strided(make, v[0], kind, 1, zero(make), at, begin_mask=3, end_mask=1)
        behind = strided(make, v[0], kind, 1, after, zero(make), begin_mask=1, end_mask=3)
        return [op(make, "CONCATENATION", [before, item, behind], kind, ConcatenationOptions(axis=1)), v[1]]

    model = counted([kind, kind], body, 5)
    check(model, {0: floats(2, 5), 1: 2 * floats(2, 5)})
    _, kernel = machine_code(model)
    assert "put" in kinds_of(kernel)[1]


# Products of all turns at once


def recurrent(limit: int, rows: int = 8) -> bytes:
    """h = tanh(x[i] w + h u) with an input of so many rows."""
    x, h = ((rows, 1, 6), FLOAT), ((1, 10), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = op(make, "GATHER", [v[0], at], ((1, 6), FLOAT), GatherOptions(axis=0))
        weights = [number(make, floats(10, 6)), number(make, floats(10, 10))]
        products = [
            op(make, "FULLY_CONNECTED", [of, weight, -1], h, FullyConnectedOptions())
            for of, weight in zip((v[1], row), weights[::-1], strict=True)
        ]
        return [v[0], op(make, "TANH", [op(make, "ADD", products, h)], h)]

    return counted([x, h], body, limit)


UNITS = 200


def lstm(turns: int) -> tuple[bytes, Callable[[Array], Array]]:
    """An LSTM as Keras has it, whose layer has `UNITS` units and 10 inputs, and its last state in double precision."""
    rng, kinds = np.random.default_rng(0), [((turns, 1, 10), FLOAT), *[((1, UNITS), FLOAT)] * 2]
    gates = ((1, 4 * UNITS), FLOAT)
    of_x, of_h = (
        (rng.uniform(-1, 1, (4 * UNITS, depth)) * (6 / (depth + UNITS)) ** 0.5).astype(np.float32)
        for depth in (10, UNITS)
    )

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = op(make, "GATHER", [v[0], at], ((1, 10), FLOAT), GatherOptions(axis=0))
        products = [
            op(make, "FULLY_CONNECTED", [x, number(make, weights), -1], gates, FullyConnectedOptions())
            for x, weights in ((v[1], of_h), (row, of_x))
        ]
        whole = op(make, "ADD", products, gates)
        places = [[number(make, np.array(at), INT) for at in ([0, k * UNITS], [1, UNITS])] for k in range(4)]
        i, f, g, o = (op(make, "SLICE", [whole, *place], kinds[1], SliceOptions()) for place in places)
        i, f, o = (op(make, "LOGISTIC", [gate], kinds[1]) for gate in (i, f, o))
        kept = op(make, "MUL", [f, v[2]], kinds[1])
        added = op(make, "MUL", [i, op(make, "TANH", [g], kinds[1])], kinds[1])
        c = op(make, "ADD", [kept, added], kinds[1])
        return [v[0], op(make, "MUL", [o, op(make, "TANH", [c], kinds[1])], kinds[1]), c]

    def exact(x: Array) -> Array:
        h = c = np.zeros(UNITS)
        for row in x[:, 0].astype(np.float64):
            i, f, g, o = np.split(of_x.astype(np.float64) @ row + of_h.astype(np.float64) @ h, 4)
            i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
            c = f * c + i * np.tanh(g)
            h = o * np.tanh(c)
        return -h

    return counted(kinds, body, turns), exact


@pytest.mark.skipif(not any(map(narrows, TARGETS)), reason="no weights of 24 bits for this CPU")
def test_errors_with_weights_of_24_bits_are_those_with_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    model, exact = lstm(24)
    x = np.random.default_rng(1).uniform(-1, 1, (24, 1, 10)).astype(np.float32)
    wanted, errors = exact(x), {}
    for name in ("i24w", "none"):
        interpreter, kernel = machine_code(model)
        assert kernel.program is not None
        assert any(name in kernel for kernel in kernel.program.plan.kernels) is (name == "i24w")
        zeros = np.zeros((1, UNITS), np.float32)
        h = outputs(interpreter, {0: x, 1: zeros, 2: zeros})[1]
        errors[name] = np.sqrt(np.mean(np.square(h[0] - wanted)))
        monkeypatch.setattr(contract, "narrows", lambda target: False)
    assert 0 < errors["i24w"] <= 1.4 * errors["none"] < 1e-6
    monkeypatch.undo()
    check(model, {0: x, 1: zeros, 2: zeros}, within=1e-6)


@pytest.mark.parametrize("limit", [0, 1, 4, 7, 8])
def test_products_of_rows_are_computed_before_the_loop(limit: int) -> None:
    model = recurrent(limit)
    check(model, {0: floats(8, 1, 6), 1: floats(1, 10)}, within=1e-6)
    _, kernel = machine_code(model)
    graph, body, _ = kinds_of(kernel)
    assert (graph.count("contract"), body.count("contract")) == ((1, 1) if limit >= 4 else (0, 2))


def test_flags_stay_while_threads_may_look_at_them() -> None:
    """One thread may be in the next turn, or behind the loop, while another has yet to look if there is one."""
    h = ((4, 40), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        product = op(make, "FULLY_CONNECTED", [v[0], number(make, floats(40, 40)), -1], h, FullyConnectedOptions())
        return [op(make, "SOFTMAX", [product], h, SoftmaxOptions(beta=1.0))]

    model = counted([h], body, 4)
    check(model, {0: floats(4, 40)}, within=1e-6, threads=(1, 2, 3))
    _, kernel = machine_code(model)
    assert kernel.built is not None
    kernels = kernel.built.graph.kernels
    (at,) = [number for number, node in enumerate(kernels) if node.kind == "loop"]
    flag = kernels[at].operands[0].buffer
    later = [*(node for region in kernels[at].regions for node in region.kernels), kernels[at + 1]]
    written = {view.buffer for node in later for view in node.results} - {flag}
    places = lay_out(kernel.built.graph, {}).places
    ends = [(place.base, place.offset, place.offset + place.bytes) for place in map(places.__getitem__, written)]
    base, start = places[flag].base, places[flag].offset
    assert [part for part in ends if part[0] == base and part[1] <= start < part[2]] == []
    assert any(base == ARENA for base, _, _ in ends)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("batch", [1, 3, 4])
def test_constants_are_added_to_the_products_before_the_loop(turned: bool, keeps: bool, batch: int) -> None:
    """h = tanh((x[i] w + h u) + b), unless the sum without b is a variable, too (``keeps``)."""
    x, h = ((8, batch, 6), FLOAT), ((batch, 10), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = op(make, "GATHER", [v[0], at], ((batch, 6), FLOAT), GatherOptions(axis=0))
        products = [
            op(make, "FULLY_CONNECTED", [of, number(make, weight), -1], h, FullyConnectedOptions())
            for of, weight in ((row, floats(10, 6)), (v[1], floats(10, 10)))
        ]
        product = op(make, "ADD", products[::-1] if turned else products, h)
        bias = number(make, floats(1, 10))
        total = op(make, "ADD", [bias, product] if turned else [product, bias], h)
        return [v[0], op(make, "TANH", [total], h), product if keeps else v[2]]

    model = counted([x, h, h], body, 8)
    check(model, {0: floats(8, batch, 6), 1: floats(batch, 10), 2: floats(batch, 10)}, within=1e-5)
    _, kernel = machine_code(model)
    assert kernel.built is not None
    graph, turn, _ = kernel.built.graph.parts()
    *in_turn, state = [node.epilogue for node in turn if node.kind == "contract"]
    assert [*in_turn, *(node.epilogue for node in graph if node.kind == "contract")] == [0 if keeps else ("add", 0, 1)]
    assert (state == ("tanh", ("add", 0, 1))) is not keeps
    # With more rows than these, less is read where the product stays.
    assert bool(in_turn) is (batch >= 4)


def test_products_with_bytes_are_computed_before_the_loop() -> None:
    """Each row has its own scale, and sums are exact: the bits are those of one row at a time."""
    x, h = ((8, 2, 6), FLOAT), ((2, 10), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        row = op(make, "GATHER", [v[0], at], ((2, 6), FLOAT), GatherOptions(axis=0))
        bytes_ = np.random.default_rng(3).integers(-127, 128, (10, 6))
        scale = QuantizationParameters(scale=np.float32([0.01]), zero_point=np.array([0]))
        weights = make.constant(bytes_, np.int8, TensorType.INT8, quantization=scale)
        options = FullyConnectedOptions(asymmetric_quantize_inputs=True)
        return [v[0], op(make, "ADD", [v[1], op(make, "FULLY_CONNECTED", [row, weights, -1], h, options)], h)]

    model = counted([x, h], body, 8)
    check(model, {0: floats(8, 2, 6), 1: floats(2, 10)}, within=1e-6)
    _, kernel = machine_code(model)
    graph, turn, _ = kinds_of(kernel)
    assert (graph.count("hybrid"), turn.count("hybrid"), turn.count("quantize")) == (1, 0, 0)
    _, kernel = machine_code(counted([x, h], body, 3))
    assert kinds_of(kernel)[1].count("hybrid") == 1


def with_bytes(batch: int, rows: int, units: int = 40) -> bytes:
    """h = clip(x[i] w + h u) of eight turns, of which no part depends on an order of sums or approximates a function;
    with weights of bytes and an input of so many rows."""
    x, h = ((rows, batch, 30), FLOAT), ((batch, units), FLOAT)
    options = FullyConnectedOptions(asymmetric_quantize_inputs=True)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        rng, products = np.random.default_rng(5), []
        row = op(make, "GATHER", [v[0], at], ((batch, 30), FLOAT), GatherOptions(axis=0))
        for of, depth in ((row, 30), (v[1], units)):
            steps, zeros = rng.uniform(1e-3, 3e-3, units).astype(np.float32), np.zeros(units, np.int64)
            scales = QuantizationParameters(scale=steps, zero_point=zeros)
            weights = make.constant(
                rng.integers(-127, 128, (units, depth)), np.int8, TensorType.INT8, quantization=scales
            )
            products.append(op(make, "FULLY_CONNECTED", [of, weights, -1], h, options))
        return [v[0], op(make, "RELU_N1_TO_1", [op(make, "ADD", products, h)], h)]

    return counted([x, h], body, 8)


@pytest.mark.parametrize("batch", [1, 3, 4])
def test_levels_are_those_of_each_turn(batch: int) -> None:
    """However many products are computed before the loop, all bits are the same. With more rows none is, as weights
    have fewer bytes than results."""
    x, h = floats(20, batch, 30), np.zeros((batch, 40), np.float32)
    found = []
    for rows, products in ((8, (1, 1) if batch < 4 else (0, 2)), (20, (0, 2))):
        interpreter, kernel = machine_code(with_bytes(batch, rows))
        graph, turn, _ = kinds_of(kernel)
        assert (graph.count("hybrid"), turn.count("hybrid")) == products
        (state,) = (y for y in outputs(interpreter, {0: x[:rows], 1: h}) if y.shape == h.shape)
        found.append(state)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("state", [0.0, 0.5, -0.5])
def test_levels_of_zeros_have_the_bits_of_a_product(state: float) -> None:
    """Weights are not read for a state of zeros; other states whose levels are alike are multiplied, as batches are."""
    x, found = floats(8, 1, 30), []
    for batch in (1, 2):
        interpreter, kernel = machine_code(with_bytes(batch, 8, 192))
        assert kernel.program is not None
        drivers = [kernel.program.plan.kernels[number] for number, *_ in kernel.program.plan.commands.tolist()]
        states = sum(name.startswith("x8_contract_state") for name in drivers)
        assert states == (2 if batch == 1 else 0)  # the other one reads the panels from the last to the first
        values = {0: np.repeat(x, batch, 1), 1: np.full((batch, 192), state, np.float32)}
        (result,) = (y for y in outputs(interpreter, values) if y.shape == (batch, 192))
        found.append(result[0])
    np.testing.assert_array_equal(*found)


@pytest.mark.peer
@pytest.mark.parametrize("batch", [1, 3])
def test_levels_are_litert_s(batch: int) -> None:
    from ai_edge_litert.interpreter import Interpreter

    values = [floats(8, batch, 30), np.zeros((batch, 40), np.float32)]
    model, found = with_bytes(batch, 8), []
    for interpreter in (machine_code(model)[0], Interpreter(model_content=model)):
        interpreter.allocate_tensors()
        places = [details["index"] for details in interpreter.get_input_details()]
        found.append(outputs(interpreter, dict(zip(places, values, strict=True))))
    for got, wanted in zip(*found, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_rows_that_are_not_there() -> None:
    check_errors(recurrent(9), {0: floats(8, 1, 6), 1: floats(1, 10)})


# Shapes that change


def growing(axis: int, kind: Kind, limit: int | None) -> bytes:
    """x = x ++ x[..., -1:] + 1."""

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        rank = len(kind[0])
        begin = number(make, [-1 if dim == axis else 0 for dim in range(rank)], INT)
        others = (1 << rank) - 1 - (1 << axis)
        shape = tuple([1 if dim == axis else size for dim, size in enumerate(kind[0])])
        last = make.tensor(shape, kind[1])
        masks = StridedSliceOptions(begin_mask=others, end_mask=(1 << rank) - 1)
        make.op(
            "STRIDED_SLICE", [v[0], begin, number(make, [0] * rank, INT), number(make, [1] * rank, INT)], [last], masks
        )
        item = op(make, "ADD", [last, number(make, 1.0)], (shape, kind[1]))
        return [op(make, "CONCATENATION", [v[0], item], kind, ConcatenationOptions(axis=axis))]

    return counted([kind], body, limit)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("limit", [0, 1, 7])
def test_turns_of_which_each_has_its_shapes(axis: int, limit: int) -> None:
    check(growing(axis, ((2, 3), FLOAT), limit), {0: floats(2, 3)})


def test_as_many_turns_as_only_the_run_tells() -> None:
    inputs = {0: floats(2, 3), 1: np.array(3, np.int32)}
    not_claimed(growing(0, ((2, 3), FLOAT), None), inputs, "variable 2 of shape [2, 3] becomes one of [3, 3]")


def test_a_beginning_of_a_variable() -> None:
    """x[:i + 1], of which the sum is added."""
    kind: Kind = ((5, 3), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        before = strided(make, v[0], kind, 0, zero(make), plus(make, at, 1), begin_mask=3, end_mask=2)
        total = op(make, "SUM", [before, number(make, [0], INT)], ((1, 3), FLOAT), ReducerOptions(keep_dims=True))
        return [v[0], op(make, "ADD", [v[1], total], ((1, 3), FLOAT))]

    check(counted([kind, ((1, 3), FLOAT)], body, 5), {0: floats(5, 3), 1: floats(1, 3)}, within=1e-6)


# Without a compiler


SHAPES = {"replaced": (5, 6), "columns": (5, 6), "recurrent": (8, 1, 6), "lstm": (8, 1, 10), "growing": (2, 3)}


def models() -> dict[str, bytes]:
    kind: Kind = ((5, 6), FLOAT)
    return {
        "replaced": counted([kind, kind], filling(kind, 0), 5),
        "columns": counted([kind, kind], filling(kind, 1, 2), 5),
        "recurrent": recurrent(8),
        "lstm": lstm(8)[0],
        "growing": growing(0, ((2, 3), FLOAT), 4),
    }


@cache
def shipped(target: Target) -> set[str]:
    return {spec.name for member in target.family() for spec in basis(member)}


@pytest.mark.parametrize("name", models())
def test_loops_are_made_of_what_ships(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    inputs = {0: floats(*SHAPES[name]), 1: 2 * floats(*SHAPES[name])}
    if name == "recurrent":
        inputs[1] = floats(1, 10)
    if name == "lstm":
        inputs |= {1: floats(1, UNITS), 2: floats(1, UNITS)}
    if name == "growing":
        del inputs[1]
    expected = outputs(machine_code(models()[name])[0], inputs)

    narrow: set[str] = set()

    def of_what_ships(graph: KernelGraph, source: memoryview | None, target: Target) -> compiling.Made:
        for each in all_targets().values():
            built, boundaries = compiling.made_of(graph, source, each, shipped(each).__contains__)
            assert set(built.specs) <= shipped(each)
            narrow.update(each.name for kernel in built.specs if "i24w" in kernel)
            if each == target:
                made = built, boundaries
        ensure(made[0].specs.values(), target)
        return made

    monkeypatch.setattr(compiling, "compiled_of", of_what_ships)
    for got, wanted in zip(outputs(machine_code(models()[name])[0], inputs), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    assert narrow == {target.name for target in all_targets().values() if name == "lstm" and narrows(target)}


# What comes after


def test_a_preview_of_a_graph_that_runs_leaves_it_as_it_is() -> None:
    kind: Kind = ((5, 6), FLOAT)
    model = counted([kind, kind], filling(kind, 0), 3)
    interpreter = reference(model)
    interpreter.allocate_tensors()
    inputs = {0: floats(5, 6), 1: 2 * floats(5, 6)}
    expected = outputs(interpreter, inputs)
    claims = interpreter.preview_delegate(JitDelegate())
    assert [subset.nodes[0] for subset in claims.partitions] == [0]
    for got, wanted in zip(outputs(interpreter, inputs), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_part_at_what_a_loop_has_counted() -> None:
    """y[i:i + 2], where a loop says what i is."""
    kind: Kind = ((5, 6), FLOAT)
    make = ModelMaker()
    limit, y = make.tensor(*COUNTER), make.tensor(*kind)
    results = [make.tensor(*COUNTER), make.tensor(*COUNTER)]
    make.op("WHILE", [zero(make), limit], results, WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    make.io([limit, y], [picked(make, y, kind, 0, results[0], 2)])
    subgraph(make, "condition", [COUNTER, COUNTER], lambda make, v: [op(make, "LESS", v, ((), BOOL))])
    subgraph(make, "body", [COUNTER, COUNTER], lambda make, v: [plus(make, v[0], 1), v[1]])
    for count in (0, 3):
        check(make.model(), {0: np.array(count, np.int32), 1: floats(5, 6)})
    check_errors(make.model(), {0: np.array(4, np.int32), 1: floats(5, 6)})


def test_another_shape_and_the_one_before() -> None:
    kind: Kind = ((5, 6), FLOAT)
    model = counted([kind, kind], filling(kind, 0), 3)
    interpreter = gossamer.Interpreter(model_content=model)
    expected = reference(model)
    for rows in (5, 7, 5):
        for each in (interpreter, expected):
            for index in (0, 1):
                each.resize_tensor_input(index, [rows, 6])
            each.allocate_tensors()
        assert not interpreter.delegate_claims()[0].refusals
        inputs = {0: floats(rows, 6), 1: 2 * floats(rows, 6)}
        for got, wanted in zip(outputs(interpreter, inputs), outputs(expected, inputs), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_what_two_loops_make_has_another_shape() -> None:
    """What the first one tells last, which nobody reads, lets none go on that waits for the second."""
    kind: Kind = ((5, 6), FLOAT)
    make = ModelMaker()
    inputs = [make.tensor(*kind) for _ in range(2)]
    options, found = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2), []
    for _ in range(2):
        results = [make.tensor(*each) for each in (COUNTER, COUNTER, kind, kind, kind)]
        make.op("WHILE", [number(make, 0, INT), number(make, 3, INT), *inputs, inputs[0]], results, options)
        found.append(results[2])
    make.io(inputs, [op(make, "ADD", [op(make, "NEG", [found[0]], kind), op(make, "ABS", [found[1]], kind)], kind)])
    every, fill = [COUNTER, COUNTER, kind, kind, kind], filling(kind, 0)

    def turn(make: ModelMaker, v: list[int]) -> list[int]:
        return [plus(make, v[0], 1), v[1], *fill(make, v[0], v[2:4]), op(make, "NEG", [v[4]], kind)]

    subgraph(make, "condition", every, lambda make, v: [op(make, "LESS", v[:2], ((), BOOL))])
    subgraph(make, "body", every, turn)
    interpreter, expected = gossamer.Interpreter(model_content=make.model()), reference(make.model())
    for rows in (5, 7, 4):
        for each in (interpreter, expected):
            for index in inputs:
                each.resize_tensor_input(index, [rows, 6])
            each.allocate_tensors()
        assert not interpreter.delegate_claims()[0].refusals
        assert interpreter.delegate_kernels()[0].program is not None
        values = {inputs[0]: floats(rows, 6), inputs[1]: 2 * floats(rows, 6)}
        np.testing.assert_array_equal(outputs(interpreter, values)[0], outputs(expected, values)[0])


def test_a_loop_is_known_the_second_time() -> None:
    kind: Kind = ((5, 6), FLOAT)
    model = counted([kind, kind], filling(kind, 0), 3)
    inputs = {0: floats(5, 6), 1: 2 * floats(5, 6)}
    results = []
    for _ in range(2):
        interpreter = gossamer.Interpreter(model_content=model)
        interpreter.allocate_tensors()
        assert not interpreter.delegate_claims()[0].refusals
        results.append(outputs(interpreter, inputs))
        assert [list(details["shape"]) for details in interpreter.get_output_details()] == [[5, 6], [5, 6], []]
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_array_equal(got, wanted)


# What is not known


def not_claimed(model: bytes, inputs: dict[int, Array], reason: str) -> None:
    """A loop is left to the reference kernels, for a reason, and what comes out is what they compute."""
    assert reason in "".join(refusals(model)[0].values())
    expected = reference(model)
    expected.allocate_tensors()
    interpreter = gossamer.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for got, wanted in zip(outputs(interpreter, inputs), outputs(expected, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_an_index_that_begins_anywhere() -> None:
    """A size of -1 is all that is left."""
    kind: Kind = ((5, 6), FLOAT)
    body: Body = lambda make, at, v: [plus(make, v[0], 1), *filling(kind, 0)(make, v[0], v[1:])]  # noqa: E731
    model = counted([COUNTER, kind, kind], body, 2)
    for begin in (0, 3):
        inputs = {0: np.array(begin, np.int32), 1: floats(5, 6), 2: 2 * floats(5, 6)}
        not_claimed(model, inputs, "whether a size is -1, all that is left, is only known")


def test_parts_that_do_not_make_a_whole() -> None:
    """x[:i] ++ item ++ x[i + 2:] is one shorter than x."""
    kind: Kind = ((5, 6), FLOAT)

    def body(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        return [replaced(make, v[0], kind, 0, at, [picked(make, v[1], kind, 0, at)], 2), v[1]]

    model = counted([kind, kind], body)
    assert "it is not known how long all are together" in refusals(model)[0][0]


@pytest.mark.parametrize("width", [6, 7, 20])
def test_what_is_larger_than_the_whole(width: int) -> None:
    kind: Kind = ((5, 3), FLOAT)

    def put(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        item = number(make, np.zeros((width, 3)))
        return [replaced(make, v[0], kind, 0, at, [item], width)]

    assert "it is not known how long all are together" in refusals(counted([kind], put))[0][0]

    def taken(make: ModelMaker, at: int, v: list[int]) -> list[int]:
        box = picked(make, v[0], kind, 0, at, width)
        zeros, size = number(make, [0, 0], INT), number(make, [5, 3], INT)
        return [op(make, "SLICE", [box, zeros, size], kind, SliceOptions())]

    assert "a box is larger than what it is of" in refusals(counted([kind], taken))[0][0]
