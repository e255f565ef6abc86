"""Sizes that come out of values and are hardly ever the same: one program for all, and counts that it says itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Interpreter, OpResolverType
from gossamer.arrays import NDArray
from gossamer.delegates.jit import template
from gossamer.delegates.jit.compiling import in_library
from gossamer.delegates.jit.late import LateKernel
from gossamer.delegates.jit.sizing import Shared, Sizing
from gossamer.schema import (
    CumsumOptions,
    EmbeddingLookupSparseOptions,
    GatherOptions,
    ReducerOptions,
    ReshapeOptions,
    SegmentSumOptions,
    SliceOptions,
    TensorType,
    TileOptions,
    TopKV2Options,
    UniqueOptions,
)
from tests.delegates.jit.running import TARGETS
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

Array = NDArray[Any]
INT, LONG, FLOAT = TensorType.INT32, TensorType.INT64, TensorType.FLOAT32
X = np.linspace(-3, 3, 90, dtype=np.float32).reshape(30, 3)


def chosen() -> bytes:
    """The sum of the rows of x where a mask is true, times 2: WHERE, RESHAPE, GATHER, ADD, SUM."""
    make = ModelMaker()
    x, mask = make.tensor((30, 3)), make.tensor((30,), TensorType.BOOL)
    places, flat = make.tensor((1, 1), LONG), make.tensor((1,), LONG)
    rows, twice, total = make.tensor((1, 3)), make.tensor((1, 3)), make.tensor((3,))
    make.op("WHERE", [mask], [places])
    make.op("RESHAPE", [places, make.constant([-1], np.int32, INT)], [flat], ReshapeOptions())
    make.op("GATHER", [x, flat], [rows], GatherOptions())
    make.op("ADD", [rows, rows], [twice])
    make.op("SUM", [twice, make.constant([0], np.int32, INT)], [total], ReducerOptions())
    make.io([x, mask], [total, rows])
    return make.model()


def prepared(content: bytes) -> Interpreter:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, *values: Array) -> list[Array]:
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def late_kernel(interpreter: Interpreter) -> LateKernel:
    (kernel,) = [one for one in interpreter.delegate_kernels() if isinstance(one, LateKernel)]
    assert kernel.failure is None
    return kernel


def last_shared(interpreter: Interpreter) -> Shared:
    """The program of the last step, which is one for several sizes."""
    last = late_kernel(interpreter).steps[-1].shared
    assert last is not None
    return last[0]


def mask_of(count: int, seed: int) -> Array:
    mask = np.zeros(30, np.bool_)
    mask[np.random.default_rng(seed).choice(30, count, replace=False)] = True
    return mask


@pytest.mark.parametrize("compiles", [True, False], ids=["compiler", "shipped"])
def test_one_program_serves_all_sizes(compiles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler, too, if what ships suffices: here all kernels that there are do."""
    if not compiles:
        monkeypatch.setattr(template, "at_hand_for", in_library)
    interpreter = prepared(chosen())
    programs = dict[int, Shared]()
    for turn, count in enumerate([5, 9, 3, 30, 1, 17, 0, 2, 29, 8, 8, 0, 1, 30]):
        mask = mask_of(count, turn)
        total, rows = run(interpreter, X, mask)
        np.testing.assert_array_equal(rows, X[mask])
        np.testing.assert_allclose(total, 2 * X[mask].sum(0), rtol=1e-5, atol=1e-5)
        if turn > 2 and count > 1:
            shared = last_shared(interpreter)
            assert shared.fitted is not None
            programs[id(shared)] = shared
        assert all(step.program is not None for step in late_kernel(interpreter).steps)
    assert len(programs) <= 2


def test_what_has_been_fitted_runs_again_while_it_is_the_same() -> None:
    interpreter = prepared(chosen())
    for turn, count in enumerate([5, 9, 3, 12, 20, 12, 12, 12]):
        run(interpreter, X, mask_of(count, turn))
    assert interpreter._engine.executor.sole is late_kernel(interpreter)
    assert late_kernel(interpreter).again is not None
    for turn, count in enumerate([12, 12, 13, 12], 20):  # other rows, as many of them and others
        mask = mask_of(count, turn)
        np.testing.assert_array_equal(run(interpreter, X, mask)[1], X[mask])


