"""Clients that no server would wish for: damaged requests, damaged connections, and who judges the answers.

Each attack is a function of this file under `@http` or `@grpc`; the same seed sends the same bytes. Whatever is sent,
an answer that says what is wrong with it (4xx, or 503 and 504) or the end of the connection is right; what is not is a
`Finding`. Good clients (`Good`) ask at the same time, and each of their answers has to be there and right.

The HTTP, HTTP/2 and protobuf in it are written by hand: libraries refuse to send what is wrong.
"""

from __future__ import annotations

import gzip
import json
import random
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any

import numpy as np

PATIENCE = 60.0
"""Seconds after which a server hangs that has neither answered nor closed."""

REFUSALS = {*range(400, 500), 501, 503, 504, 505}
"""Statuses that say what is wrong. 500 is none: it says that the server did not see it coming."""

GRPC_REFUSALS = {
    *("INVALID_ARGUMENT", "NOT_FOUND", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "OUT_OF_RANGE"),
    *("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNAUTHENTICATED", "PERMISSION_DENIED"),
}


@dataclass(frozen=True)
class Example:
    """A right request for a model with one float32 input and one float32 output, in every form, and its answer."""

    model: str
    input: str
    x: np.ndarray[Any, Any]
    y: np.ndarray[Any, Any]

    @property
    def path(self) -> str:
        return f"/v2/models/{self.model}/infer"

    def fields(self, data: bool) -> dict[str, Any]:
        """The request as JSON has it: with its data, or with those behind it."""
        tensor: dict[str, Any] = {"name": self.input, "shape": list(self.x.shape), "datatype": "FP32"}
        if data:
            return {"id": "1", "inputs": [{**tensor, "data": self.x.ravel().tolist()}]}
        tensor["parameters"] = {"binary_data_size": self.x.nbytes}
        return {"id": "1", "inputs": [tensor], "parameters": {"binary_data_output": True}}

    def is_answered_by(self, body: bytes) -> bool:
        """Whether a binary answer is the right one, but for the last bits: rows that run together may be summed in
        another order."""
        got = np.frombuffer(body[-self.y.nbytes :], np.float32)
        return got.size == self.y.size and np.allclose(got, self.y.ravel(), rtol=1e-4, atol=1e-6)

    def as_json(self) -> bytes:
        """An HTTP request whose tensor is JSON."""
        return request(self.path, json.dumps(self.fields(data=True)).encode())

    def as_binary(self) -> bytes:
        """An HTTP request with a binary tensor, which asks for a binary answer."""
        head = json.dumps(self.fields(data=False)).encode()
        return request(self.path, head + self.x.tobytes(), {"Inference-Header-Content-Length": len(head)})

    def as_message(self) -> bytes:
        """A ``ModelInferRequest``."""
        shape = b"".join(map(varint, self.x.shape))
        tensor = chunk(1, self.input.encode()) + chunk(2, b"FP32") + chunk(3, shape)
        return chunk(1, self.model.encode()) + chunk(3, b"1") + chunk(5, tensor) + chunk(7, self.x.tobytes())


