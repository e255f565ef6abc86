"""Clients that others have written, as they are, against a server with models of every kind."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gossamer import Builder, Interpreter
from gossamer.model import Model
from tests.conftest import ROOT
from tests.serve.held import PATIENCE, HeldRepository
from tests.serve.models import double_net, dynamic_net, int8_net, strings_net

pytestmark = pytest.mark.engines

KSERVE = os.environ.get("GOSSAMER_KSERVE_PYTHON", sys.executable)
"""The Python that has KServe's SDK, which may want other versions of what the server is made of."""

WORDS = np.array([b"no", b"\xff\xfe\0", "é".encode(), b""], object)


def half_net() -> Model:
    """y = x as bfloat16, of a float16 x."""
    b = Builder()
    x = b.input("x", ("n",), "float16")
    b.output("y", b.add("CAST", b.add("CAST", x, type="float32"), type="bfloat16"))
    return b.finish()


MODELS: dict[str, Callable[[], Model]] = {
    "double": double_net,
    "int8": int8_net,
    "strings": strings_net,
    "dynamic": dynamic_net,
    "half": half_net,
}

INPUTS: dict[str, dict[str, np.ndarray]] = {
    "double": {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)},
    "int8": {"x": np.arange(-16, 16, dtype=np.int8).reshape(2, 16)},
    "strings": {"words": WORDS, "places": np.int32([2, 0, 0, 3, 1])},
    "dynamic": {"x": np.float32([1, -1, 0, 2])},
}

TYPES = {"float32": "FP32", "int8": "INT8", "int32": "INT32", "int64": "INT64", "object": "BYTES", "float16": "FP16"}


