"""Other shapes of inputs: each example of a batch gives what it gives alone, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer import Builder, EditError, edit
from gossamer.model import Model
from tests.edit.models import integer_net, loop_net, picture_net, reread, run, weights


def dims(model: Model, outputs: bool = True) -> list[tuple[int, ...]]:
    main = model.subgraphs[0]
    tensors = [main.tensors[number] for number in (main.outputs if outputs else main.inputs)]
    return [tensor.shape_signature or tensor.shape for tensor in tensors]


def one_by_one(model: Model, x: Any) -> Any:
    return np.concatenate([run(model, x[n : n + 1])[0] for n in range(len(x))])


def test_a_batch_gives_what_its_examples_give() -> None:
    model, x = picture_net(), weights(3, 8, 8, 3)
    told: list[Any] = []
    three = reread(edit.batch(model, 3, on_change=told.append))
    assert (dims(three, False), dims(three)) == ([(3, 8, 8, 3)], [(3, 10)])
    assert np.array_equal(run(three, x)[0], one_by_one(model, x))
    assert list(map(str, told)) == ["RESHAPE (node 4): [1, 16] became [3, 16]"]
    assert three.subgraphs[0].operators[4].builtin_options.new_shape == (3, 16)  # type: ignore[union-attr]


def test_a_batch_that_is_left_open() -> None:
    model = picture_net()
    told: list[Any] = []
    free = reread(edit.batch(model, None, on_change=told.append))
    assert (dims(free, False), dims(free)) == ([(-1, 8, 8, 3)], [(-1, 10)])
    assert [change.new for change in told] == [(-1, 16)]
    for count in (1, 2, 5):
        x = weights(count, 8, 8, 3)
        assert np.array_equal(run(free, x)[0], one_by_one(model, x))
    assert dims(edit.batch(free, 4)) == [(4, 10)]
    assert np.array_equal(run(edit.batch(free, 1), weights(1, 8, 8, 3))[0], run(model, weights(1, 8, 8, 3))[0])


def test_the_batch_that_it_has_leaves_the_file_as_it_is() -> None:
    model = picture_net()
    assert edit.batch(model, 1) is model


def test_quantized_models() -> None:
    model, x = integer_net(), weights(4, 4)
    assert np.array_equal(run(edit.batch(model, 4), x)[0], one_by_one(model, x))


def test_sizes_of_pictures() -> None:
    model = picture_net()
    large = reread(edit.reshape(model, {"x": (1, 20, 12, 3)}))
    x = weights(1, 20, 12, 3)
    assert np.array_equal(run(large, x)[0], run(model, x)[0])  # which resizes itself
    free = reread(edit.reshape(model, {"x": (1, None, None, 3)}))
    assert dims(free, False) == [(1, -1, -1, 3)]
    assert dims(free) == [(1, 10)]
    assert np.array_equal(run(free, x)[0], run(model, x)[0])


def net(build: Any, shape: Any = (2, 6)) -> Model:
    b = Builder()
    b.output("y", build(b, b.input("x", shape)))
    return reread(b.finish())


@pytest.mark.parametrize(
    ("build", "became"),
    [
        (lambda b, x: b.add("RESHAPE", x, [12]), "[12] became [18]"),
        (lambda b, x: b.add("RESHAPE", x, [2, 3, 2]), "[2, 3, 2] became [3, 3, 2]"),
        (lambda b, x: b.add("RESHAPE", b.add("RESHAPE", x, [4, 3]), [2, 6]), "[2, 6] became [3, 6]"),
        (lambda b, x: b.add("SLICE", x, [0, 1], [2, 3]), "[2, 3] became [3, 3]"),
        (lambda b, x: b.add("STRIDED_SLICE", x, [0, 1], [2, 4], [1, 1]), "[2, 4] became [3, 4]"),
        (lambda b, x: b.add("BROADCAST_TO", b.add("RESHAPE", x, [2, 1, 6]), [2, 4, 6]), "[2, 4, 6] became [3, 4, 6]"),
    ],
)
def test_constants_that_hold_the_batch(build: Any, became: str) -> None:
    model, told = net(build), []
    three = edit.batch(model, 3, on_change=lambda change: told.append(str(change)))
    assert told[-1].endswith(became)
    x = weights(3, 6)
    expected = run(model, x[:2])[0]
    assert np.array_equal(run(three, x)[0][: len(expected)], expected)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda b, x: b.add("RESHAPE", x, [3, 4]), r"RESHAPE .* is made for the old shape: its constant is \[3, 4\]"),
        (lambda b, x: b.add("SUM", x, [0]), "it mixes them|is made for the old shape"),
        (lambda b, x: b.add("SLICE", x, [0, 0], [1, 6]), "made for the old shape"),
        (lambda b, x: b.add("ADD", x, weights(2, 6)), "ADD .* refuses the new shapes"),
        (lambda b, x: b.add("CONCATENATION", x, weights(2, 6), axis=1), "CONCATENATION .* refuses the new shapes"),
        (lambda b, x: b.add("RESHAPE", b.add("TRANSPOSE", x, [1, 0]), [4, 3]), "made for the old shape"),
        (lambda b, x: b.custom("Mine", x), "nobody knows what Mine"),
    ],
)  # fmt: skip
def test_what_would_mix_examples(build: Any, message: str) -> None:
    with pytest.raises(EditError, match=message):
        edit.batch(net(build), 5)


def test_custom_operators_are_asked() -> None:
    @gossamer.custom_op("Mine", shape="x")
    def mine(x: Any) -> Any:
        return x

    assert dims(edit.batch(net(lambda b, x: b.custom("Mine", x)), 5, custom_ops=[mine])) == [(5, 6)]


def test_sizes_that_are_computed_follow() -> None:
    def build(b: Any, x: Any) -> Any:
        count = b.add("STRIDED_SLICE", b.add("SHAPE", x), [0], [1], [1], shrink_axis_mask=1)
        return b.add("RESHAPE", x, b.add("PACK", count, 3, 2, values_count=3))

    model = net(build)
    for size in (3, None):
        told: list[Any] = []
        other = edit.batch(model, size, on_change=told.append)
        assert told == []
        assert dims(other) == [(-1 if size is None else size, 3, 2)]
        assert np.array_equal(run(other, weights(3, 6))[0], weights(3, 6).reshape(3, 3, 2))


def test_loops_hand_shapes_on() -> None:
    model = loop_net()
    long = reread(edit.reshape(model, {"x": (4,)}))
    assert dims(long) == [(4,)]
    assert [tensor.shape for tensor in long.subgraphs[2].tensors if tensor.name == "x"] == [(4,)]
    x = np.float32([1, 2, 3, 4])
    assert np.array_equal(run(long, x, np.int32(0))[0], 16 * x + 1)


def test_variables_get_a_place_for_each_example() -> None:
    b = Builder()
    x = b.input("x", (1, 3))
    state = b.variable("state", (1, 4))
    y = b.add("UNIDIRECTIONAL_SEQUENCE_RNN", b.add("RESHAPE", x, [1, 1, 3]), weights(4, 3), weights(4, 4, seed=1),
              np.zeros(4, np.float32), state, activation="TANH")  # fmt: skip
    b.output("y", y)
    model = reread(b.finish())
    two = reread(edit.batch(model, 2))
    assert [tensor.shape for tensor in two.subgraphs[0].tensors if tensor.is_variable] == [(2, 4)]
    value = weights(2, 3)
    assert np.array_equal(run(two, value)[0], one_by_one(model, value))


def test_shapes_that_are_none() -> None:
    with pytest.raises(EditError, match=r"input 'x' has 4 dimensions, got \[1, 2\]"):
        edit.reshape(picture_net(), {"x": (1, 2)})
    with pytest.raises(EditError, match="a size is a number, or None"):
        edit.reshape(picture_net(), {"x": (1, -7, 8, 3)})
    with pytest.raises(EditError, match=r"CONV_2D .node 0, output 'first'. refuses the new shapes"):
        edit.reshape(picture_net(), {"x": (1, 8, 8, 4)})
