"""FlexBuffers: what is written is read, as other programs write and read it, and damage is an exception."""

from __future__ import annotations

import contextlib
import struct
import time
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers as peer
from hypothesis import given
from hypothesis import strategies as st

from gossamer.schema.flexbuffers import BLOB, MAP, STRING, VECTOR, String, dumps, loads

KEYS = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=8)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | st.booleans()
VALUES = st.recursive(
    st.none() | NUMBERS | st.text(max_size=20) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_is_read_by_us_and_by_the_peer(value: Any) -> None:
    data = dumps(value)
    assert loads(data) == value
    assert peer.Loads(data) == value


@given(VALUES)
def test_what_the_peer_writes_is_read(value: Any) -> None:
    try:
        data = bytes(peer.Dumps(value))
    except (OverflowError, RuntimeError):
        return  # it cannot write floats beyond float32
    assert loads(data) == value


@pytest.mark.parametrize(
    ("add", "value"),
    [
        (lambda b: b.TypedVectorFromElements([1, 2, 300]), [1, 2, 300]),
        (lambda b: b.TypedVectorFromElements([1.5, 2.5]), [1.5, 2.5]),
        (lambda b: b.TypedVectorFromElements([True, False]), [True, False]),
        (lambda b: b.FixedTypedVectorFromElements([7, 8]), [7, 8]),
        (lambda b: b.FixedTypedVectorFromElements([7.0, 8.0, 9.5]), [7.0, 8.0, 9.5]),
        (lambda b: b.FixedTypedVectorFromElements([1, -2, 3, -400]), [1, -2, 3, -400]),
        (lambda b: b.IndirectInt(-5), -5),
        (lambda b: b.IndirectUInt(1 << 63), 1 << 63),
        (lambda b: b.IndirectFloat(2.5), 2.5),
        (lambda b: b.UInt((1 << 64) - 1), (1 << 64) - 1),
        (lambda b: b.Key("name"), "name"),
    ],
)
def test_types_that_only_other_writers_use(add: Any, value: Any) -> None:
    builder = peer.Builder()
    add(builder)
    assert loads(bytes(builder.Finish())) == value


def test_maps_share_their_keys() -> None:
    value = [{"first key": number, "second key": "text"} for number in range(3)]
    data = dumps(value)
    assert data.count(b"first key") == 1
    assert loads(data) == peer.Loads(data) == value


def test_numpy_values_and_tuples_are_written_as_plain_ones() -> None:
    written = dumps({"a": np.float32(0.5), "b": np.arange(3), "c": (1, 2), "d": np.bool_(True), "e": np.int64(7)})
    assert loads(written) == {"a": 0.5, "b": [0, 1, 2], "c": [1, 2], "d": True, "e": 7}


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ({1: 2}, ValueError, "keys must be ASCII texts without zero bytes, got 1"),
        ({"é": 2}, ValueError, "keys must be ASCII"),
        ({"a\0b": 2}, ValueError, "keys must be ASCII"),
        ([1 << 63], ValueError, "64 bits with a sign"),
        ({"a": {1}}, TypeError, "no set"),
    ],
)
def test_values_that_the_format_does_not_hold(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        dumps(value)


def test_a_value_that_contains_itself_is_not_written() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        dumps(value)


def test_a_string_that_is_no_text_is_bytes() -> None:
    assert loads(b"\x02\xff\xfe\x00" + bytes([3, STRING << 2, 1])) == b"\xff\xfe"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes are too few"),
        (b"\0\0", "2 bytes are too few"),
        (b"ABC", "its root is 67 bytes wide"),
        (bytes([5, STRING << 2, 1]), "the offset at byte 0 leaves it"),
        (bytes([200, 65, 1, STRING << 2, 1]), "text of 200 bytes at byte 1 leaves it"),
        (bytes([200, 65, 1, BLOB << 2, 1]), "text of 200 bytes"),
        (bytes([200, 65, 1, VECTOR << 2, 1]), "vector of 200 elements at byte 1 leaves it"),
        (bytes([0, 0, 0, 1, 1, 4, 2, MAP << 2, 1]), "not as many keys"),
        (bytes([0, 0, 0, 40 << 2, 1]), "type 40 at byte 2 is none of the format's"),
        (bytes([0, 0, 0, 3 << 2, 1]), "no number of 1 bytes"),
    ],
)
def test_damage_is_found(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loads(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        loads(data)


@given(VALUES, st.data())
def test_a_changed_byte_is_a_value_or_an_error(value: Any, data: st.DataObject) -> None:
    content = bytearray(dumps(value))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        loads(content)


def test_a_vector_that_contains_itself_ends() -> None:
    with pytest.raises(ValueError, match="overlap"):
        loads(bytes([1, 0, VECTOR << 2, 2, VECTOR << 2, 1]))


def test_vectors_that_share_their_elements_do_not_multiply() -> None:
    # Thirty vectors of two elements, both of which are the vector before: 2 ** 30 elements if believed.
    data = bytearray(b"\0" * 8)
    before = 4
    for _ in range(30):
        start = len(data) + 4
        data += struct.pack("<III", 2, start - before, start + 4 - before)
        data += bytes([VECTOR << 2 | 2] * 2) + b"\0\0"
        before = start
    data += struct.pack("<I", len(data) - before) + bytes([VECTOR << 2 | 2, 4])
    began = time.process_time()
    with pytest.raises(ValueError, match="overlap"):
        loads(data)
    assert time.process_time() - began < 1


def test_bytes_that_are_a_string() -> None:
    assert dumps(String(b"ab")) == dumps("ab")
    assert loads(dumps([String(b"\xff")])) == [b"\xff"]
    assert dumps(String(b"\xff")) != dumps(b"\xff")
