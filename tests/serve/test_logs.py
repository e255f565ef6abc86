"""Events as lines: `gossamer.serve.logs`."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

from gossamer.serve.logs import LOGGER, say, set_up


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    kept = logging.root.handlers[:], logging.root.level, LOGGER.level
    yield
    logging.root.handlers[:] = kept[0]
    logging.root.setLevel(kept[1])
    LOGGER.setLevel(kept[2])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(format: str, stream: Any, level: str = "info") -> list[str]:
    set_up(format, level, stream)
    say("request", model="m", version="1", status=200, id=None, ms=1.5, error="no\nline", name="ä")
    try:
        raise RuntimeError("secret")
    except RuntimeError as error:
        say("bug", logging.ERROR, error, model="m")
    logging.getLogger("gossamer").info("of no interest")
    logging.getLogger("grpc").warning("of %s", "interest")
    return list(stream.getvalue().splitlines())


@pytest.mark.parametrize(("format", "stream"), [("json", Terminal()), ("auto", io.StringIO())])
def test_json(format: str, stream: Any) -> None:
    request, bug, other = map(json.loads, said(format, stream))
    then = datetime.fromisoformat(request.pop("time"))
    assert abs(datetime.now(timezone.utc) - then).total_seconds() < 3600
    assert request == {
        "level": "info",
        "event": "request",
        "model": "m",
        "version": "1",
        "status": 200,
        "ms": 1.5,
        "error": "no\nline",
        "name": "ä",
    }
    assert (bug["level"], bug["event"], bug["model"]) == ("error", "bug", "m")
    assert bug["traceback"].endswith("RuntimeError: secret")
    del other["time"]
    assert other == {"level": "warning", "event": "message", "logger": "grpc", "message": "of interest"}


@pytest.mark.parametrize(("format", "stream"), [("text", io.StringIO()), ("auto", Terminal())])
def test_text(format: str, stream: Any) -> None:
    lines = said(format, stream)
    assert lines[0][8:] == r' info    request model=m version=1 status=200 ms=1.5 error="no\nline" name=ä'
    assert lines[1][8:] == " error   bug model=m"
    assert lines[-2:] == ["RuntimeError: secret", lines[-1]]


def test_less() -> None:
    assert len(said("json", io.StringIO(), "warning")) == 2


def test_a_handler_of_somebody_else_is_told_all(caplog: pytest.LogCaptureFixture) -> None:
    say("model cannot be loaded", logging.ERROR, model="m", reason="no model", path=None)
    assert caplog.messages == ['model cannot be loaded model=m reason="no model"']
