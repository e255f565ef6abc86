"""STABLEHLO_RNG_BIT_GENERATOR: the published test vectors of both generators, counters, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.stablehlo_rng_bit_generator import op
from gossamer.schema import RngAlgorithm, StablehloRngBitGeneratorOptions
from tests.ops.cases import Case, Operand, model_of, run_case, tensor
from tests.ops.reference import REFERENCE, assert_refused

PHILOX = StablehloRngBitGeneratorOptions(algorithm=RngAlgorithm.PHILOX)
THREEFRY = StablehloRngBitGeneratorOptions(algorithm=RngAlgorithm.THREEFRY)
ONES = 2**64 - 1


def state(*words: int) -> Operand:
    return tensor(words, np.uint64)


def words(*values: int) -> Operand:
    return tensor(values, np.uint32)


# Of Random123 (kat_vectors).
PHILOX_ZEROS = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
PHILOX_ONES = (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
THREEFRY_ZEROS = (0x6B200159, 0x99BA4EFE)
THREEFRY_ONES = (0x1CB996FC, 0xBB002BE7)

CASES = [
    Case("philox_zeros", [state(0, 0, 0)], [state(0, 1, 0), words(*PHILOX_ZEROS)], PHILOX),
    Case("philox_ones", [state(ONES, ONES, ONES)], [state(ONES, 0, ONES), words(*PHILOX_ONES)], PHILOX),
    Case("philox_key_in_the_counter", [state(ONES, ONES)], [state(ONES, 0), words(*PHILOX_ONES)], PHILOX),
    Case("default_is_philox", [state(0, 0)], [state(0, 1), words(*PHILOX_ZEROS)], StablehloRngBitGeneratorOptions()),
    Case("threefry_zeros", [state(0, 0)], [state(0, 1), words(*THREEFRY_ZEROS)], THREEFRY),
    Case("threefry_ones", [state(ONES, ONES)], [state(ONES, 0), words(*THREEFRY_ONES)], THREEFRY),
    Case(
        "64_bits",
        [state(0, 0)],
        [state(0, 1), tensor([[0xE169C58D6627E8D5, 0x9B00DBD8BC57AC4C]], np.uint64)],
        PHILOX,
    ),
    Case(
        "signed_and_part_of_a_block",
        [state(0, 0)],
        [state(0, 1), tensor(np.array(PHILOX_ZEROS[:3], np.uint32).view(np.int32), np.int32, shape=(3, 1))],
        PHILOX,
    ),
    Case("a_scalar", [state(0, 0)], [state(0, 1), tensor(THREEFRY_ZEROS[0], np.uint32)], THREEFRY),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


@pytest.mark.parametrize(("options", "block"), [(PHILOX, 4), (THREEFRY, 2)], ids=["philox", "threefry"])
def test_a_long_output_is_many_blocks(options: StablehloRngBitGeneratorOptions, block: int) -> None:
    def bits(counter: int, size: int) -> Any:
        case = Case("", [state(1, counter)], [state(0, 0), words(*[0] * size)], options)
        interpreter = REFERENCE(model_content=model_of(op, case))
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, case.inputs[0].value)
        interpreter.invoke()
        return interpreter.get_tensor(1), interpreter.get_tensor(2)

    next_state, made = bits(ONES, block * 70_000 - 1)
    np.testing.assert_array_equal(next_state, np.array([1, 69_999], np.uint64))
    for counter in (0, 65_534, 65_535, 65_536):
        np.testing.assert_array_equal(made[block * (counter + 1) :][:block], bits(counter, block)[1])


REFUSED = [
    ("state must have 1 dimensions, got 0", Case("", [tensor(1, np.uint64)], [state(0, 0), words(0)], PHILOX)),
    ("state must have 2 or 3 elements for PHILOX, got 1", Case("", [state(0)], [state(0), words(0)], PHILOX)),
    ("2 elements for THREEFRY, got 3", Case("", [state(0, 0, 0)], [state(0, 0, 0), words(0)], THREEFRY)),
    ("next_state must have shape [2], got [3]", Case("", [state(0, 0)], [state(0, 0, 0), words(0)], PHILOX)),
    ("state must be uint64, got int64", Case("", [tensor([0, 0], np.int64)], [state(0, 0), words(0)], PHILOX)),
    ("output must be", Case("", [state(0, 0)], [state(0, 0), tensor([0])], PHILOX)),
    (
        "algorithm must be DEFAULT, PHILOX or THREEFRY, got 9",
        Case("", [state(0, 0)], [state(0, 0), words(0)], StablehloRngBitGeneratorOptions(algorithm=9)),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
