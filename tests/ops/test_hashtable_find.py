"""HASHTABLE_FIND: values and defaults."""

from __future__ import annotations

import pytest

from gossamer.errors import InvokeError
from gossamer.schema import TensorType
from tests.ops.tables import INT64, STRING, TableModel


def test_string_to_int64() -> None:
    table = TableModel().fill([b"one", b"two", b""], [1, 2, 0]).find([b"two", b"ten", b"", b"one"], [-1, 9])
    assert table.results() == [[2, -1, 0, 1]]


def test_int64_to_string() -> None:
    table = TableModel(INT64, STRING).fill([1, -(2**62)], [b"one", b"far"]).find([-(2**62), 5, 1], [b"?"])
    assert table.results() == [[b"far", b"?", b"one"]]


def test_no_keys() -> None:
    assert TableModel().fill([b"a"], [1]).find([], [0]).results() == [[]]


def test_refuses_a_table_that_was_never_filled() -> None:
    with pytest.raises(InvokeError, match="the hash table is empty: HASHTABLE_IMPORT must run first"):
        TableModel().find([b"a"], [0]).results()


def test_refuses_types_that_are_not_the_table_s() -> None:
    with pytest.raises(InvokeError, match="the table maps string to int64, not int64 to string"):
        TableModel().fill([b"a"], [1]).find([1], [b""], (INT64, STRING)).results()


@pytest.mark.parametrize(
    ("default", "types", "result", "message"),
    [
        ([1], (STRING, INT64), STRING, "default must be string here, got int64"),
        ([1], (INT64, INT64), None, "got int64 and int64"),
        ([], (STRING, INT64), None, r"default must have an element, got shape \[0\]"),
        ([1], (STRING, INT64), TensorType.INT32, "default must be int32 here, got int64"),
    ],
)
def test_refuses(default: list[int], types: tuple[TensorType, TensorType], result: object, message: str) -> None:
    keys = [b"a"] if types[0] == STRING else [1]
    with pytest.raises(InvokeError, match=message):  # the shape of a table's handle is not known before
        TableModel().fill([b"a"], [1]).find(keys, default, types, result).results()
