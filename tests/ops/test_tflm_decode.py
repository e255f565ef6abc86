"""TFLM_DECODE: each encoding, and what of an encoding cannot be believed.

What is expected is what TFLite Micro makes of these inputs, asked with the package tflite-micro of October 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import gossamer
from gossamer.ops.custom.tflm_decode import op
from gossamer.schema import FullyConnectedOptions, TensorType
from tests.ops.cases import Case, Operand, const, run_case, tensor
from tests.ops.reference import assert_refused
from tests.runtime.graphs import ModelMaker

LUT, HUFFMAN, PRUNING = 0, 1, 2


def ancillary(kind: int, table: ArrayLike, dtype: Any, *how: int, version: int = 1, kind_version: int = 1) -> Operand:
    """A header and a table; ``how``: bytes 5 and 6."""
    header = np.zeros(16, np.uint8)
    header[[0, 1, 4]] = kind, version, kind_version
    header[5 : 5 + len(how)] = how
    return const(np.concatenate([header, np.frombuffer(np.array(table, dtype).tobytes(), np.uint8)]), np.uint8)


def bits(text: str) -> Operand:
    """Bits as a constant of bytes; blanks do not matter."""
    return const(np.packbits([int(digit) for digit in text.replace(" ", "")]), np.uint8)


def decoded(id: str, packed: str, how: Operand, expected: Operand) -> Case:
    return Case(id, [bits(packed), how], [expected], rtol=0, atol=0)


# Symbols 5, -3, 100 and 7 have the codes 0, 10, 110 and 111. The first table is for 2 bits, the second for 1.
FOUND_16, FOUND_32 = 1 << 15, 1 << 31
SPLIT_16 = [FOUND_16 | 1 << 11 | 5] * 2 + [FOUND_16 | 2 << 11 | 0xFD, 0 << 11 | 1]
TABLE_16 = [*SPLIT_16, FOUND_16 | 1 << 11 | 100, FOUND_16 | 1 << 11 | 7]
SPLIT_32 = [FOUND_32 | 1 << 27 | 500] * 2 + [FOUND_32 | 2 << 27 | 0xFFFD, 0 << 27 | 1]
TABLE_32 = [*SPLIT_32, FOUND_32 | 1 << 27 | 100, FOUND_32 | 1 << 27 | 7]
CODES = "110 0 10 111 0 0 10"

PER_CHANNEL: dict[str, Any] = {"scale": [1, 2], "zero_point": [0, 0]}

CASES = [
    decoded("lut_2_bits", "00 11 01 10", ancillary(LUT, [5, -6, 7, 8], np.int8, 2, 4), tensor([5, 8, -6, 7], np.int8)),
    decoded(
        "lut_3_bits_float32",
        "000 100 010 011 001 100",
        ancillary(LUT, [0.5, -1, 2, 3, 1e9], np.float32, 3, 5),
        tensor([[0.5, 1e9, 2], [3, -1, 1e9]]),
    ),
    decoded(
        "lut_first_dimension",
        "0 1 1 0",
        ancillary(LUT, [[1, 2], [3, 4]], np.int16, 1, 2),
        tensor([[1, 2], [4, 3]], np.int16, **PER_CHANNEL),
    ),
    decoded(
        "lut_last_dimension",
        "0 1 1 0",
        ancillary(LUT, [[1, 2], [3, 4]], np.int64, 1, 2),
        tensor([[1, 4], [2, 3]], np.int64, dimension=1, **PER_CHANNEL),
    ),
    decoded("lut_bool", "1 0 1", ancillary(LUT, [0, 1], np.uint8, 1, 2), tensor([True, False, True], np.bool_)),
    decoded("lut_axis_in_the_header", "1 0", ancillary(LUT, [7, 9], np.int32, 0xF1, 2), tensor([9, 7], np.int32)),
    decoded("pruned", "1 0 0 1 1", ancillary(PRUNING, [5, -6, 7], np.int8), tensor([5, 0, 0, -6, 7], np.int8)),
    decoded("pruned_float32", "0 1", ancillary(PRUNING, [2.5], np.float32), tensor([0, 2.5])),
    decoded(
        "pruned_to_a_zero_point",
        "0 1 0",
        ancillary(PRUNING, [5], np.int8),
        tensor([-3, 5, -3], np.int8, scale=1.0, zero_point=-3),
    ),
    decoded(
        "pruned_to_zero_points",
        "0 1 0 0",
        ancillary(PRUNING, [5], np.int8),
        tensor([[1, 5], [2, 2]], np.int8, scale=[1, 1], zero_point=[1, 2]),
    ),
    decoded(
        "pruned_to_zero_points_of_the_last_dimension",
        "0 1 0 0",
        ancillary(PRUNING, [5], np.int8),
        tensor([[1, 5], [1, 2]], np.int8, scale=[1, 1], zero_point=[1, 2], dimension=1),
    ),
    decoded(
        "huffman_int8",
        CODES + "0" * 50,
        ancillary(HUFFMAN, TABLE_16, np.uint16, 1 << 4),
        tensor([100, 5, -3, 7, 5, 5, -3], np.int8),
    ),
    decoded(
        "huffman_int16",
        CODES + "0" * 50,
        ancillary(HUFFMAN, TABLE_32, np.uint32, 1 << 4 | 1),
        tensor([100, 500, -3, 7, 500, 500, -3], np.int16),
    ),
    Case(
        "two",
        [bits("10"), ancillary(PRUNING, [5], np.int8), bits("01"), ancillary(LUT, [3, 4], np.int16, 1, 2)],
        [tensor([5, 0], np.int8), tensor([3, 4], np.int16)],
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


def simple(kind: int = LUT, how: Sequence[int] = (1, 2), output: Operand | None = None, **more: Any) -> Case:
    """Two elements as indices of 1 bit."""
    return decoded("", "01", ancillary(kind, [3, 4], np.int8, *how, **more), output or tensor([3, 4], np.int8))


REFUSED = [
    ("1 outputs need 2 inputs, got 1", Case("", [bits("1")], [tensor([1], np.int8)])),
    (
        "input 0 must be a constant of the file",
        Case("", [tensor([1], np.uint8), ancillary(LUT, [1], np.int8, 1, 1)], [tensor([1], np.int8)]),
    ),
    ("ancillary data must have 16 bytes, got 3", Case("", [bits("1"), const([0, 1, 0], np.uint8)], [tensor([1])])),
    ("version 2 of the ancillary data", simple(version=2)),
    ("version 3 of decode type 0", simple(kind_version=3)),
    ("custom decode types are not supported", simple(127)),
    ("unsupported decode type 200", simple(200)),
    ("must not be uint8", simple(output=tensor([3, 4], np.uint8))),
    ("indices must have 1 to 7 bits, got 0", simple(how=(0, 2))),
    ("12 bits are wanted, there are 8", simple(output=tensor([3] * 12, np.int8))),
    ("an index needs value 1 of 0", simple(output=tensor([3, 4], np.int32))),
    (
        "unsupported quantization axis 1, it must be the first or the last",
        simple(output=tensor([[[3], [4]]], np.int8, dimension=1, **PER_CHANNEL)),
    ),
    ("unsupported quantization axis 1 of one scale", simple(output=tensor([[3, 4]], np.int8, scale=1.0, dimension=1))),
    ("2 values are wanted, there are 1", decoded("", "11", ancillary(PRUNING, [5], np.int8), tensor([1, 2], np.int8))),
    (
        "All zero-points must be zero",
        decoded("", "1", ancillary(PRUNING, [5], np.int16), tensor([5], np.int16, scale=1.0, zero_point=1)),
    ),
    (
        "which has no such Huffman code",
        decoded("", "1", ancillary(HUFFMAN, TABLE_16, np.uint16, 1 << 4), tensor([5], np.int16)),
    ),
    (
        "9 symbols cannot be in 8 bits",
        decoded("", "1", ancillary(HUFFMAN, TABLE_16, np.uint16, 1 << 4), tensor([5] * 9, np.int8)),
    ),
    (
        "the bits end within symbol 2",
        decoded("", "110 110 11", ancillary(HUFFMAN, TABLE_16, np.uint16, 1 << 4), tensor([5] * 3, np.int8)),
    ),
    (
        "symbol 0 needs element 5 of a table of 5",
        decoded("", "111", ancillary(HUFFMAN, TABLE_16[:5], np.uint16, 1 << 4), tensor([5], np.int8)),
    ),
    # An entry that leads to itself reads on until there is no bit left.
    (
        "the bits end within symbol 0",
        decoded("", "0", ancillary(HUFFMAN, [0], np.uint16, 0), tensor([5], np.int8)),
    ),
]


@pytest.mark.parametrize(("message", "refused"), REFUSED, ids=[message for message, _ in REFUSED])
def test_refuses(message: str, refused: Case) -> None:
    assert_refused(op, refused, message)


def test_decoded_weights_are_constants_for_machine_code() -> None:
    make = ModelMaker()
    x, y = make.tensor((1, 4)), make.tensor((1, 2))
    packed = make.constant(np.packbits([0, 1, 1, 0, 1, 1, 0, 0]), np.uint8, TensorType.UINT8)
    how = make.constant(ancillary(LUT, [0.5, -2], np.float32, 1, 2).value, np.uint8, TensorType.UINT8)
    weights = make.tensor((2, 4))
    make.op("TFLM_DECODE", [packed, how], [weights], custom=True)
    make.op("FULLY_CONNECTED", [x, weights, -1], [y], FullyConnectedOptions())
    make.io([x], [y])
    interpreter = gossamer.Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    (claims,) = interpreter.delegate_claims()
    assert claims.refusals == {}
    assert claims.partitions
    interpreter.set_tensor(x, np.float32([[1, 2, 3, 4]]))
    interpreter.invoke()
    assert interpreter.get_tensor(y).tolist() == [[0.5 - 4 - 6 + 2, -2 - 4 + 1.5 + 2]]
