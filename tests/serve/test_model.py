"""Models that are served: what clients are told of them, what is refused, and what runs give."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.errors import CancelledError, ModelError
from gossamer.model import Model
from gossamer.serve.model import Instance, ModelOptions, ServedModel
from gossamer.serve.protocol import DATATYPES, InferenceRequest, InvalidRequest, TooLarge, datatype_of
from tests.serve import models

EXAMPLES = Path(__file__).parents[2] / "examples"


def served(model: Model, **options: Any) -> ServedModel:
    return ServedModel(bytes(model), "m", "1", ModelOptions(workers=1, **options))


def request(outputs: list[str] | None = None, signature: Any = None, **inputs: Any) -> InferenceRequest:
    parameters = {} if signature is None else {"signature": signature}
    return InferenceRequest("m", inputs, outputs=outputs, parameters=parameters)


def call(instance: Instance, signature: Any = None, **inputs: Any) -> list[np.ndarray]:
    found = instance.model.check(request(None, signature, **inputs))
    return instance.run(found, [inputs[name] for name in found.names])


def alone(model: Model, *inputs: Any) -> list[np.ndarray]:
    """What an interpreter of its own says."""
    interpreter = gossamer.Interpreter(model_content=bytes(model))
    details = interpreter.get_input_details()
    for detail, value in zip(details, inputs, strict=True):
        interpreter.resize_tensor_input(detail["index"], np.shape(value))
    interpreter.allocate_tensors()
    for detail, value in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.asarray(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def test_metadata() -> None:
    metadata = served(models.int8_net()).metadata
    assert (metadata.name, metadata.versions, metadata.platform) == ("m", ("1",), "gossamer_tflite")
    (x,), (y,) = metadata.inputs, metadata.outputs
    assert (x.name, x.datatype, x.shape, x.parameters) == ("x", "INT8", (-1, 16), {"scale": 0.5, "zero_point": 3})
    assert (y.name, y.datatype, y.shape) == ("y", "INT8", (-1, 8))
    assert y.parameters == {"scale": pytest.approx(0.7), "zero_point": -5}
    assert metadata.properties == {"batching": "off", "signature": "serving_default"}


def test_a_model_without_signatures_has_the_names_of_its_tensors() -> None:
    model = served(gossamer.edit.unsign(models.double_net(), "serving_default"))
    assert model.default.key == ""
    assert [tensor.name for tensor in model.metadata.inputs] == ["x"]
    assert "signature" not in model.metadata.properties
    x = np.ones((1, 4), np.float32)
    assert call(Instance(model), x=x)[0].tolist() == [[2, 2, 2, 2]]


@pytest.mark.parametrize("name", ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT32", "FP16", "FP32", "FP64", "BF16"])
def test_numbers_of_every_type(name: str) -> None:
    dtype = DATATYPES[name].dtype
    b = gossamer.Builder()
    x = b.input("x", (2, 2), dtype)
    b.output("y", b.add("RESHAPE", x, np.int32([4])))
    model = served(b.finish())
    assert model.metadata.inputs[0].datatype == model.metadata.outputs[0].datatype == name
    (y,) = call(Instance(model), x=np.array([[1, 2], [3, 4]]).astype(dtype))
    assert datatype_of(y.dtype) == name
    assert y.tolist() == [1, 2, 3, 4]


def test_booleans() -> None:
    b = gossamer.Builder()
    b.output("y", b.add("LOGICAL_NOT", b.input("x", (2,), "bool")))
    model = served(b.finish())
    assert model.metadata.inputs[0].datatype == "BOOL"
    assert call(Instance(model), x=np.array([True, False]))[0].tolist() == [False, True]


def test_strings_and_sizes_that_change() -> None:
    model = served(models.strings_net())
    instance = Instance(model)
    words = np.array([b"a", b"", b"\xff\0"], object)
    for places in ([2, 0], [1], [0, 1, 2, 2]):
        (chosen,) = call(instance, words=words, places=np.int32(places))
        assert chosen.tolist() == [words[place] for place in places]
    assert call(instance, words=words[:1], places=np.int32([0]))[0].tolist() == [b"a"]


def test_outputs_whose_sizes_depend_on_values() -> None:
    model = served(models.dynamic_net())
    assert model.metadata.outputs[0].shape[0] == -1
    instance = Instance(model)
    assert call(instance, x=np.float32([1, -1, 2]))[0].tolist() == [[0], [2]]
    assert call(instance, x=np.float32([-1]))[0].shape == (0, 1)


def test_outputs_of_which_the_file_knows_no_shape() -> None:
    model = models.double_net(shape=(1, 4))
    (graph,) = model.subgraphs
    output = graph.outputs[0]
    for stored, told in (((), (1, 4)), ((7, 4), (-1, 4))):
        tensors = list(graph.tensors)
        tensors[output] = tensors[output].replace(shape=stored, shape_signature=())
        changed = model.replace(subgraphs=(graph.replace(tensors=tuple(tensors)),))
        assert served(changed).metadata.outputs[0].shape == told


def test_packed_integers_have_their_range() -> None:
    b = gossamer.Builder()
    b.output("y", b.add("CAST", b.input("x", (3,), "int4"), type="float32"))
    model = served(b.finish())
    assert model.metadata.inputs[0].datatype == "INT8"
    assert model.metadata.inputs[0].parameters["type"] == "int4"
    assert call(Instance(model), x=np.int8([-8, 0, 7]))[0].tolist() == [-8, 0, 7]
    with pytest.raises(InvalidRequest, match="input 'x' is int4: values are from -8 to 7"):
        model.check(request(x=np.int8([0, 0, 8])))


def test_what_the_protocol_does_not_have_is_not_served() -> None:
    with pytest.raises(ModelError, match="model 'm' cannot be served: input 'x' is complex64, for which the Open Inf"):
        served(models.complex_net())


def test_who_sends_the_inputs_of_another_signature_is_told_its_name() -> None:
    model = served(models.two_signatures_net(negated="n"))
    n = np.float32([1, 2])
    with pytest.raises(InvalidRequest) as refused:
        model.check(request(n=n))
    assert str(refused.value) == (
        "model 'm' takes the inputs x; unknown: n; missing: x; "
        "signature 'negate' takes these: name it in the parameter 'signature'"
    )
    with pytest.raises(InvalidRequest, match=r"unknown: z; missing: x$"):
        model.check(request(z=n))
    assert model.check(request(None, "negate", n=n)).key == "negate"


def test_signatures_are_called_by_a_parameter() -> None:
    model = served(models.two_signatures_net())
    instance = Instance(model)
    x = np.float32([1, 2])
    assert model.metadata.properties["signature"] == "double"
    others = json.loads(model.metadata.properties["signatures"])
    assert list(others) == ["negate"]
    assert others["negate"]["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [2]}]
    assert call(instance, x=x)[0].tolist() == [2, 4]
    assert call(instance, "negate", x=x)[0].tolist() == [-1, -2]
    assert call(instance, "double", x=x)[0].tolist() == [2, 4]
    for wrong in ("tripled", 7, ["double"]):
        with pytest.raises(InvalidRequest, match=r"has no signature .*; it has 'double', 'negate'"):
            model.check(request(None, wrong, x=x))


@pytest.mark.parametrize(
    ("inputs", "outputs", "says"),
    [
        ({}, None, "model 'm' takes the inputs x; missing: x"),
        ({"z": np.zeros((1, 4), "f4")}, None, "takes the inputs x; unknown: z; missing: x"),
        ({"x": np.zeros((1, 4), "f4"), "z": np.zeros(1)}, None, "takes the inputs x; unknown: z$"),
        ({"x": np.zeros((1, 4), "f8")}, None, "input 'x' has datatype FP32, got FP64"),
        ({"x": np.zeros((1, 4), "c8")}, None, "input 'x' has datatype FP32, got complex64"),
        ({"x": np.zeros((1, 5), "f4")}, None, r"input 'x' has shape \[-1, 4\] \(-1: any size\), got \[1, 5\]"),
        ({"x": np.zeros(4, "f4")}, None, r"has shape \[-1, 4\] \(-1: any size\), got \[4\]"),
        ({"x": np.zeros((1, 1, 4), "f4")}, None, r"got \[1, 1, 4\]"),
        ({"x": np.zeros((), "f4")}, None, r"got \[\]"),
        ({"x": np.zeros((1, 4), "f4")}, ["y", "z"], "model 'm' has no output 'z'; it has y"),
        ({"x": np.zeros((1, 4), "f4")}, ["y", "y"], 'output "y" is given twice'),
    ],
)
def test_refusals(inputs: dict[str, np.ndarray], outputs: list[str] | None, says: str) -> None:
    model = served(models.double_net())
    with pytest.raises(InvalidRequest, match=says):
        model.check(InferenceRequest("m", inputs, outputs=outputs))


def test_sizes_that_are_fixed_are_fixed() -> None:
    model = ServedModel((EXAMPLES / "digits.tflite").read_bytes(), "digits")
    with pytest.raises(InvalidRequest, match=r"input 'image' has shape \[1, 8, 8, 1\], got \[2, 8, 8, 1\]"):
        model.check(request(image=np.zeros((2, 8, 8, 1), np.float32)))


def test_too_many_elements_are_refused_before_anything_is_allocated() -> None:
    model = served(models.double_net(), max_elements=1000)
    model.check(request(x=np.zeros((250, 4), np.float32)))
    with pytest.raises(TooLarge, match=r"input 'x' of shape \[251, 4\] has 1004 elements; at most 1000 are taken"):
        model.check(request(x=np.zeros((251, 4), np.float32)))
    huge = np.broadcast_to(np.float32(0), (10**12, 4))  # takes four bytes
    with pytest.raises(TooLarge, match="4000000000000 elements"):
        model.check(request(x=huge))


def test_a_small_request_cannot_have_much_memory() -> None:
    instance = Instance(served(models.square_net(), max_memory=1 << 20))
    assert call(instance, x=np.ones(100, np.float32))[0] == pytest.approx(np.tanh(1) * 10000, rel=1e-4)
    for size in (2000, 3_000_000):  # 16 MB; more than there is
        with pytest.raises(
            TooLarge, match=r"m' takes .* bytes for inputs of these shapes; at most 1048576|not enough me"
        ):
            call(instance, x=np.ones(size, np.float32))
        assert call(instance, x=np.ones(10, np.float32))[0] == pytest.approx(np.tanh(1) * 100)


def test_shapes_and_values_that_an_operator_refuses() -> None:
    b = gossamer.Builder()
    b.output("y", b.add("ADD", b.input("x", ("n",)), b.input("z", ("n",))))
    instance = Instance(served(b.finish()))
    with pytest.raises(InvalidRequest, match=r"model 'm' refuses these inputs: .*ADD"):
        call(instance, x=np.zeros(2, np.float32), z=np.zeros(3, np.float32))
    assert call(instance, x=np.ones(3, np.float32), z=np.ones(3, np.float32))[0].tolist() == [2, 2, 2]
    instance = Instance(served(models.lookup_net()))
    with pytest.raises(InvalidRequest, match=r"model 'm' refuses these inputs: .*GATHER"):
        call(instance, i=np.int32([3]))
    assert call(instance, i=np.int32([2]))[0].shape == (1, 2)


def test_state_is_as_new_for_every_request() -> None:
    x = np.ones((1, 3), np.float32)
    recurrent = Instance(served(models.recurrent_net()))
    assert recurrent.model.is_stateful
    first, second = (call(recurrent, x=x)[0] for _ in range(2))
    assert first.tolist() == second.tolist() == alone(models.recurrent_net(), x)[0].tolist()
    counter = Instance(served(models.counter_net()))
    assert counter.model.is_stateful
    for _ in range(3):
        assert call(counter, x=np.float32([1]))[0].tolist() == [2]
        counter.renew()
    assert not served(models.double_net()).is_stateful


def test_instances_run_side_by_side() -> None:
    model = served(models.dense_net())
    values = [models.weights(1, 64, seed=seed) for seed in range(8)]
    expected = [alone(models.dense_net(), value)[0].tolist() for value in values]

    def work(start: int) -> None:
        instance = Instance(model)
        for turn in range(50):
            number = (start + turn) % len(values)
            assert call(instance, x=values[number])[0].tolist() == expected[number]

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))


def test_a_run_is_cancelled_and_the_next_one_runs() -> None:
    instance = Instance(served(models.count_net()))
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.01):
            instance.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(CancelledError):
        call(instance, limit=np.array(2**31 - 1, np.int32))
    ended.set()
    thread.join()
    assert call(instance, limit=np.array(3, np.int32))[0] == 3


def test_a_check_takes_no_time() -> None:
    """Not a time: what is computed when all is as the model has it is nothing but comparisons."""
    model = served(models.double_net("float32", (1, 4)))
    model._check_shape = None  # type: ignore[method-assign, assignment]  # not called for the shape of the model
    assert model.check(request(x=np.zeros((1, 4), np.float32))) is model.default


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 0},
        {"max_batch_size": 1.5},
        {"max_queue_size": -1},
        {"batch_delay": -1},
        {"batch_delay": float("nan")},
    ],
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        ModelOptions(**options)
