"""The points of the Open Inference Protocol, and of those extensions of Triton's that there are, one after the other.

`docs/serve-protocol.md` names the tests beside what they show.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gossamer import Builder
from gossamer.model import Model
from gossamer.serve.protocol import DATATYPES, array_from_values, raw_from_array
from tests.conftest import ROOT
from tests.serve.client import Client
from tests.serve.held import PATIENCE

PAGE = ROOT / "docs" / "serve-protocol.md"

engines = pytest.mark.engines

SERVICE = "inference.GRPCInferenceService"
HEAD_LENGTH = "inference-header-content-length"

TYPES = {
    "BOOL": "bool",
    **{f"{sign}INT{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BF16": "bfloat16",
    "BYTES": "string",
}
"""The protocol's datatypes as `Builder` calls them."""


def test_the_page_names_tests_that_there_are() -> None:
    here = {path.name: path.read_text() for path in Path(__file__).parent.glob("test_*.py")}
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE.read_text())
    assert len(named) > 40
    missing = [f"{file}::{test}" for file, test in named if f"def {test}(" not in here.get(file, "")]
    assert not missing
    told = {test for file, test in named if file == Path(__file__).name}
    written = set(re.findall(r"^def (test_\w+)\(", here[Path(__file__).name], re.MULTILINE))
    assert written - told == {"test_the_page_names_tests_that_there_are"}