def expected(name: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the model gives without a server."""
    if name == "strings":
        return {"chosen": inputs["words"][inputs["places"]]}
    interpreter = Interpreter(model_content=bytes(MODELS[name]()))
    return {key: np.asarray(value) for key, value in interpreter.get_signature_runner()(**inputs).items()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """All models, one in two versions, and a file that is none."""
    from gossamer.serve.model import ModelOptions
    from gossamer.serve.repository import Repository
    from gossamer.serve.server import Server
    from gossamer.serve.settings import Settings

    folder = tmp_path_factory.mktemp("models")
    for name, make in MODELS.items():
        (folder / f"{name}.tflite").write_bytes(bytes(make()))
    (folder / "broken.tflite").write_bytes(b"no model")
    (folder / "twice").mkdir()
    for version, shape in ((1, (1, 4)), (2, ("n", 4))):
        (folder / "twice" / f"{version}.tflite").write_bytes(bytes(double_net(shape=shape)))
    repository = Repository([folder], ModelOptions(workers=1), watch=False)
    repository.start()
    made = Server(Settings(http_port=0, grpc_port=0, repository_control=True, log_requests=False))
    with made.running(repository):
        http, grpc = f"127.0.0.1:{made.http_port}", f"127.0.0.1:{made.grpc_port}"
        yield SimpleNamespace(http=http, grpc=grpc, url=f"http://{http}", ports=(made.http_port, made.grpc_port))


@pytest.fixture(params=["http", "grpc"])
def triton(request: pytest.FixtureRequest, server: Any) -> Iterator[Any]:
    """``tritonclient``: its module and a client, over HTTP and over gRPC."""
    module = pytest.importorskip(f"tritonclient.{request.param}")
    with module.InferenceServerClient(getattr(server, request.param)) as client:
        yield SimpleNamespace(kind=request.param, module=module, client=client)


def inputs_of(triton: Any, inputs: dict[str, np.ndarray], **options: Any) -> list[Any]:
    made = []
    for name, array in inputs.items():
        tensor = triton.module.InferInput(name, array.shape, TYPES[array.dtype.name])
        tensor.set_data_from_numpy(array, **options)
        made.append(tensor)
    return made


def told(triton: Any, what: Any) -> Any:
    """What a client was told, as JSON has it."""
    if triton.kind == "http":
        return what
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(what, preserving_proto_field_name=True)


def refused(triton: Any, call: Callable[[], Any]) -> tuple[str, str]:
    from tritonclient.utils import InferenceServerException

    with pytest.raises(InferenceServerException) as caught:
        call()
    return str(caught.value.status()), str(caught.value.message())


@pytest.mark.parametrize("name", list(INPUTS))
def test_triton_infers(triton: Any, name: str) -> None:
    wanted = expected(name, INPUTS[name])
    result = triton.client.infer(name, inputs_of(triton, INPUTS[name]), request_id="42")
    for key, array in wanted.items():
        got = result.as_numpy(key)
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got, array)
    response = told(triton, result.get_response())
    assert (response["model_name"], response["model_version"], response["id"]) == (name, "1", "42")


def test_triton_asks_for_outputs(triton: Any) -> None:
    outputs = [triton.module.InferRequestedOutput("y")]
    result = triton.client.infer("double", inputs_of(triton, INPUTS["double"]), outputs=outputs)
    np.testing.assert_array_equal(result.as_numpy("y"), 2 * INPUTS["double"]["x"])


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
@pytest.mark.parametrize("name", ["double", "int8", "dynamic"])
def test_triton_as_json_and_as_binary(server: Any, name: str, binary_in: bool, binary_out: bool) -> None:
    module = pytest.importorskip("tritonclient.http")
    triton = SimpleNamespace(module=module)
    (key, array), *_ = expected(name, INPUTS[name]).items()
    with module.InferenceServerClient(server.http) as client:
        outputs = [module.InferRequestedOutput(key, binary_data=binary_out)]
        inputs = inputs_of(triton, INPUTS[name], binary_data=binary_in)
        for encoding in (None, "gzip", "deflate"):
            result = client.infer(name, inputs, outputs=outputs, request_compression_algorithm=encoding)
            np.testing.assert_array_equal(result.as_numpy(key), array)


def test_triton_compresses_over_grpc(server: Any) -> None:
    module = pytest.importorskip("tritonclient.grpc")
    triton = SimpleNamespace(module=module)
    with module.InferenceServerClient(server.grpc) as client:
        for encoding in ("gzip", "deflate"):
            result = client.infer("double", inputs_of(triton, INPUTS["double"]), compression_algorithm=encoding)
            np.testing.assert_array_equal(result.as_numpy("y"), 2 * INPUTS["double"]["x"])


def test_triton_sends_and_gets_half_floats(triton: Any) -> None:
    values = np.float32([1, -0.5, 3.140625])
    x = triton.module.InferInput("x", [3], "FP16")
    x.set_data_from_numpy(values.astype(np.float16))
    got = triton.client.infer("half", [x]).as_numpy("y")
    np.testing.assert_array_equal(got.astype(np.float32), values)  # older clients widen bfloat16 themselves


def test_triton_with_nothing_in_a_tensor(triton: Any) -> None:
    empty = np.zeros((0, 4), np.float32)
    got = triton.client.infer("double", inputs_of(triton, {"x": empty})).as_numpy("y")
    assert got is None or got.shape == (0, 4)
    none_above = triton.client.infer("dynamic", inputs_of(triton, {"x": np.float32([-1])})).get_response()
    assert [int(size) for size in told(triton, none_above)["outputs"][0]["shape"]] == [0, 1]


def test_triton_chooses_versions(triton: Any) -> None:
    three = inputs_of(triton, {"x": np.ones((3, 4), np.float32)})
    response = told(triton, triton.client.infer("twice", three).get_response())
    assert response["model_version"] == "2"
    status, message = refused(triton, lambda: triton.client.infer("twice", three, model_version="1"))
    assert status in ("400", "StatusCode.INVALID_ARGUMENT")
    assert "input 'x' has shape [1, 4], got [3, 4]" in message
    assert triton.client.is_model_ready("twice", "1")
    assert not triton.client.is_model_ready("twice", "3")


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "status", "text"),
    [
        ("nothing", {"x": np.zeros((1, 4), np.float32)}, None, "NOT_FOUND", "no model 'nothing'"),
        ("broken", {"x": np.zeros((1, 4), np.float32)}, None, "UNAVAILABLE", "model 'broken' version 1 is UNAVAILABLE"),
        ("double", {"x": np.zeros((1, 5), np.float32)}, None, "INVALID_ARGUMENT", "has shape [-1, 4]"),
        ("double", {"x": np.zeros(4, np.float32)}, None, "INVALID_ARGUMENT", "got [4]"),
        ("double", {"x": np.zeros((1, 4), np.int8)}, None, "INVALID_ARGUMENT", "has datatype FP32, got INT8"),
        ("double", {"z": np.zeros((1, 4), np.float32)}, None, "INVALID_ARGUMENT", "unknown: z"),
        ("double", {}, None, "INVALID_ARGUMENT", "missing: x"),
        ("double", {"x": np.zeros((1, 4), np.float32)}, "z", "INVALID_ARGUMENT", "has no output 'z'; it has y"),
        ("strings", {"words": np.float32([1]), "places": np.int32([0])}, None, "INVALID_ARGUMENT", "datatype BYTES"),
    ],
)
def test_triton_is_told_what_is_wrong(
    triton: Any, name: str, inputs: dict[str, np.ndarray], outputs: str | None, status: str, text: str
) -> None:
    wanted = [triton.module.InferRequestedOutput(outputs)] if outputs else None
    got, message = refused(triton, lambda: triton.client.infer(name, inputs_of(triton, inputs), outputs=wanted))
    codes = {"NOT_FOUND": "404", "UNAVAILABLE": "503", "INVALID_ARGUMENT": "400"}
    assert got in (codes[status], f"StatusCode.{status}")
    assert text in message


def test_triton_has_no_classification(triton: Any) -> None:
    outputs = [triton.module.InferRequestedOutput("y", class_count=2)]
    _, message = refused(
        triton, lambda: triton.client.infer("double", inputs_of(triton, INPUTS["double"]), outputs=outputs)
    )
    assert "no classification extension" in message


def test_triton_has_no_sequences(triton: Any) -> None:
    inputs = inputs_of(triton, INPUTS["double"])
    for sequence in (7, "a"):
        _, message = refused(
            triton,
            lambda sequence=sequence: triton.client.infer("double", inputs, sequence_id=sequence, sequence_start=True),
        )
        assert "no sequence extension" in message
    triton.client.infer("double", inputs, priority=1)


def test_triton_asks_about_the_server_and_its_models(triton: Any) -> None:
    client = triton.client
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("double")
    assert not client.is_model_ready("nothing")
    assert not client.is_model_ready("broken")
    assert told(triton, client.get_server_metadata())["name"] == "gossamer"
    model = told(triton, client.get_model_metadata("strings"))
    assert [(each["name"], each["datatype"]) for each in model["inputs"]] == [("words", "BYTES"), ("places", "INT32")]
    assert [int(size) for size in model["inputs"][0]["shape"]] == [-1]
    assert told(triton, client.get_model_metadata("twice"))["versions"] == ["1", "2"]
    index = told(triton, client.get_model_repository_index())
    entries = index["models"] if triton.kind == "grpc" else index
    rows = {(each["name"], each["version"]): each["state"] for each in entries}
    assert rows["broken", "1"] == "UNAVAILABLE"
    assert rows["twice", "1"] == rows["twice", "2"] == "READY"


def test_triton_asks_for_the_configuration(triton: Any) -> None:
    config = told(triton, triton.client.get_model_config("int8"))
    config = config.get("config", config)
    assert (config["name"], config["platform"], config["backend"]) == ("int8", "gossamer_tflite", "gossamer")
    (x,) = config["input"]
    assert (x["name"], x["data_type"], [int(size) for size in x["dims"]]) == ("x", "TYPE_INT8", [-1, 16])


def test_triton_asks_for_statistics(triton: Any) -> None:
    def count() -> int:
        found = told(triton, triton.client.get_inference_statistics("double"))
        (stats,) = found["model_stats"]
        return int(stats["inference_stats"]["success"].get("count", 0))

    triton.client.infer("double", inputs_of(triton, INPUTS["double"]))
    before = count()
    triton.client.infer("double", inputs_of(triton, INPUTS["double"]))
    assert count() == before + 1


def test_triton_loads_and_unloads(triton: Any) -> None:
    triton.client.unload_model("dynamic")
    assert not triton.client.is_model_ready("dynamic")
    triton.client.load_model("dynamic")
    assert triton.client.is_model_ready("dynamic")
    refused(triton, lambda: triton.client.load_model("nothing"))
    assert "must be b'TFL3'" in refused(triton, lambda: triton.client.load_model("broken"))[1]


def test_triton_without_waiting(server: Any) -> None:
    grpc = pytest.importorskip("tritonclient.grpc")
    done: list[tuple[Any, Any]] = []
    all_done = threading.Event()

    def answered(result: Any, error: Any) -> None:
        done.append((result, error))
        if len(done) == 4:
            all_done.set()

    with grpc.InferenceServerClient(server.grpc) as client:
        inputs = inputs_of(SimpleNamespace(module=grpc), INPUTS["double"])
        for number in range(4):
            client.async_infer("double" if number else "nothing", inputs, answered, request_id=str(number))
        assert all_done.wait(PATIENCE)
        assert sum(error is not None for _, error in done) == 1
        done.clear()
        all_done.clear()
        client.start_stream(answered)
        for number in range(4):
            client.async_stream_infer("double" if number else "nothing", inputs, request_id=str(number))
        assert all_done.wait(PATIENCE)
        client.stop_stream()
        assert [error is None for _, error in done] == [False, True, True, True]
        assert [result.get_response().id for result, _ in done[1:]] == ["1", "2", "3"]
        np.testing.assert_array_equal(done[3][0].as_numpy("y"), 2 * INPUTS["double"]["x"])
    http = pytest.importorskip("tritonclient.http")
    with http.InferenceServerClient(server.http, concurrency=2) as client:
        inputs = inputs_of(SimpleNamespace(module=http), INPUTS["double"])
        results = [client.async_infer("double", inputs) for _ in range(4)]
        for result in results:
            np.testing.assert_array_equal(result.get_result().as_numpy("y"), 2 * INPUTS["double"]["x"])


def test_triton_over_tls_and_with_a_token(serve: Callable[..., Any], ready: HeldRepository) -> None:
    certificate, key = (str(Path(__file__).parent / "tls" / f"{name}.pem") for name in ("certificate", "key"))
    options = {"tls_certificate": certificate, "tls_key": key, "tokens": ("secret",), "log_requests": False}
    made = serve(ready, grpc_port=0, **options)
    header = {"authorization": "Bearer secret"}
    grpc, http = pytest.importorskip("tritonclient.grpc"), pytest.importorskip("tritonclient.http")
    over_grpc = grpc.InferenceServerClient(f"localhost:{made.grpc_port}", ssl=True, root_certificates=certificate)
    over_http = http.InferenceServerClient(
        f"localhost:{made.http_port}", ssl=True, ssl_options={"ca_certs": certificate}
    )
    for module, client in ((grpc, over_grpc), (http, over_http)):
        with client:
            triton = SimpleNamespace(module=module, client=client)
            inputs = inputs_of(triton, {"x": np.float32([1, 2])})
            assert client.infer("m", inputs, headers=header).as_numpy("y").tolist() == [2, 4]
            assert client.is_server_ready()
            _, message = refused(triton, lambda client=client, inputs=inputs: client.infer("m", inputs))
            assert "token" in message


def test_kserve(server: Any) -> None:
    """Its REST and gRPC clients, in a process of their own."""
    if sys.executable == KSERVE and importlib.util.find_spec("kserve") is None:
        pytest.skip("needs the package kserve, here or in the Python that GOSSAMER_KSERVE_PYTHON names")
    command = [KSERVE, "-m", "tests.serve.kserve_client", *map(str, server.ports)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("rest") == found.pop("grpc") == [True, True, True, False]
    small = expected("int8", {"x": np.arange(16, dtype=np.int8).reshape(1, 16)})["y"].tolist()
    wanted = {
        "double": {"y": (2.0 * np.arange(8).reshape(2, 4)).tolist()},
        "int8": {"y": small},
        "strings": {"chosen": ["yes", "no", "yes"]},
        "dynamic": {"places": [[0], [2]]},
    }
    for how in ("rest plain", "rest binary", "grpc plain", "grpc binary"):
        for name, outputs in wanted.items():
            answer = found.pop(f"{how} {name}")
            assert answer == {"id": f"id of {name}", "model": name, "outputs": outputs}, how
    assert not found


def test_httpx(server: Any) -> None:
    httpx = pytest.importorskip("httpx")
    body = {"id": "9", "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [[1, 2, 3, 4]]}]}
    with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        answer = client.post("/v2/models/double/infer", json=body)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == {
            "model_name": "double",
            "model_version": "1",
            "id": "9",
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [1, 4], "data": [2.0, 4.0, 6.0, 8.0]}],
        }
        assert client.get("/v2/models/double").json()["inputs"][0]["shape"] == [-1, 4]
        assert client.get("/v2/models/nothing").status_code == 404


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl(server: Any, tmp_path: Path) -> None:
    def curl(*arguments: str) -> str:
        command = ["curl", "--silent", "--show-error", "--max-time", str(PATIENCE), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    url = f"{server.url}/v2/models/strings/infer"
    words = {"name": "words", "shape": [2], "datatype": "BYTES", "data": ["a", "é"]}
    places = {"name": "places", "shape": [2], "datatype": "INT32", "data": [1, 1]}
    answer = json.loads(curl("--data", json.dumps({"inputs": [words, places]}), url))
    assert answer["outputs"] == [{"name": "chosen", "datatype": "BYTES", "shape": [2], "data": ["é", "é"]}]
    raw = tmp_path / "x.bin"
    raw.write_bytes(np.float32([1, 2, 3, 4]).tobytes())
    got = tmp_path / "y.bin"
    head = ["--header", "Inference-Header-Content-Length: 0", "--header", "Content-Type: application/octet-stream"]
    curl("--data-binary", f"@{raw}", *head, "--output", str(got), f"{server.url}/v2/models/double/infer")
    assert got.read_bytes().endswith(np.float32([2, 4, 6, 8]).tobytes())
    status = curl("--output", str(tmp_path / "no"), "--write-out", "%{http_code}", f"{server.url}/v2/health/ready")
    assert status == "200"
