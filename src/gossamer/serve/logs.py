"""What a server says: one line for each event, as JSON, or for people.

Events are records of Python's ``logging``, under the logger ``gossamer.serve``: whoever has a handler of their own gets
them too. A record's message has the event and its fields; its ``event`` and ``fields`` have them apart.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, TextIO

LOGGER = logging.getLogger("gossamer.serve")

FORMATS = ("auto", "json", "text")
"""JSON lines, lines for people, and lines for people where they go to a terminal."""


def say(event: str, level: int = logging.INFO, exc_info: Any = None, **fields: Any) -> None:
    """Log an event. ``fields``: what JSON can hold; those that are ``None`` are left out."""
    if LOGGER.isEnabledFor(level):
        there = {name: value for name, value in fields.items() if value is not None}
        LOGGER.log(level, "%s", _Said(event, there), extra={"event": event, "fields": there}, exc_info=exc_info)


class _Said:
    """An event in words, for handlers that know nothing of fields: ``event name=value …``."""

    def __init__(self, event: str, fields: Mapping[str, Any]) -> None:
        self._event, self._fields = event, fields

    def __str__(self) -> str:
        return " ".join([self._event, *(f"{name}={_plain(value)}" for name, value in self._fields.items())])


class _Json(logging.Formatter):
    """``{"time": …, "level": …, "event": …}`` and the fields; times are UTC."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """An event and its fields; what libraries say in words is the event ``message``."""
    event = getattr(record, "event", None)
    if event is None:
        return {"event": "message", "logger": record.name, "message": record.getMessage()}
    return {"event": event, **getattr(record, "fields", {})}


class _Text(logging.Formatter):
    """``12:34:56 warning event name=value …``."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        line = f"{time} {record.levelname.lower():7} {record.getMessage()}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _plain(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if text.isprintable() and " " not in text and text else json.dumps(text)


def set_up(format: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Have the events written to ``stream``, standard error by default, in one of `FORMATS`, and what libraries warn
    of."""
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Text() if format == "text" or (format == "auto" and stream.isatty()) else _Json())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    LOGGER.setLevel(level.upper())
