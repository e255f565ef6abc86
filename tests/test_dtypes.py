"""Element types: sizes, packing, strings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer import dtypes
from gossamer.schema import TensorType


@pytest.mark.parametrize("tensor_type", list(TensorType))
def test_every_type_has_a_dtype_a_size_and_a_name(tensor_type: TensorType) -> None:
    bits = dtypes.element_bits(tensor_type)
    if dtypes.is_packed(tensor_type) or tensor_type in (TensorType.STRING, TensorType.VARIANT):
        assert bits in (0, 2, 4)
    else:
        assert bits == 8 * dtypes.numpy_dtype(tensor_type).itemsize
    assert dtypes.type_name(tensor_type) == tensor_type.name.lower()


def test_unknown_type() -> None:
    assert dtypes.type_name(77) == "type 77"
    with pytest.raises(KeyError):
        dtypes.numpy_dtype(77)


@pytest.mark.parametrize(
    ("tensor_type", "elements", "expected"),
    [(TensorType.INT4, 5, 3), (TensorType.INT2, 5, 2), (TensorType.FLOAT32, 5, 20), (TensorType.STRING, 5, 0)],
)
def test_byte_size(tensor_type: TensorType, elements: int, expected: int) -> None:
    assert dtypes.byte_size(tensor_type, elements) == expected


@pytest.mark.parametrize(
    ("tensor_type", "values", "packed"),
    [
        (TensorType.INT4, [-8, 7, -1], [0x78, 0x0F]),
        (TensorType.UINT4, [8, 7, 15], [0x78, 0x0F]),
        (TensorType.INT2, [-2, 1, 0, -1, 1], [0b11000110, 0b01]),
    ],
)
def test_pack_and_unpack(tensor_type: TensorType, values: list[int], packed: list[int]) -> None:
    array = np.array(values, dtypes.numpy_dtype(tensor_type))
    np.testing.assert_array_equal(dtypes.pack(array, tensor_type), packed)
    unpacked = dtypes.unpack(np.array(packed, np.uint8), tensor_type, len(values))
    np.testing.assert_array_equal(unpacked, array)
    assert unpacked.dtype == array.dtype


@given(st.lists(st.binary(max_size=9), max_size=6))
def test_strings_round_trip(values: list[bytes]) -> None:
    array = np.empty(len(values), object)
    array[:] = values
    raw = np.frombuffer(dtypes.encode_strings(array), np.uint8)
    np.testing.assert_array_equal(dtypes.decode_strings(raw, array.shape), array)


def test_a_string_buffer_of_another_shape() -> None:
    raw = np.frombuffer(dtypes.encode_strings(np.array([b"a", b"b"], object)), np.uint8)
    with pytest.raises(ValueError, match=r"holds 2 strings, shape \[1, 3\] has 3"):
        dtypes.decode_strings(raw, (1, 3))


@given(st.binary(max_size=40))
def test_a_damaged_string_buffer_is_an_error_or_strings(raw: bytes) -> None:
    try:
        values = dtypes.decode_strings(np.frombuffer(raw, np.uint8), (1,))
    except ValueError:
        return
    assert values.shape == (1,)
