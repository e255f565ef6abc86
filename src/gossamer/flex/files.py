"""Files that operators of a model read and write: none, unless the user names a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gossamer import config
from gossamer.flex.kernels import Call


def allowed_file(call: Call, name: Any) -> Path:
    """The file of this name within ``GOSSAMER_FLEX_FILES``. Raises if that is not set, or if it lies elsewhere."""
    directory = config.flex_files()
    if directory is None:
        call.fail(
            "this operator reads or writes files, which models may not do here; the environment variable "
            "GOSSAMER_FLEX_FILES names a directory in which they may"
        )
    place = directory.resolve()
    path = (place / (name.decode(errors="surrogateescape") if isinstance(name, bytes) else str(name))).resolve()
    call.require(path != place and path.is_relative_to(place), f"{str(path)!r} is not within GOSSAMER_FLEX_FILES")
    return path
