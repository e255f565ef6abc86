"""A report as one HTML page that needs nothing else: its data, what shows them, and the library that draws."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from pathlib import Path
from string import Template
from typing import Any

from gossamer.tools._command import Failure, finite

_HERE = Path(__file__).parent


def page(data: dict[str, Any], library: str) -> str:
    """The page of these data, drawn by what `library` gives."""
    title = Path(data["summary"]["model"]).name
    return Template(_text("page.html")).substitute(
        title=title.replace("&", "&amp;").replace("<", "&lt;"),
        style=_text("page.css"),
        data=_packed(json.dumps(finite(data), separators=(",", ":"), allow_nan=False)),
        library=_packed(library),
        program=_text("page.js"),
    )


def _packed(text: str) -> str:
    """A third of the bytes, which a browser unpacks in milliseconds; no name in a model can end the script."""
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def library() -> str:
    """BokehJS, as the package of Python carries it. Raises `Failure` if that is not installed."""
    try:
        from bokeh.resources import Resources
    except ImportError:
        raise Failure("the page is drawn with Bokeh: install gossamer[report]; --json needs nothing.") from None
    return "\n".join(Resources(mode="inline", components=["bokeh", "bokeh-api"]).js_raw)
