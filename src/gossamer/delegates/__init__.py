"""Delegates: the contract, the partitioning, and one folder per delegate, found by its name.

``null/`` holds ``NullDelegate``; a folder is imported when somebody asks for it, and there is no list to keep. Other
packages offer delegates under the entry point group ``gossamer.delegates``: a name and what makes one.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from gossamer.delegates.delegate import Delegate
from gossamer.errors import DelegateLoadError

GROUP = "gossamer.delegates"
"""The entry point group."""


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """A delegate by name, made with these options as keyword arguments.

    Raises `DelegateLoadError`, a `ValueError` and an `OSError`, for a name that nobody has, a path without a file, and
    the C++ shared libraries that TFLite's function of this name loads: they are machine code for another runtime.
    Raises `ValueError` for options that the delegate does not take.

    >>> gossamer.load_delegate("null")
    <NullDelegate "null">
    """
    name = os.fspath(library)
    make = _find(name)
    if make is None:
        if os.sep in name and not os.path.exists(name):
            raise DelegateLoadError(f"{name}: cannot open shared object file: No such file or directory")
        raise DelegateLoadError(f"Failed to load delegate from {name}\n{_unknown(name)}")
    try:
        delegate = make(**dict(options or {}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"Failed to load delegate from {name}\n{error}") from error
    if not isinstance(delegate, Delegate):
        raise ValueError(f"Failed to load delegate from {name}\nIt made a {type(delegate).__name__}, not a Delegate")
    return delegate


def _find(name: str) -> Callable[..., Any] | None:
    if name in _shipped():
        module = importlib.import_module(f"{__name__}.{name}")
        made: Callable[..., Any] = getattr(module, "".join(map(str.capitalize, name.split("_"))) + "Delegate")
        return made
    entry = _offered().get(name)
    return entry.load() if entry is not None else None


def _offered() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _shipped() -> list[str]:
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if info.ispkg)


def _unknown(name: str) -> str:
    if os.path.exists(name) or os.path.splitext(name)[1] in (".so", ".dylib", ".dll") or ".so." in name:
        return (
            "It is a C shared library for TFLite's own runtime and cannot be loaded: this runtime is Python, "
            "and so are its delegates"
        )
    known = sorted({*_shipped(), *_offered()})
    return f"There is no delegate of that name; there are {', '.join(known)}"
