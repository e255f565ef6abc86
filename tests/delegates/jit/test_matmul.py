"""Matrix products of every shape, constant and computed, against the reference kernels; integers come out exactly."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gossamer.schema import (
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Padding,
    TensorType,
)
from tests.conftest import seeds
from tests.delegates.jit.running import TARGETS, check
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

FLOAT = TensorType.FLOAT32


def integers(choose: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(choose.getrandbits(32)).integers(-4, 5, shape).astype(np.float32)


class Inputs(ModelMaker):
    """A model whose operands are constants or inputs."""

    def __init__(self, choose: random.Random) -> None:
        super().__init__()
        self.choose = choose
        self.fed: dict[int, np.ndarray] = {}

    def operand(self, *shape: int, constant: bool = False) -> int:
        value = integers(self.choose, shape)
        if constant:
            return self.constant(value, np.float32, FLOAT)
        index = self.tensor(shape)
        self.fed[index] = value
        return index

    def check(self, *outputs: int) -> None:
        self.io(tuple(self.fed), outputs)
        check(self.model(), self.fed, target=self.choose.choice(TARGETS))


def batches(choose: random.Random) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Leading dimensions of both operands and of the product."""
    both = [choose.choice([1, 2, 3]) for _ in range(choose.randint(0, 3))]
    x, y = ([1 if choose.random() < 0.3 else size for size in both] for _ in range(2))
    common = tuple(max(pair) for pair in zip(x, y, strict=True))
    x, y = (side[len(side) - choose.randint(0, len(side)) if choose.random() < 0.3 else 0 :] for side in (x, y))
    filled = [(1,) * (len(both) - len(side)) + tuple(side) for side in (x, y)]
    return tuple(x), tuple(y), tuple(max(pair) for pair in zip(*filled, strict=True)) or common


@pytest.mark.parametrize("seed", seeds(15, 40))
def test_batch_matmul(seed: int) -> None:
    choose = random.Random(seed)
    make = Inputs(choose)
    rows, depth, columns = (choose.choice([1, 1, 2, 3, 5, 8, 14, 16, 17, 40, 70]) for _ in range(3))
    of_x, of_y, common = batches(choose)
    adjoint = [choose.random() < 0.4 for _ in range(2)]
    x = make.operand(*of_x, *((depth, rows) if adjoint[0] else (rows, depth)), constant=choose.random() < 0.1)
    constant = choose.random() < 0.3 and bool(make.fed)
    y = make.operand(*of_y, *((columns, depth) if adjoint[1] else (depth, columns)), constant=constant)
    z = make.tensor((*common, rows, columns))
    make.op("BATCH_MATMUL", [x, y], [z], BatchMatMulOptions(adj_x=adjoint[0], adj_y=adjoint[1]))
    if choose.random() < 0.5:
        total = make.tensor((*common, rows, columns))
        make.op("ADD", [z, make.operand(*common, rows, columns)], [total], AddOptions())
        z = total
    make.check(z)


@pytest.mark.parametrize("seed", range(12))
def test_fully_connected(seed: int) -> None:
    choose = random.Random(seed)
    make = Inputs(choose)
    rows, depth, units = (choose.choice([1, 2, 3, 4, 5, 16, 17, 40]) for _ in range(3))
    x = make.operand(rows, depth)
    weights = make.operand(units, depth, constant=choose.random() < 0.5)
    operands = [x, weights]
    if choose.random() < 0.7:
        operands.append(make.operand(units, constant=choose.random() < 0.5))
    y = make.tensor((rows, units))
    make.op("FULLY_CONNECTED", operands, [y], FullyConnectedOptions())
    make.check(y)


@pytest.mark.parametrize("depth", [1000, 1100])
@pytest.mark.parametrize("rows", [1, 2, 4, 5, 40])
def test_large_weights(rows: int, depth: int) -> None:
    """More than a megabyte, constant and computed."""
    make = Inputs(random.Random(rows))
    x, outputs = make.operand(rows, depth), []
    for constant in (True, False):
        outputs.append(make.tensor((rows, 300)))
        weights = make.operand(300, depth, constant=constant)
        make.op("FULLY_CONNECTED", [x, weights], outputs[-1:], FullyConnectedOptions())
    make.check(*outputs)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(("depth", "channels"), [(6, 20), (256, 20), (64, 64)])
def test_computed_filter(depth: int, channels: int, kernel: int, groups: int) -> None:
    make = Inputs(random.Random(kernel))
    x, filter = make.operand(2, 9, 8, depth * groups), make.operand(channels * groups, kernel, kernel, depth)
    total = make.tensor((channels * groups, kernel, kernel, depth))
    y = make.tensor((2, 9, 8, channels * groups))
    make.op("ADD", [filter, filter], [total], AddOptions())
    options = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    make.op("CONV_2D", [x, total, make.operand(channels * groups)], [y], options)
    make.check(y)


def test_computed_depthwise_filter() -> None:
    make = Inputs(random.Random(0))
    x, filter = make.operand(2, 9, 8, 20), make.operand(1, 3, 3, 20)
    y = make.tensor((2, 9, 8, 20))
    options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1)
    make.op("DEPTHWISE_CONV_2D", [x, filter, make.operand(20)], [y], options)
    make.check(y)
