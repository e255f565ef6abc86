"""Maps of one tensor become a part of the reductions that read them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gossamer.codegen.expression import IDENTITY
from gossamer.schema import MulOptions, ReducerOptions, TensorType
from tests.delegates.jit.running import TARGETS, check, machine_code
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

REDUCTIONS = ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN")


def reduced(shape: list[int], axes: list[int], name: str, *operands: int, also: bool = False) -> tuple[bytes, int]:
    """A reduction of a product of x, itself and a constant; ``also``: the product is an output, too."""
    make = ModelMaker()
    x, product = make.tensor(shape), make.tensor(shape)
    other = make.constant(np.full(shape[-1:], 3), np.float32, TensorType.FLOAT32)
    make.op("MUL", [(x, other)[operand] for operand in operands], [product], MulOptions())
    y = make.tensor([1 if at in axes else size for at, size in enumerate(shape)])
    reduction = [product, make.constant(axes, np.int32, TensorType.INT32)]
    make.op(name, reduction, [y], ReducerOptions(keep_dims=True), version=1)
    make.io([x], [y, product] if also else [y])
    return make.model(), x


def kernels(model: bytes) -> dict[str, object]:
    """The kinds of a program, and the prologues of those that have one."""
    _, kernel = machine_code(model)
    assert kernel.built is not None
    return {
        step.node.kind: step.node.settings[2] if step.node.kind == "reduce" else None for step in kernel.built.steps
    }


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [([3, 5, 70], [2]), ([3, 5, 70], [1]), ([2, 9, 33], [0, 1, 2]), ([1, 20, 20, 24], [1, 2]), ([4, 1], [1])],
)
def test_squares_are_not_stored(name: str, shape: list[int], axes: list[int]) -> None:
    model, x = reduced(shape, axes, name, 0, 0)
    assert kernels(model) == {"reduce": ("mul", 0, 0)}
    value = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    check(model, {x: value}, within=1e-5, target=random.Random(name).choice(TARGETS))


def test_what_others_read_is_stored() -> None:
    model, _ = reduced([3, 5, 70], [2], "SUM", 0, 0, also=True)
    assert kernels(model) == {"map": None, "reduce": IDENTITY}


def test_a_map_of_two_tensors_is_one_of_its_own() -> None:
    model, _ = reduced([3, 5, 70], [2], "SUM", 0, 1)
    assert kernels(model) == {"map": None, "reduce": IDENTITY}
