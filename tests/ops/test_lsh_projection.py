"""LSH_PROJECTION: bits of hashes; expected values are LiteRT's, over every length class of the hash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.ops._farm_hash import fingerprint64
from gossamer.ops.lsh_projection import op
from gossamer.schema import LSHProjectionOptions, LSHProjectionType
from tests.ops.cases import Case, Operand, const, run_case, tensor
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
