"""Hostile clients, and an end under load: whatever others do, good clients have their answers."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import numpy as np
import pytest

from tests.fuzz.service import MODEL, examples
from tests.serve.hostile import FOUND, GRPC, HTTP, PATIENCE, Attacker, Example, Good, attack, responses, slow
from tests.serve.process import ServerProcess, Usage, slope

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def digits() -> list[Example]:
    return examples()


@pytest.fixture(scope="module")
def attacker(digits: list[Example]) -> Iterator[Attacker]:
    """A server under `Good` clients, which has to be there and in order when all attacks are done."""
    import grpc

    with ServerProcess(MODEL, "--no-log-requests", "--max-body", "1M") as server:
        channel = grpc.insecure_channel("{}:{}".format(*server.grpc))
        with closing(channel), Good(server.http, digits, pause=0.002) as good:
            yield Attacker(server.http, server.grpc, digits, channel=channel)
        assert server.process.poll() is None
        assert server.stop() == 0
        assert [event for event in server.log if event["event"] == "bug" or "traceback" in event] == []
        assert "Traceback" not in server.said
    assert good.wrong == []
    assert good.right == good.asked > 0


@pytest.mark.parametrize("name", [*HTTP, *GRPC])
def test_an_attack(attacker: Attacker, name: str) -> None:
    """Each is refused, or the connection is closed; what is right in spite of the damage is answered."""
    kind = {name: {**HTTP, **GRPC}[name]}
    with ThreadPoolExecutor(4) as pool:
        happened = list(pool.map(lambda seed: attack(attacker, seed, kind), range(8)))
    assert [what for what in happened if what[1].startswith(FOUND)] == []


def test_slow_clients(digits: list[Example]) -> None:
    """They are sent away, whatever they are slow with."""
    from gossamer.serve.repository import Repository
    from gossamer.serve.server import Server
    from gossamer.serve.settings import Settings

    repository = Repository([MODEL], watch=False)
    repository.start()
    limits = {"head_timeout": 0.5, "body_timeout": 0.5, "least_rate": 1e6}
    server = Server(Settings(http_port=0, grpc_port=None, log_requests=False, **limits))
    with closing(repository), server.running(repository), ThreadPoolExecutor(8) as pool:
        assert server.http_port is not None
        address = "127.0.0.1", server.http_port
        attacker = Attacker(address, None, digits)
        with Good(address, digits, pause=0.01) as good:
            happened = [pool.submit(attack, attacker, seed, {"slow": slow}) for seed in range(8)]
            assert Counter(each.result() for each in happened) == {("slow", "408"): 8}
    assert good.wrong == []
    assert good.right > 0


def test_answers_are_taken_apart() -> None:
    one = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"
    chunked = b"HTTP/1.1 400 Bad\r\ntransfer-encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n"
    assert responses(one + b"HTTP/1.1 100 Continue\r\n\r\n" + chunked) == [(200, b"ab"), (400, b"1\r\nc\r\n")]
    assert responses(one[:-1]) == []


def test_growth_is_a_slope() -> None:
    samples = [Usage(36.0 * n, 100.0 + n, 50.0, 3, 9 + n % 2) for n in range(100)]
    assert slope(samples, "rss") == pytest.approx(100)
    assert slope(samples, "threads") == pytest.approx(0)


# -- the end


def open_rows(folder: Path) -> tuple[Path, list[Example]]:
    """A model whose rows may run together, and requests of one row."""
    from gossamer.convert.export import to_model
    from gossamer.convert.graph import Graph, Signature, Size
    from gossamer.model.writer import write_model
    from gossamer.schema import TensorType

    rng = np.random.default_rng(1)
    weights = rng.normal(size=(4, 16)).astype(np.float32)
    graph = Graph()
    x = graph.input("x", TensorType.FLOAT32, (Size((2, 3)), 16))
    y = graph.add("FULLY_CONNECTED", x, weights)
    graph.outputs = [y]
    path = folder / "rows.tflite"
    path.write_bytes(write_model(to_model([Signature("serving_default", graph, {"x": x}, {"y": y})])))
    rows = rng.normal(size=(32, 1, 16)).astype(np.float32)
    return path, [Example("rows", "x", row, row @ weights.T) for row in rows]


ARRIVED = "gossamer_requests_in_flight", "gossamer_requests_total"
"""Requests that are being answered, and those that have been: on a machine that is slow enough."""


def metric(address: tuple[str, int], name: str) -> float:
    """The sum of what the server says under a name."""
    opener = build_opener(ProxyHandler({}))
    with opener.open("http://{}:{}/metrics".format(*address), timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process could handle")
def test_accepted_requests_survive_sigterm(tmp_path: Path) -> None:
    """Requests that wait for a batch, and one whose body is on its way, when the signal comes."""
    path, rows = open_rows(tmp_path)
    options = ["--max-batch-size", "64", "--batch-delay", "1500"]
    with ServerProcess(path, *options) as server:
        connections = [http.client.HTTPConnection(*server.http, timeout=PATIENCE) for _ in rows]
        slowly, *others = connections
        for connection, row in zip(others, rows[1:], strict=True):
            connection.request("POST", row.path, *parts(row))
        body, headers = parts(rows[0])
        slowly.putrequest("POST", rows[0].path)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            slowly.putheader(key, value)
        slowly.endheaders(body[:10])
        until = time.monotonic() + PATIENCE
        while sum(metric(server.http, name) for name in ARRIVED) < len(rows):
            assert time.monotonic() < until
        server.process.send_signal(signal.SIGTERM)
        while not any(event["event"] == "draining" for event in server.log):
            assert time.monotonic() < until
        slowly.send(body[10:])
        for connection, row in zip(connections, rows, strict=True):
            with closing(connection):
                answer = connection.getresponse()
                assert answer.status == 200
                assert answer.headers["connection"] == "close"
                assert row.is_answered_by(answer.read())
        assert server.wait() == 0
        assert [event["lost"] for event in server.log if event["event"] == "stopped"] == [0]


def parts(row: Example) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a request with a binary tensor."""
    head = json.dumps(row.fields(data=False)).encode()
    return head + row.x.tobytes(), {"Inference-Header-Content-Length": str(len(head))}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process could handle")