def request(path: str, body: bytes = b"", headers: dict[str, Any] | None = None, method: str = "POST") -> bytes:
    """The bytes of an HTTP request; a header that is ``None`` is left out."""
    fields = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": len(body), **(headers or {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items() if value is not None)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def varint(number: int) -> bytes:
    """A base-128 number of protobuf."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def chunk(number: int, content: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    return varint(number << 3 | 2) + varint(len(content)) + content


class Finding(AssertionError):
    """Something that a server must not do."""


class Talk:
    """A connection of an attack. What it sends may be refused at any time: that is not its failure."""

    def __init__(self, address: tuple[str, int], patience: float = PATIENCE) -> None:
        self.socket = socket.create_connection(address, timeout=patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.patience = patience
        self.received = b""
        self.closed = False

    def send(self, *parts: bytes) -> None:
        """Send parts, each on its own, if the other side still wants them."""
        try:
            for part in parts:
                self.socket.sendall(part)
        except TimeoutError:
            raise Finding("hang: the server reads no more and does not close") from None
        except OSError:
            self.closed = True

    def half_close(self) -> None:
        """Say that nothing more is sent."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.closed = True

    def reset(self) -> None:
        """End without a word: the other side gets ECONNRESET."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
        self.closed = True

    def read(self, enough: Callable[[bytes], bool], patience: float | None = None) -> bool:
        """Read until there is enough, or the end. ``False`` if neither comes within ``patience``; without one, that is
        a hang."""
        self.socket.settimeout(patience or self.patience)
        try:
            while not enough(self.received):
                part = self.socket.recv(1 << 16)
                if not part:
                    return True
                self.received += part
        except TimeoutError:
            if patience is None:
                raise Finding("hang: neither an answer nor the end of the connection") from None
            return False
        except OSError:  # reset, which is one way to close
            self.closed = True
        return True

    def answers(self, count: int = 1) -> list[tuple[int, bytes]]:
        """Wait for so many answers, or the end of the connection, and read them."""
        self.read(lambda data: len(responses(data)) >= count)
        return self.judged()

    def ended(self) -> list[tuple[int, bytes]]:
        """Give the server a moment to answer, say that no more is sent, and read to the end of the connection."""
        self.read(lambda data: bool(responses(data)), patience=0.05)
        self.half_close()
        self.read(lambda data: False)
        return self.judged()

    def judged(self) -> list[tuple[int, bytes]]:
        """The answers. Raises `Finding`."""
        found = responses(self.received)
        for status, body in found:
            if b"Traceback" in body or b'File "' in body:
                raise Finding(f"a traceback is sent: {body[-300:]!r}")
            if not 200 <= status < 300 and status not in REFUSALS:
                raise Finding(f"status {status}: {body[:300]!r}")
        if found and found[-1][0] >= 400 and not found[-1][1]:
            raise Finding(f"status {found[-1][0]} without a word")
        return found


def responses(data: bytes) -> list[tuple[int, bytes]]:
    """Status and body of each HTTP response that is there as a whole."""
    found = []
    while True:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            break
        status, *lines = head.split(b"\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        code = int(status.split()[1]) if status.startswith(b"HTTP/1.") else 0
        if not code:
            raise Finding(f"this is not HTTP: {data[:100]!r}")
        if code < 200:  # 100 Continue
            data = rest
            continue
        if fields.get(b"transfer-encoding") == b"chunked":
            body, end, rest = rest.partition(b"0\r\n\r\n")
            if not end:
                break
        else:
            size = int(fields.get(b"content-length", len(rest)))
            if len(rest) < size:
                break
            body, rest = rest[:size], rest[size:]
        found.append((code, body))
        data = rest
    return found


@dataclass
class Attacker:
    """Where attacks go, and what they start from."""

    http: tuple[str, int]
    grpc: tuple[str, int] | None
    examples: Sequence[Example]
    patience: float = PATIENCE
    channel: Any = None
    """A `grpc.Channel`, for those that damage messages only."""

    @contextmanager
    def talk(self, grpc: bool = False) -> Iterator[Talk]:
        """A connection, closed at the end."""
        address = self.grpc if grpc else self.http
        assert address is not None
        talk = Talk(address, self.patience)
        with closing(talk.socket):
            yield talk


Attack = Callable[[Attacker, random.Random], str]
HTTP: dict[str, Attack] = {}
GRPC: dict[str, Attack] = {}


def http(attack: Attack) -> Attack:
    """An attack on the HTTP port. It answers with what happened, in a word."""
    HTTP[attack.__name__] = attack
    return attack


def grpc(attack: Attack) -> Attack:
    """An attack on the gRPC port."""
    GRPC[attack.__name__] = attack
    return attack


def outcome(answers: Sequence[tuple[int, bytes]]) -> str:
    """The last status, or that there is none."""
    return str(answers[-1][0]) if answers else "closed"


# -- damage


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A few bytes flipped, left out, put in or doubled."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if not out:
            break
        at, size = rng.randrange(len(out)), rng.choice((1, 1, 2, 4, 100))
        kind = rng.randrange(5)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at : at + size] = rng.randbytes(size)
        elif kind == 2:
            del out[at : at + size]
        elif kind == 3:
            out[at:at] = out[at : at + size]
        else:
            out[at:at] = rng.choice((b"\0", b"\r\n", b"\r\n\r\n", b"\xff" * 9, b"%s%n", b"{", b'"', b"9" * 30))
    return bytes(out)


FRAGMENTS = (
    *("null", "true", "0", "-1", "1.5", "NaN", "-Infinity", "1e999", "9" * 5000, "18446744073709551616", "2147483648"),
    *('""', '"FP32"', '"FP16"', '"BYTES"', '"INT64"', '"BOOL"', '"\\ud800"', '"\\u0000"', '"' + "x" * 10000 + '"'),
    *(
        "[]",
        "{}",
        "[[]]",
        "[null]",
        "[-1]",
        "[1e300]",
        "[0, 0]",
        "[4611686018427387904, 4]",
        "[2147483647, 2147483647]",
    ),
    *("[" * 100000, '{"a":' * 50000, "[" + "1," * 300 + "1]", '{"binary_data_size": -1}', '{"binary_data_size": 1e9}'),
    *('{"binary_data_size": 99999999999999999999}', '[{"name": "x"}]', "[1, [2, [3]]]", "\xff", "1 2", "'"),
)
"""JSON, or nearly, for where something else is expected."""


def damaged_fields(fields: dict[str, Any], rng: random.Random) -> str:
    """JSON with a value of it, a member or an element replaced, left out or doubled."""
    fields = json.loads(json.dumps(fields))
    marks = []
    for _ in range(rng.choice((1, 1, 2))):
        places: list[tuple[Any, Any]] = []
        stack: list[Any] = [fields]
        while stack:
            here = stack.pop()
            keys = list(here) if isinstance(here, dict) else list(range(min(len(here), 4)))
            for key in keys:
                places.append((here, key))
                if isinstance(here[key], dict | list):
                    stack.append(here[key])
        if not places:
            break
        here, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind == 0:
            del here[key]
        elif kind == 1 and isinstance(here, list):
            here.append(here[key])
        elif kind == 1:
            here[str(key).upper()] = here.pop(key)
        else:
            mark = f"@{len(marks)}@"
            marks.append(rng.choice(FRAGMENTS))
            here[key] = mark
    text = json.dumps(fields)
    for number, fragment in enumerate(marks):
        text = text.replace(f'"@{number}@"', fragment)
    return text


# -- HTTP: bodies


@http
def json_values(attacker: Attacker, rng: random.Random) -> str:
    """JSON in good order with wrong values."""
    example = rng.choice(attacker.examples)
    body = damaged_fields(example.fields(data=True), rng).encode("latin-1", "replace")
    with attacker.talk() as talk:
        talk.send(request(example.path, body))
        return outcome(talk.answers())


@http
def json_bytes(attacker: Attacker, rng: random.Random) -> str:
    """JSON that is none."""
    example = rng.choice(attacker.examples)
    body = damaged(json.dumps(example.fields(data=True)).encode(), rng)
    with attacker.talk() as talk:
        talk.send(request(example.path, body[: rng.choice((None, None, rng.randrange(len(body))))]))
        return outcome(talk.answers())


@http
def binary_tensors(attacker: Attacker, rng: random.Random) -> str:
    """Binary tensors that are not what is said of them."""
    example = rng.choice(attacker.examples)
    head = json.dumps(example.fields(data=False)).encode()
    data = example.x.tobytes()
    if rng.random() < 0.6:
        head = damaged_fields(example.fields(data=False), rng).encode("latin-1", "replace")
    if rng.random() < 0.6:
        data = rng.choice((b"", data[:-1], data + b"\0", data * 2, damaged(data, rng), rng.randbytes(len(data))))
    with attacker.talk() as talk:
        talk.send(request(example.path, head + data, {"Inference-Header-Content-Length": len(head)}))
        return outcome(talk.answers())


@http
def header_lengths(attacker: Attacker, rng: random.Random) -> str:
    """A header of the wrong length, or no length at all."""
    example = rng.choice(attacker.examples)
    head = json.dumps(example.fields(data=False)).encode()
    size = len(head) + example.x.nbytes
    wrong = (
        -1,
        0,
        1,
        len(head) - 1,
        len(head) + 1,
        size,
        size + 1,
        10**30,
        "",
        "x",
        "0x10",
        "1e3",
        " 7",
        "\u0667",
        None,
    )
    length = rng.choice(wrong)
    sent = None if length is None else str(length).encode().decode("latin-1")
    with attacker.talk() as talk:
        talk.send(request(example.path, head + example.x.tobytes(), {"Inference-Header-Content-Length": sent}))
        return outcome(talk.answers())


@http
def encodings(attacker: Attacker, rng: random.Random) -> str:
    """Compressed bodies: damaged, of another kind than is said, and bombs."""
    example = rng.choice(attacker.examples)
    plain = json.dumps(example.fields(data=True)).encode()
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    bodies = {
        "gzip": rng.choice((gzip.compress(plain), damaged(gzip.compress(plain), rng), plain, b"", gzip.compress(b""))),
        "deflate": rng.choice((zlib.compress(plain), damaged(zlib.compress(plain), rng), plain)),
        "br": plain,
        "identity, gzip": gzip.compress(plain),
        "gzip, gzip": gzip.compress(gzip.compress(plain)),
        "\x01": plain,
    }
    kind = rng.choice(list(bodies))
    body = bodies[kind]
    if rng.random() < 0.05:
        kind, body = "gzip", b"".join(bomb.compress(bytes(1 << 20)) for _ in range(200)) + bomb.flush()
    with attacker.talk() as talk:
        talk.send(request(example.path, body, {"Content-Encoding": kind}))
        return outcome(talk.answers())


@http
def oversized(attacker: Attacker, rng: random.Random) -> str:
    """A body that is said to be larger than anybody takes, or is."""
    example = rng.choice(attacker.examples)
    size = rng.choice((1 << 28, 1 << 31, 1 << 40, 1 << 70))
    with attacker.talk() as talk:
        if rng.random() < 0.1:
            sizes = {"Transfer-Encoding": "chunked", "Content-Length": None}
            part = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
            talk.send(request(example.path, headers=sizes))
            for _ in range(96):
                talk.send(part)
                if talk.closed:
                    break
            talk.send(b"0\r\n\r\n")
        else:
            talk.send(request(example.path, headers={"Content-Length": size}), bytes(1 << 16))
        return outcome(talk.ended())


# -- HTTP: heads and framing


@http
def heads(attacker: Attacker, rng: random.Random) -> str:
    """Damage to the first line and the headers."""
    example = rng.choice(attacker.examples)
    whole = rng.choice((example.as_json(), example.as_binary()))
    head, end, body = whole.partition(b"\r\n\r\n")
    with attacker.talk() as talk:
        talk.send(damaged(head, rng) + end + body)
        return outcome(talk.ended())


@http
def content_lengths(attacker: Attacker, rng: random.Random) -> str:
    """A body that is shorter or longer than its Content-Length, which may be no number, or two."""
    example = rng.choice(attacker.examples)
    body = json.dumps(example.fields(data=True)).encode()
    size = len(body)
    wrong = (0, 1, size - 1, size + 1, 2 * size, -1, "", "x", "0x10", f"{size}, {size}", f"{size}\r\nContent-Length: 1")
    with attacker.talk() as talk:
        talk.send(request(example.path, body, {"Content-Length": rng.choice(wrong)}))
        return outcome(talk.ended())


@http
def chunks(attacker: Attacker, rng: random.Random) -> str:
    """Transfer-Encoding: chunked, in chunks that are wrong."""
    example = rng.choice(attacker.examples)
    body = json.dumps(example.fields(data=True)).encode()
    good = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    tiny = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    lies = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body) + rng.choice((-1, 1, 1 << 40)), body)
    sent = rng.choice((good, tiny, lies, damaged(good, rng), b"ffffffffffffffffffff\r\n", b"-1\r\n", b"0\r\n\r\n" * 3))
    kind = rng.choice(("chunked", "chunked", "chunked, chunked", "gzip, chunked", "xchunked", "identity"))
    sizes = {"Transfer-Encoding": kind, "Content-Length": rng.choice((None, None, 5))}
    with attacker.talk() as talk:
        talk.send(request(example.path, headers=sizes) + sent)
        return outcome(talk.ended())


@http
def many_headers(attacker: Attacker, rng: random.Random) -> str:
    """Headers beyond measure: one that is long, or many."""
    example = rng.choice(attacker.examples)
    size = rng.choice((1 << 14, 1 << 17, 1 << 20))
    more = {"X": "x" * size} if rng.random() < 0.5 else {f"X-{n}": "x" for n in range(size // 10)}
    body = json.dumps(example.fields(data=True)).encode()
    with attacker.talk() as talk:
        talk.send(request(example.path, body, more))
        return outcome(talk.ended())


PATHS = (
    *(
        "/",
        "//",
        "*",
        "/v2",
        "/v2/",
        "/v2/models",
        "/v2/models/",
        "/v2/models//infer",
        "/v2/models/x",
        "/v3",
        "/metrics",
    ),
    *(
        "/v2/models/../../etc/passwd",
        "/v2/models/%2e%2e%2f%2e%2e/infer",
        "/v2/models/%00/infer",
        "/v2/models/\xff/infer",
    ),
    *("/v2/models/MODEL/versions/0/infer", "/v2/models/MODEL/versions/-1/infer", "/v2/models/MODEL/versions/x/infer"),
    *("/v2/models/MODEL/versions/99999999999999999999/infer", "/v2/models/MODEL/versions//infer", "/v2/health/ready/x"),
    *("/v2/models/MODEL/infer?a=%", "/v2/models/MODEL/infer#x", "/v2/models/MODEL/infer/", "/v2/models/" + "a" * 9000),
    *("/v2/repository/index", "/v2/repository/models/MODEL/load", "/v2/repository/models/../load", "http://x/v2", "\\"),
)


@http
def paths(attacker: Attacker, rng: random.Random) -> str:
    """Places that are not there, and methods that do not fit them."""
    example = rng.choice(attacker.examples)
    path = rng.choice(PATHS).replace("MODEL", example.model)
    method = rng.choice(("POST", "POST", "GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "X", "PRI"))
    body = rng.choice((b"", b"{}", b"[]", b"null", json.dumps(example.fields(data=True)).encode()))
    with attacker.talk() as talk:
        talk.send(request(path, body, method=method))
        return outcome(talk.ended())


@http
def other_protocols(attacker: Attacker, rng: random.Random) -> str:
    """Something else than HTTP/1.1."""
    said = (
        b"GET /v2\r\n\r\n",
        b"GET /v2 HTTP/1.0\r\n\r\n",
        b"GET /v2 HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(500),
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"GET /v2 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: eA==\r\n\r\n",
        rng.randbytes(rng.choice((1, 100, 10000))),
        b"\r\n" * 1000,
        b"",
    )
    with attacker.talk() as talk:
        talk.send(rng.choice(said))
        return outcome(talk.ended())


# -- HTTP: connections


@http
def half_closed(attacker: Attacker, rng: random.Random) -> str:
    """A whole request, or a part of one, and then nothing more."""
    example = rng.choice(attacker.examples)
    whole = rng.choice((example.as_json(), example.as_binary()))
    with attacker.talk() as talk:
        talk.send(whole[: rng.choice((len(whole), rng.randrange(len(whole))))])
        talk.half_close()
        talk.read(lambda data: False)
        return outcome(talk.judged())


@http
def resets(attacker: Attacker, rng: random.Random) -> str:
    """A connection that is gone: in the middle of a request, or before the answer."""
    example = rng.choice(attacker.examples)
    whole = rng.choice((example.as_json(), example.as_binary())) * rng.choice((1, 1, 5))
    with attacker.talk() as talk:
        talk.send(whole[: rng.choice((len(whole), rng.randrange(len(whole))))])
        talk.reset()
        return "reset"


@http
def pipelined(attacker: Attacker, rng: random.Random) -> str:
    """Several requests at once, in pieces of any size: good ones, of which each has its answer, and a bad one."""
    examples = [rng.choice(attacker.examples) for _ in range(rng.randint(2, 8))]
    whole = b"".join(example.as_binary() for example in examples) + request(examples[0].path, b"{")
    size = rng.choice((len(whole), 1000, 100))
    with attacker.talk() as talk:
        talk.send(*(whole[at : at + size] for at in range(0, len(whole), size)))
        answers = talk.answers(len(examples) + 1)
        for example, (status, body) in zip(examples, answers, strict=False):
            if status != 200 or not example.is_answered_by(body):
                raise Finding(f"pipelined: status {status}: {body[:300]!r}")
        if len(answers) != len(examples) + 1:
            raise Finding(f"pipelined: {len(answers)} answers for {len(examples) + 1} requests")
        return outcome(answers)


@http
def expectations(attacker: Attacker, rng: random.Random) -> str:
    """``Expect: 100-continue``, with a body that comes, or does not, or something that nobody expects."""
    example = rng.choice(attacker.examples)
    body = json.dumps(example.fields(data=True)).encode()
    with attacker.talk() as talk:
        expected = rng.choice(("100-continue", "100-continue", "200-ok", "100-continue, 100-continue"))
        talk.send(request(example.path, headers={"Content-Length": len(body), "Expect": expected}))
        if rng.random() < 0.5:
            talk.send(body)
        return outcome(talk.ended())


@http
def does_not_read(attacker: Attacker, rng: random.Random) -> str:
    """Requests, and nobody who reads the answers, for a while; then the connection is gone."""
    example = rng.choice(attacker.examples)
    with attacker.talk() as talk:
        talk.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        talk.socket.settimeout(0.2)
        try:
            for _ in range(20):
                talk.socket.sendall(example.as_json())
        except OSError:
            pass
        talk.reset()
        return "reset"


def slow(attacker: Attacker, rng: random.Random) -> str:
    """A byte now and then, of the headers or of a body (slowloris), until the server has enough of it.

    Apart from the others, for it takes as long as the server's limits say.
    """
    example = rng.choice(attacker.examples)
    whole = example.as_json()
    head = whole.index(b"\r\n\r\n") + 4
    at = rng.choice((1, head // 2, head, head + 1, len(whole) - 500))
    with attacker.talk() as talk:
        talk.send(whole[:at])
        until = time.monotonic() + attacker.patience
        while not talk.read(lambda data: False, patience=0.2):
            if at < len(whole) - 1:
                talk.send(whole[at : at + 1])
                at += 1
            if time.monotonic() > until:
                raise Finding(f"a slow client is borne for {attacker.patience:.0f} s")
        return outcome(talk.judged())


# -- gRPC


@grpc
def messages(attacker: Attacker, rng: random.Random) -> str:
    """Messages with damage, in calls in good order."""
    import grpc as library

    example = rng.choice(attacker.examples)
    message = damaged(example.as_message(), rng) if rng.random() < 0.9 else rng.randbytes(rng.randrange(200))
    methods = ("ModelInfer", "ModelInfer", "ModelInfer", "ModelInfer", "ModelMetadata", "ModelReady", "ServerLive", "X")
    call = attacker.channel.unary_unary(
        f"/inference.GRPCInferenceService/{rng.choice(methods)}",
        request_serializer=None,
        response_deserializer=None,
    )
    try:
        call(message, timeout=attacker.patience)
    except library.RpcError as error:
        code, details = error.code().name, error.details() or ""
        if code == "DEADLINE_EXCEEDED":
            raise Finding("hang: no answer") from None
        if code not in GRPC_REFUSALS or "Traceback" in details or "xception" in details:
            raise Finding(f"{code}: {details[:300]}") from None
        return str(code)
    return "OK"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2 (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def headers(fields: dict[str, str]) -> bytes:
    """A header block without compression: literals with new names (RFC 7541, section 6.2.2)."""
    return b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 8, 9


def call_frames(example: Example, rng: random.Random) -> list[bytes]:
    """The frames of a call, which something may be wrong with."""
    fields = {
        ":method": rng.choice(("POST", "POST", "POST", "GET")),
        ":scheme": "http",
        ":path": rng.choice(("/inference.GRPCInferenceService/ModelInfer",) * 3 + ("/x", "x")),
        ":authority": "localhost",
        "te": "trailers",
        "content-type": rng.choice(("application/grpc",) * 4 + ("application/json", "")),
        "grpc-timeout": rng.choice(("10S", "10S", "-1S", "x", "99999999H", "0n")),
    }
    message = example.as_message()
    length = len(message) + rng.choice((0, 0, 0, -1, 1, 1 << 31))
    prefix = bytes([rng.choice((0, 0, 0, 1, 255))]) + struct.pack(">I", length & 0xFFFFFFFF)
    return [
        PREFACE,
        frame(SETTINGS, 0, 0, b""),
        frame(HEADERS, 4, 1, headers(fields)),
        frame(DATA, 1, 1, prefix + message),
    ]


@grpc
def frames(attacker: Attacker, rng: random.Random) -> str:
    """HTTP/2 with damage, in frames that are not allowed, too many, or cut off."""
    frames = call_frames(rng.choice(attacker.examples), rng)
    start = frames[2]
    odd = (
        frame(WINDOW_UPDATE, 0, rng.choice((0, 1)), struct.pack(">I", rng.choice((0, 0x7FFFFFFF)))),
        frame(SETTINGS, 0, 0, rng.randbytes(rng.choice((5, 6, 12)))),
        frame(SETTINGS, 0, 0, b"") * 500,
        frame(PING, 0, 0, bytes(8)) * 500,
        frame(PUSH, 4, 1, struct.pack(">I", 2) + start[9:]),
        frame(HEADERS, 0, 1, start[9:]) + frame(CONTINUATION, 0, 1, bytes(10)) * 500,
        b"".join(
            frame(HEADERS, 4, stream, start[9:]) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
            for stream in range(3, 203, 2)
        ),
        frame(DATA, 0, 7, bytes(10)),
        frame(0xFF, 0xFF, 0x7FFFFFFF, rng.randbytes(30)),
        b"\xff\xff\xff" + start[3:],
    )
    if rng.random() < 0.5:
        frames.insert(rng.randrange(1, len(frames) + 1), rng.choice(odd))
    sent = b"".join(frames)
    if rng.random() < 0.5:
        sent = damaged(sent, rng)
    if rng.random() < 0.3:
        sent = sent[: rng.randrange(len(sent))]
    with attacker.talk(grpc=True) as talk:
        talk.send(sent)
        if rng.random() < 0.3:
            talk.reset()
            return "reset"
        talk.read(lambda data: False, patience=0.05)
        talk.half_close()
        talk.read(lambda data: False)
        if b"Traceback" in talk.received:
            raise Finding(f"a traceback is sent: {talk.received[-300:]!r}")
        return "closed"


FOUND = "FOUND"


def attack(attacker: Attacker, seed: int, attacks: Mapping[str, Attack] | None = None) -> tuple[str, str]:
    """One attack, of all of them or of those that are given: its name, and what happened, which begins with `FOUND` if
    the server did something that it must not do."""
    rng = random.Random(seed)
    kinds = {**HTTP, **(GRPC if attacker.channel is not None else {})} if attacks is None else attacks
    name = rng.choice(list(kinds))
    try:
        return name, kinds[name](attacker, rng)
    except Finding as finding:
        return name, f"{FOUND} {finding}"
    except Exception as error:  # nobody listens any more
        return name, f"{FOUND} {type(error).__name__}: {error}"


# -- good clients


@dataclass
class Good:
    """A client that asks rightly, one request after the other over one connection, in a thread of its own, and wants
    an answer to each. A context manager; `wrong` is what was not right."""

    address: tuple[str, int]
    examples: Sequence[Example]
    asked: int = 0
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    patience: float = PATIENCE
    pause: float = 0.0
    """Seconds between requests, for who wants to leave the CPU to others."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Good:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ask no more, after the answer that is due."""
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _run(self) -> None:
        connection = HTTPConnection(*self.address, timeout=self.patience)
        with closing(connection):
            number = 0
            while not self._stop.is_set():
                example = self.examples[number % len(self.examples)]
                number += 1
                try:
                    self.ask(connection, example)
                except Exception as error:
                    self.wrong.append(f"{type(error).__name__}: {error}")
                    connection.close()
                if self.pause:
                    self._stop.wait(self.pause)

    def ask(self, connection: HTTPConnection, example: Example) -> None:
        """One request."""
        head = json.dumps(example.fields(data=False)).encode()
        self.asked += 1
        fields = {"Inference-Header-Content-Length": str(len(head))}
        connection.request("POST", example.path, head + example.x.tobytes(), fields)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status == 200 and example.is_answered_by(body):
            self.right += 1
        else:
            self.wrong.append(f"status {answer.status}: {body[:300]!r}")
