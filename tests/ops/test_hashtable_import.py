"""HASHTABLE_IMPORT: first keys and first imports count."""

from __future__ import annotations

import pytest

from gossamer import Interpreter
from gossamer.errors import InvokeError, PrepareError
from gossamer.schema import TensorType
from tests.ops.tables import INT64, STRING, TableModel
from tests.runtime.graphs import ModelMaker


def test_of_equal_keys_the_first_counts() -> None:
    table = TableModel().fill([b"a", b"b", b"a"], [1, 2, 3]).find([b"a", b"b"], [0]).size()
    assert table.results() == [[1, 2], [2]]


def test_only_the_first_import_counts() -> None:
    assert TableModel().fill([b"a"], [1]).fill([b"a", b"b"], [5, 6]).find([b"a", b"b"], [0]).results() == [[1, 0]]


def test_an_empty_import_is_one_too() -> None:
    assert TableModel().fill([], []).fill([b"a"], [1]).find([b"a"], [-1]).size().results() == [[-1], [0]]


def test_refuses_types_that_are_not_the_table_s() -> None:
    interpreter = TableModel().fill([1], [b"a"], (INT64, STRING)).size().interpreter()
    with pytest.raises(InvokeError, match="the table maps string to int64, not int64 to string"):
        interpreter.invoke()


@pytest.mark.parametrize(
    ("keys", "values", "types", "message"),
    [
        ([b"a", b"b"], [1], (STRING, INT64), r"keys \[2\] and values \[1\] must have the same shape"),
        ([1], [1], (INT64, INT64), "keys and values must be int64 and string or string and int64, got int64 and int64"),
    ],
)
def test_refuses(keys: list[object], values: list[object], types: tuple[TensorType, TensorType], message: str) -> None:
    with pytest.raises((PrepareError, InvokeError), match=message):
        TableModel().fill(keys, values, types).size().results()


def test_refuses_a_table_that_nobody_made() -> None:
    make = ModelMaker()
    table = make.constant([5], "int32", TensorType.RESOURCE)
    keys, values = make.constant([1], "int64", INT64), make.tensor((1,), STRING)
    make.op("HASHTABLE_IMPORT", [table, keys, values], [])
    make.io([values], [])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    interpreter.set_tensor(values, [b"x"])
    with pytest.raises(InvokeError, match="hash table 5 does not exist: HASHTABLE must run first"):
        interpreter.invoke()