def computed(op: str) -> tuple[bytes, Any]:
    """A model of x [30, 3] and n, and what it computes."""
    make = ModelMaker()
    x, n = make.tensor((30, 3)), make.tensor((1,), INT)
    y, z = make.tensor((1, 3), shape_signature=(-1, 3)), make.tensor((1, 3))
    if op == "SLICE":
        size, rest = make.tensor((2,), INT), make.constant([3], np.int32, INT)
        make.op("CONCATENATION", [n, rest], [size])
        make.op("SLICE", [x, make.constant([0, 0], np.int32, INT), size], [y], SliceOptions())
        make.op("EXP", [y], [z])
        make.io([x, n], [z])
        return make.model(), lambda n: np.exp(X[:n])
    if op == "TILE":
        multiples = make.tensor((2,), INT)
        make.op("CONCATENATION", [n, make.constant([1], np.int32, INT)], [multiples])
        make.op("TILE", [x, multiples], [y], TileOptions())
        make.op("NEG", [y], [z])
        make.io([x, n], [z])
        return make.model(), lambda n: np.tile(-X, (n, 1))
    if op == "FILL":
        ones, steps = make.tensor((1,)), make.tensor((1,))
        make.op("FILL", [n, make.constant(2, np.float32, FLOAT)], [ones])
        make.op("CUMSUM", [ones, make.constant(0, np.int32, INT)], [steps], CumsumOptions())
        make.io([x, n], [steps])
        return make.model(), lambda n: 2 * np.arange(1, n + 1, dtype=np.float32)
    if op == "RANGE":
        limit, numbers, squares = make.tensor((), INT), make.tensor((1,), INT), make.tensor((1,), INT)
        make.op("RESHAPE", [n, make.constant(np.zeros(0), np.int32, INT)], [limit], ReshapeOptions())
        start, step = make.constant(-2, np.int32, INT), make.constant(3, np.int32, INT)
        make.op("RANGE", [start, limit, step], [numbers])
        make.op("MUL", [numbers, limit], [squares])  # n decides the shape, and is a number like others
        make.io([x, n], [squares])
        return make.model(), lambda n: np.arange(-2, n, 3) * n
    values, places = make.tensor((1, 1)), make.tensor((1, 1), INT)
    flat = make.tensor((90,))
    make.op("RESHAPE", [x, make.constant([90], np.int32, INT)], [flat], ReshapeOptions())
    make.op("TOPK_V2", [flat, n], [values, places], TopKV2Options())
    make.op("GATHER", [flat, places], [y], GatherOptions())
    make.op("NEG", [y], [z])
    make.io([x, n], [z])
    return make.model(), lambda n: -np.sort(X.ravel())[::-1][:n]


@pytest.mark.parametrize("op", ["SLICE", "TILE", "FILL", "RANGE", "TOPK_V2"])
def test_integers_that_decide_shapes(op: str) -> None:
    content, expected = computed(op)
    interpreter = prepared(content)
    for n in (4, 11, 7, 25, 1, 30, 2, 3, 19, 0, 29, 7):
        (found,) = run(interpreter, X, np.int32([n]))
        np.testing.assert_allclose(found, expected(n), rtol=1e-6)
        assert all(step.program is not None for step in late_kernel(interpreter).steps)
    assert last_shared(interpreter).fitted is not None


def refusal(interpreter: Interpreter, n: int) -> str | None:
    """What an operator has against a number, in its words."""
    try:
        run(interpreter, X, np.int32([n]))
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return None


@pytest.mark.parametrize("op", ["SLICE", "TILE", "FILL", "RANGE", "TOPK_V2"])
def test_integers_that_no_shape_is_made_of(op: str) -> None:
    """What a program has been fitted to for others is no reason to believe them: they are refused in the same words."""
    content, expected = computed(op)
    ours = prepared(content)
    exact = Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    exact.allocate_tensors()
    for n in (4, 11, 7, 25):
        run(ours, X, np.int32([n]))
    for n in (-5, -(2**31), 2**31 - 1 if op in ("SLICE", "TOPK_V2") else -6):
        wanted, found = refusal(exact, n), refusal(ours, n)
        assert (wanted or "") in (found or "")
        assert (wanted is None) == (found is None)
        np.testing.assert_allclose(run(ours, X, np.int32([12]))[0], expected(12), rtol=1e-6)


