"""`pad`: elements of one value around a view. Settings are (elements in front of each dimension, value)."""

from __future__ import annotations

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.copy import copy
from gossamer.codegen.graph import Kernel
from gossamer.dtypes import numpy_dtype
from gossamer.views import Buffer


def commands(node: Kernel, build: Build) -> None:
    """The whole result gets the value, then its inside the elements."""
    before, value = node.settings
    x, y = node.operands[0], node.y
    constant = Buffer((), y.type, -1, np.array(value, numpy_dtype(y.type)))
    copy(constant.view().broadcast(y.shape), y, build)
    inside = y
    for axis, (start, size) in enumerate(zip(before, x.shape, strict=True)):
        inside = inside.slice(axis, start, size)
    if x.size:
        copy(x, inside, build)