def test_types_of_tensors() -> None:
    sizes = {"BOOL": 1, "FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8, "BYTES": 0}
    sizes |= {f"{sign}INT{bits}": bits // 8 for sign in ("", "U") for bits in (8, 16, 32, 64)}
    assert {name: kind.size for name, kind in DATATYPES.items()} == sizes


def same_net(type: str) -> Model:
    """y has the elements of x."""
    b = Builder()
    x = b.input("x", ("n",), type)
    b.output("y", b.add("RESHAPE", x, np.int32([-1])))
    return b.finish()


def two_net() -> Model:
    """The sum and the difference of two matrices, (2, n) each."""
    b = Builder()
    left, right = b.input("left", (2, "n")), b.input("right", (2, "n"))
    b.output("sum", b.add("ADD", left, right))
    b.output("difference", b.add("SUB", left, right))
    return b.finish()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A model for each datatype, one in two versions with two inputs and outputs, and a file that is none."""
    grpc = pytest.importorskip("grpc")
    from gossamer.serve.model import ModelOptions
    from gossamer.serve.repository import Repository
    from gossamer.serve.server import Server
    from gossamer.serve.settings import Settings

    folder = tmp_path_factory.mktemp("models")
    for name, type in TYPES.items():
        (folder / f"{name}.tflite").write_bytes(bytes(same_net(type)))
    (folder / "two").mkdir()
    for version in (3, 12):
        (folder / "two" / f"{version}.tflite").write_bytes(bytes(two_net()))
    (folder / "broken.tflite").write_bytes(b"")
    repository = Repository([folder], ModelOptions(workers=1), watch=False)
    repository.start()
    made = Server(Settings(http_port=0, grpc_port=0, repository_control=True, log_requests=False))
    with made.running(repository), grpc.insecure_channel(f"127.0.0.1:{made.grpc_port}") as channel:
        assert made.http_port is not None
        client = Client(made.http_port)
        yield SimpleNamespace(http=client, channel=channel)
        client.close()


@pytest.fixture
def http(server: Any) -> Client:
    client: Client = server.http
    return client


@pytest.fixture
def grpc(server: Any) -> Callable[..., Any]:
    """``grpc("ServerLive")``: the answer of a method to a message with these fields, in the classes of tritonclient."""
    service_pb2 = pytest.importorskip("tritonclient.grpc").service_pb2

    def call(name: str, request: Any = None, /, **fields: Any) -> Any:
        request_type = getattr(service_pb2, f"{name}Request")
        response_type = getattr(service_pb2, f"{name}Response")
        method = server.channel.unary_unary(
            f"/{SERVICE}/{name}", request_type.SerializeToString, response_type.FromString
        )
        return method(request_type(**fields) if request is None else request, timeout=PATIENCE)

    return call


def refused(call: Callable[[], Any]) -> tuple[str, str]:
    import grpc

    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code().name, caught.value.details()


LEFT = {"name": "left", "shape": [2, 2], "datatype": "FP32", "data": [[1, 2], [4, 5]]}
RIGHT = {"name": "right", "shape": [2, 2], "datatype": "FP32", "data": [1, 1, 1, 1]}
BOTH = {"inputs": [LEFT, RIGHT]}


def infer(http: Client, body: Any, model: str = "two", **headers: str) -> Any:
    return http("POST", f"/v2/models/{model}/infer", body if isinstance(body, bytes) else json.dumps(body), **headers)


def outputs(answer: Any) -> dict[str, Any]:
    assert answer.status == 200, answer.body
    return {output["name"]: output for output in answer.json["outputs"]}


def triton_request(raw: bool = True, **fields: Any) -> Any:
    service_pb2 = pytest.importorskip("tritonclient.grpc").service_pb2
    made = service_pb2.ModelInferRequest(model_name="two", **fields)
    for name, values in (("left", [1, 2, 4, 5]), ("right", [1, 1, 1, 1])):
        tensor = made.inputs.add(name=name, datatype="FP32", shape=[2, 2])
        if raw:
            made.raw_input_contents.append(np.float32(values).tobytes())
        else:
            tensor.contents.fp32_contents.extend(values)
    return made


# -- HTTP: health and metadata


@engines
def test_rest_live(http: Client) -> None:
    answer = http("GET", "/v2/health/live")
    assert (answer.status, answer.json["live"]) == (200, True)


@engines
def test_rest_ready_though_one_model_cannot_be_loaded(http: Client) -> None:
    answer = http("GET", "/v2/health/ready")
    assert (answer.status, answer.json["ready"]) == (200, True)


@engines
def test_rest_model_ready(http: Client) -> None:
    for path in ("two", "two/versions/3", "two/versions/12"):
        answer = http("GET", f"/v2/models/{path}/ready")
        assert (answer.status, answer.json) == (200, {"name": "two", "ready": True})
    assert http("GET", "/v2/models/broken/ready").status == 503
    for path in ("nothing", "two/versions/4"):
        answer = http("GET", f"/v2/models/{path}/ready")
        assert (answer.status, bool(answer.error)) == (404, True)


@engines
def test_rest_server_metadata(http: Client) -> None:
    answer = http("GET", "/v2")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert {name: type(value) for name, value in answer.json.items()} == {
        "name": str,
        "version": str,
        "extensions": list,
    }
    assert all(isinstance(name, str) for name in answer.json["extensions"])


@engines
def test_rest_model_metadata(http: Client) -> None:
    answer = http("GET", "/v2/models/two")
    assert answer.status == 200
    told = answer.json
    assert (told["name"], told["versions"]) == ("two", ["3", "12"])
    assert re.fullmatch(r"[a-z]+_[a-z]+", told["platform"])
    described = [{"name": name, "datatype": "FP32", "shape": [2, -1]} for name in ("left", "right")]
    assert told["inputs"] == described
    assert [tensor["name"] for tensor in told["outputs"]] == ["sum", "difference"]
    for tensor in told["outputs"]:
        assert (tensor["datatype"], len(tensor["shape"])) == ("FP32", 2)


@engines
def test_rest_metadata_errors(http: Client) -> None:
    for path in ("nothing", "nothing/versions/1", "two/versions/4", "two/versions/x"):
        answer = http("GET", f"/v2/models/{path}")
        assert (answer.status, bool(answer.error)) == (404, True)


@engines
def test_names_have_their_case(http: Client, grpc: Callable[..., Any]) -> None:
    assert http("GET", "/v2/models/Two").status == 404
    assert infer(http, {"inputs": [{**LEFT, "name": "Left"}, RIGHT]}).status == 400
    assert infer(http, {"inputs": [{**LEFT, "datatype": "fp32"}, RIGHT]}).status == 400
    assert refused(lambda: grpc("ModelMetadata", name="Two"))[0] == "NOT_FOUND"


@engines
def test_rest_versions(http: Client) -> None:
    for path, version in (("two", "12"), ("two/versions/3", "3"), ("two/versions/12", "12")):
        assert infer(http, BOTH, path).json["model_version"] == version
    assert infer(http, BOTH, "two/versions/1").status == 404


# -- HTTP: inference


@engines
def test_rest_inference(http: Client) -> None:
    answer = infer(http, {"id": "42", **BOTH})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {
        "model_name": "two",
        "model_version": "12",
        "id": "42",
        "outputs": [
            {"name": "sum", "shape": [2, 2], "datatype": "FP32", "data": [2.0, 3.0, 5.0, 6.0]},
            {"name": "difference", "shape": [2, 2], "datatype": "FP32", "data": [0.0, 1.0, 3.0, 4.0]},
        ],
    }


@engines
def test_rest_id_comes_back_if_there_is_one(http: Client) -> None:
    assert "id" not in infer(http, BOTH).json
    for name in ("a", 'quotes " and é', "x" * 1000):
        assert infer(http, {"id": name, **BOTH}).json["id"] == name
    assert infer(http, {"id": 7, **BOTH}).status == 400


@engines
def test_rest_outputs_that_are_asked_for(http: Client) -> None:
    asked = [{"name": "difference"}]
    assert list(outputs(infer(http, {**BOTH, "outputs": asked}))) == ["difference"]
    asked = [{"name": "difference"}, {"name": "sum"}]
    assert list(outputs(infer(http, {**BOTH, "outputs": asked}))) == ["difference", "sum"]
    assert list(outputs(infer(http, {**BOTH, "outputs": []}))) == ["sum", "difference"]
    answer = infer(http, {**BOTH, "outputs": [{"name": "product"}]})
    assert (answer.status, "'product'" in answer.error) == (400, True)


@engines
def test_rest_parameters_are_taken(http: Client) -> None:
    parameters = {"text": "a", "number": 1.5, "flag": True, "whole": 3}
    inputs = [{**LEFT, "parameters": parameters}, RIGHT]
    body = {"inputs": inputs, "parameters": parameters, "outputs": [{"name": "sum", "parameters": parameters}]}
    assert infer(http, body).status == 200


@engines
def test_rest_nested_and_flat_data(http: Client) -> None:
    for data in ([[1, 2], [4, 5]], [1, 2, 4, 5], [1.0, 2, 4e0, 5]):
        assert outputs(infer(http, {"inputs": [{**LEFT, "data": data}, RIGHT]}))["sum"]["data"] == [2, 3, 5, 6]
    for data in ([[1, 2], [4]], [[1, 2, 4, 5]], [1, 2, 4], [[[1, 2], [4, 5]]], 1, None, {}):
        assert infer(http, {"inputs": [{**LEFT, "data": data}, RIGHT]}).status == 400


@engines
def test_rest_shapes(http: Client) -> None:
    for shape in ([2, 3], [4], [1, 2, 2], [-2, -2], [2, -2], [2.0, 2], ["2", 2], [True, 4], [2**70, 2], 4, None, "22"):
        answer = infer(http, {"inputs": [{**LEFT, "shape": shape}, RIGHT]})
        assert (answer.status, bool(answer.error)) == (400, True), shape


@engines
def test_rest_requests_that_are_none(http: Client) -> None:
    for body in (b"", b"{", b"[]", b"null", b"{}", b'{"inputs": 1}', b'{"inputs": [1]}', b'{"inputs": [{}]}', b"\xff"):
        answer = infer(http, body)
        assert (answer.status, bool(answer.error)) == (400, True), body
    for inputs in ([LEFT], [LEFT, LEFT], [LEFT, RIGHT, {**LEFT, "name": "other"}], []):
        answer = infer(http, {"inputs": inputs})
        assert (answer.status, bool(answer.error)) == (400, True)
    for name in ("shape", "datatype", "data"):
        incomplete = {key: value for key, value in LEFT.items() if key != name}
        assert infer(http, {"inputs": [incomplete, RIGHT]}).status == 400


VALUES: dict[str, list[Any]] = {
    "BOOL": [True, False],
    **{f"INT{bits}": [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": [0, 2**bits - 1] for bits in (8, 16, 32, 64)},
    "FP16": [0.5, -65504.0],
    "BF16": [0.5, -3.0],
    "FP32": [0.5, -(2.0**100)],
    "FP64": [0.1, 1e300],
    "BYTES": ["a", "é", ""],
}


@engines
@pytest.mark.parametrize("datatype", list(VALUES))
def test_rest_every_datatype(http: Client, datatype: str) -> None:
    values = VALUES[datatype]
    tensor = {"name": "x", "shape": [len(values)], "datatype": datatype, "data": values}
    (y,) = outputs(infer(http, {"inputs": [tensor]}, datatype)).values()
    assert y == {**tensor, "name": "y"}


@engines
@pytest.mark.parametrize("datatype", list(VALUES))
def test_rest_elements_of_another_type(http: Client, datatype: str) -> None:
    wrong: dict[str, list[Any]] = {"BOOL": [1, "true"], "BYTES": [1, True]}
    numbers = [True, "1", None] if datatype.startswith(("FP", "BF")) else [True, "1", None, 0.5, 2**70, -(2**70)]
    for value in wrong.get(datatype, numbers):
        tensor = {"name": "x", "shape": [1], "datatype": datatype, "data": [value]}
        assert infer(http, {"inputs": [tensor]}, datatype).status == 400, value


# -- HTTP: the binary tensor data extension


def binary(body: dict[str, Any], *contents: bytes) -> tuple[bytes, dict[str, str]]:
    head = json.dumps(body).encode()
    return head + b"".join(contents), {HEAD_LENGTH: str(len(head)), "content-type": "application/octet-stream"}


def unpacked(answer: Any) -> dict[str, tuple[dict[str, Any], bytes]]:
    """The outputs of a binary answer, and their contents."""
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/octet-stream"
    assert int(answer.headers["content-length"]) == len(answer.body)
    length = int(answer.headers[HEAD_LENGTH])
    found, at = {}, length
    for output in json.loads(answer.body[:length])["outputs"]:
        assert "data" not in output
        size = output["parameters"]["binary_data_size"]
        found[output["name"]] = output, answer.body[at : at + size]
        at += size
    assert at == len(answer.body)
    return found


def raw_input(tensor: dict[str, Any], size: int) -> dict[str, Any]:
    kept = {name: value for name, value in tensor.items() if name != "data"}
    return {**kept, "parameters": {"binary_data_size": size}}


@engines
@pytest.mark.parametrize("datatype", list(VALUES))
def test_binary_every_datatype(http: Client, datatype: str) -> None:
    values: list[Any] = VALUES[datatype]
    if datatype == "BYTES":
        contents = b"".join(struct.pack("<I", len(value)) + value for value in (b"\xff\0", b"", b"abc"))
        values = [b"\xff\0", b"", b"abc"]
    else:
        contents = raw_from_array(array_from_values("x", datatype, [len(values)], values))
        assert len(contents) == len(values) * DATATYPES[datatype].size
    x = raw_input({"name": "x", "shape": [len(values)], "datatype": datatype}, len(contents))
    body, headers = binary({"inputs": [x], "parameters": {"binary_data_output": True}}, contents)
    (answered,) = unpacked(infer(http, body, datatype, **headers)).values()
    assert answered == ({**x, "name": "y"}, contents)


@engines
def test_binary_bytes_of_booleans(http: Client) -> None:
    x = raw_input({"name": "x", "shape": [2], "datatype": "BOOL"}, 2)
    for contents, status in ((b"\1\0", 200), (b"\2\0", 400)):
        body, headers = binary({"inputs": [x]}, contents)
        assert infer(http, body, "BOOL", **headers).status == status


@engines
def test_binary_is_chosen_for_each_tensor(http: Client) -> None:
    left = np.float32([1, 2, 4, 5]).tobytes()
    body, headers = binary({"inputs": [raw_input(LEFT, 16), RIGHT]}, left)
    assert outputs(infer(http, body, **headers))["sum"]["data"] == [2, 3, 5, 6]
    asked = [{"name": "sum", "parameters": {"binary_data": True}}, {"name": "difference"}]
    answer = infer(http, {**BOTH, "outputs": asked})
    length = int(answer.headers[HEAD_LENGTH])
    first, second = json.loads(answer.body[:length])["outputs"]
    assert first["parameters"] == {"binary_data_size": 16}
    assert np.frombuffer(answer.body[length:], np.float32).tolist() == [2, 3, 5, 6]
    assert second["data"] == [0, 1, 3, 4]
    asked = [{"name": "sum", "parameters": {"binary_data": False}}]
    overridden = infer(http, {**BOTH, "outputs": asked, "parameters": {"binary_data_output": True}})
    assert outputs(overridden)["sum"]["data"] == [2, 3, 5, 6]
    assert HEAD_LENGTH not in overridden.headers


@engines
def test_binary_contents_in_the_order_of_inputs(http: Client) -> None:
    left, right = np.float32([1, 2, 4, 5]).tobytes(), np.float32([1, 1, 1, 1]).tobytes()
    body, headers = binary({"inputs": [raw_input(RIGHT, 16), raw_input(LEFT, 16)]}, right, left)
    assert outputs(infer(http, body, **headers))["difference"]["data"] == [0, 1, 3, 4]


@engines
def test_binary_sizes_that_do_not_fit(http: Client) -> None:
    left = np.float32([1, 2, 4, 5]).tobytes()
    for size, contents in ((12, left[:12]), (16, left[:12]), (16, left + b"\0"), (-1, left), (2**40, left)):
        body, headers = binary({"inputs": [raw_input(LEFT, size), RIGHT]}, contents)
        assert infer(http, body, **headers).status == 400
    body, headers = binary({"inputs": [raw_input(LEFT, 16), RIGHT]}, left)
    for length in ("99999", "-1", "x", "3"):
        assert infer(http, body, **{**headers, HEAD_LENGTH: length}).status == 400


@engines
def test_binary_without_a_head(http: Client) -> None:
    contents = np.float32([1, 2, 3]).tobytes()
    answer = infer(http, contents, "FP32", **{HEAD_LENGTH: "0"})
    (answered,) = unpacked(answer).values()
    assert (answered[0]["shape"], answered[1]) == ([3], contents)
    assert infer(http, contents, "two", **{HEAD_LENGTH: "0"}).status == 400  # it has two inputs


# -- the model repository extension, over HTTP and gRPC


@engines
def test_repository_index(http: Client, grpc: Callable[..., Any]) -> None:
    rows = {(each["name"], each["version"]): each for each in http("POST", "/v2/repository/index", b"").json}
    assert rows["two", "3"] == {"name": "two", "version": "3", "state": "READY", "reason": ""}
    broken = rows["broken", "1"]
    assert (broken["state"], bool(broken["reason"])) == ("UNAVAILABLE", True)
    ready = http("POST", "/v2/repository/index", b'{"ready": true}').json
    assert {each["name"] for each in ready} == {*TYPES, "two"}
    told = {(each.name, each.version): each for each in grpc("RepositoryIndex").models}
    assert told.keys() == rows.keys()
    assert all((told[key].state, told[key].reason) == (row["state"], row["reason"]) for key, row in rows.items())
    assert {each.name for each in grpc("RepositoryIndex", ready=True).models} == {*TYPES, "two"}


@engines
def test_repository_load_and_unload(http: Client, grpc: Callable[..., Any]) -> None:
    def over_http(what: str, name: str) -> int:
        return http("POST", f"/v2/repository/models/{name}/{what}", b"").status

    assert over_http("unload", "two") == 200
    assert not grpc("ModelReady", name="two").ready
    assert infer(http, BOTH).status == 503
    grpc("RepositoryModelLoad", model_name="two")
    assert infer(http, BOTH).status == 200
    grpc("RepositoryModelUnload", model_name="two")
    assert over_http("load", "two") == 200
    assert over_http("load", "two") == 200  # it is loaded already
    assert grpc("ModelReady", name="two", version="12").ready
    for name in ("nothing", "broken"):
        assert over_http("load", name) >= 400
        assert refused(lambda name=name: grpc("RepositoryModelLoad", model_name=name))[0] in (
            "NOT_FOUND",
            "UNAVAILABLE",
        )


# -- gRPC


@engines
def test_grpc_health(grpc: Callable[..., Any]) -> None:
    assert grpc("ServerLive").live
    assert grpc("ServerReady").ready
    assert grpc("ModelReady", name="two").ready
    assert grpc("ModelReady", name="two", version="3").ready
    for name, version in (("broken", ""), ("nothing", ""), ("two", "4")):
        assert not grpc("ModelReady", name=name, version=version).ready


@engines
def test_grpc_metadata(http: Client, grpc: Callable[..., Any]) -> None:
    over_http = http("GET", "/v2").json
    server = grpc("ServerMetadata")
    assert (server.name, server.version) == (over_http["name"], over_http["version"])
    assert list(server.extensions) == over_http["extensions"]
    over_http = http("GET", "/v2/models/two").json
    model = grpc("ModelMetadata", name="two")
    assert (model.name, list(model.versions), model.platform) == ("two", ["3", "12"], over_http["platform"])
    for told, side in ((model.inputs, over_http["inputs"]), (model.outputs, over_http["outputs"])):
        assert [{"name": t.name, "datatype": t.datatype, "shape": list(t.shape)} for t in told] == side
    for name, version in (("nothing", ""), ("two", "4")):
        assert refused(lambda name=name, version=version: grpc("ModelMetadata", name=name, version=version))[0] == (
            "NOT_FOUND"
        )


@engines
def test_grpc_versions(grpc: Callable[..., Any]) -> None:
    for asked, version in (("", "12"), ("3", "3"), ("12", "12")):
        assert grpc("ModelInfer", triton_request(model_version=asked)).model_version == version
    assert refused(lambda: grpc("ModelInfer", triton_request(model_version="1")))[0] == "NOT_FOUND"


@engines
def test_grpc_inference(grpc: Callable[..., Any]) -> None:
    answer = grpc("ModelInfer", triton_request(id="42"))
    assert (answer.model_name, answer.model_version, answer.id) == ("two", "12", "42")
    assert [(each.name, each.datatype, list(each.shape)) for each in answer.outputs] == [
        ("sum", "FP32", [2, 2]),
        ("difference", "FP32", [2, 2]),
    ]
    assert not any(each.HasField("contents") for each in answer.outputs)
    contents = [np.frombuffer(raw, np.float32).tolist() for raw in answer.raw_output_contents]
    assert contents == [[2, 3, 5, 6], [0, 1, 3, 4]]
    typed = grpc("ModelInfer", triton_request(raw=False))
    assert typed.id == ""
    assert not typed.raw_output_contents
    assert [list(each.contents.fp32_contents) for each in typed.outputs] == contents


@engines
def test_grpc_outputs_that_are_asked_for(grpc: Callable[..., Any]) -> None:
    asked = triton_request()
    asked.outputs.add(name="difference")
    answer = grpc("ModelInfer", asked)
    assert [each.name for each in answer.outputs] == ["difference"]
    assert len(answer.raw_output_contents) == 1
    asked.outputs.add(name="product")
    code, details = refused(lambda: grpc("ModelInfer", asked))
    assert (code, "'product'" in details) == ("INVALID_ARGUMENT", True)


@engines
def test_grpc_raw_and_typed_contents_exclude_each_other(grpc: Callable[..., Any]) -> None:
    both = triton_request()
    both.inputs[0].contents.fp32_contents.append(1)
    one = triton_request()
    del one.raw_input_contents[1]
    long = triton_request()
    long.raw_input_contents[0] += b"\0"
    for request in (both, one, long):
        assert refused(lambda request=request: grpc("ModelInfer", request))[0] == "INVALID_ARGUMENT"


@engines
@pytest.mark.parametrize("datatype", list(VALUES))
def test_grpc_every_datatype(grpc: Callable[..., Any], datatype: str) -> None:
    service_pb2 = pytest.importorskip("tritonclient.grpc").service_pb2
    values = [b"\xff\0", b"", b"a"] if datatype == "BYTES" else VALUES[datatype]
    raw = raw_from_array(array_from_values("x", datatype, [len(values)], values))
    request = service_pb2.ModelInferRequest(model_name=datatype, raw_input_contents=[raw])
    request.inputs.add(name="x", datatype=datatype, shape=[len(values)])
    assert list(grpc("ModelInfer", request).raw_output_contents) == [raw]
    field = DATATYPES[datatype].contents
    if field is None:  # 16-bit floats are raw, always
        assert datatype in ("FP16", "BF16")
        return
    del request.raw_input_contents[:]
    getattr(request.inputs[0].contents, field).extend(values)
    (y,) = grpc("ModelInfer", request).outputs
    assert (y.name, y.datatype, list(y.shape)) == ("y", datatype, [len(values)])
    assert list(getattr(y.contents, field)) == values
