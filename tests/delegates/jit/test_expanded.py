"""What is repeated for several heads: computed once, and read by products where it is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from gossamer.schema import (
    BatchMatMulOptions,
    MulOptions,
    QuantizationParameters,
    ReshapeOptions,
    SoftmaxOptions,
    TensorType,
)
from tests.delegates.jit.running import TARGETS, machine_code, outputs, reference
from tests.runtime.graphs import ModelMaker

pytestmark = pytest.mark.skipif(not TARGETS, reason="no machine code for this CPU")

INT, FLOAT = TensorType.INT32, TensorType.FLOAT32


class Heads(ModelMaker):
    """k [shared, length, depth] for so many heads each: [heads, length, depth]."""

    def __init__(
        self, shared: int, each: int, length: int, depth: int, type: TensorType = FLOAT, quantization: Any = None
    ) -> None:
        super().__init__()
        self.how = type, quantization
        self.k = self.made((shared, length, depth))
        self.sizes = shared, each, length, depth

    def made(self, shape: Any) -> int:
        type, quantization = self.how
        return self.tensor(shape, type, quantization=quantization)

    def sizes_of(self, *sizes: int) -> int:
        return self.constant(sizes, np.int32, INT)

    def by_broadcast(self) -> int:
        shared, each, length, depth = self.sizes
        one, several = self.made((shared, 1, length, depth)), self.made((shared, each, length, depth))
        self.op("RESHAPE", [self.k, self.sizes_of(shared, 1, length, depth)], [one], ReshapeOptions())
        self.op("BROADCAST_TO", [one, self.sizes_of(shared, each, length, depth)], [several], version=3)
        return self.joined(several)

    def by_ones(self) -> int:
        shared, each, length, depth = self.sizes
        one, several = self.made((shared, 1, length, depth)), self.made((shared, each, length, depth))
        ones = self.constant(np.ones((shared, each, length, depth)), np.float32, FLOAT)
        self.op("RESHAPE", [self.k, self.sizes_of(shared, 1, length, depth)], [one], ReshapeOptions())
        self.op("MUL", [one, ones], [several], MulOptions())
        return self.joined(several)

    def joined(self, several: int) -> int:
        shared, each, length, depth = self.sizes
        heads = self.made((shared * each, length, depth))
        self.op("RESHAPE", [several, self.sizes_of(shared * each, length, depth)], [heads], ReshapeOptions())
        return heads

    def twice(self, x: int) -> int:
        y = self.tensor(self.graphs[-1].tensors[x].shape)
        self.op("MUL", [x, self.constant(2, np.float32, FLOAT)], [y], MulOptions())
        return y

    def product(self, k: int, rows: int) -> tuple[int, int]:
        shared, each, length, depth = self.sizes
        q, y = self.tensor((shared * each, rows, depth)), self.tensor((shared * each, rows, length))
        self.op("BATCH_MATMUL", [q, k], [y], BatchMatMulOptions(adj_y=True))
        return q, y


def kinds(kernel: Any) -> Counter[str]:
    return Counter(one.kind for one in kernel.built.graph)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("how", ["by_broadcast", "by_ones"])
@pytest.mark.parametrize(
    ("shared", "each", "length", "depth", "rows"),
    [(4, 8, 64, 4, 1), (1, 32, 64, 4, 1), (3, 2, 5, 7, 3), (2, 4, 33, 64, 1), (2, 3, 1, 8, 2)],
)
def test_heads_that_share_keys_meet_them_in_one_product(
    shared: int, each: int, length: int, depth: int, rows: int, how: str, target: Any
) -> None:
    make = Heads(shared, each, length, depth)
    q, y = make.product(make.twice(getattr(make, how)()), rows)
    make.io([q, make.k], [y])
    interpreter, kernel = machine_code(make.model(), 2, target)
    assert kinds(kernel) == ({"map": 1, "matmul": 1})
    (scaled,) = [one for one in kernel.built.graph if one.kind == "map"]
    assert scaled.y.size == shared * length * depth
    rng = np.random.default_rng(0)
    k = rng.integers(-9, 9, (shared, length, depth)).astype(np.float32)
    x = rng.integers(-9, 9, (shared * each, rows, depth)).astype(np.float32)
    (got,) = outputs(interpreter, {q: x, make.k: k})
    np.testing.assert_array_equal(got, x @ (2 * np.repeat(k, each, 0)).transpose(0, 2, 1))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.INT16])
@pytest.mark.parametrize("adjoint", [True, False])
def test_heads_of_integers(type: TensorType, adjoint: bool, target: Any) -> None:
    shared, each, length, depth, rows = 3, 2, 5, 7, 3
    zeros = (3, -5, 7) if type == TensorType.INT8 else (0, 0, 0)
    k_of, x_of, y_of = (
        QuantizationParameters(scale=np.float32([scale]), zero_point=np.int64([zero]))
        for scale, zero in zip((0.02, 0.03, 0.4 if type == TensorType.INT8 else 200), zeros, strict=True)
    )
    make = Heads(shared, each, length, depth, type, k_of)
    heads = make.by_broadcast()
    q = make.tensor((shared * each, rows, depth if adjoint else length), type, quantization=x_of)
    y = make.tensor((shared * each, rows, length if adjoint else depth), type, quantization=y_of)
    make.op("BATCH_MATMUL", [q, heads], [y], BatchMatMulOptions(adj_y=adjoint), version=3)
    make.io([q, make.k], [y])
    interpreter, kernel = machine_code(make.model(), 1, target)
    assert all(one.y.size < shared * each * length * depth for one in kernel.built.graph)
    rng = np.random.default_rng(0)
    limits = np.iinfo(np.int8 if type == TensorType.INT8 else np.int16)
    fed = {
        at: rng.integers(limits.min, limits.max, interpreter.get_tensor(at).shape, limits.dtype) for at in (q, make.k)
    }
    other = reference(make.model())
    other.allocate_tensors()
    (got,), (wanted,) = (outputs(one, fed) for one in (interpreter, other))
    assert np.abs(got.astype(int) - wanted).max() <= (type == TensorType.INT8)  # whose halves are rounded otherwise


def test_what_others_read_is_written_down() -> None:
    make = Heads(2, 3, 5, 4)
    heads = make.by_broadcast()
    q, y = make.product(heads, 1)
    soft = make.tensor((6, 5, 4))
    make.op("SOFTMAX", [heads], [soft], SoftmaxOptions(beta=1.0))
    make.io([q, make.k], [y, soft, heads])
    interpreter, _ = machine_code(make.model())
    rng = np.random.default_rng(0)
    k, x = (rng.integers(-3, 3, shape).astype(np.float32) for shape in ((2, 5, 4), (6, 1, 4)))
    product, softmax, written = outputs(interpreter, {q: x, make.k: k})
    several = np.repeat(k, 3, 0)
    np.testing.assert_array_equal(written, several)
    np.testing.assert_array_equal(product, x @ several.transpose(0, 2, 1))
    np.testing.assert_allclose(softmax, np.exp(several) / np.exp(several).sum(-1, keepdims=True), rtol=1e-5)


def test_factors_that_differ_are_multiplied() -> None:
    make = Heads(2, 3, 5, 4)
    one, several = make.tensor((2, 1, 5, 4)), make.tensor((2, 3, 5, 4))
    factors = np.arange(120, dtype=np.float32).reshape(2, 3, 5, 4)
    make.op("RESHAPE", [make.k, make.sizes_of(2, 1, 5, 4)], [one], ReshapeOptions())
    make.op("MUL", [one, make.constant(factors, np.float32, FLOAT)], [several], MulOptions())
    q, y = make.product(make.joined(several), 2)
    make.io([q, make.k], [y])
    interpreter, _ = machine_code(make.model())
    rng = np.random.default_rng(0)
    k, x = (rng.integers(-3, 3, shape).astype(np.float32) for shape in ((2, 5, 4), (6, 2, 4)))
    (got,) = outputs(interpreter, {q: x, make.k: k})
    wanted = (np.repeat(k, 3, 0) * factors.reshape(6, 5, 4)).transpose(0, 2, 1)
    np.testing.assert_array_equal(got, x @ wanted)
