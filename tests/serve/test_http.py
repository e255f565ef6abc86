"""The Open Inference Protocol over HTTP, against a server that runs."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import queue
import struct
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from gossamer.serve import json_form
from gossamer.serve.protocol import Overloaded, TimedOut
from tests.serve.client import ANSWER, BODY, INFER, Client, X, connected, raw_request, read_all
from tests.serve.held import PATIENCE, HeldRepository, doubled

pytestmark = pytest.mark.engines

Connect = Callable[..., Client]


def test_what_a_server_tells_of_itself(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready)
    server = client("GET", "/v2")
    assert (server.status, server.json["name"]) == (200, "gossamer")
    assert "binary_tensor_data" in server.json["extensions"]
    assert "model_repository" not in server.json["extensions"]
    assert client("GET", "/v2/health/live").json == {"live": True}
    assert client("GET", "/v2/health/ready").json == {"ready": True}
    assert client("GET", "/v2/models/m/ready").json == {"name": "m", "ready": True}
    assert client("GET", "/v2/models/m/versions/1/ready").status == 200
    for path in ("/v2/models/m", "/v2/models/m/versions/1"):
        assert client("GET", path).json == {
            "name": "m",
            "versions": ["1"],
            "platform": "test",
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1]}],
            "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1]}],
        }


def test_a_server_that_is_not_ready(connect: Connect, ready: HeldRepository) -> None:
    ready.ready = False
    client = connect(ready)
    answer = client("GET", "/v2/health/ready")
    assert (answer.status, answer.json) == (503, {"ready": False})
    assert client("GET", "/v2/health/live").status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v2/models/n", 404),
        ("GET", "/v2/models/m/versions/2", 404),
        ("GET", "/v2/models/n/ready", 404),
        ("POST", "/v2/models/n/infer", 404),
        ("POST", "/v2/models/m/versions/2/infer", 404),
        ("POST", "/v2/models/m/versions/1/nothing", 404),
        ("GET", "/nothing", 404),
        ("GET", INFER, 405),
        ("DELETE", "/v2/models/m", 405),
        ("GET", "/v2/models/m/", 404),
        ("POST", "/v2/repository/models/m/load", 403),
        ("POST", "/v2/repository/models/m/unload", 403),
    ],
)
def test_what_is_not_there(connect: Connect, ready: HeldRepository, method: str, path: str, status: int) -> None:
    answer = connect(ready)(method, path, BODY if path.endswith("infer") and method == "POST" else None)
    assert answer.status == status
    assert answer.error


def test_heads(connect: Connect, ready: HeldRepository) -> None:
    """Load balancers ask so, too."""
    client = connect(ready)
    for path, status in (("/v2/health/ready", 200), ("/v2/models/m", 200), ("/nothing", 404), (INFER, 405)):
        answer = client("HEAD", path)
        assert (answer.status, answer.body) == (status, b"")
        assert int(answer.headers["content-length"]) > 0
    assert client.infer().json == ANSWER


def test_inference_as_json(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready)
    for path in (INFER, "/v2/models/m/versions/1/infer", "/v2/models/%6d/infer"):
        answer = client("POST", path, BODY)
        assert (answer.status, answer.headers["content-type"], answer.json) == (200, "application/json", ANSWER)


def test_inference_with_raw_tensors(connect: Connect, ready: HeldRepository) -> None:
    x = np.float32([np.nan, 3])
    head = json.dumps(
        {
            "inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}],
            "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
        }
    ).encode()
    answer = connect(ready).infer(head + x.tobytes(), inference_header_content_length=str(len(head)))
    length = int(answer.headers["inference-header-content-length"])
    assert json.loads(answer.body[:length])["outputs"] == [
        {"name": "y", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": 8}}
    ]
    assert answer.body[length:] == (2 * x).tobytes()
    assert answer.headers["content-type"] == "application/octet-stream"


def test_the_same_connection_serves_many(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready)
    for number in range(50):
        body = json.dumps({"inputs": [{**X, "data": [number, 0]}]})
        assert client.infer(body).json["outputs"][0]["data"] == [2 * number, 0]
        assert client.infer("{").status == 400


@pytest.mark.parametrize(("encoding", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_requests(
    connect: Connect, ready: HeldRepository, encoding: str, compress: Callable[[bytes], bytes]
) -> None:
    client = connect(ready, max_body_size=1000)
    packed = compress(BODY)
    assert client.infer(packed, content_encoding=encoding).json == ANSWER
    assert client.infer(packed[:-9], content_encoding=encoding).status == 400
    bomb = compress(b" " * 100_000)
    assert len(bomb) < 1000
    assert client.infer(bomb, content_encoding=encoding).status == 413
    assert client.infer(BODY, content_encoding="br").status == 400


@pytest.mark.parametrize("length", ["", "-1", "1e3", "99999999999999999999", "1000"])
def test_a_head_length_that_is_none(connect: Connect, ready: HeldRepository, length: str) -> None:
    assert connect(ready).infer(BODY, inference_header_content_length=length).status == 400


@pytest.mark.parametrize(
    "body", [b"[" * 500_000, b'{"inputs":' + b'{"a":' * 100_000, b'{"id": ' + b"9" * 100_000 + b"}"]
)
def test_bombs_of_json(connect: Connect, ready: HeldRepository, body: bytes) -> None:
    client = connect(ready)
    assert client.infer(body).status == 400
    assert client.infer().status == 200


def test_a_body_that_is_too_large_is_not_read(connect: Connect, ready: HeldRepository) -> None:
    """The client asks before it sends, and is told not to."""
    port = connect(ready, max_body_size=1000).connection.port
    with connected(port) as connection:
        head = raw_request(b"", INFER, "expect: 100-continue").replace(b"content-length: 0", b"content-length: 1001")
        connection.sendall(head)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_a_body_without_a_length_ends_at_the_limit(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, max_body_size=100_000)
    chunks = iter([b" " * 1000] * 101)
    answer = client.infer(chunks, transfer_encoding="chunked")
    assert (answer.status, "100000 bytes" in answer.error) == (413, True)


def test_json_has_a_limit_of_its_own(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, max_json_size=len(BODY))
    assert client.infer().json == ANSWER
    answer = client.infer(BODY + b" ")
    assert (answer.status, "as binary data" in answer.error) == (413, True)
    assert client.infer(bytes(4000), inference_header_content_length="0").status == 200


def test_large_json_holds_nobody_up(connect: Connect, ready: HeldRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read in a thread, and so is written what is large."""
    reached: queue.Queue[str] = queue.Queue()
    goes_on = {step: threading.Event() for step in ("reads", "writes")}

    def held(function: Callable[..., Any], step: str, is_large: Callable[[Any], bool]) -> Callable[..., Any]:
        def wait(*arguments: Any) -> Any:
            if is_large(arguments[0]):
                reached.put(step)
                assert goes_on[step].wait(PATIENCE)
            return function(*arguments)

        return wait

    monkeypatch.setattr(
        json_form, "read_request", held(json_form.read_request, "reads", lambda body: len(body) > json_form.LARGE)
    )
    monkeypatch.setattr(
        json_form, "write_response", held(json_form.write_response, "writes", lambda made: made.outputs["y"].size > 2)
    )
    client = connect(ready)
    other = Client(client.connection.port)
    values = list(range(100_000))
    client.send("POST", INFER, json.dumps({"inputs": [{**X, "shape": [len(values)], "data": values}]}))
    for step, event in goes_on.items():
        assert reached.get(timeout=PATIENCE) == step
        assert other.infer().json == ANSWER
        event.set()
    assert client.answer().json["outputs"][0]["data"] == [2.0 * value for value in values]
    other.close()


