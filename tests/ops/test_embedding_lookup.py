"""EMBEDDING_LOOKUP: rows, dequantized rows, packed rows, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gossamer
from gossamer.errors import PrepareError
from gossamer.ops.embedding_lookup import op
from gossamer.schema import TensorType
from tests.ops.blocks import model_in_blocks, run_model
from tests.ops.cases import Case, const, run_case, tensor
from tests.ops.invoking import assert_refused_by_invoke
from tests.ops.reference import assert_refused

TABLE = [[1, 2], [3, 4], [5, 6]]
IDS = tensor([2, 0, 2], np.int32)
INT4, INT2 = TensorType.INT4, TensorType.INT2

CASES = [
    Case("float", [IDS, const(TABLE, np.float32)], [tensor([[5, 6], [1, 2], [5, 6]])]),
    Case("not_constant", [IDS, tensor(TABLE)], [tensor([[5, 6], [1, 2], [5, 6]])]),
    Case(
        "more_dimensions", [tensor([1], np.int32), const([[TABLE], [TABLE]], np.int32)], [tensor([[TABLE]], np.int32)]
    ),
    Case("no_ids", [tensor([], np.int32), const(TABLE, np.float32)], [tensor(np.zeros((0, 2)))]),
    Case(
        "int8_as_it_is",
        [IDS, const(TABLE, np.int8, scale=2, zero_point=1)],
        [tensor([[5, 6], [1, 2], [5, 6]], np.int8, scale=2, zero_point=1)],
    ),
    Case(
        "int8_dequantized", [IDS, const(TABLE, np.int8, scale=0.5)], [tensor([[2.5, 3], [0.5, 1], [2.5, 3]])], version=2
    ),
    Case(
        "a_scale_for_each_row",
        [IDS, const(TABLE, np.int8, scale=[1, 2, 0.5])],
        [tensor([[2.5, 3], [1, 2], [2.5, 3]])],
        version=3,
    ),
    Case(
        "uint8_is_read_as_int8",
        [tensor([0], np.int32), const([[255, 1]], np.uint8, scale=0.5)],
        [tensor([[-0.5, 0.5]])],
        version=3,
    ),
    Case(
        "to_float16",
        [tensor([0], np.int32), const([[7, -3]], np.int8, scale=0.1)],
        [tensor([[0.7, -0.3]], np.float16)],
        version=4,
    ),
    Case(
        "int4",
        [tensor([1], np.int32), const([[1, -8], [7, -3]], np.int8, type=INT4, scale=0.5)],
        [tensor([[3.5, -1.5]])],
        version=4,
    ),
    Case(
        "int4_rows_begin_at_a_byte",
        [tensor([0, 1], np.int32), const([[1, 2, 3], [4, 5, 6]], np.int8, type=INT4, scale=1)],
        [tensor([[1, 2, 3], [3, 4, 5]])],
        version=4,
    ),
    Case(
        "int2",
        [tensor([1, 0], np.int32), const([[0, 1, -2, -1], [1, 1, 0, -2]], np.int8, type=INT2, scale=3)],
        [tensor([[3, 3, 0, -6], [0, 3, -6, -3]])],
        version=5,
    ),
]


def test_case(case: Case, backend: Any) -> None:
    run_case(backend, op, case)


OUT = tensor([[0, 0], [0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("message", "case_"),
    [
        (
            "ids must have 1 dimensions, got 2 [1, 1]",
            Case("", [tensor([[1]], np.int32), const(TABLE, np.float32)], [OUT]),
        ),
        ("value must have 2 dimensions or more, got [3]", Case("", [IDS, const([1, 2, 3], np.float32)], [OUT])),
        ("output must be int32 like value, got float32", Case("", [IDS, const(TABLE, np.int32)], [OUT])),
        (
            "output must be int8 like value, float32 or float16, got int32",
            Case("", [IDS, const(TABLE, np.int8, scale=1)], [tensor([[0, 0]] * 3, np.int32)]),
        ),
        ("value must have 1 scale or 3 along dimension 0, got 0", Case("", [IDS, const(TABLE, np.int8)], [OUT])),
        ("got 2 along dimension 1", Case("", [IDS, const(TABLE, np.int8, scale=[1, 2], dimension=1)], [OUT])),
        ("value must have zero points of 0", Case("", [IDS, const(TABLE, np.int8, scale=1, zero_point=1)], [OUT])),
        (
            "value with a scale a row needs a float output, got int8",
            Case("", [IDS, const(TABLE, np.int8, scale=[1, 2, 3])], [tensor([[0, 0]] * 3, np.int8, scale=1)]),
        ),
    ],
)
def test_refuses(message: str, case_: Case) -> None:
    assert_refused(op, case_, message)


@pytest.mark.parametrize("bad", [-1, 3])
def test_ids_do_not_wrap(bad: int) -> None:
    case = Case("", [tensor([0, bad], np.int32), const(TABLE, np.float32)], [tensor([[0, 0], [0, 0]])])
    assert_refused_by_invoke(op, case, f"id {bad} is out of range [0, 3)")


TWO_BLOCKS = np.array([[1, 2], [0.5, -1]], np.float16)


def table_in_blocks(values: Any, type: TensorType, output: Any = np.float32, **fields: Any) -> bytes:
    version = 4 if type == INT4 else 5
    table = const(values, np.int8, type=type)
    case = Case(
        "", [tensor([0], np.int32), table], [tensor(np.zeros((1, table.value.shape[1])), output)], None, version
    )
    return model_in_blocks(op, case, **({"size": 2, "scales": TWO_BLOCKS} | fields))


BLOCKS = [
    (table_in_blocks([[1, -8, 7, 3], [2, 3, 4, -5]], INT4), [[1, -8, 14, 6], [1, 1.5, -4, 5]], np.float32),
    (
        table_in_blocks([[1, -2, 0, 1], [-1, 1, 1, 0]], INT2, size=4, scales=TWO_BLOCKS[:, :1]),
        [[1, -2, 0, 1], [-0.5, 0.5, 0.5, 0]],
        np.float32,
    ),
    (table_in_blocks([[1, -8, 7, 3], [2, 3, 4, -5]], INT4, np.float16), [[1, -8, 14, 6], [1, 1.5, -4, 5]], np.float16),
    # Blocks of 3 begin at a byte.
    (table_in_blocks([[1, 2, 3, 4, 5, 6], [0] * 6], INT4, size=3), [[1, 2, 3, 6, 8, 10], [0] * 6], np.float32),
]


@pytest.mark.parametrize(("content", "rows", "dtype"), BLOCKS, ids=["int4", "int2", "float16", "inside a byte"])
@pytest.mark.parametrize("api", ["gossamer", pytest.param("ai_edge_litert.interpreter", marks=pytest.mark.peer)])
def test_a_scale_for_each_block(api: str, content: bytes, rows: Any, dtype: Any) -> None:
    interpreter = pytest.importorskip(api).Interpreter(model_content=content)
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [2])
    result = run_model(interpreter, [0, 1])
    assert result.tolist() == rows
    assert result.dtype == dtype


@pytest.mark.parametrize(
    ("message", "values", "fields"),
    [
        ("value must have 2 dimensions, got 3", [[[1, 2]], [[3, 4]]], {}),
        ("not made of whole blocks of 3", TABLE, {"size": 3}),
        ("must be int4 or int2, with an output of float32 or float16, got int4 and int8", TABLE, {"output": np.int8}),
        ("must be int4 or int2, with an output of float32 or float16, got int8", TABLE, {"type": TensorType.INT8}),
        ("must be stored in the model", TABLE, {"stored": False}),
    ],
)
def test_refuses_blocks(message: str, values: Any, fields: dict[str, Any]) -> None:
    interpreter = gossamer.Interpreter(model_content=table_in_blocks(values, **({"type": INT4} | fields)))
    with pytest.raises(PrepareError, match=message):
        interpreter.allocate_tensors()
