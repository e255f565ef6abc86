"""``gossamer serve``: what is wrong is said before anything is served. What it serves: tests/serve."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.serve.logs import LOGGER
from gossamer.tools import serve
from tests.tools.conftest import Outcome
from tests.tools.models import echo

Gossamer = Callable[..., Outcome]
Place = Callable[[str, bytes], Path]


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """The command sets up logging for its process, which here is that of the tests."""
    kept = logging.root.handlers[:], logging.root.level, LOGGER.level
    yield
    logging.root.handlers[:] = kept[0]
    logging.root.setLevel(kept[1])
    LOGGER.setLevel(kept[2])


@pytest.fixture
def model(place: Place) -> Path:
    return place("echo.tflite", echo([2]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'MODEL...'"),
        (["--http-port=none", "--grpc-port=none"], "leave nothing to listen on"),
        (["--http-port=8000", "--grpc-port=8000"], "cannot both have port 8000"),
        (["--http-port=65536"], "'65536' is no port"),
        (["--grpc-port=-1"], "'-1' is no port"),
        (["--max-body=0"], "'0' is no number of bytes"),
        (["--max-body=many"], "'many' is no number of bytes"),
        (["--timeout=0"], "0.0 is not in the range"),
        (["--workers=0"], "0 is not in the range"),
        (["--queue-size=0"], "0 is not in the range"),
        (["--tls-key=key.pem"], "go together"),
    ],
)
def test_options_that_are_wrong(gossamer: Gossamer, model: Path, arguments: list[str], said: str) -> None:
    outcome = gossamer("serve", *([model] if arguments else []), *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1000", 1000), ("2k", 2048), ("64M", 64 << 20), ("64MiB", 64 << 20), ("1 gb", 1 << 30)],
)
def test_sizes(text: str, size: int) -> None:
    assert serve._size(None, None, text) == size  # type: ignore[arg-type]


def test_tokens(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert serve._tokens(None) == ()
    monkeypatch.setenv("GOSSAMER_SERVE_TOKEN", " secret\n")
    assert serve._tokens(None) == ("secret",)
    assert serve._tokens(str(place("tokens", b"one\n\n two \n"))) == ("one", "two")


@pytest.mark.parametrize("content", [b"", b"\n", "schlüssel".encode(), b"a\0b"])
def test_a_token_file_without_tokens(gossamer: Gossamer, model: Path, place: Place, content: bytes) -> None:
    outcome = gossamer("serve", model, "--token-file", place("tokens", content))
    assert (outcome.code, outcome.out) == (1, "")
    assert "a token file has a token" in outcome.err


def test_a_token_file_that_is_not_there(gossamer: Gossamer, model: Path) -> None:
    outcome = gossamer("serve", model, "--token-file", "nowhere")
    assert (outcome.code, outcome.err) == (1, "Error: nowhere: No such file or directory\n")


def test_what_has_to_be_installed(gossamer: Gossamer, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith("gossamer.serve.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    outcome = gossamer("serve", model)
    assert outcome.code == 1
    assert "python -m pip install 'gossamer[serve]'" in outcome.err


@pytest.mark.engines
class TestServing:
    """What is said where the server's packages are installed."""

    def test_a_model_that_is_not_there(self, gossamer: Gossamer, model: Path) -> None:
        outcome = gossamer("serve", model.with_name("ecco.tflite"))
        assert outcome.code == 1
        assert "did you mean" in outcome.err

    def test_nothing_that_can_be_served(self, gossamer: Gossamer, place: Place, tmp_path: Path) -> None:
        bad = place("bad.tflite", b"nothing of a model")
        outcome = gossamer("serve", bad, "--http-port=0", "--grpc-port=none")
        assert outcome.code == 1
        assert "can be served" in outcome.err
        assert "bad version 1: ModelError" in outcome.err
        (tmp_path / "empty").mkdir()
        outcome = gossamer("serve", tmp_path / "empty", "--http-port=0", "--grpc-port=none")
        assert outcome.code == 1
        assert "there is no .tflite file" in outcome.err

    def test_a_port_that_somebody_has(self, gossamer: Gossamer, model: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            outcome = gossamer("serve", model, "--http-port", port, "--grpc-port=none")
        assert outcome.code == 1
        assert f"cannot listen on 127.0.0.1 port {port}" in outcome.err

    def test_a_certificate_that_is_none(self, gossamer: Gossamer, model: Path) -> None:
        outcome = gossamer("serve", model, "--http-port=0", "--tls-certificate", model, "--tls-key", model)
        assert outcome.code == 1
        assert "no certificate and key that belong together" in outcome.err

    def test_what_is_served_and_where(
        self, gossamer: Gossamer, model: Path, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from gossamer.serve.server import Server

        def run(server: Server, repository: Any, started: Callable[[], None]) -> int:
            started()
            return 0

        monkeypatch.setattr(Server, "run", run)
        bad = place("bad.tflite", b"nothing of a model")
        options = ("--http-port=0", "--grpc-port=none", "--no-watch")
        outcome = gossamer("serve", model, bad, f"named={model}", *options, "--json")
        assert outcome.code == 0
        told = json.loads(outcome.out)
        assert told["http"].startswith("http://127.0.0.1:")
        states = {entry["name"]: entry["state"] for entry in told["models"]}
        assert states == {"echo": "READY", "bad": "UNAVAILABLE", "named": "READY"}
        shown = gossamer("serve", model, bad, *options).out
        assert "echo" in shown
        assert "ModelError" in shown
        assert "HTTP: http://127.0.0.1:" in shown
