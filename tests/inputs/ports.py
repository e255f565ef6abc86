"""Inputs and outputs as a session would describe them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.inputs.port import Port


def port(
    *signature: int,
    dtype: Any = np.float32,
    scale: float = 0.0,
    zero_point: int = 0,
    name: str = "x",
    aliases: tuple[str, ...] = (),
    position: int = 0,
) -> Port:
    """A port of a shape; -1 is a free dimension."""
    shape = tuple(1 if size < 0 else size for size in signature)
    return Port(position, name, aliases, position, np.dtype(dtype), shape, signature, scale, zero_point)
