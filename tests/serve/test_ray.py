"""Ray Serve with our application in its replicas."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.fuzz.service import MODEL, examples
from tests.serve.held import PATIENCE

# Ray warns of itself.
pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    """Where a deployment answers."""
    import ray
    from ray import serve

    from gossamer.serve.ray import deployment

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", runtime_env={"env_vars": path})
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port}, logging_config={"log_level": "ERROR"})
        serve.run(deployment([MODEL], num_replicas=1), route_prefix="/")
        yield "127.0.0.1", port
    finally:
        serve.shutdown()
        ray.shutdown()


def ask(address: tuple[str, int], method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    """Status and body of an answer."""
    with closing(HTTPConnection(*address, timeout=PATIENCE)) as connection:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_a_deployment_answers(address: tuple[str, int]) -> None:
    """Requests as JSON and with raw tensors; what is wrong is refused as always."""
    assert ask(address, "GET", "/v2/health/ready") == (200, b'{"ready":true}')
    for row in examples():
        head = json.dumps(row.fields(data=False)).encode()
        length = {"inference_header_content_length": str(len(head))}
        status, body = ask(address, "POST", row.path, head + row.x.tobytes(), **length)
        assert status == 200
        assert row.is_answered_by(body)
    status, body = ask(address, "POST", row.path, json.dumps(row.fields(data=True)).encode())
    answer: dict[str, Any] = json.loads(body)
    assert (status, answer["id"], answer["outputs"][0]["data"]) == (200, "1", row.y.ravel().tolist())
    status, body = ask(address, "POST", row.path, b"{}")
    assert (status, list(json.loads(body))) == (400, ["error"])
    status, body = ask(address, "GET", "/v2/models/letters")
    assert (status, list(json.loads(body))) == (404, ["error"])


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    from gossamer.serve.ray import deployment

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"python -m pip install 'gossamer\[serve\]' 'ray\[serve\]'"):
        deployment([MODEL])
