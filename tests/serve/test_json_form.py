"""Requests and answers over HTTP, without a server: `gossamer.serve.json_form`."""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gossamer.serve import json_form
from gossamer.serve.json_form import Form, read_request, write_response
from gossamer.serve.protocol import (
    InferenceRequest,
    InferenceResponse,
    InvalidRequest,
    ModelMetadata,
    TensorMetadata,
    TooLarge,
)
from tests.serve.held import Served

X = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2.5]}
RAW_X = {"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}


def read(body: bytes | dict[str, Any], head_length: int | None = None) -> tuple[InferenceRequest, Form]:
    text = json.dumps(body).encode() if isinstance(body, dict) else body
    return read_request(text, head_length, "m", "", lambda: Served.metadata, None)


def read_raw(head: dict[str, Any], raw: bytes) -> tuple[InferenceRequest, Form]:
    text = json.dumps(head).encode()
    return read(text + raw, len(text))


def test_a_request_of_json() -> None:
    request, form = read({"id": "7", "inputs": [X], "outputs": [{"name": "y"}], "parameters": {"signature": "s"}})
    np.testing.assert_array_equal(request.inputs["x"], np.float32([1, 2.5]), strict=True)
    assert (request.model_name, request.model_version, request.id) == ("m", "", "7")
    assert (request.outputs, request.parameters, request.deadline) == (["y"], {"signature": "s"}, None)
    assert form == Form(False, {"y": False})


def test_a_request_with_raw_tensors_in_their_order() -> None:
    b = {"name": "b", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 6}}
    raw = np.float32([3, 4]).tobytes() + b"\2\0\0\0hi"
    request, form = read_raw(
        {"inputs": [RAW_X, {**X, "name": "j"}, b], "parameters": {"binary_data_output": True}}, raw
    )
    assert request.inputs["x"].tolist() == [3, 4]
    assert request.inputs["j"].tolist() == [1, 2.5]
    assert request.inputs["b"].tolist() == [b"hi"]
    assert form == Form(True, {})


def test_raw_numbers_are_not_copied() -> None:
    head = json.dumps({"inputs": [RAW_X]}).encode()
    body = head + np.float32([3, 4]).tobytes()
    request, _ = read(body, len(head))
    assert np.shares_memory(request.inputs["x"], np.frombuffer(body, np.uint8))


def test_a_request_that_is_nothing_but_its_input() -> None:
    request, form = read(np.float32([1, 2, 3]).tobytes(), 0)
    assert request.inputs["x"].tolist() == [1, 2, 3]
    assert form == Form(True, {})


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ((("x", "FP32", (2,)), ("z", "FP32", (2,))), "of one input"),
        ((("x", "FP32", (-1, -1)),), "one open size"),
        ((("x", "FP32", (3,)),), "takes 12 bytes"),
        ((("x", "FP32", (0, -1)),), "takes 0 bytes"),
    ],
)
def test_a_model_that_cannot_take_nothing_but_its_input(inputs: tuple[tuple[str, str, tuple[int]]], said: str) -> None:
    model = ModelMetadata("m", ("1",), "test", tuple(TensorMetadata(*given) for given in inputs), ())
    with pytest.raises(InvalidRequest, match=said):
        read_request(b"\0" * 8, 0, "m", "", lambda: model, None)


def test_nothing_but_a_string() -> None:
    model = ModelMetadata("m", ("1",), "test", (TensorMetadata("x", "BYTES", (1, -1)),), ())
    request, _ = read_request(b"hello", 0, "m", "", lambda: model, None)
    assert request.inputs["x"].tolist() == [[b"hello"]]