def test_larger_sizes_than_a_program_has_room_for() -> None:
    """The room inside a program is for the sizes that it was made for and some more."""
    make = ModelMaker()
    n, y, z = make.tensor((1,), INT), make.tensor((1,)), make.tensor((1,))
    total = make.tensor(())
    make.op("FILL", [n, make.constant(1, np.float32, FLOAT)], [y])
    make.op("CUMSUM", [y, make.constant(0, np.int32, INT)], [z], CumsumOptions())
    make.op("SUM", [z, make.constant([0], np.int32, INT)], [total], ReducerOptions())
    make.io([n], [total])
    interpreter = prepared(make.model())
    programs = list[Shared]()
    for count in (3, 5, 4, 10, 200_000, 100, 150_000):
        (found,) = run(interpreter, np.int32([count]))
        np.testing.assert_allclose(found, count * (count + 1) / 2, rtol=1e-2 if count > 1000 else 1e-6)
        if count not in (3, 5):
            programs.append(last_shared(interpreter))
    few, _, many, *others = programs
    assert programs[1] is few
    assert few is not many
    assert others == [many, many]


def test_what_cannot_be_opened_is_made_for_each_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Sizing, *arguments: Any) -> Any:
        raise TypeError("never")

    monkeypatch.setattr(Sizing, "_copies", refused)
    interpreter = prepared(chosen())
    for turn, count in enumerate([5, 9, 3, 30, 5]):
        mask = mask_of(count, turn)
        np.testing.assert_array_equal(run(interpreter, X, mask)[1], X[mask])
    assert late_kernel(interpreter).steps[-1].shared is None


