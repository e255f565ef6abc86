"""Files of models that are read where they lie."""

from __future__ import annotations

import mmap
import os

from gossamer.errors import ConvertError


def map_file(path: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file, mapped read-only. Raises `ConvertError` for one that cannot be opened."""
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return memoryview(b"")  # nothing can be mapped
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte, a file cut off meanwhile
        raise ConvertError(f"{os.fspath(path)}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def inside(directory: str | os.PathLike[str], location: str, what: str) -> str:
    """The path of ``location`` below ``directory``. Raises `ConvertError` if it lies elsewhere, also through a link."""
    root = os.path.realpath(directory)
    try:
        path = os.path.realpath(os.path.join(root, location))
        within = os.path.commonpath([root, path]) == root and path != root
    except ValueError:  # a zero byte in it, or another drive
        within = False
    if os.path.isabs(location) or not within:
        raise ConvertError(f"{what} is at {location!r}, which is no path inside {os.fspath(directory)}")
    return path
