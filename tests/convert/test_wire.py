"""The wire format: known bytes, what may be written in several ways, and what is refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from gossamer.convert import wire
from gossamer.convert.wire import MAX_DEPTH, Message, read, write
from gossamer.errors import ConvertError
from gossamer.schema.enumeration import IntEnum
from gossamer.schema.fields import Array


class Colour(IntEnum):
    RED = 0
    BLUE = 2


class Leaf(Message):
    a: int = wire.int32(1)
    b: str = wire.string(2)
    numbers: tuple[int, ...] = wire.int32.repeated(3)


class Tree(Message):
    i32: int = wire.int32(1)
    u64: int = wire.uint64(2)
    s32: int = wire.sint32(3)
    s64: int = wire.sint64(4)
    flag: bool = wire.boolean(5)
    f: float = wire.float_(6, oneof="choice")
    d: float = wire.double(7)
    name: str = wire.string(8, oneof="choice")
    leaf: Leaf | None = wire.message(9, "Leaf", oneof="choice")
    leaves: tuple[Leaf, ...] = wire.messages(10, Leaf)
    packed: tuple[int, ...] = wire.int32.repeated(11)
    single: tuple[int, ...] = wire.int32.repeated(12, packed=False)
    floats: Array = wire.float_.array(13)
    longs: Array = wire.int64.array(14)
    blob: memoryview = wire.view(15)
    copies: tuple[bytes, ...] = wire.bytes_.repeated(16)
    colour: Colour = wire.enum(Colour)(17)
    ages: Mapping[str, int] = wire.mapping(18, wire.string, wire.int32)
    named: Mapping[int, Leaf] = wire.mapping(19, wire.int64, "Leaf")
    tree: Tree | None = wire.message(20, "Tree")
    fixed: int = wire.fixed32(21)
    zigzags: Array = wire.sint64.array(22)
    three: int = wire.int32(23, default=3)


def field(number: int, kind: int, content: bytes = b"") -> bytes:
    return wire._number(number << 3 | kind) + (wire._number(len(content)) if kind == wire.LEN else b"") + content


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ({"i32": 150}, "08 96 01"),
        ({"i32": -1}, "08 ff ff ff ff ff ff ff ff ff 01"),
        ({"u64": (1 << 64) - 1}, "10 ff ff ff ff ff ff ff ff ff 01"),
        ({"s32": -2}, "18 03"),
        ({"s32": -(1 << 31)}, "18 ff ff ff ff 0f"),
        ({"s64": 1}, "20 02"),
        ({"s64": -(1 << 63)}, "20 ff ff ff ff ff ff ff ff ff 01"),
        ({"flag": True}, "28 01"),
        ({"f": 1.0}, "35 00 00 80 3f"),
        ({"d": 1.0}, "39 00 00 00 00 00 00 f0 3f"),
        ({"name": "testing"}, "42 07 74 65 73 74 69 6e 67"),
        ({"leaf": Leaf(a=150)}, "4a 03 08 96 01"),
        ({"packed": (3, 270, 86942)}, "5a 06 03 8e 02 9e a7 05"),
        ({"single": (1, 2)}, "60 01 60 02"),
        ({"blob": b"\x00\x01"}, "7a 02 00 01"),
        ({"colour": Colour.BLUE}, "88 01 02"),
        ({"ages": {"a": 1}}, "92 01 05 0a 01 61 10 01"),
        ({"fixed": 1}, "ad 01 01 00 00 00"),
        ({"i32": 0}, "08 00"),
    ],
)
def test_known_bytes(values: dict[str, Any], data: str) -> None:
    raw = bytes.fromhex(data)
    message = Tree(**values)
    assert write(message) == raw
    assert read(Tree, raw) == message
    assert all(read(Tree, raw).has(name) for name in values)


def test_what_is_absent_reads_as_the_default() -> None:
    tree = read(Tree, b"")
    assert (tree.i32, tree.name, bytes(tree.blob), tree.leaf, tree.leaves, tree.three) == (0, "", b"", None, (), 3)
    assert tree.colour is Colour.RED
    assert dict(tree.ages) == {}
    assert tree.floats.size == 0
    assert not tree.floats.flags.writeable


def test_numbers_may_be_packed_or_not_and_in_parts() -> None:
    singly = field(11, wire.VARINT, b"\x01") + field(11, wire.LEN, b"\x02\x03") + field(11, wire.VARINT, b"\x04")
    assert read(Tree, singly).packed == (1, 2, 3, 4)
    assert read(Tree, field(12, wire.LEN, b"\x02\x03")).single == (2, 3)
    longs = field(14, wire.VARINT, b"\x01") + field(14, wire.LEN, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x80\x01")
    assert read(Tree, longs).longs.tolist() == [1, -1, 128]
    floats = field(13, wire.LEN, np.float32([1, 2]).tobytes()) + field(13, wire.I32, np.float32(3).tobytes())
    assert read(Tree, floats).floats.tolist() == [1, 2, 3]
    zigzags = np.array([-1, 1, -(1 << 63), (1 << 63) - 1])
    assert read(Tree, write(Tree(zigzags=zigzags))).zigzags.tolist() == zigzags.tolist()


def test_numbers_are_cut_to_their_type() -> None:
    assert read(Tree, bytes.fromhex("08 ff ff ff ff 0f")).i32 == -1
    assert read(Tree, bytes.fromhex("08 80 80 80 80 10")).i32 == 0
    assert read(Tree, bytes.fromhex("28 80 01")).flag is True
    assert read(Tree, bytes.fromhex("88 01 07")).colour == 7


def test_a_message_in_parts_is_one_and_the_last_of_other_fields_counts() -> None:
    parts = field(9, wire.LEN, write(Leaf(a=1, b="x", numbers=(1,)))) + field(
        9, wire.LEN, write(Leaf(a=2, numbers=(2,)))
    )
    assert read(Tree, parts).leaf == Leaf(a=2, b="x", numbers=(1, 2))
    assert read(Tree, bytes.fromhex("08 01 08 02")).i32 == 2


def test_the_last_of_a_oneof_counts() -> None:
    data = write(Tree(f=1.0)) + write(Tree(leaf=Leaf(a=1))) + write(Tree(name="n"))
    tree = read(Tree, data)
    assert (tree.which("choice"), tree.name, tree.leaf, tree.f) == ("name", "n", None, 0.0)
    assert read(Tree, data + write(Tree(leaf=Leaf(a=2)))).leaf == Leaf(a=2)
    assert Tree().which("choice") is None
    with pytest.raises(TypeError, match="oneof"):
        Tree(f=1.0, name="n")


def test_entries_of_maps_may_lack_key_or_value_and_the_last_counts() -> None:
    data = (
        field(18, wire.LEN, b"\x10\x05") + field(18, wire.LEN, b"\x0a\x01a") + field(18, wire.LEN, b"\x0a\x01a\x10\x02")
    )
    assert read(Tree, data).ages == {"": 5, "a": 2}
    assert read(Tree, field(19, wire.LEN, b"\x08\x07")).named == {7: Leaf()}


def test_views_are_not_copied() -> None:
    data = bytearray(write(Tree(blob=b"abc", floats=np.float32([1, 2]), copies=(b"xyz",))))
    tree = read(Tree, data)
    data[data.index(b"abc")] = ord("z")
    data[data.index(b"xyz")] = ord("a")
    assert bytes(tree.blob) == b"zbc"
    assert tree.copies == (b"xyz",)
    assert np.shares_memory(tree.floats, np.frombuffer(data, np.uint8))
    with pytest.raises(TypeError):
        tree.blob[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        tree.floats[0] = 1


def test_unknown_fields_are_kept_and_written_back() -> None:
    strange = field(100, wire.VARINT, b"\x01") + field(101, wire.LEN, b"abc") + field(102, wire.I64, bytes(8))
    data = field(1, wire.VARINT, b"\x07") + strange
    tree = read(Tree, strange[:3] + field(1, wire.VARINT, b"\x07") + strange[3:])
    assert tree.i32 == 7
    assert write(tree) == data
    assert [len(part) for part in read(Tree, data).unknown] == [len(strange)]
    assert write(tree.replace(i32=7)) == data
    assert tree == Tree(i32=7)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("08", "number at byte 1 ends behind what holds it"),
        ("08 ff ff ff ff ff ff ff ff ff ff 01", "takes more than 10 bytes"),
        ("42 05 61", "field 8 at byte 0 has 5 bytes, its message 1"),
        ("42", "number at byte 1"),
        ("42 02 c3 28", "name at byte 0 is no UTF-8"),
        ("35 00 00", "field 6 at byte 0 has 4 bytes, its message 2"),
        ("0d 00 00 00 00", "i32 (field 1) at byte 0 has wire type 5, must be 0"),
        ("40 01", "name (field 8) at byte 0 has wire type 0, must be 2"),
        ("0b", "begins no field: tag 11 (wire type 3)"),
        ("0f", "wire type 7"),
        ("00 01", "begins no field: number 0"),
        ("4a 03 08 96", "field 9 at byte 0 has 3 bytes, its message 2"),
        ("4a 02 0a 00", "leaf: a (field 1) at byte 2 has wire type 2, must be 0"),
        ("52 00 52 02 12 05", "leaves[1]: field 2 at byte 4 has 5 bytes, its message 0"),
        ("6a 03 00 00 00", "floats: 3 bytes at byte 2 are no whole number of float"),
        ("72 01 ff", "longs: the numbers at bytes 2 to 3 end within one"),
        ("72 0b ff ff ff ff ff ff ff ff ff ff 01", "longs: a number at bytes 2 to 13 takes 11 bytes"),
        ("5a 01 ff", "packed: number at byte 2 ends behind what holds it (3)"),
    ],
)
def test_damage_is_named(data: str, words: str) -> None:
    with pytest.raises(ConvertError) as caught:
        read(Tree, bytes.fromhex(data), "some.pb")
    assert str(caught.value).startswith("some.pb: no valid Tree of protobuf: ")
    assert words in str(caught.value)


def test_damage_in_a_map_is_found_when_it_is_used() -> None:
    tree = read(Tree, bytes.fromhex("9a 01 04 12 02 08 ff"), "some.pb")
    for _ in range(2):
        with pytest.raises(ConvertError, match=r"^no valid Tree of protobuf: named\.value: number at byte 6"):
            tree.named.get(0)


class Grove(Message):
    trees: Sequence[Leaf] = wire.messages(1, Leaf, late=True)


def test_late_messages_are_read_when_they_are_used() -> None:
    leaves = (Leaf(a=1), Leaf(b="x"))
    data = write(Grove(trees=leaves))
    grove = read(Grove, data)
    assert len(grove.trees) == 2
    assert repr(grove.trees) == repr(leaves)
    assert grove == Grove(trees=leaves) == read(Grove, data)
    assert write(grove) == data
    grove = read(Grove, bytes.fromhex("0a 00 0a 02 12 05"))
    for _ in range(2):
        with pytest.raises(ConvertError, match=r"^no valid Grove of protobuf: trees\[1\]: field 2 at byte 4 has"):
            grove.trees[0]


def nested(depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = field(20, wire.LEN, data)
    return data


def test_messages_nest_so_deep() -> None:
    tree = read(Tree, nested(MAX_DEPTH - 1))
    assert write(tree) == nested(MAX_DEPTH - 1)
    with pytest.raises(ConvertError, match="nested deeper than 100"):
        read(Tree, nested(MAX_DEPTH))
    with pytest.raises(ConvertError, match="nested deeper than 100"):
        read(Tree, nested(5000))
    with pytest.raises(ValueError, match="nested deeper than 100"):
        write(Tree(tree=tree))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"i32": 1 << 31}, "Tree.i32: 2147483648 is no int32: allowed are -2147483648 to 2147483647"),
        ({"u64": -1}, "Tree.u64: -1 is no uint64"),
        ({"s64": 1 << 63}, "Tree.s64: 9223372036854775808 is no sint64"),
        ({"fixed": -1}, "Tree.fixed: -1 is no fixed32"),
        ({"f": 1e39}, "Tree.f: 1e+39 is no float"),
        ({"i32": 1.5}, "Tree.i32: "),
        ({"name": 5}, "Tree.name: "),
        ({"leaf": Leaf(a=1 << 40)}, "Leaf.a: "),
        ({"ages": {"a": "b"}}, "Tree.ages.value: "),
        ({"leaves": 5}, "Tree.leaves: "),
    ],
)
def test_what_no_field_can_hold_is_not_written(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - words holds what it says
        write(Tree(**values))
    assert str(caught.value).startswith(words)


def test_a_hostile_file_costs_memory_in_proportion_to_its_size() -> None:
    files = [
        field(10, wire.LEN) * 10_000,  # empty messages
        field(9, wire.LEN, b"\x08\x01") * 5_000,  # one message in many parts
        field(18, wire.LEN, b"\x10\x01") * 5_000,  # one entry again and again
        field(14, wire.VARINT, b"\x01") * 10_000,  # arrays of one number
        (field(100, wire.VARINT, b"\x01") + field(1, wire.VARINT, b"\x01")) * 4_000,  # unknown ones apart
    ]
    for data in files:
        tracemalloc.start()
        read(Tree, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200 * len(data)
