"""Parts of models: they compute what the whole computes there, and merged they are the file that they were cut from."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gossamer import EditError, edit
from gossamer.model import Model, read_model, verify_model
from gossamer.model.metadata import associated_files, labels, with_metadata
from gossamer.model.writer import write_model
from gossamer.schema import Buffer, Tensor
from tests.edit.models import counter_net, integer_net, loop_net, picture_net, reread, run, weights
from tests.random_graphs import FORMS, Form, RandomGraph

X = weights(1, 8, 8, 3, seed=7)


def test_the_part_between_two_tensors_computes_what_it_did() -> None:
    model = picture_net()
    head, tail = edit.cut(model, outputs="sum"), edit.cut(model, inputs="sum")
    (middle,) = run(reread(head), X)
    assert np.array_equal(run(reread(tail), middle)[0], run(model, X)[0])
    assert head.subgraphs[0].tensors[0].name == "x"
    assert len(head.subgraphs[0].operators) == 3
    assert len(tail.subgraphs[0].operators) == 3


def test_only_constants_that_are_needed_are_there() -> None:
    model = picture_net()
    part = edit.cut(model, "first", "second", remember=False)
    assert [tensor.shape for tensor in part.subgraphs[0].tensors if tensor.buffer] == [(16, 3, 3, 16), (16,)]
    assert len(part.operator_codes) == 1
    assert len(part.buffers) == 4  # of nothing, two constants, the oldest release
    assert verify_model(part) == ()


def test_operators_are_places_too() -> None:
    model = picture_net()
    assert bytes(edit.cut(model, "node:1", "node:2")) == bytes(edit.cut(model, "first", "sum"))
    assert bytes(edit.cut(model, outputs="node:2")) == bytes(edit.cut(model, outputs="sum"))


def test_signatures_have_what_the_part_has() -> None:
    part = edit.cut(picture_net(), outputs=["sum", "first"])
    (signature,) = part.signature_defs
    assert signature.signature_key == "serving_default"
    assert [entry.name for entry in signature.inputs] == ["x"]
    assert [entry.name for entry in signature.outputs] == ["sum", "first"]


def test_a_cut_that_needs_more_says_what() -> None:
    model = picture_net()
    with pytest.raises(EditError, match="'sum' cannot be computed from 'second' alone: 'x' is needed too"):
        edit.cut(model, "second", "sum")
    with pytest.raises(EditError, match="'first' does not depend on 'sum'"):
        edit.cut(model, "sum", "first")
    with pytest.raises(EditError, match="'sum' would be input and output at once"):
        edit.cut(model, "sum", "sum")
    with pytest.raises(EditError, match="no output of the model depends on 'scores'"):
        edit.cut(model, "scores")
    with pytest.raises(EditError, match="is stored in the model, it cannot be an input"):
        edit.cut(model, [model.subgraphs[0].operators[0].inputs[1], "x"], "first")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("frist", "there is no tensor 'frist'; near it: 'first'"),
        (99, "there is no tensor 99: the subgraph has"),
        ("node:99", r"there is no operator '99': the subgraph has 6, node:0 to node:5"),
        ("node:x", "there is no operator 'x'"),
    ],
)
def test_names_that_there_are_not(name: str | int, message: str) -> None:
    with pytest.raises(EditError, match=message):
        edit.cut(picture_net(), outputs=name)


def test_joined_names_are_found_by_each_of_them() -> None:
    model = edit.rename(picture_net(), {"sum": "block/add;block/relu"})
    assert bytes(edit.cut(model, outputs="block/relu")) == bytes(edit.cut(model, outputs="block/add;block/relu"))
    with pytest.raises(EditError, match="there is no tensor 'blcok'; near it: 'block/"):
        edit.cut(model, outputs="blcok")


@pytest.mark.parametrize("place", ["first", "second", "sum", "mean", "flat"])
def test_halves_merged_are_the_file(place: str) -> None:
    content = bytes(picture_net())
    head, tail = map(reread, edit.split(read_model(content), place))
    assert np.array_equal(run(tail, *run(head, X))[0], run(content, X)[0])
    assert bytes(edit.merge(head, tail)) == content


def test_what_goes_past_the_place_crosses_too() -> None:
    head, tail = edit.split(picture_net(), "second")
    names = [tail.subgraphs[0].tensors[number].name for number in tail.subgraphs[0].inputs]
    assert names == ["second", "first"]
    assert len(head.subgraphs[0].operators) == 2


def test_files_of_any_other_writer_come_back() -> None:
    """What gossamer would write otherwise: its order is another one, with unused constants and bytes between."""
    model = picture_net()
    main = model.subgraphs[0]
    order = list(reversed(range(len(main.tensors))))
    new = {old: number for number, old in enumerate(order)}

    def moved(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(new[number] for number in numbers)

    operators = tuple(one.replace(inputs=moved(one.inputs), outputs=moved(one.outputs)) for one in main.operators)
    tensors = (*(main.tensors[number] for number in order), Tensor(shape=(3,), name="unused"))
    changed = main.replace(tensors=tensors, operators=operators, inputs=moved(main.inputs), outputs=moved(main.outputs))
    model = model.replace(subgraphs=(changed,), signature_defs=(), buffers=(*model.buffers, Buffer()))
    content = write_model(with_metadata(model, "note", b"of another kind"), external_data=True) + b"and behind it"
    for place in ("first", "sum", "mean"):
        head, tail = map(reread, edit.split(content, place))
        assert bytes(edit.merge(head, tail)) == content


@pytest.mark.parametrize("form", FORMS)
def test_random_graphs_split_anywhere(form: Form) -> None:
    rng, whole = random.Random(3), 0
    for seed in range(3):
        graph = RandomGraph(seed, form, 8)
        content, x = graph.model(), graph.input()
        expected = run(content, x)
        for _ in range(2):
            node = rng.randrange(len(read_model(content).subgraphs[0].operators) - 1)
            halves = list(map(reread, edit.split(content, f"node:{node}")))
            assert bytes(edit.merge(*halves)) == content
            apart = reread(edit.merge(*edit.split(content, f"node:{node}", remember=False)))
            for one, other in zip(run(apart, x), expected, strict=True):
                assert np.array_equal(one, other)
            whole += 1
    assert whole == 6


def test_three_parts_and_parts_of_parts() -> None:
    content = bytes(picture_net())
    three = edit.cut(content, outputs="first"), edit.cut(content, "first", "sum"), edit.cut(content, "sum")
    assert bytes(edit.merge(*map(reread, three))) == content
    head, tail = map(reread, edit.split(content, "sum"))
    parts = list(map(reread, edit.split(head, "first")))
    assert bytes(edit.merge(*parts)) == bytes(head)
    assert bytes(edit.merge(edit.merge(*parts), tail)) == content


def test_what_was_changed_since_stays_changed() -> None:
    model = picture_net()
    head, tail = map(reread, edit.split(model, "sum"))
    other = edit.replace(tail, "scores", options={"activation": "RELU"})
    merged = edit.merge(head, other)
    assert np.array_equal(run(reread(merged), X)[0], np.maximum(run(model, X)[0], 0))
    assert "gossamer_origin" not in [entry.name for entry in merged.metadata]
    renamed = edit.merge(edit.rename(head, {"x": "picture"}), tail)
    assert renamed.subgraphs[0].tensors[renamed.subgraphs[0].inputs[0]].name == "picture"
    assert np.array_equal(run(reread(renamed), X)[0], run(model, X)[0])


def test_weights_that_were_changed_since_are_those_of_the_result() -> None:
    model = picture_net()
    head, tail = map(reread, edit.split(model, "sum"))
    number = next(n for n, buffer in enumerate(head.buffers) if buffer.data.size == 9 * 16 * 16 * 4)
    buffers = list(head.buffers)
    buffers[number] = Buffer(data=np.zeros_like(buffers[number].data))
    merged = edit.merge(head.replace(buffers=tuple(buffers)), tail)
    assert len(bytes(merged)) == len(bytes(model))
    assert not np.array_equal(run(merged, X)[0], run(model, X)[0])


def test_nothing_is_remembered_that_is_not_wanted() -> None:
    model = picture_net()
    halves = edit.split(model, "sum", remember=False)
    assert all([entry.name for entry in half.metadata] == ["min_runtime_version"] for half in halves)
    assert np.array_equal(run(reread(edit.merge(*halves)), X)[0], run(model, X)[0])
    assert len(bytes(edit.strip(edit.split(model, "sum")[0]))) < len(bytes(halves[0]))


def test_loops_keep_what_they_call() -> None:
    model = loop_net()
    head, tail = map(reread, edit.split(model, "twice"))
    assert (len(head.subgraphs), len(tail.subgraphs)) == (1, 3)
    x, i = np.float32([1, 5]), np.int32(0)
    names = [tail.subgraphs[0].tensors[number].name for number in tail.subgraphs[0].inputs]
    assert names == ["twice", "i"]
    assert np.array_equal(run(tail, run(head, x)[0], i)[0], run(model, x, i)[0])
    assert bytes(edit.merge(head, tail)) == bytes(model)
    apart = edit.split(model, "loop:1", remember=False)
    assert np.array_equal(run(reread(edit.merge(*apart)), x, i)[0], run(model, x, i)[0])


def test_state_is_not_cut_apart() -> None:
    model = counter_net()
    with pytest.raises(EditError, match=r"cannot be split at 'after': it is computed by the second half"):
        edit.split(model, "after")
    with pytest.raises(EditError, match=r"both sides of this cut have to do with the resources|is needed too"):
        edit.cut(model, "before", "after")
    head, tail = map(reread, edit.split(model, "twice"))
    assert np.array_equal(run(tail, run(head, np.float32([3]))[0])[0], np.float32([6]))
    assert bytes(edit.merge(head, tail)) == bytes(model)
    assert len(edit.cut(model, outputs="after").subgraphs[0].operators) == 6


def test_metadata_go_with_what_they_are_of() -> None:
    model = edit.describe(
        integer_net(), name="net", labels=[f"class {n}" for n in range(5)], normalization={"x": (1, 2)}
    )
    content = bytes(model)
    head, tail = map(reread, edit.split(content, "product"))
    assert (labels(head), associated_files(head)) == (None, {})
    assert labels(tail) == [f"class {n}" for n in range(5)]
    assert bytes(edit.merge(head, tail)) == content
    apart = reread(edit.merge(*edit.split(content, "product", remember=False)))
    assert labels(apart) == labels(model)


def test_a_model_made_in_memory_comes_back_as_it_is_written() -> None:
    model = picture_net().replace(description="changed")
    assert model.source is not None
    assert bytes(edit.merge(*edit.split(model, "sum"))) == bytes(model)
    assert isinstance(model, Model)
