"""LSH_PROJECTION: bits of hashes; expected values are LiteRT's, over every length class of the hash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops.lsh_projection import op
from gossamer.schema import LSHProjectionOptions, LSHProjectionType
from tests.ops.cases import Case, Operand, run_case, tensor
from tests.ops.reference import assert_refused

SPARSE = LSHProjectionOptions(type=LSHProjectionType.SPARSE)
DENSE = LSHProjectionOptions(type=LSHProjectionType.DENSE)

SEEDS = tensor([[0.123, 0.456], [-0.321, 1.234], [5.678, -4.321]])
ROWS = tensor([12345, 54321, 67890, 9876, -12345678], np.int32)
WEIGHTS = tensor([0.12, 0.34, 0.56, 0.67, 0.78])


def bits(*values: int) -> Operand:
    return tensor(values, np.int32)


def wide(width: int, *expected: int) -> Case:
    """Two rows of so many bytes, eight bits."""
    rows = np.arange(2 * width).reshape(2, width) % 251
    return Case(
        f"{width}_bytes",
        [tensor(np.arange(8).reshape(1, 8) - 3.5), tensor(rows, np.uint8)],
        [bits(*expected)],
        DENSE,
    )


CASES = [
    Case("dense", [SEEDS, ROWS, WEIGHTS], [bits(1, 0, 1, 0, 0, 1)], DENSE),
    Case("sparse", [SEEDS, ROWS, WEIGHTS], [bits(2, 2 + 4, 1 + 8)], SPARSE),
    Case("without_weights", [SEEDS, ROWS], [bits(0, 1 + 4, 8)], SPARSE),
    Case(
        "31_bits",
        [tensor(np.arange(62).reshape(2, 31) / 3), ROWS],
        [bits(1366524846, -921727697)],
        SPARSE,
        notes="the offset 2**31 wraps",
    ),
    Case("32_bits", [tensor(np.arange(64).reshape(2, 32) / 3), ROWS], [bits(-1561917603, 608056512)], SPARSE),
    Case("strings", [SEEDS, tensor([b"abc", b"de"], object)], [bits(0, 0, 1, 0, 0, 1)], DENSE),
    wide(1, 1, 0, 0, 0, 0, 1, 1, 0),
    wide(4, 0, 0, 1, 0, 0, 0, 1, 1),
    wide(8, 0, 1, 0, 0, 1, 1, 1, 1),
    wide(20, 0, 0, 1, 0, 1, 1, 1, 1),
    wide(40, 1, 0, 0, 0, 0, 0, 0, 1),
    wide(61, 0, 0, 0, 0, 0, 0, 0, 1),
    wide(124, 0, 0, 0, 0, 0, 0, 0, 0),
    wide(200, 1, 0, 0, 1, 0, 0, 0, 1),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


REFUSED = [
    ("seeds must have 2 dimensions, got 1", Case("", [tensor([1]), ROWS], [bits(0)], DENSE)),
    ("at most 32 bits for each function, got 33", Case("", [tensor(np.zeros((1, 33))), ROWS], [bits(0)], DENSE)),
    ("input must have at least one row, got shape []", Case("", [SEEDS, tensor(1)], [bits(0)], DENSE)),
    (
        "input must have at least one row, got shape [0, 2]",
        Case("", [SEEDS, tensor(np.zeros((0, 2)))], [bits(0)], DENSE),
    ),
    ("weights must have shape [5], got [2]", Case("", [SEEDS, ROWS, tensor([1, 2])], [bits(0)], DENSE)),
    ("input 2 is missing", Case("", [SEEDS, ROWS, None], [bits(0)], DENSE)),
    ("type must be SPARSE or DENSE, got UNKNOWN", Case("", [SEEDS, ROWS], [bits(0)], LSHProjectionOptions())),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)
