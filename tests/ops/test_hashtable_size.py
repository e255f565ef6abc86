"""HASHTABLE_SIZE: how many entries."""

from __future__ import annotations

import pytest

from gossamer import Interpreter, OpResolverType
from tests.ops.tables import INT64, STRING, TableModel


def test_counts_entries() -> None:
    assert TableModel(INT64, STRING).size().fill([1, 2, 1], [b"a", b"b", b"c"]).size().results() == [[0], [2]]


def test_is_not_in_the_reference_resolver() -> None:
    with pytest.raises(ValueError, match="HASHTABLE"):
        Interpreter(model_content=TableModel().size().model(), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
