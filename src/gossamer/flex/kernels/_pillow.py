"""Pillow, which decodes and encodes pictures, where it is installed."""

from __future__ import annotations

from typing import Any

from gossamer.flex.kernels import Call


def pillow(call: Call) -> Any:
    """Its module ``Image``. Fails with what to install where it is missing."""
    try:
        from PIL import Image
    except ImportError:
        call.fail("pictures are decoded and encoded by Pillow, which is not installed: pip install gossamer[image]")
    return Image
