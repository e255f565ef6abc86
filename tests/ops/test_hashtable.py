"""HASHTABLE: ids, types, life."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer import Interpreter
from gossamer.errors import InvokeError, PrepareError
from gossamer.schema import HashtableOptions, TensorType, VarHandleOptions
from tests.ops.tables import INT64, STRING, TableModel
from tests.runtime.graphs import ModelMaker


def test_gives_its_id_in_a_vector() -> None:
    table = TableModel(table_id=42)
    interpreter = table.interpreter()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(table.handle), np.array([42], np.int32))


def test_one_id_is_one_table_that_lives_as_long_as_the_interpreter() -> None:
    table = TableModel().fill([b"a"], [1])
    second = table.make.tensor((1,), TensorType.RESOURCE)
    table.make.op("HASHTABLE", [], [second], HashtableOptions(table_id=7, key_dtype=STRING, value_dtype=INT64))
    table.handle = second
    table.size()
    interpreter = table.interpreter()
    for _ in range(2):
        interpreter.invoke()
        assert interpreter.get_tensor(table.outputs[0]) == [1]
    assert table.interpreter() is not interpreter


@pytest.mark.parametrize("types", [(INT64, INT64), (STRING, STRING), (STRING, TensorType.INT32)])
def test_refuses_other_types(types: tuple[TensorType, TensorType]) -> None:
    with pytest.raises(PrepareError, match="a table maps int64 to string or string to int64, not"):
        TableModel(*types).size().interpreter()


def test_refuses_the_id_of_a_variable() -> None:
    make = ModelMaker()
    handle, table = make.tensor((1,), TensorType.RESOURCE), make.tensor((1,), TensorType.RESOURCE)
    value, size = make.constant([1.0], np.float32, TensorType.FLOAT32), make.tensor((1,), INT64)
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="v"))
    make.op("ASSIGN_VARIABLE", [handle, value], [])
    make.op("HASHTABLE", [], [table], HashtableOptions(table_id=0, key_dtype=STRING, value_dtype=INT64))
    make.op("HASHTABLE_SIZE", [table], [size])
    make.io([], [size])
    interpreter = Interpreter(model_content=make.model())
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match="resource 0 is a variable, not a hash table"):
        interpreter.invoke()
