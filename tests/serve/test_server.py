"""A server as a whole: ports, encryption, limits on connections, and its end."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.serve.client import ANSWER, BODY, INFER, Client, connected, raw_request, read_all
from tests.serve.held import PATIENCE, HeldRepository, doubled

if TYPE_CHECKING:
    from gossamer.serve.server import Server

pytestmark = pytest.mark.engines

TLS = Path(__file__).parent / "tls"
CERTIFICATE, KEY = str(TLS / "certificate.pem"), str(TLS / "key.pem")

Serve = Callable[..., "Server"]
Connect = Callable[..., Client]


def refused(connection: socket.socket) -> tuple[int, str]:
    """The status and the message with which a connection ends."""
    head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert b"\r\nconnection: close" in head.lower()
    return int(head.split()[1]), json.loads(body)["error"]


def test_a_port_that_somebody_has() -> None:
    from gossamer.serve.server import Server, ServerError
    from gossamer.serve.settings import Settings

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for ports in ({"http_port": port, "grpc_port": None}, {"http_port": None, "grpc_port": port}):
            with pytest.raises(ServerError, match=f"cannot listen on 127.0.0.1 port {port}: .*in use"):
                Server(Settings(**ports))


def test_a_host_that_is_not_here() -> None:
    from gossamer.serve.server import Server, ServerError
    from gossamer.serve.settings import Settings

    with pytest.raises(ServerError, match=r"cannot listen on 192\.0\.2\.1 port 0"):
        Server(Settings(host="192.0.2.1", http_port=0, grpc_port=None))


def test_certificates_that_are_none(tmp_path: Path) -> None:
    from gossamer.serve.server import Server, ServerError
    from gossamer.serve.settings import Settings

    (tmp_path / "empty.pem").touch()
    for certificate, key, said in (
        (CERTIFICATE, None, "both"),
        (CERTIFICATE, str(tmp_path / "none.pem"), r"none\.pem: No such file"),
        (CERTIFICATE, str(tmp_path / "empty.pem"), "as PEM"),
        (KEY, CERTIFICATE, "as PEM"),
    ):
        with pytest.raises(ServerError, match=said):
            Server(Settings(http_port=0, grpc_port=None, tls_certificate=certificate, tls_key=key))


def test_encryption(serve: Serve, ready: HeldRepository) -> None:
    server = serve(ready, tls_certificate=CERTIFICATE, tls_key=KEY)
    assert server.http_port is not None
    client = Client(server.http_port, ssl.create_default_context(cafile=CERTIFICATE))
    assert client.infer().json == ANSWER
    client.close()
    plain = Client(server.http_port)
    with pytest.raises(OSError):  # noqa: PT011 (what it is differs from system to system)
        plain.infer()
    plain.close()


def test_a_client_that_never_ends_its_headers(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, head_timeout=0.0)
    with connected(client.connection.port) as silent, connected(client.connection.port) as slow:
        slow.sendall(raw_request(BODY)[:20])
        for connection in (silent, slow):
            assert refused(connection) == (408, "the headers of the request did not come in time")
    assert client.infer().json == ANSWER


def test_a_client_that_never_ends_its_body(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, body_timeout=0.0, least_rate=1e9)
    with connected(client.connection.port) as slow:
        slow.sendall(raw_request(BODY)[:-1])
        assert refused(slow) == (408, "the body of the request did not come in time")
    assert ready.asked.empty()


def test_headers_have_a_limit(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, max_head_size=10_000)
    with connected(client.connection.port) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nlong: " + b"x" * 10_000)
        assert refused(connection)[0] == 431


def test_connections_have_a_limit(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready, max_connections=1)
    assert client.infer().json == ANSWER
    with connected(client.connection.port) as connection:
        assert refused(connection) == (503, "this server takes 1 connections")
    assert client.infer().json == ANSWER


@pytest.mark.skipif(os.name == "nt", reason="there the event loop accepts by itself")
def test_connections_that_come_together_are_accepted_together(
    connect: Connect, ready: HeldRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one in each turn of the event loop, the last would wait for as many turns as there are others."""
    from gossamer.serve.server import _Http

    turns = [0]
    accept = _Http._accept

    def counted(self: _Http, listening: socket.socket) -> None:
        turns[0] += 1
        accept(self, listening)

    monkeypatch.setattr(_Http, "_accept", counted)
    client = connect(ready)
    assert client.infer().json == ANSWER
    goes_on, is_held = threading.Event(), threading.Event()

    def hold(request: Any) -> Any:
        is_held.set()
        assert goes_on.wait(PATIENCE)
        return doubled(request)

    ready.at_once = hold  # the event loop
    client.send("POST", INFER, BODY)
    assert is_held.wait(PATIENCE)
    before = turns[0]
    others = [connected(client.connection.port) for _ in range(50)]
    ready.at_once = doubled
    goes_on.set()
    for other in others:
        other.sendall(raw_request(BODY, INFER, "connection: close"))
    for other in others:
        assert read_all(other).startswith(b"HTTP/1.1 200 ")
        other.close()
    assert turns[0] - before < 5
    assert client.answer().json == ANSWER


