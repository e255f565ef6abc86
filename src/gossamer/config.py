"""Settings from the environment, each declared once: name, default and meaning."""

from __future__ import annotations

import os


def debug_level() -> int:
    """``GOSSAMER_DEBUG``: 0 quiet (default), 1 plan summary and arena bytes, 2 nodes as they run."""
    try:
        return int(os.environ.get("GOSSAMER_DEBUG", "0"))
    except ValueError:
        return 0
