"""Settings from the environment, each declared once: name, default and meaning."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def debug_level() -> int:
    """``GOSSAMER_DEBUG``: 0 quiet (default), 1 plan summary and arena bytes, 2 nodes as they run."""
    try:
        return int(os.environ.get("GOSSAMER_DEBUG", "0"))
    except ValueError:
        return 0


def target_name() -> str | None:
    """``GOSSAMER_TARGET``: the name of the target that machine code is made for; by default the best that runs here."""
    return os.environ.get("GOSSAMER_TARGET") or None


def cache_dir() -> Path | None:
    """``GOSSAMER_CACHE_DIR``: where compiled kernels are kept; by default in the user's cache directory, if any."""
    if chosen := os.environ.get("GOSSAMER_CACHE_DIR"):
        return Path(chosen)
    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return (Path(local) if local else Path.home() / "AppData" / "Local") / "gossamer" / "Cache"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "gossamer"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gossamer"
    except RuntimeError:  # nobody's home
        return None