def test_sigterm_under_load(digits: list[Example]) -> None:
    """Who asks without end has a right answer, or is told to go, until nobody listens. Nothing is cut off."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    enough, lock = threading.Barrier(17), threading.Lock()

    def ask(number: int) -> None:
        rng, asked = random.Random(number), 0
        while True:
            connection = http.client.HTTPConnection(*server.http, timeout=PATIENCE)
            with closing(connection):
                while True:
                    row = rng.choice(digits)
                    try:
                        connection.request("POST", row.path, *parts(row))
                        answer = connection.getresponse()
                    except ConnectionRefusedError:
                        return
                    except OSError:  # closed before it was read: not a byte of an answer
                        what = "closed"
                    else:
                        body = answer.read()
                        what = str(answer.status)
                        if not (row.is_answered_by(body) if what == "200" else what == "503"):
                            wrong.append(f"{answer.status}: {body[:200]!r}")
                    with lock:
                        outcomes[what] += 1
                    asked += 1
                    if asked == 20:
                        enough.wait(PATIENCE)
                    if what == "closed" or answer.will_close:
                        break

    with ServerProcess(MODEL, "--no-log-requests") as server:
        with ThreadPoolExecutor(16) as pool:
            clients = [pool.submit(ask, number) for number in range(16)]
            enough.wait(PATIENCE)
            assert outcomes["200"] >= 320
            assert outcomes["closed"] == 0
            server.process.send_signal(signal.SIGTERM)
            for client in clients:
                client.result()
        assert server.wait() == 0
        assert [event["lost"] for event in server.log if event["event"] == "stopped"] == [0]
    assert wrong == []