@pytest.mark.skipif(os.name == "nt", reason="there the event loop accepts by itself")
def test_there_are_no_descriptors_for_a_while(
    connect: Connect, ready: HeldRepository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from gossamer.serve.server import _Http

    accept, tries = _Http._accept, [0]

    class Exhausted:
        def __init__(self, real: socket.socket) -> None:
            self.real, self.fileno = real, real.fileno

        def accept(self) -> Any:
            tries[0] += 1
            if tries[0] == 1:
                raise OSError(errno.EMFILE, "Too many open files")
            return self.real.accept()

    def exhausted(self: _Http, listening: Any) -> None:
        accept(self, listening if isinstance(listening, Exhausted) else Exhausted(listening))  # type: ignore[arg-type]

    monkeypatch.setattr(_Http, "_accept", exhausted)
    monkeypatch.setattr("gossamer.serve.server.PAUSE", 0.01)
    assert connect(ready).infer().json == ANSWER
    assert tries[0] > 1
    (fault,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert fault.getMessage() == 'no connection can be accepted reason="Too many open files"'


def test_who_says_nothing_of_tls_is_cut_off(serve: Serve, ready: HeldRepository) -> None:
    server = serve(ready, tls_certificate=CERTIFICATE, tls_key=KEY, head_timeout=0.1)
    with connected(server.http_port or 0) as silent:
        assert read_all(silent) == b""


def test_a_client_that_does_not_read_its_answer(connect: Connect, repository: HeldRepository) -> None:
    """It is given up; an answer of which some is read now and then would not be."""
    client = connect(repository, write_timeout=0.0)
    with connected(client.connection.port) as slow:
        slow.sendall(raw_request(BODY))
        request, future = repository.next()
        response = doubled(request)
        response.id = "x" * (32 << 20)
        future.set_result(response)
        while b"gossamer_http_connections 1" not in client("GET", "/metrics").body:
            pass  # the other one is this
        assert len(read_all(slow)) < 32 << 20


def test_a_body_that_goes_on_behind_its_answer(connect: Connect, ready: HeldRepository) -> None:
    """Who is refused may send on for a while, and reads the answer in peace."""
    client = connect(ready, max_body_size=1000)
    with connected(client.connection.port) as connection:
        connection.sendall(raw_request(b" " * 100_000))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 ")


def test_what_is_not_http(connect: Connect, ready: HeldRepository) -> None:
    client = connect(ready)
    with connected(client.connection.port) as connection:
        connection.sendall(b"\x16\x03\x01 nothing of that kind\r\n\r\n")
        assert refused(connection)[0] == 400
    assert client.infer().json == ANSWER


@contextlib.contextmanager
def draining(repository: HeldRepository, **settings: Any) -> Iterator[tuple[Any, Client, Callable[[], None]]]:
    """A server with a request, told to end: the server, the client that waits, and what waits for the end."""
    from gossamer.serve.server import Server
    from gossamer.serve.settings import Settings

    server = Server(Settings(http_port=0, grpc_port=None, **settings))
    running = server.running(repository)
    running.__enter__()
    client = Client(server.http_port or 0)
    client.send("POST", INFER, BODY)
    pending = repository.next()
    ends = threading.Thread(target=running.__exit__, args=(None, None, None))
    ends.start()
    try:
        yield pending, client, ends.join
    finally:
        ends.join()
        client.close()


def test_accepted_requests_are_answered_at_the_end(repository: HeldRepository) -> None:
    with draining(repository) as ((request, future), client, wait):
        port = client.connection.port
        while True:  # others are sent away, and then there is nobody whom they could ask
            other = Client(port)
            try:
                if is_ready(other):
                    continue
                refusal = other.infer()
                assert (refusal.status, refusal.headers["connection"]) == (503, "close")
            except OSError:
                break
            finally:
                other.close()
        future.set_result(doubled(request))
        answer = client.answer()
        assert (answer.status, answer.json, answer.headers["connection"]) == (200, ANSWER, "close")
        wait()
    assert repository.calls == [("close", "")]


def test_a_request_that_does_not_end_is_given_up(repository: HeldRepository) -> None:
    with draining(repository, drain_timeout=0.2) as ((_, future), client, wait):
        wait()
        assert future.cancelled()
        with pytest.raises(OSError):  # noqa: PT011 (closed or reset)
            client.answer()


@contextlib.contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The command in a process of its own, and what it says of itself."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    line = [sys.executable, "-m", "gossamer", "serve", *arguments, "--http-port=0", "--grpc-port=none", "--json"]
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


DIGITS = str(ROOT / "examples" / "digits.tflite")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process could handle")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_command(number: signal.Signals, code: int) -> None:
    with command(DIGITS) as (process, told):
        assert told["models"] == [{"name": "digits", "version": "1", "state": "READY", "reason": ""}]
        client = Client(int(told["http"].rpartition(":")[2]))
        assert client("GET", "/v2/models/digits").json["inputs"][0]["datatype"] == "FP32"
        client.close()
        process.send_signal(number)
        _, logged = process.communicate(timeout=PATIENCE)
        assert process.returncode == code
        events = [json.loads(line)["event"] for line in logged.splitlines()]
        assert events[-2:] == ["draining", "stopped"]
        assert events.index("model ready") < events.index("started")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process could handle")
def test_a_signal_ends_what_still_loads() -> None:
    """By a handler: without one, the first process of a container goes on."""
    code = """
        import runpy, time
        from gossamer.serve.repository import Repository
        def start(self):
            print("loading", flush=True)
            time.sleep(600)
        Repository.start = start
        runpy.run_module("gossamer", run_name="__main__")
    """
    line = [sys.executable, "-c", textwrap.dedent(code), "serve", DIGITS, "--http-port=0", "--grpc-port=none"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.terminate()
        try:
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process could handle")
def test_a_second_signal_ends_it_at_once() -> None:
    with command(DIGITS, "--drain-timeout=1e6") as (process, told):
        port = int(told["http"].rpartition(":")[2])
        connection, other = connected(port), Client(port)
        connection.sendall(raw_request(BODY, "/v2/models/digits/infer")[:-1])  # a request that does not end
        assert is_ready(other)  # so the other one has been seen
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(OSError):
            while is_ready(other):
                pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
        connection.close()
        other.close()


def is_ready(client: Client) -> bool:
    """Whether the server does not end yet. Raises `OSError` if there is none any more."""
    return client("GET", "/v2/health/ready").status == 200
