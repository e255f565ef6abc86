"""A model as a function of columns in Spark: a ``pandas_udf``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.batch.model_file import ModelFile
from gossamer.batch.predictor import ERROR, Predictor
from gossamer.errors import InputError
from gossamer.inputs.samples import Preparation
from gossamer.model import Model

try:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.functions import pandas_udf
    from pyspark.sql.pandas.types import from_arrow_schema
except ImportError as missing:
    raise ImportError("gossamer.batch.spark needs Spark for Python; install gossamer[spark].") from missing

WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}
"""What stands for types that Spark does not have."""


def udf(
    model: str | os.PathLike[str] | bytes | Model | ModelFile,
    signature: str | None = None,
    preparation: Preparation | None = None,
    *,
    dequantize: bool = False,
    batch_size: int | None = None,
) -> Any:
    """A ``pandas_udf`` that takes a column for each input of a ``.tflite`` model, in their order, and gives a struct:
    the outputs by name, and ``error``, which is null where all is well.

    Cells and arguments are those of `Predictor`. An output of several dimensions is an array of arrays; unsigned
    integers have the next wider type of Spark. A process of Spark loads the model once; the file is stored once on a
    machine and mapped by all of its processes.

    Raises `InputError` for arguments that the model cannot have.
    """
    predictor = Predictor(model, signature, preparation, dequantize=dequantize, batch_size=batch_size)
    kinds = {field.name: _spark_type(field.type) for field in predictor.schema()}
    names = predictor.output_names

    def predict(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.DataFrame]:
        for given in batches:
            columns = given if isinstance(given, tuple) else (given,)  # as Spark gives a single one
            if len(columns) != len(predictor.inputs):
                inputs = ", ".join(port.name for port in predictor.inputs)
                raise InputError(f"the model takes a column for each of {inputs}; got {len(columns)}.")
            cells = [[_cell(value) for value in column] for column in columns]
            found = list(predictor.predictions(cells))
            outputs = [one.outputs or {} for one in found]
            frame = {name: _column([one.get(name) for one in outputs]) for name in names}
            yield pd.DataFrame({**frame, ERROR: pd.Series([one.error for one in found], dtype=object)})

    return pandas_udf(predict, from_arrow_schema(pa.schema(list(kinds.items()))))


def _spark_type(kind: Any) -> Any:
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_spark_type(kind.value_type))
    return WIDER.get(kind, kind)


def _cell(value: Any) -> Any:
    """Arrays of arrays, as Spark gives them, as lists of lists."""
    return [_cell(one) for one in value] if getattr(value, "dtype", None) == np.dtype(object) else value


def _column(values: Sequence[NDArray[Any] | None]) -> pd.Series:
    return pd.Series([None if value is None else value.tolist() for value in values], dtype=object)