def sole(op: str) -> tuple[bytes, list[list[Array]], Any]:
    """An operator alone, whose output the program sizes; what it is given, and what it is to return."""
    make = ModelMaker()
    if op == "WHERE":
        x, y = make.tensor((4, 5)), make.tensor((1, 2), LONG)
        make.op("WHERE", [x], [y])
        make.io([x], [y])
        given = [(np.arange(20) % k == 1).astype(np.float32).reshape(4, 5) for k in (3, 5, 21, 2, 3)]
        return make.model(), [[x] for x in given], lambda x: [np.argwhere(x)]
    if op == "UNIQUE":
        x, y, at = make.tensor((9,), INT), make.tensor((1,), INT), make.tensor((9,), LONG)
        make.op("UNIQUE", [x], [y, at], UniqueOptions(idx_out_type=LONG))
        make.io([x], [y, at])
        given = [np.int32(np.arange(9) % k) for k in (3, 9, 1, 4, 3)]
        return make.model(), [[x] for x in given], lambda x: [np.unique(x), x]
    if op == "SEGMENT_SUM":
        x, ids, y = make.tensor((6, 2)), make.tensor((6,), INT), make.tensor((1, 2))
        make.op("SEGMENT_SUM", [x, ids], [y], SegmentSumOptions())
        make.io([x, ids], [y])
        given = [np.int32(np.arange(6) // k) for k in (3, 2, 6, 1, 3)]
        x = X[:6, :2]
        return make.model(), [[x, ids] for ids in given], lambda x, ids: [np.add.reduceat(x, np.unique(ids, True)[1])]
    ids, indices, shape = make.tensor((4,), INT), make.tensor((4, 2), INT), make.tensor((2,), INT)
    weights, table, y = make.tensor((4,)), make.tensor((30, 3)), make.tensor((1, 3))
    options = EmbeddingLookupSparseOptions()
    make.op("EMBEDDING_LOOKUP_SPARSE", [ids, indices, shape, weights, table], [y], options)
    make.io([ids, indices, shape, weights, table], [y])
    rows = np.int32([[0, 0], [0, 1], [1, 0], [1, 2]])
    given = [[np.int32([3, 1, 29, 0]), rows, np.int32([n, 3]), np.ones(4, np.float32), X] for n in (2, 5, 3, 2)]
    return (
        make.model(),
        given,
        lambda ids, _, shape, weights, x: [
            np.concatenate([x[ids].reshape(2, 2, 3).sum(1), np.zeros((shape[0] - 2, 3))])
        ],
    )


@pytest.mark.parametrize("op", ["WHERE", "UNIQUE", "SEGMENT_SUM", "EMBEDDING_LOOKUP_SPARSE"])
def test_outputs_that_are_as_large_as_the_data_say(op: str) -> None:
    content, given, expected = sole(op)
    interpreter = prepared(content)
    for values in given:
        for _ in range(3):
            for found, wanted in zip(run(interpreter, *values), expected(*values), strict=True):
                assert found.shape == wanted.shape
                np.testing.assert_allclose(found, wanted, rtol=1e-6)
        kernel = late_kernel(interpreter)
        assert [step.program is not None for step in kernel.steps] == [True]
        assert kernel.again is not None


def test_ids_that_are_none_are_told_as_ever() -> None:
    content, given, _ = sole("SEGMENT_SUM")
    interpreter = prepared(content)
    for ids in ([1, 1, 1, 1, 1, 1], [0, 0, 2, 2, 2, 2], [0, -1, 0, 0, 0, 0], [0, 1, 2, 2, 2, 2**31 - 1]):
        for _ in range(2):
            run(interpreter, *given[0])
            with pytest.raises(RuntimeError, match="segment_ids must start at 0 and rise by 0 or 1"):
                run(interpreter, X[:6, :2], np.int32(ids))


def test_what_is_not_at_hand_falls_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between these lies memory that has room for all sizes that the program serves."""
    make = ModelMaker()
    mask, places = make.tensor((30,), TensorType.BOOL), make.tensor((1, 1), LONG)
    make.op("WHERE", [mask], [places])
    values = [make.tensor((1, 1)) for _ in range(4)]
    make.op("CAST", [places], [values[0]])
    make.op("COS", [values[0]], [values[1]])
    make.op("SQUARED_DIFFERENCE", [values[1], values[0]], [values[2]])
    make.op("SUB", [values[2], values[0]], [values[3]])
    make.io([mask], [values[3]])
    monkeypatch.setattr(template, "at_hand_for", lambda target: lambda name: "cos" not in name or "sub" not in name)
    interpreter, programs = prepared(make.model()), dict[int, Shared]()
    for turn, count in enumerate([5, 9, 3, 30, 1, 17, 8, 29, 2]):
        (found,) = run(interpreter, mask_of(count, turn))
        x = np.argwhere(mask_of(count, turn)).astype(np.float32)
        np.testing.assert_allclose(found, (np.cos(x) - x) ** 2 - x, rtol=1e-5)
        if turn > 2 and count > 1:
            shared = last_shared(interpreter)
            programs[id(shared)] = shared
            assert len(shared.program.plan.kernels) > 1
    assert all(shared.fitted is not None for shared in programs.values())
    assert len(programs) <= 2


def test_what_others_count_is_an_output_and_read_behind() -> None:
    """A program writes it where it is an output; what reads it then finds it there, nodes that run alone, too."""
    make = ModelMaker()
    mask, places, moved = make.tensor((30,), TensorType.BOOL), make.tensor((1, 1), LONG), make.tensor((1, 1), LONG)
    by, rows = make.tensor((1,), LONG), make.tensor((1, 1))
    make.op("WHERE", [mask], [places])
    make.op("ADD", [places, by], [moved])
    make.op("GATHER", [make.constant(np.arange(30), np.float32, FLOAT), moved], [rows], GatherOptions())
    make.io([mask, by], [places, rows])
    interpreter = prepared(make.model())
    for turn, count in enumerate([5, 9, 3, 30, 1, 0, 17, 17, 17]):
        mask_now = mask_of(count, turn)
        found, read = run(interpreter, mask_now, np.int64([0]))
        np.testing.assert_array_equal(found, np.argwhere(mask_now))
        np.testing.assert_array_equal(read, found)
        assert [len(step.nodes) for step in late_kernel(interpreter).steps if step.program is not None] == [1, 2]
    assert late_kernel(interpreter).again is not None
    with pytest.raises(RuntimeError, match="out of range"):
        run(interpreter, mask_of(17, 3), np.int64([25]))
    for count in (17, 4):
        found, read = run(interpreter, mask_of(count, 9), np.int64([0]))
        np.testing.assert_array_equal(read, found)
