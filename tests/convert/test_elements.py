from __future__ import annotations

import math

import numpy as np
import pytest

from gossamer.convert.elements import element_dtype, in_order, known_shape, of_strings, repeat_last
from gossamer.errors import ConvertError


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8", "bool", "complex128", "object"])
def test_dtypes_of_numpy(name: str) -> None:
    assert element_dtype(name) == np.dtype(name)


@pytest.mark.parametrize(("name", "size"), [("bfloat16", 2), ("float8_e4m3fn", 1), ("float8_e5m2", 1)])
def test_dtypes_of_ml_dtypes(name: str, size: int) -> None:
    assert (element_dtype(name).name, element_dtype(name).itemsize) == (name, size)


def test_a_dtype_that_ml_dtypes_does_not_have() -> None:
    with pytest.raises(ConvertError, match=r"elements are float8_e9m9, which ml_dtypes .* does not have"):
        element_dtype("float8_e9m9")


@pytest.mark.parametrize(
    ("sizes", "words"),
    [((-1,), "not all sizes"), ((1,) * 65, "65 dimensions"), ((1 << 31, 1 << 31), "no memory"), ((0, 1 << 62), "no")],
)
def test_shapes_that_no_array_has(sizes: tuple[int, ...], words: str) -> None:
    with pytest.raises(ConvertError, match=words):
        known_shape(sizes, np.dtype(np.float32), "tensor")


def test_the_last_value_is_repeated() -> None:
    assert repeat_last(np.array([1, 2]), (2, 2), "t").tolist() == [[1, 2], [2, 2]]
    assert repeat_last(np.array([1, 2]), (2,), "t").tolist() == [1, 2]
    assert repeat_last(np.array([], np.int8), (2,), "t").tolist() == [0, 0]
    assert repeat_last(of_strings([]), (2,), "t").tolist() == [b"", b""]
    assert repeat_last(of_strings([b"a", b"b"]), (3,), "t").tolist() == [b"a", b"b", b"b"]
    assert repeat_last(of_strings([b"a\0"]), (2,), "t").tolist() == [b"a\0", b"a\0"]
    assert repeat_last(np.array([5]), (0, 3), "t").shape == (0, 3)


def test_one_value_takes_no_memory_however_often_it_is_repeated() -> None:
    array = repeat_last(np.array([1], np.int8), (1 << 40,), "t")
    assert array.shape == (1 << 40,)
    assert array.strides == (0,)


def test_what_is_not_repeated() -> None:
    with pytest.raises(ConvertError, match=r"t has 3 values; the shape \[2\] has 2 elements"):
        repeat_last(np.arange(3), (2,), "t")
    with pytest.raises(
        ConvertError, match=r"t repeats the last of 2 values to .* bytes; at most 268435456 are allowed"
    ):
        repeat_last(np.arange(2), (1 << 40,), "t")


@pytest.mark.parametrize("shape", [(3, 5), (3, 3, 70, 500), (1100, 301), (64, 2, 3, 4, 300)])
@pytest.mark.parametrize("last_is_first", [True, False])
def test_elements_in_order(shape: tuple[int, ...], last_is_first: bool) -> None:
    stored = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    array = np.moveaxis(stored, -1, 0) if last_is_first else stored.swapaxes(0, 1)[::-1]
    found = in_order(array)
    assert found.flags.c_contiguous
    assert np.array_equal(found, array)
    assert in_order(found) is found
