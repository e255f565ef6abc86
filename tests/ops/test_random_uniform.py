"""RANDOM_UNIFORM: seeds, sequences, shapes; expected values are LiteRT's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.random_uniform import op
from gossamer.schema import RandomOptions
from tests.ops.cases import Case, const, model_of, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import REFERENCE, assert_refused, output_of

SEEDS = RandomOptions(seed=1234, seed2=5678)
FIRST = [0.666307806968689, 0.9674705266952515, 0.8894475698471069, 0.09441018104553223, 0.28930413722991943]
SECOND = [0.4489556550979614, 0.04433882236480713, 0.32650279998779297, 0.9890714883804321, 0.47877824306488037]
EXACT = {"rtol": 0.0, "atol": 0.0}

CASES = [
    Case("first", [const([5])], [tensor(FIRST)], SEEDS, **EXACT),
    Case("second", [const([5])], [tensor(SECOND)], SEEDS, calls=2, **EXACT),
    Case("shape_from_input", [tensor([1, 5], np.int32)], [tensor([SECOND])], SEEDS, calls=2, **EXACT),
    Case("seeds_of_more_than_32_bits", [const([5])], [tensor(FIRST)], RandomOptions(seed=1234 + 2**40, seed2=5678)),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def numbers(*shape: int, **seeds: int) -> Any:
    return output_of(op, Case("", [const(shape)], [tensor(np.zeros(shape))], RandomOptions(**seeds)))


def test_a_long_draw_begins_like_a_short_one_and_is_uniform() -> None:
    many = numbers(300_001, seed=1)
    np.testing.assert_array_equal(many[:7], numbers(7, seed=1))
    assert 0 <= many.min() < 1e-4
    assert 1 - 1e-4 < many.max() < 1
    np.testing.assert_allclose(np.histogram(many, 10, (0, 1))[0] / many.size, 0.1, atol=0.003)


def test_resizing_starts_again() -> None:
    interpreter = REFERENCE(model_content=model_of(op, CASES[2]))
    for shape in ([5], [1, 5]):
        interpreter.resize_tensor_input(0, [len(shape)])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.array(shape, np.int32))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(1).reshape(-1), np.array(FIRST, np.float32))


def test_without_seeds_no_two_are_alike() -> None:
    assert not np.array_equal(numbers(4), numbers(4))
    assert not np.array_equal(numbers(4, seed=2**32), numbers(4, seed=2**32))


def test_no_numbers() -> None:
    assert numbers(0, 3, seed=1).shape == (0, 3)


REFUSED = [
    ("shape must have 1 dimensions, got 0", Case("", [const(5)], [tensor([0])], SEEDS)),
    ("shape must be int32, got int64", Case("", [const([5], np.int64)], [tensor([0])], SEEDS)),
    ("output must be float32, got float16", Case("", [const([5])], [tensor([0], np.float16)], SEEDS)),
    ("output shape [2, -1] has a negative dimension", Case("", [const([2, -1])], [tensor([0])], SEEDS)),
    ("output shape has 33 dimensions, at most 32 are possible", Case("", [const([1] * 33)], [tensor([0])], SEEDS)),
    ("is too large", Case("", [const([65536, 65536])], [tensor([0])], SEEDS)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


def test_refuses_a_shape_with_a_negative_dimension() -> None:
    assert_refused_by_invoke(op, Case("", [tensor([-1], np.int32)], [tensor([0])], SEEDS), "negative dimension")
