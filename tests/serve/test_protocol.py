"""Datatypes, raw tensors and lists of values, and what is refused of them."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from gossamer.serve import protocol
from gossamer.serve.protocol import DATATYPES, InvalidRequest, array_from_raw, array_from_values, raw_from_array

NUMBERS = [name for name, kind in DATATYPES.items() if kind.size]


def sample(name: str) -> np.ndarray:
    return np.array([[0, 1, 1], [1, 0, 1]]).astype(DATATYPES[name].dtype)


@pytest.mark.parametrize("name", NUMBERS)
def test_raw_numbers_come_back(name: str) -> None:
    array = sample(name)
    raw = raw_from_array(array)
    assert len(raw) == array.size * DATATYPES[name].size
    back = array_from_raw("x", name, [2, 3], memoryview(raw))
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()
    assert protocol.datatype_of(back.dtype) == name


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("nested", [False, True])
def test_values_come_back(name: str, nested: bool) -> None:
    array = sample(name)
    values = array.tolist() if nested else array.ravel().tolist()
    back = array_from_values("x", name, [2, 3], values)
    assert back.dtype == array.dtype
    assert back.tolist() == array.tolist()
    assert protocol.values_from_array("x", back) == array.ravel().tolist()


def test_raw_is_little_endian() -> None:
    assert raw_from_array(np.array([1, 258], ">i4")) == bytes([1, 0, 0, 0, 2, 1, 0, 0])
    assert array_from_raw("x", "INT32", [1], bytes([2, 1, 0, 0])).tolist() == [258]


def test_raw_numbers_are_not_copied_and_may_lie_anywhere() -> None:
    body = b"?" + raw_from_array(np.arange(6, dtype=np.float32))
    array = array_from_raw("x", "FP32", [2, 3], memoryview(body)[1:])
    assert not array.flags.owndata
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_strings() -> None:
    raw = b"\2\0\0\0ab\0\0\0\0\1\0\0\0\xff"
    array = array_from_raw("x", "BYTES", [3, 1], memoryview(raw))
    assert array.tolist() == [[b"ab"], [b""], [b"\xff"]]
    assert raw_from_array(array) == raw
    assert array_from_values("x", "BYTES", [2], ["é", b"\xff"]).tolist() == ["é".encode(), b"\xff"]
    assert protocol.values_from_array("x", array[:2]) == ["ab", ""]
    with pytest.raises(InvalidRequest, match=r'output "x" has strings that are not UTF-8.*ask for binary data'):
        protocol.values_from_array("x", array)


@pytest.mark.parametrize(
    ("shape", "values"), [([], [3]), ([0], []), ([2, 0], []), ([2, 0], [[], []]), ([0, 5], []), ([1, 1, 1], [[[3]]])]
)
def test_scalars_and_nothing(shape: list[int], values: list[object]) -> None:
    array = array_from_values("x", "INT64", shape, values)
    assert array.shape == tuple(shape)
    assert array_from_raw("x", "INT64", shape, raw_from_array(array)).tolist() == array.tolist()
    count = math.prod(shape)
    assert array_from_raw("x", "BYTES", shape, b"\0\0\0\0" * count).shape == tuple(shape)


@pytest.mark.parametrize(
    ("datatype", "shape", "raw", "says"),
    [
        ("FP31", [1], b"", r'tensor "x": datatype must be one of BOOL, .*BF16; got \'FP31\''),
        (7, [1], b"", "datatype must be one of .*; got 7"),
        (["FP32"], [1], b"", "datatype must be one of"),
        ("FP32", None, b"", "shape must be a list of integers, got None"),
        ("FP32", "12", b"", "shape must be a list of integers, got '12'"),
        ("FP32", {"1": 2}, b"", "shape must be a list of integers"),
        ("FP32", [-1], b"", r"shape \[-1\]: sizes are integers from 0 to 2147483647"),
        ("FP32", [True], b"1234", r"shape \[True\]: sizes are integers"),
        ("FP32", [1.0], b"1234", r"shape \[1.0\]: sizes are integers"),
        ("FP32", [2**31], b"", r"shape \[2147483648\]: sizes"),
        ("FP32", [10**5000], b"", "shape a value: sizes|shape .*: sizes"),
        ("FP32", [1] * 33, b"1234", "has 33 dimensions; at most 32"),
        (
            "FP32",
            [1000000, 1000000],
            b"1234",
            r"FP32 \[1000000, 1000000\] takes 4000000000000 bytes; its contents have 4",
        ),
        ("FP32", [0, *[2**31 - 1] * 20], b"", "is too large"),
        ("FP32", [2], b"1234567", r"FP32 \[2\] takes 8 bytes; its contents have 7"),
        ("FP32", [1], b"12345678", r"FP32 \[1\] takes 4 bytes; its contents have 8"),
        ("BOOL", [2], b"\1\2", "bytes of BOOL are 0 or 1, got 2"),
        ("BYTES", [2**31 - 1, 9], b"\0\0\0\0", "19327352823 strings of BYTES take at least"),
        ("BYTES", [1], b"\2\0\0\0a", "string 0 of 1 goes beyond its 5 bytes"),
        ("BYTES", [1], b"\xff\xff\xff\xffa", "string 0 of 1 goes beyond"),
        ("BYTES", [2], b"\4\0\0\0abcd", "string 1 of 2 goes beyond its 8 bytes"),
        ("BYTES", [1], b"\0\0\0\0a", "1 bytes are left behind its 1 strings"),
        ("BYTES", [0], b"a", "1 bytes are left"),
    ],
)
def test_raw_refusals(datatype: object, shape: object, raw: bytes, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        array_from_raw("x", datatype, shape, raw)


@pytest.mark.parametrize(
    ("datatype", "shape", "values", "says"),
    [
        ("INT32", [1], 3, 'tensor "x": data must be a list, got 3'),
        ("INT32", [1], "3", "data must be a list, got '3'"),
        ("INT32", [2], [3], r"shape \[2\] has 2 elements; its data have 1"),
        ("INT32", [1000000, 1000000], [3], "has 1000000000000 elements; its data have 1"),
        ("INT32", [2, 2], [[1, 2], [3]], r"nested data do not have shape \[2, 2\]: 1 elements where axis 1 has 2"),
        ("INT32", [2, 2], [[1, 2], 3], "do not have shape .*: 3 where axis 1 has 2"),
        ("INT32", [2], [[1], [2]], r"\[1\] is no element of INT32"),
        ("INT32", [2], [1, [2]], r"\[2\] is no element of INT32"),
        ("INT32", [1], [1.0], "1.0 is no element of INT32"),
        ("INT32", [1], [True], "True is no element of INT32"),
        ("INT32", [1], [None], "None is no element of INT32"),
        ("FP32", [1], ["1"], "'1' is no element of FP32"),
        ("FP32", [1], [None], "None is no element of FP32"),
        ("FP32", [1], [True], "True is no element of FP32"),
        ("BOOL", [1], [1], "1 is no element of BOOL"),
        ("BYTES", [1], [1], "1 is no element of BYTES"),
        ("BYTES", [1], ["\ud800"], "does not fit BYTES"),
        ("UINT8", [2], [1, 256], "does not fit UINT8: 256 is not from 0 to 255"),
        ("UINT8", [1], [-1], "-1 is not from 0 to 255"),
        ("INT8", [1], [-129], "-129 is not from -128 to 127"),
        ("UINT64", [1], [2**64], "does not fit UINT64"),
        ("UINT64", [1], [-1], "does not fit UINT64"),
        ("INT64", [1], [2**63], "does not fit INT64"),
        ("FP16", [1], [70000], "70000.0 is too large"),
        ("FP32", [1], [1e39], "is too large"),
        ("FP64", [1], [10**400], "does not fit FP64"),
        ("BF16", [1], [1e39], "is too large"),
    ],
)
def test_value_refusals(datatype: str, shape: list[int], values: object, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        array_from_values("x", datatype, shape, values)


def test_infinity_and_nan_are_numbers() -> None:
    array = array_from_values("x", "FP16", [2], [math.inf, math.nan])
    assert math.isinf(array[0])
    assert math.isnan(array[1])


def test_what_the_protocol_has_no_name_for() -> None:
    for dtype in (np.complex64, np.complex128, ml_dtypes.float8_e4m3fn):
        assert protocol.datatype_of(np.dtype(dtype)) is None
    assert protocol.datatype_of(np.dtype("S3")) == "BYTES"


def test_named_once() -> None:
    protocol.named_once(["a", "b"], "input")
    with pytest.raises(InvalidRequest, match='input "a" is given twice'):
        protocol.named_once(["a", "b", "a"], "input")


def test_every_error_has_its_codes() -> None:
    errors = protocol.RequestError.__subclasses__()
    assert {error.__name__: (error.http_status, error.grpc_code) for error in errors} == {
        "InvalidRequest": (400, "INVALID_ARGUMENT"),
        "Unauthorized": (401, "UNAUTHENTICATED"),
        "Forbidden": (403, "PERMISSION_DENIED"),
        "UnknownModel": (404, "NOT_FOUND"),
        "NotReady": (503, "UNAVAILABLE"),
        "Overloaded": (503, "RESOURCE_EXHAUSTED"),
        "TimedOut": (504, "DEADLINE_EXCEEDED"),
        "TooLarge": (413, "RESOURCE_EXHAUSTED"),
        "Abandoned": (499, "CANCELLED"),
        "InferenceFailed": (500, "INTERNAL"),
    }
    assert protocol.Overloaded("full", 0.5).retry_after == 0.5
