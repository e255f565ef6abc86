"""Models for tests of delegates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import gossamer
from gossamer.schema import TensorType
from tests.runtime.graphs import ModelMaker

FLOAT = TensorType.FLOAT32

Interpreter = partial(
    gossamer.Interpreter, experimental_op_resolver_type=gossamer.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
)
"""Without the default delegate, which would take what the delegate of a test leaves."""


def sine_model(shape: Sequence[int] = (3,)) -> bytes:
    """y = sin(x) + x + sin(2 x): SIN, ADD, MUL, SIN, ADD over the tensors x, two, a, b, c, d, y."""
    make = ModelMaker()
    x = make.tensor(shape, name="x")
    two = make.constant([2.0], np.float32, FLOAT, name="two")
    a, b, c, d, y = (make.tensor(shape, name=name) for name in "abcdy")
    make.op("SIN", [x], [a])
    make.op("ADD", [a, x], [b])
    make.op("MUL", [x, two], [c])
    make.op("SIN", [c], [d])
    make.op("ADD", [b, d], [y])
    make.io([x], [y])
    return make.model()


def sine_of(x: np.ndarray) -> np.ndarray:
    """What `sine_model` computes."""
    return np.sin(x) + x + np.sin(np.float32(2) * x)


def chain(*operators: str) -> bytes:
    """Unary operators one after the other over float32 [4]: tensors 0 to n."""
    make = ModelMaker()
    tensors = [make.tensor((4,)) for _ in range(len(operators) + 1)]
    for position, name in enumerate(operators):
        make.op(name, tensors[position : position + 1], tensors[position + 1 : position + 2])
    make.io(tensors[:1], tensors[-1:])
    return make.model()
