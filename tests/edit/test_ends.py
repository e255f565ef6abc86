"""Pre- and post-processing: what NumPy does before and after the model, the model does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer import Builder, EditError, edit
from gossamer.model import Model
from gossamer.model.metadata import labels, model_metadata
from gossamer.schema import TensorType
from tests.edit.models import integer_net, picture_net, reread, run, weights

X = weights(1, 8, 8, 3)
PIXELS = np.random.default_rng(1).integers(0, 256, (1, 8, 8, 3)).astype(np.uint8)


def outputs(model: Model) -> list[str]:
    return [model.subgraphs[0].tensors[number].name for number in model.subgraphs[0].outputs]


def test_pixels_go_in() -> None:
    model = picture_net()
    mean, std = np.float32([1, 2, 3]), np.float32([64, 32, 128])
    taken = reread(edit.normalize(model, mean, std, type="uint8"))
    assert np.array_equal(run(taken, PIXELS)[0], run(model, (PIXELS.astype(np.float32) - mean) * (1 / std))[0])
    (signature,) = taken.signature_defs
    assert [entry.name for entry in signature.inputs] == ["x"]
    assert taken.subgraphs[0].tensors[taken.subgraphs[0].inputs[0]].type == TensorType.UINT8
    floats = edit.normalize(model, 0, 2)
    assert np.array_equal(run(floats, X)[0], run(model, X * np.float32(0.5))[0])
    assert len(floats.subgraphs[0].operators) == len(model.subgraphs[0].operators) + 1


def test_a_quantized_model_quantizes_what_is_normalized() -> None:
    inner = edit.retype(integer_net(), "int8", "int8")
    x = np.uint8([[0, 64, 128, 200]])
    taken = reread(edit.normalize(inner, 128, 64, type="uint8"))
    assert np.array_equal(
        run(taken, x)[0], run(edit.retype(inner, "float32"), (x.astype(np.float32) - 128) * np.float32(1 / 64))[0]
    )


def test_pictures_of_another_size_go_in() -> None:
    model = picture_net()
    for method in ("bilinear", "nearest"):
        resized = reread(edit.resize(model, 16, 16, method=method))
        even = np.repeat(np.repeat(X, 2, 1), 2, 2)
        if method == "nearest":
            assert np.array_equal(run(resized, even)[0], run(model, X)[0])
        flat = np.full((1, 16, 16, 3), 0.5, np.float32)
        assert np.array_equal(run(resized, flat)[0], run(model, flat[:, :8, :8])[0])
    anything = reread(edit.resize(model, None, None))
    assert np.array_equal(run(anything, np.full((1, 3, 5, 3), 0.5, np.float32))[0], run(model, flat[:, :8, :8])[0])
    with pytest.raises(EditError, match="is no batch of pictures"):
        edit.resize(integer_net(), 3, 3)


def test_other_inputs_keep_their_places() -> None:
    b = Builder()
    x, y = b.input("x", (2,)), b.input("y", (2,))
    b.output("z", b.add("SUB", x, y))
    model = reread(edit.normalize(b.finish(), 1, 1, input="y"))
    assert [model.subgraphs[0].tensors[number].name for number in model.subgraphs[0].inputs] == ["x", "y"]
    assert run(model, np.float32([5, 5]), np.float32([1, 2]))[0].tolist() == [5, 4]
    assert [entry.name for entry in model.signature_defs[0].inputs] == ["x", "y"]


def test_answers_come_out() -> None:
    model = picture_net()
    (scores,) = run(model, X)
    (best,) = run(reread(edit.argmax(model)), X)
    assert best.tolist() == [int(scores.argmax())]
    assert run(edit.argmax(model, type="int64"), X)[0].dtype == np.int64
    values, indices = run(reread(edit.top_k(model, 3)), X)
    order = np.argsort(-scores[0], kind="stable")[:3]
    assert (indices[0].tolist(), values[0].tolist()) == (order.tolist(), scores[0][order].tolist())
    (chances,) = run(reread(edit.softmax(model, beta=0.125)), X)
    shifted = np.exp((scores - scores.max()) * 0.125)
    assert np.allclose(chances, shifted / shifted.sum(), rtol=1e-6)
    kept = edit.softmax(model, keep=True)
    assert outputs(kept) == ["scores", "scores_softmax"]
    assert np.array_equal(run(kept, X)[0], scores)


def test_a_quantized_output_is_taken_as_floats() -> None:
    inner = edit.retype(integer_net(), outputs="int8")
    x = weights(1, 4)
    floats = run(integer_net(), x)[0]
    shifted = np.exp(floats - floats.max())
    assert np.allclose(run(reread(edit.softmax(inner)), x)[0], shifted / shifted.sum(), rtol=1e-6)
    assert run(edit.argmax(inner), x)[0].tolist() == [int(run(inner, x)[0].argmax())]


def test_what_a_function_puts_there() -> None:
    model = picture_net()
    made = edit.append(model, lambda b, x: (b.add("NEG", x), b.add("ABS", x)), names=["minus", "size"])
    assert outputs(made) == ["minus", "size"]
    minus, size = run(reread(made), X)
    assert np.array_equal(minus, -run(model, X)[0])
    assert np.array_equal(size, np.abs(minus))


def detector(count: int, classes: int, form: str) -> Model:
    """Hands on what it is given: boxes and scores."""
    b = Builder()
    if form == "together":
        b.output("all", b.add("ADD", b.input("x", (1, 4 + classes, count)), 0.0))
    else:
        b.output("corners", b.add("ADD", b.input("x", (1, count, 4)), 0.0))
        b.output("confidence", b.add("ADD", b.input("s", (1, count, classes)), 0.0))
    return reread(b.finish())


def test_boxes_that_overlap_better_ones_go() -> None:
    boxes = np.float32([[[0, 0, 10, 10], [0, 1, 10, 11], [20, 20, 30, 30], [50, 50, 60, 60]]])
    scores = np.float32([[[0.1, 0.8], [0.1, 0.9], [0.7, 0.2], [0.1, 0.0]]])
    model = reread(edit.nms(detector(4, 2, "apart"), "corners", "confidence", most=3, iou=0.5, score=0.25))
    assert outputs(model) == ["boxes", "scores", "classes", "count"]
    found, values, classes, count = run(model, boxes, scores)
    assert int(count) == 2
    assert found.tolist() == [[0, 1, 10, 11], [20, 20, 30, 30], [0, 0, 0, 0]]
    assert values.tolist() == [float(np.float32(0.9)), float(np.float32(0.7)), 0]
    assert classes.tolist() == [1, 0, 0]


def test_boxes_in_other_forms() -> None:
    centres = np.float32([[[5, 6, 4, 2], [50, 60, 10, 20]]])
    scores = np.float32([[[0.5, 0.25, 0.125], [0.25, 0.75, 0.5]]])
    both = np.concatenate([centres, scores], 2).transpose(0, 2, 1)
    wide = np.zeros((1, 7, 9), np.float32)
    wide[:, :, :2] = both
    model = reread(edit.nms(detector(9, 3, "together"), form="cxcywh", most=4))
    found, _, classes, count = run(model, wide)
    assert int(count) == 2
    assert found[:2].tolist() == [[50, 45, 70, 55], [5, 3, 7, 7]]
    assert classes[:2].tolist() == [1, 0]
    corners = np.float32([[[3, 5, 7, 7], [45, 50, 55, 70]]])
    model = edit.nms(detector(2, 3, "apart"), "corners", "confidence", form="xyxy")
    assert run(model, corners, scores)[0][:2].tolist() == [[50, 45, 70, 55], [5, 3, 7, 7]]


def test_labels_stay_with_what_becomes_of_the_output() -> None:
    model = edit.describe(picture_net(), labels=[f"c{n}" for n in range(10)], normalization={"x": (1, 2)})
    for changed in (edit.softmax(model), edit.argmax(model)):
        assert labels(reread(changed)) == labels(model)
    metadata = model_metadata(edit.normalize(model, 1, 2))
    assert metadata is not None
    assert metadata.subgraph_metadata[0].input_tensor_metadata[0].process_units == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: edit.normalize(m, 0, 0), "std not 0"),
        (lambda m: edit.normalize(m, [1, 2], 1), "do not broadcast"),
        (lambda m: edit.resize(m, 4, 4, method="cubic"), "method is 'bilinear' or 'nearest', got 'cubic'"),
        (lambda m: edit.softmax(m, "sum"), "'sum' is no output; the outputs are 'scores'"),
        (lambda m: edit.nms(m), "an output with boxes and scores is"),
        (lambda m: edit.nms(m, form="xywh"), "form is yxyx, xyxy, cxcywh, got 'xywh'"),
        (lambda m: edit.top_k(m, 99), "TOPK_V2"),
    ],
)
def test_what_does_not_fit(change: Any, message: str) -> None:
    with pytest.raises(EditError, match=message):
        change(picture_net())
