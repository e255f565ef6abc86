"""Settings from the environment, each declared once: name, default and meaning."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path


def debug_level() -> int:
    """``GOSSAMER_DEBUG``: 0 quiet (default), 1 plan summary and arena bytes, 2 nodes as they run."""
    try:
        return int(os.environ.get("GOSSAMER_DEBUG", "0"))
    except ValueError:
        return 0


def is_strict() -> bool:
    """``GOSSAMER_STRICT``: 1 has errors raised that would make the reference kernels run instead of machine code. For
    tests of machine code, which the reference kernels would pass too."""
    return os.environ.get("GOSSAMER_STRICT", "0") not in ("", "0")


def target_name() -> str | None:
    """``GOSSAMER_TARGET``: the name of the target that machine code is made for, or ``none``; by default the best that
    runs here."""
    return os.environ.get("GOSSAMER_TARGET") or None


def cache_dir() -> Path | None:
    """``GOSSAMER_CACHE_DIR``: where compiled kernels are kept; by default in the user's cache directory, if any."""
    if chosen := os.environ.get("GOSSAMER_CACHE_DIR"):
        return _path(chosen)
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        within, name = os.environ.get("LOCALAPPDATA") or f"{home}/AppData/Local", "gossamer/Cache"
    elif sys.platform == "darwin":
        within, name = f"{home}/Library/Caches", "gossamer"
    else:
        within, name = os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache", "gossamer"
    return None if within.startswith("~") else _path(f"{within}/{name}")  # nobody's home


def user_directory() -> Path | None:
    """Where all that is kept for this user lies, if there is a place: a directory of its own, which is made private."""
    place = cache_dir()
    return None if place is None else _path(f"{place}/kernels")


def flex_files() -> Path | None:
    """``GOSSAMER_FLEX_FILES``: the directory in which TensorFlow's operators in a model may read and write files, such
    as checkpoints; by default there is none."""
    chosen = os.environ.get("GOSSAMER_FLEX_FILES")
    return _path(chosen) if chosen else None


def serve_token() -> str | None:
    """``GOSSAMER_SERVE_TOKEN``: the token that clients of `gossamer serve` must have; by default none."""
    return os.environ.get("GOSSAMER_SERVE_TOKEN", "").strip() or None


_path = cache(Path)