def test_reading_large_json_has_the_time_of_the_request(
    connect: Connect, ready: HeldRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    monkeypatch.setattr(json_form, "read_request", lambda *_: goes_on.wait(PATIENCE))
    answer = connect(ready, timeout=0.1).infer(BODY + b" " * json_form.LARGE)
    goes_on.set()
    assert (answer.status, answer.error) == (504, "the deadline passed while the request was read")


def test_all_bodies_together_have_a_limit(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, max_held_size=len(BODY) - 1)
    answer = client.infer()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


def failing(error: Exception) -> Callable[..., Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


def test_a_queue_that_is_full(connect: Connect, ready: HeldRepository) -> None:
    ready.at_once = failing(Overloaded("too many wait", retry_after=2.5))
    answer = connect(ready).infer()
    assert (answer.status, answer.headers["retry-after"], answer.error) == (503, "3", "too many wait")


def test_a_deadline_that_has_passed(connect: Connect, repository: HeldRepository) -> None:
    client = connect(repository, timeout=1e-3)
    client.send("POST", INFER, BODY)
    request, future = repository.next()
    assert request.deadline is not None
    future.set_exception(TimedOut("too late"))
    answer = client.answer()
    assert (answer.status, answer.error) == (504, "too late")


def test_a_bug_of_ours_tells_clients_nothing(
    connect: Connect, ready: HeldRepository, caplog: pytest.LogCaptureFixture
) -> None:
    ready.at_once = failing(RuntimeError("secret"))
    with caplog.at_level(logging.INFO, "gossamer.serve"):
        answer = connect(ready).infer()
    assert (answer.status, answer.error) == (500, "internal error")
    (bug,) = [record for record in caplog.records if getattr(record, "event", "") == "bug"]
    assert bug.exc_info is not None
    assert "secret" in str(bug.exc_info[1])


def test_a_client_that_goes_away_is_not_answered(connect: Connect, repository: HeldRepository) -> None:
    client = connect(repository)
    client.send("POST", INFER, BODY)
    _, future = repository.next()
    cancelled = threading.Event()
    future.add_done_callback(lambda future: cancelled.set() if future.cancelled() else None)
    client.close()
    assert cancelled.wait(PATIENCE)


def test_a_client_that_goes_away_while_it_sends(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready)
    with connected(client.connection.port) as connection:
        connection.sendall(raw_request(BODY)[:-1])
    assert client.infer().json == ANSWER
    assert ready.asked.empty()


def test_a_token_is_wanted_for_all_but_health(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, tokens=("old", "new"))
    for path in ("/v2/health/live", "/v2/health/ready"):
        assert client("GET", path).status == 200
    for path in ("/v2", "/v2/models/m", "/metrics", "/docs", "/openapi.json", "/nothing"):
        for header in ({}, {"authorization": "Bearer wrong"}, {"authorization": "new"}, {"authorization": "Basic new"}):
            answer = client("GET", path, **header)
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert client.infer().status == 401
    for token in ("old", "new"):
        assert client.infer(authorization=f"Bearer {token}").json == ANSWER
        assert client("GET", "/v2", authorization=f"bearer {token}").status == 200


def test_the_repository_extension(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, repository_control=True)
    assert "model_repository" in client("GET", "/v2").json["extensions"]
    good = {"name": "m", "version": "1", "state": "READY", "reason": ""}
    bad = {"name": "bad", "version": "2", "state": "UNAVAILABLE", "reason": "no model"}
    assert client("POST", "/v2/repository/index").json == [good, bad]
    assert client("POST", "/v2/repository/index", '{"ready": true}').json == [good]
    assert client("POST", "/v2/repository/index", "[]").status == 400
    assert client("POST", "/v2/repository/index", " " * 100_000).status == 413
    assert client("POST", "/v2/repository/models/m/load").status == 200
    assert (
        client("POST", "/v2/repository/models/m/unload", '{"parameters": {"unload_dependents": false}}').status == 200
    )
    assert ready.calls == [("load", "m"), ("unload", "m")]
    assert client("POST", "/v2/repository/models/m/load", '{"parameters": {"config": "{}"}}').status == 400


def figures(client: Client) -> dict[str, float]:
    lines = client("GET", "/metrics").body.decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_metrics(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready)
    client.infer()
    client.infer("{")
    client("POST", "/v2/models/made-up/infer", BODY)
    client("POST", "/v2/models/made-up/infer", "{")
    found = figures(client)
    requests = {name: value for name, value in found.items() if name.startswith("gossamer_requests_total")}
    assert requests == {
        'gossamer_requests_total{model="m",protocol="http",status="OK",version="1"}': 1,
        'gossamer_requests_total{model="m",protocol="http",status="INVALID_ARGUMENT",version="1"}': 1,
        'gossamer_requests_total{model="",protocol="http",status="NOT_FOUND",version=""}': 1,
        'gossamer_requests_total{model="",protocol="http",status="INVALID_ARGUMENT",version=""}': 1,
    }
    assert found["gossamer_requests_in_flight"] == 0
    assert found['gossamer_request_seconds_count{model="m",version="1"}'] == 1
    assert found['gossamer_model_state{model="m",state="READY",version="1"}'] == 1
    assert found['gossamer_model_state{model="bad",state="READY",version="2"}'] == 0
    assert found['gossamer_queue_length{model="m",version="1"}'] == 0


def test_requests_in_flight_are_counted(connect: Connect, repository: HeldRepository) -> None:
    client = connect(repository)
    client.send("POST", INFER, BODY)
    request, future = repository.next()
    other = Client(client.connection.port)
    assert figures(other)["gossamer_requests_in_flight"] == 1
    future.set_result(doubled(request))
    assert client.answer().json == ANSWER
    assert figures(other)["gossamer_requests_in_flight"] == 0
    other.close()


def test_a_line_for_each_request(connect: Connect, ready: HeldRepository, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "gossamer.serve"):
        client = connect(ready)
        client.infer()
        client.infer("{")
        client.infer()  # the line of an answer is written after it
    told = [record.fields for record in caplog.records if getattr(record, "event", "") == "request"][:2]  # type: ignore[attr-defined]
    good, bad = told
    assert good.pop("ms") > 0
    assert good == {
        "model": "m",
        "version": "1",
        "protocol": "http",
        "status": 200,
        "id": "7",
    }
    assert bad.keys() == {"model", "version", "protocol", "status", "error", "ms"}
    assert (bad["status"], bad["error"].startswith("the request is not JSON")) == (400, True)


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_the_interface_is_described(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready)
    described = client("GET", "/openapi.json").json
    assert described["openapi"].startswith("3.")
    assert "/v2/models/{model}/infer" in described["paths"]
    assert "Inference-Header-Content-Length" in json.dumps(described["paths"]["/v2/models/{model}/infer"])
    known = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    assert references(described) <= known
    page = client("GET", "/docs").body.decode()
    assert all(path in page for path in described["paths"])
    assert "http:" not in page
    assert "https:" not in page  # nothing is loaded from elsewhere


def test_requests_sent_ahead_are_answered_in_their_order(connect: Connect, ready: HeldRepository) -> None:
    port = connect(ready).connection.port
    with connected(port) as connection:
        bodies = [json.dumps({"id": str(number), "inputs": [X]}).encode() for number in range(5)]
        connection.sendall(
            b"".join(map(raw_request, bodies[:-1])) + raw_request(bodies[-1], INFER, "connection: close")
        )
        answers = read_all(connection)
    assert [answers.index(b'"id":"%d"' % number) for number in range(5)] == sorted(
        answers.index(b'"id":"%d"' % number) for number in range(5)
    )


def test_a_reset_connection_is_no_matter(connect: Connect, repository: HeldRepository) -> None:
    import socket

    client = connect(repository)
    connection = connected(client.connection.port)
    connection.sendall(raw_request(BODY))
    _, future = repository.next()
    gone: Future[None] = Future()
    future.add_done_callback(lambda _: gone.set_result(None))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    gone.result(PATIENCE)
    assert future.cancelled()
    repository.at_once = doubled
    assert client.infer().json == ANSWER


def test_a_connection_that_is_gone_when_the_answer_is_there(
    ready: HeldRepository, caplog: pytest.LogCaptureFixture
) -> None:
    """uvloop raises for a moment, until uvicorn knows."""
    from gossamer.serve.http import create_app
    from gossamer.serve.metrics import Metrics
    from gossamer.serve.settings import Settings

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": BODY, "more_body": False}

    async def send(message: Any) -> None:
        raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")

    scope = {"type": "http", "method": "POST", "path": INFER, "raw_path": INFER.encode(), "headers": []}
    with caplog.at_level(logging.INFO, "gossamer.serve"):
        asyncio.run(create_app(ready, Settings(), Metrics())(scope, receive, send))
    assert [getattr(record, "event", "") for record in caplog.records] == ["request"]
    assert caplog.records[0].fields["status"] == 499
