"""What asks a server in tests."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.serve.held import PATIENCE

INFER = "/v2/models/m/infer"
X = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2.5]}
BODY = json.dumps({"id": "7", "inputs": [X]}).encode()
ANSWER = {
    "model_name": "m",
    "model_version": "1",
    "id": "7",
    "outputs": [{"name": "y", "datatype": "FP32", "shape": [2], "data": [2.0, 5.0]}],
}


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of an error, which is all that the body has."""
        assert self.headers["content-type"] == "application/json"
        ((key, message),) = self.json.items()
        assert key == "error"
        return str(message)


class Client:
    """A connection to a server."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        if tls is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        else:
            self.connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=tls)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, body, named, encode_chunked="transfer-encoding" in named)

    def answer(self) -> Answer:
        response = self.connection.getresponse()
        body = response.read()
        return Answer(response.status, {key.lower(): value for key, value in response.getheaders()}, body)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        self.send(method, path, body, **headers)
        return self.answer()

    def infer(self, body: Any = BODY, **headers: str) -> Answer:
        return self("POST", INFER, body, **headers)

    def close(self) -> None:
        self.connection.close()


def raw_request(body: bytes, path: str = INFER, *headers: str) -> bytes:
    """A request as it is sent."""
    lines = [f"POST {path} HTTP/1.1", "host: here", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server closes; a reset ends it too."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)
