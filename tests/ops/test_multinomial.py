"""MULTINOMIAL: samples, how the generator goes on, what is refused; expected values are LiteRT's."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.ops import _random_bits
from gossamer.ops.multinomial import op
from gossamer.schema import RandomOptions
from tests.ops.cases import Case, Operand, const, model_of, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import REFERENCE, assert_refused, output_of

SEEDS = RandomOptions(seed=1234, seed2=5678)
LOGITS = tensor([[0, 1, 2], [3, -np.inf, 0]])
SIX = tensor(6, np.int32)


def samples(values: Any, dtype: Any = np.int64) -> Operand:
    return tensor(values, dtype)


FIRST = [[1, 1, 1, 1, 2, 2], [0, 2, 0, 0, 0, 0]]
SECOND = [[2, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0]]

CASES = [
    Case("first", [LOGITS, SIX], [samples(FIRST)], SEEDS),
    Case("second", [LOGITS, SIX], [samples(SECOND)], SEEDS, calls=2),
    Case("constant", [const(LOGITS.value, np.float32), const(6)], [samples(FIRST, np.int32)], SEEDS),
    Case("one_class", [tensor([[5], [-np.inf]]), const(2)], [samples([[0, 0], [1, 1]])], SEEDS),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def test_follows_the_logits() -> None:
    logits = [[*np.log([0.5, 0.3, 0.2])], [-np.inf, *np.log([0.1, 0.9])]]
    drawn = output_of(op, Case("", [tensor(logits), tensor(20_000, np.int32)], [samples([[0]])], RandomOptions(seed=9)))
    shares = [np.bincount(row, minlength=3) / row.size for row in drawn]
    np.testing.assert_allclose(shares, [[0.5, 0.3, 0.2], [0.0, 0.1, 0.9]], atol=0.015)


REFUSED = [
    ("logits must have 2 dimensions, got 1", Case("", [tensor([1]), SIX], [samples([[0]])], SEEDS)),
    ("num_samples must have 0 dimensions, got 1", Case("", [LOGITS, const([6])], [samples([[0]])], SEEDS)),
    ("at least one class", Case("", [tensor(np.zeros((2, 0))), SIX], [samples([[0]])], SEEDS)),
    (
        "num_samples must not be negative, got -1",
        Case("", [const([[1]], np.float32), const(-1)], [samples([[0]])], SEEDS),
    ),
    ("output must be int64 or int32, got int8", Case("", [LOGITS, SIX], [samples([[0]], np.int8)], SEEDS)),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


def test_refuses_a_negative_number_of_samples() -> None:
    refused = Case("", [LOGITS, tensor(-3, np.int32)], [samples([[0]])], SEEDS)
    assert_refused_by_invoke(op, refused, "num_samples must not be negative, got -3")


@pytest.mark.parametrize("rows", [1, 3, 40_001])
def test_samples_are_drawn_in_pieces_as_they_would_be_at_once(rows: int) -> None:
    logits = np.random.default_rng(0).normal(size=(rows, 5)).astype(np.float32)
    count = 200_003 // rows
    drawn = output_of(op, Case("", [tensor(logits), tensor(count, np.int32)], [samples([[0]])], SEEDS))
    words = _random_bits.PhiloxGenerator(SEEDS.seed, SEEDS.seed2).draw(2 * rows * count)
    places = _random_bits.uniform_doubles(words).reshape(rows, count, 1)
    sums = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True)).cumsum(1)[:, None]
    np.testing.assert_array_equal(drawn, (sums <= places * sums[..., -1:]).sum(-1))


@pytest.mark.parametrize("constant", [False, True])
def test_machine_code_draws_what_the_reference_kernel_does(constant: bool) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, 300)).astype(np.float32) * 40
    logits[:3, :4] = np.inf, -np.inf, np.nan, 1e38
    logits[3] = -np.inf
    for count in (0, 1, 6, 1001):
        number = const(count) if constant else tensor(count, np.int32)
        model = model_of(op, Case("", [tensor(logits), number], [samples([[0]])], SEEDS))
        drawn = []
        for make in (REFERENCE, gossamer.Interpreter):
            interpreter = make(model_content=model)
            interpreter.allocate_tensors()
            for details, value in zip(interpreter.get_input_details(), (logits, number.value), strict=False):
                interpreter.set_tensor(details["index"], value)
            for _ in range(3):
                interpreter.invoke()
            drawn.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        np.testing.assert_array_equal(*drawn)
        assert drawn[0].shape == (5, count)
        (kernel,) = interpreter.delegate_kernels()
        assert kernel.failure is None
        assert all(step.program for step in getattr(kernel, "steps", ()) if count)


def test_many_samples_take_little_more_memory_than_their_numbers() -> None:
    count = 4_000_000
    case = Case("", [LOGITS, tensor(count // 2, np.int32)], [samples([[0]], np.int32)], SEEDS)
    tracemalloc.start()
    try:
        assert output_of(op, case).nbytes == 4 * count
        assert tracemalloc.get_traced_memory()[1] < 3 * 4 * count + (8 << 20)
    finally:
        tracemalloc.stop()
