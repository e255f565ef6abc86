"""DENSIFY: stored values back in their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.model.reader import read_model
from gossamer.model.writer import write_model
from gossamer.ops.densify import op
from gossamer.schema import Buffer, DimensionMetadata, DimensionType, Int32Vector, SparsityParameters
from tests.ops.cases import Case, const, model_of, tensor
from tests.ops.reference import REFERENCE, assert_refused

ROWS = DimensionMetadata(format=DimensionType.DENSE, dense_size=2)
COLUMNS = DimensionMetadata(
    format=DimensionType.SPARSE_CSR,
    array_segments=Int32Vector(values=(0, 1, 3)),
    array_indices=Int32Vector(values=(2, 0, 1)),
)
CSR = SparsityParameters(traversal_order=(0, 1), dim_metadata=(ROWS, COLUMNS))

# Rows of two blocks of 2 columns; one block of each row is stored.
BLOCKS = SparsityParameters(
    traversal_order=(0, 1, 2),
    block_map=(1,),
    dim_metadata=(
        ROWS,
        DimensionMetadata(
            format=DimensionType.SPARSE_CSR,
            array_segments=Int32Vector(values=(0, 1, 2)),
            array_indices=Int32Vector(values=(1, 0)),
        ),
        DimensionMetadata(format=DimensionType.DENSE, dense_size=2),
    ),
)


def sparse_model(dense: Any, stored: Any, sparsity: SparsityParameters) -> bytes:
    model = read_model(model_of(op, Case("", [const(dense, np.float32)], [tensor(dense)])))
    graph = model.subgraphs[0]
    source, output = graph.tensors
    data = np.frombuffer(np.array(stored, np.float32).tobytes(), np.uint8)
    return write_model(
        model.replace(
            subgraphs=(graph.replace(tensors=(source.replace(sparsity=sparsity), output)),),
            buffers=(Buffer(), Buffer(data=data)),
        )
    )


@pytest.mark.parametrize(
    ("dense", "stored", "sparsity"),
    [
        ([[0, 0, 1], [2, 3, 0]], [1, 2, 3], CSR),
        ([[0, 0, 1, 2], [3, 4, 0, 0]], [1, 2, 3, 4], BLOCKS),
        ([[0, 2], [0, 3], [1, 0]], [1, 2, 3], CSR.replace(traversal_order=(1, 0))),
    ],
    ids=["rows", "blocks", "columns_first"],
)
def test_values_find_their_places(dense: Any, stored: Any, sparsity: SparsityParameters) -> None:
    interpreter = REFERENCE(model_content=sparse_model(dense, stored, sparsity))
    interpreter.allocate_tensors()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.array(dense, np.float32))


def test_refuses_a_record_that_does_not_fit() -> None:
    interpreter = REFERENCE(model_content=sparse_model(np.zeros((2, 2)), [1, 2, 3], CSR))
    with pytest.raises(ValueError, match="sparsity"):
        interpreter.allocate_tensors()


def test_refuses_what_is_not_sparse() -> None:
    message = "input must be a constant with a sparsity record"
    assert_refused(op, Case("", [const([1], np.float32)], [tensor([1])]), message)
    assert_refused(op, Case("", [tensor([1])], [tensor([1])]), message)