BAD = {
    "nothing": (b"", "not JSON"),
    "half": (b'{"inputs": [', "not JSON"),
    "two": (b"{} {}", "not JSON"),
    "not UTF-8": (b'{"id": "\xff"}', "not JSON"),
    "NaN": (b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [NaN]}]}', "NaN"),
    "infinity": (b'{"parameters": {"a": -Infinity}}', "-Infinity"),
    "nested deep": (b"[" * 200_000 + b"]" * 200_000, "not JSON"),
    "objects nested deep": (b'{"a":' * 200_000, "not JSON"),
    "data nested deep": (b'{"inputs": [{"data": ' + b"[" * 200_000, "not JSON"),
    "a number of many digits": (b'{"id": ' + b"9" * 5000 + b"}", "not JSON"),
    "a list": ([], "must be a JSON object"),
    "no inputs": ({}, "no inputs"),
    "inputs null": ({"inputs": None}, "no inputs"),
    "inputs an object": ({"inputs": {}}, "inputs must be a list"),
    "an input that is a number": ({"inputs": [1]}, "each of inputs"),
    "no name": ({"inputs": [{**X, "name": None}]}, "must have a name"),
    "a name that is a list": ({"inputs": [{**X, "name": []}]}, "must have a name"),
    "twice": ({"inputs": [X, X]}, "twice"),
    "no data": ({"inputs": [{"name": "x", "datatype": "FP32", "shape": [2]}]}, "neither data nor"),
    "data null": ({"inputs": [{**X, "data": None}]}, "data must be a list"),
    "too few data": ({"inputs": [{**X, "data": [1]}]}, "has 2 elements"),
    "data of another type": ({"inputs": [{**X, "data": ["1", "2"]}]}, "no element of FP32"),
    "data too large": ({"inputs": [{**X, "data": [1, 1e39]}]}, "does not fit FP32"),
    "an integer beyond floats": ({"inputs": [{**X, "data": [1, 10**400]}]}, "does not fit FP32"),
    "an integer beyond its type": ({"inputs": [{**X, "datatype": "INT8", "data": [1, 128]}]}, "does not fit INT8"),
    "an integer beyond all types": ({"inputs": [{**X, "datatype": "INT64", "data": [1, 2**70]}]}, "does not fit"),
    "a datatype of nobody": ({"inputs": [{**X, "datatype": "FP8"}]}, "datatype must be one of"),
    "a shape of nobody": ({"inputs": [{**X, "shape": [-2]}]}, "sizes are integers"),
    "a shape of everybody": ({"inputs": [{**X, "shape": [2**31 - 1] * 32}]}, "elements"),
    "id a number": ({"id": 7, "inputs": [X]}, "id must be"),
    "parameters a list": ({"parameters": [], "inputs": [X]}, "parameters must be"),
    "a flag that is none": ({"parameters": {"binary_data_output": "yes"}, "inputs": [X]}, "true or false"),
    "a timeout that is none": ({"parameters": {"timeout": "1"}, "inputs": [X]}, "microseconds"),
    "a negative timeout": ({"parameters": {"timeout": -1}, "inputs": [X]}, "microseconds"),
    "outputs a text": ({"inputs": [X], "outputs": "y"}, "outputs must be a list"),
    "an output twice": ({"inputs": [X], "outputs": [{"name": "y"}, {"name": "y"}]}, "twice"),
    "classes": ({"inputs": [X], "outputs": [{"name": "y", "parameters": {"classification": 3}}]}, "classification"),
    "shared memory": ({"inputs": [{**X, "parameters": {"shared_memory_region": "r"}}]}, "shared memory"),
    "raw without a header": ({"inputs": [RAW_X]}, "Inference-Header-Content-Length"),
    "raw and data": ({"inputs": [{**RAW_X, "data": [1, 2]}]}, "both"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_said_to_be_bad(name: str) -> None:
    body, said = BAD[name]
    with pytest.raises(InvalidRequest, match=said):
        read(json.dumps(body).encode() if isinstance(body, list) else body)


@pytest.mark.parametrize(
    ("size", "raw", "said"),
    [
        (8, b"1234", "4 are left"),
        (8, b"12345678!", "1 bytes of the body belong to no input"),
        (4, b"1234", "takes 8 bytes"),
        (-8, b"12345678", "number of bytes"),
        (True, b"1", "number of bytes"),
        (10**30, b"1", "number of bytes"),
        ("8", b"12345678", "number of bytes"),
    ],
)
def test_raw_tensors_of_another_size(size: Any, raw: bytes, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        read_raw({"inputs": [{**RAW_X, "parameters": {"binary_data_size": size}}]}, raw)


def test_a_head_longer_than_the_body() -> None:
    with pytest.raises(InvalidRequest, match="is 3, and the body has 2 bytes"):
        read(b"{}", 3)


def test_a_timeout_can_only_shorten() -> None:
    now = time.monotonic()
    assert json_form.deadline({}, None) is None
    assert json_form.deadline({"timeout": 0}, None) is None
    for parameters, timeout, seconds in (({"timeout": 2_000_000}, 60, 2), ({"timeout": 10**30}, 60, 60), ({}, 60, 60)):
        ends = json_form.deadline(parameters, timeout)
        assert ends is not None
        assert now + seconds <= ends <= time.monotonic() + seconds


def answer(form: Form, **outputs: Any) -> tuple[Any, bytes]:
    pieces, head_length = write_response(InferenceResponse("m", "1", "", outputs), form)
    body = b"".join(pieces)
    return json.loads(body[:head_length], parse_constant=pytest.fail), body[head_length:] if head_length else b""


def test_an_answer_of_json() -> None:
    told, raw = answer(Form(False, {}), y=np.float32([[1, 2]]), b=np.array([b"\xc3\xa4"], object), t=np.array([True]))
    assert told == {
        "model_name": "m",
        "model_version": "1",
        "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]},
            {"name": "b", "datatype": "BYTES", "shape": [1], "data": ["ä"]},
            {"name": "t", "datatype": "BOOL", "shape": [1], "data": [True]},
        ],
    }
    assert raw == b""


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_json_has_null_for_numbers_that_it_does_not_have(dtype: Any) -> None:
    told, _ = answer(Form(False, {}), y=np.array([1, np.nan, np.inf, -np.inf, 0.5]).astype(dtype))
    assert told["outputs"][0]["data"] == [1, None, None, None, 0.5]


def test_an_answer_of_which_some_is_raw() -> None:
    y = np.float32([np.nan, 2])
    told, raw = answer(Form(False, {"y": True, "z": False}), y=y, z=np.int8([3]))
    assert told["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}},
        {"name": "z", "datatype": "INT8", "shape": [1], "data": [3]},
    ]
    assert raw == y.tobytes()


def test_strings_that_json_cannot_hold() -> None:
    with pytest.raises(InvalidRequest, match="ask for binary data"):
        answer(Form(False, {}), b=np.array([b"\xff"], object))


BODY = b"0123456789" * 1000


@pytest.mark.parametrize(("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_bodies(encoding: str, compress: Callable[[bytes], bytes]) -> None:
    packed = compress(BODY)
    assert json_form.inflated(packed, encoding, len(BODY)) == BODY
    with pytest.raises(TooLarge):
        json_form.inflated(packed, encoding, len(BODY) - 1)
    for wrong in (packed[:-5], packed + b"!", b"", BODY):
        with pytest.raises(InvalidRequest, match=f"not {encoding}"):
            json_form.inflated(wrong, encoding, 1 << 20)


def test_other_encodings() -> None:
    with pytest.raises(InvalidRequest, match="'br'"):
        json_form.inflated(b"", "br", 10)


def test_what_is_large_is_read_as_what_is_small() -> None:
    values = [0, -1, 2**62, 1.5, -2e-300, True, None, "é", {"a": [1, 2.0]}]
    text = json.dumps(values * 10_000).encode()
    assert len(text) > json_form.LARGE
    read = json_form.parsed(text)
    assert read == values * 10_000
    assert list(map(type, read)) == list(map(type, values * 10_000))
    for wrong in (b"[NaN]", b"[1,]", b"[" + b"9" * 5000 + b"]"):
        with pytest.raises(InvalidRequest, match="not JSON"):
            json_form.parsed(b" " * json_form.LARGE + wrong)


def test_who_reads_what_is_large_lets_others_run() -> None:
    """In one call of C nobody else would."""
    text, turns, ends = b"[" + b"1," * json_form.LARGE + b"1]", [0], threading.Event()

    def count() -> None:
        while not ends.is_set():
            turns[0] += 1

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    other = threading.Thread(target=count)
    other.start()
    try:
        while not turns[0]:
            pass
        before = turns[0]
        json_form.parsed(text)
        assert turns[0] > before + 100
    finally:
        ends.set()
        other.join()
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("kind", ["float32", "int8", "bool", "float16", "object"])
def test_what_is_large_is_written_in_pieces(kind: str) -> None:
    array = (np.arange(40_000) % 100 - 50).reshape(2, 20_000).astype(kind)
    if kind == "float32":
        array[1, 7] = np.nan
    if kind == "object":
        array = np.array([b"%d" % value for value in array.ravel()], object).reshape(array.shape)
    form = Form(False, {})
    response = InferenceResponse("m", "1", "7", {"y": array, "z": array[:, :0]})
    assert form.takes_long(response)
    assert not Form(True, {}).takes_long(response)
    pieces, length = write_response(response, form)
    assert length is None
    y, z = json.loads(b"".join(pieces))["outputs"]
    plain = [value.decode() for value in array.ravel()] if kind == "object" else array.ravel().tolist()
    assert y["data"] == [None if value != value else value for value in plain]
    assert z == {"name": "z", "datatype": y["datatype"], "shape": [2, 0], "data": []}


def test_what_is_too_large_for_json() -> None:
    array = np.zeros(100_000, np.float32)
    response = InferenceResponse("m", "1", "7", {"y": array})
    with pytest.raises(TooLarge, match=r'output "y" of shape \[100000\] is too large for JSON: ask for binary data'):
        write_response(response, Form(False, {}), 300_000)
    assert len(write_response(response, Form(False, {}), 400_000)[0][0]) > 399_999
    assert write_response(response, Form(True, {}), 0)[0][1] == array.tobytes()
