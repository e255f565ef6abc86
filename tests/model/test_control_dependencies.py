"""The metadata entry ``model_control_dependencies``: read, written, and left aside where it is damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model import read_model
from gossamer.model.control_dependencies import CONTROL_DEPENDENCIES, control_dependencies, decode, encode
from gossamer.model.metadata import with_metadata
from gossamer.model.writer import write_model
from tests.runtime.graphs import adder

numbers = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.lists(st.tuples(numbers, numbers), max_size=4), max_size=4))
def test_what_is_written_is_read(edges: list[list[tuple[int, int]]]) -> None:
    assert decode(encode(edges)) == tuple(tuple(pairs) for pairs in edges)


def test_the_bytes() -> None:
    # Version 1, one subgraph, two pairs: zigzag varints.
    assert encode([[(0, 1), (-1, 64)]]) == bytes([1, 1, 2, 0, 2, 1, 128, 1])


@given(st.binary(max_size=12))
def test_any_bytes(stored: bytes) -> None:
    edges = decode(stored)
    assert edges is None or isinstance(edges, tuple)


@pytest.mark.parametrize(
    "stored", [b"", b"\x02\x00", b"\x01\x01", b"\x01\x00\x00", b"\x01\xff\xff\xff\xff\x0f", b"\x01\x01\x01\x00\x82"]
)
def test_damaged(stored: bytes) -> None:
    assert decode(stored) is None


def test_in_a_model() -> None:
    model = read_model(adder())
    assert control_dependencies(model) is None

    def stored(*edges: list[tuple[int, int]]) -> object:
        return control_dependencies(
            read_model(bytes(write_model(with_metadata(model, CONTROL_DEPENDENCIES, encode(edges)))))
        )

    assert stored([(0, 1)]) == (((0, 1),),)
    assert stored([]) == ((),)
    assert stored([], []) is None  # the model has one subgraph
