"""Arithmetic, one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.flex.kernels import Array, Call, elementwise, kernel, like_first


@kernel("Identity", "StopGradient", "PreventGradient", "Snapshot", "DeepCopy", shape=like_first)
def identity(call: Call, x: Any) -> Any:
    """The operand itself."""
    return x


@kernel("AddV2", "Add", shape=elementwise)
def add(call: Call, x: Array, y: Array) -> Array:
    """``x + y``; strings are joined."""
    return np.add(x, y)
