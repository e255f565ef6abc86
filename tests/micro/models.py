"""Small models for microcontrollers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gossamer.schema import FullyConnectedOptions, IfOptions, MulOptions, TensorType
from tests.runtime.graphs import ModelMaker

WIDTHS = (24, 16, 16, 32)


def chain() -> bytes:
    """Fully connected float layers of `WIDTHS`; the greedy planner needs a third more for them than is alive."""
    make = ModelMaker()
    _layers(make, WIDTHS)
    return make.model()


def multiplier() -> bytes:
    """y = x * 2 * 2 over float32 [1, 64]: each product could lie where its factor lay."""
    make = ModelMaker()
    x, middle, y = (make.tensor((1, 64), name=name) for name in ("x", "middle", "y"))
    two = make.constant([2.0], np.float32, TensorType.FLOAT32)
    make.op("MUL", [x, two], [middle], MulOptions())
    make.op("MUL", [middle, two], [y], MulOptions())
    make.io([x], [y])
    return make.model()


def chooser() -> bytes:
    """The layers of `chain` if c, one layer if not: an IF, and the tensors of three subgraphs."""
    make = ModelMaker()
    c = make.tensor((1,), TensorType.BOOL, name="c")
    x, y = make.tensor((1, WIDTHS[0]), name="x"), make.tensor((1, WIDTHS[-1]), name="y")
    make.op("IF", [c, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    make.io([c, x], [y])
    for name, widths in (("then", WIDTHS), ("else", (WIDTHS[0], WIDTHS[-1]))):
        make.subgraph(name)
        _layers(make, widths)
    return make.model()


def _layers(make: ModelMaker, widths: Sequence[int]) -> None:
    # Each copies as many values as fit, and adds zeros.
    tensors = [make.tensor((1, width), name=f"x{width}_{i}") for i, width in enumerate(widths)]
    for (before, after), (x, y) in zip(pairwise(widths), pairwise(tensors), strict=True):
        weights = make.constant(np.eye(after, before), np.float32, TensorType.FLOAT32)
        make.op("FULLY_CONNECTED", [x, weights, -1], [y], FullyConnectedOptions())
    make.io(tensors[:1], tensors[-1:])
