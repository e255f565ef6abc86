"""The table of resource variables."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.errors import InvokeError, PrepareError
from gossamer.micro import MicroResourceVariables
from gossamer.micro.allocator import MicroAllocator


def table(count: int = 2) -> MicroResourceVariables:
    return MicroResourceVariables(MicroAllocator(4096), count)


def test_a_name_has_one_id() -> None:
    variables = table()
    assert variables.create_id_if_none_found("", "a") == 0
    assert variables.create_id_if_none_found("", "b") == 1
    assert variables.create_id_if_none_found("", "a") == 0
    with pytest.raises(PrepareError, match=r"Maximum resource variable count \(2\) reached"):
        variables.create_id_if_none_found("", "c")


def test_the_table_lies_in_the_tail() -> None:
    allocator = MicroAllocator(4096)
    before = allocator.tail_bytes
    MicroResourceVariables(allocator, 3)
    assert allocator.tail_bytes > before


def test_a_variable_without_memory() -> None:
    variables = table()
    variables.create_id_if_none_found("", "a")
    with pytest.raises(InvokeError, match="resource variable 0 has no memory"):
        variables.read(0, np.dtype(np.float32), 4)
    with pytest.raises(InvokeError, match="non-existent resource variable 1"):
        variables.assign(1, np.zeros(1, np.float32))
    variables.reset_all()
