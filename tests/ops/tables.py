"""A model with a hash table: made, perhaps filled, asked for values and for its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import gossamer
from gossamer.dtypes import encode_strings
from gossamer.schema import Buffer, HashtableOptions, TensorType
from tests.runtime.graphs import ModelMaker

INT64, STRING = TensorType.INT64, TensorType.STRING


class TableModel:
    """Builds it step by step; the outputs of the model are those of `find` and `size`."""

    def __init__(self, key: TensorType = STRING, value: TensorType = INT64, table_id: int = 7) -> None:
        self.make = ModelMaker()
        self.types = (key, value)
        self.handle = self.make.tensor((1,), TensorType.RESOURCE)
        self.outputs: list[int] = []
        self.make.op(
            "HASHTABLE", [], [self.handle], HashtableOptions(table_id=table_id, key_dtype=key, value_dtype=value)
        )

    def constant(self, values: Sequence[Any], type: TensorType) -> int:
        if type == INT64:
            return self.make.constant(values, np.int64, INT64)
        self.make.buffers.append(Buffer(data=np.frombuffer(encode_strings(np.array(values, object)), np.uint8)))
        return self.make.tensor((len(values),), STRING, buffer=len(self.make.buffers) - 1)

    def fill(self, keys: Sequence[Any], values: Sequence[Any], types: Sequence[TensorType] = ()) -> TableModel:
        key, value = types or self.types
        self.make.op("HASHTABLE_IMPORT", [self.handle, self.constant(keys, key), self.constant(values, value)], [])
        return self

    def find(
        self, keys: Sequence[Any], default: Sequence[Any], types: Sequence[TensorType] = (), result: Any = None
    ) -> TableModel:
        key, value = types or self.types
        found = self.make.tensor((1,), value if result is None else result)
        self.make.op("HASHTABLE_FIND", [self.handle, self.constant(keys, key), self.constant(default, value)], [found])
        self.outputs.append(found)
        return self

    def size(self) -> TableModel:
        count = self.make.tensor((1,), INT64)
        self.make.op("HASHTABLE_SIZE", [self.handle], [count])
        self.outputs.append(count)
        return self

    def model(self) -> bytes:
        self.make.io([], self.outputs)
        return self.make.model()

    def interpreter(self) -> gossamer.Interpreter:
        interpreter = gossamer.Interpreter(model_content=self.model())
        interpreter.allocate_tensors()
        return interpreter

    def results(self) -> list[Any]:
        """The outputs of one invocation."""
        interpreter = self.interpreter()
        interpreter.invoke()
        return [interpreter.get_tensor(output).tolist() for output in self.outputs]
