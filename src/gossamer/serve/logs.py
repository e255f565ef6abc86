"""What a server says: one line for each event, as JSON, or for people.

Events are records of Python's ``logging``, under the logger ``gossamer.serve``: whoever has a handler of their own gets
them too. The fields of an event are in the record's ``fields``.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone
from typing import Any, TextIO

LOGGER = logging.getLogger("gossamer.serve")

FORMATS = ("auto", "json", "text")
"""JSON lines, lines for people, and lines for people where they go to a terminal."""


def say(event: str, level: int = logging.INFO, exc_info: Any = None, **fields: Any) -> None:
    """Log an event. ``fields``: what JSON can hold; those that are ``None`` are left out."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, extra={"fields": fields}, exc_info=exc_info)


class _Json(logging.Formatter):
    """``{"time": …, "level": …, "event": …}`` and the fields; times are UTC."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class _Text(logging.Formatter):
    """``12:34:56 warning event name=value …``."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        fields = " ".join(f"{name}={_plain(value)}" for name, value in _fields(record).items())
        line = f"{time} {record.levelname.lower():7} {record.getMessage()} {fields}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = getattr(record, "fields", {})
    return {name: value for name, value in fields.items() if value is not None}


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
