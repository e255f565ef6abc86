from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gossamer.convert.crc32c import crc32c
from gossamer.convert.messages.tensorflow import (
    BundleEntryProto,
    BundleHeaderProto,
    DataType,
    Endianness,
    TensorSliceProto,
    VersionDef,
)
from gossamer.convert.sources import tensor_bundle
from gossamer.convert.sources.tensor_bundle import TensorBundle
from gossamer.convert.wire import write
from gossamer.errors import ConvertError
from tests.convert.arbitrary import sealed, shape, table, varint, write_bundle

TENSORS = {
    "layer/bias": (DataType.DT_HALF, np.float16([1, 2])),
    "layer/kernel": (DataType.DT_FLOAT, np.arange(6, dtype=np.float32).reshape(2, 3)),
    "layer/kernel2": (DataType.DT_INT64, np.int64(-5)),
    "words": (DataType.DT_STRING, np.array([[b"a", b""], [b"xyz" * 100, b"\x00"]], object)),
    "zero": (DataType.DT_FLOAT, np.zeros((0, 4), np.float32)),
}


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_every_tensor_comes_back(tmp_path: Path, shards: int) -> None:
    write_bundle(tmp_path / "variables", TENSORS, shards)
    bundle = TensorBundle(tmp_path / "variables")
    assert list(bundle) == sorted(TENSORS)
    for key, (dtype, value) in TENSORS.items():
        array = bundle.read(key)
        assert bundle.entries[key].dtype == dtype
        assert (array.dtype, array.shape, array.tolist()) == (value.dtype, value.shape, value.tolist())
        assert array.dtype.hasobject or not array.flags.writeable
    assert "nothing" not in bundle
    with pytest.raises(KeyError):
        bundle.read("nothing")


def test_every_damaged_byte_of_the_data_is_noticed(tmp_path: Path) -> None:
    write_bundle(tmp_path / "variables", {key: TENSORS[key] for key in ("layer/kernel", "words")})
    data = tmp_path / "variables.data-00000-of-00001"
    whole = data.read_bytes()
    for at in range(0, len(whole), 7):
        data.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        bundle = TensorBundle(tmp_path / "variables")
        entry = bundle.entries["layer/kernel"]
        damaged = "layer/kernel" if entry.offset <= at < entry.offset + entry.size else "words"
        with pytest.raises(ConvertError, match=damaged):
            bundle.read(damaged)


def test_neighbours_are_checked_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {f"n{i}": (DataType.DT_FLOAT, np.arange(i, dtype=np.float32)) for i in range(40)}
    write_bundle(tmp_path / "variables", {**numbers, "words": TENSORS["words"]})
    checked: list[int] = []
    monkeypatch.setattr(tensor_bundle, "crc32c", lambda data: checked.append(len(data)) or crc32c(data))
    bundle = TensorBundle(tmp_path / "variables")
    checked.clear()
    for key, (_, value) in numbers.items():
        assert bundle.read(key).tolist() == value.tolist()
    assert checked == [sum(value.nbytes for _, value in numbers.values())]
    data = tmp_path / "variables.data-00000-of-00001"
    whole = bytearray(data.read_bytes())
    whole[bundle.entries["n7"].offset] ^= 1
    data.write_bytes(whole)
    bundle = TensorBundle(tmp_path / "variables")
    for key, (_, value) in numbers.items():
        if key == "n7":
            with pytest.raises(ConvertError, match="'n7' is damaged: its checksum"):
                bundle.read(key)
        else:
            assert bundle.read(key).tolist() == value.tolist()


def test_every_damaged_byte_of_the_index_is_noticed(tmp_path: Path) -> None:
    write_bundle(tmp_path / "variables", TENSORS)
    index = tmp_path / "variables.index"
    whole = index.read_bytes()
    for at in range(len(whole)):
        index.write_bytes(whole[:at] + bytes([whole[at] ^ 0x01]) + whole[at + 1 :])
        try:
            bundle = TensorBundle(tmp_path / "variables")
        except ConvertError:
            continue
        assert len(whole) - 48 <= at < len(whole) - 8  # padding of the footer, or the metaindex, which is not looked at
        assert list(bundle) == sorted(TENSORS)
    for size in range(len(whole)):
        index.write_bytes(whole[:size])
        with pytest.raises(ConvertError):
            TensorBundle(tmp_path / "variables")


HEADER = write(BundleHeaderProto(num_shards=1))
RESTARTS = bytes(4) + (1).to_bytes(4, "little")
FOOTER = bytes.fromhex("57fb808b247547db")


def one_block(content: bytes) -> bytes:
    """A table whose only block with entries has this content."""
    handle = varint(0) + varint(len(content))
    index = varint(0) + varint(0) + varint(len(handle)) + handle + RESTARTS
    data = sealed(content)
    at = varint(len(data)) + varint(len(index))
    return data + sealed(index) + (b"\0\0" + at).ljust(40, b"\0") + FOOTER


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (b"", "no index of a checkpoint: 0 bytes"),
        (bytes(100), "do not end with its magic number"),
        (table({b"a": b""}), "there is no header"),
        (table({b"": write(BundleHeaderProto(endianness=Endianness.BIG))}), "big-endian"),
        (table({b"": write(BundleHeaderProto(version=VersionDef(min_consumer=2)))}), "needs a reader of version 2"),
        (table({b"": HEADER, b"a": b"\x0a"}), "'a': no valid BundleEntryProto"),
        (table({b"": HEADER}).replace(FOOTER, bytes(8)), "magic number"),
        (one_block(b"\x05\x00\x00" + RESTARTS), "ends outside of it"),
        (one_block(b"\x00\x05\x00" + RESTARTS), "ends outside of it"),
        (one_block((77).to_bytes(4, "little")), "cannot hold 77 restarts"),
        (b"\xff" * 40 + FOOTER, "does not end"),
        (bytes(10) + (b"\0\0" + varint(4) + varint(1 << 40)).ljust(40, b"\0") + FOOTER, "block at byte 4 has"),
    ],
)
def test_indexes_that_are_refused(tmp_path: Path, index: bytes, words: str) -> None:
    (tmp_path / "v.index").write_bytes(index)
    with pytest.raises(ConvertError, match=words):
        TensorBundle(tmp_path / "v")


def test_keys_that_share_too_much_are_refused(tmp_path: Path) -> None:
    key = b"k" * 10_000
    entries = b"\0\0" + varint(len(HEADER)) + HEADER + varint(0) + varint(len(key)) + b"\0" + key
    entries += (varint(len(key)) + b"\x01\0k") * 1000
    (tmp_path / "v.index").write_bytes(one_block(entries + RESTARTS))
    with pytest.raises(ConvertError, match="keys take more than 64 times"):
        TensorBundle(tmp_path / "v")


def test_a_compressed_block_is_refused(tmp_path: Path) -> None:
    from gossamer.convert.crc32c import crc32c, masked

    whole = table({b"": HEADER})
    block = whole[: whole.index(masked(crc32c(whole[: 11 + len(HEADER) + 1])).to_bytes(4, "little"))]
    compressed = block[:-1] + b"\x01"
    data = compressed + masked(crc32c(compressed)).to_bytes(4, "little") + whole[len(block) + 4 :]
    (tmp_path / "v.index").write_bytes(data)
    with pytest.raises(ConvertError, match=r"compression 1; 0 \(none\) is read"):
        TensorBundle(tmp_path / "v")


def entry(**values: object) -> bytes:
    return write(BundleEntryProto(dtype=DataType.DT_FLOAT, shape=shape(2), size=8).replace(**values))


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (entry(shard_id=1), "is in file 1 of 1"),
        (entry(offset=1), "is at bytes 1 to 9 of a file that has 8"),
        (entry(offset=-1), "is at bytes -1 to 7"),
        (entry(size=-8), "is at bytes 0 to -8"),
        (entry(size=4), r"has 4 bytes; float32\[2\] takes 8"),
        (entry(crc32c=5), "is damaged: its checksum is 0x.{8}, must be 0x00000005"),
        (entry(shape=shape(-1)), "not all sizes"),
        (entry(dtype=DataType.DT_VARIANT), "is of DT_VARIANT"),
        (entry(dtype=DataType.DT_STRING, shape=shape(1 << 40)), "cannot hold"),
        (entry(dtype=DataType.DT_STRING), "its strings take"),
        (entry(slices=(TensorSliceProto(),)), "is saved in 1 slices, which are not read"),
    ],
)
def test_entries_that_are_refused(tmp_path: Path, stored: bytes, words: str) -> None:
    (tmp_path / "v.index").write_bytes(table({b"": HEADER, b"a": stored}))
    (tmp_path / "v.data-00000-of-00001").write_bytes(bytes(8))
    with pytest.raises(ConvertError, match=words):
        TensorBundle(tmp_path / "v").read("a")


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    write_bundle(tmp_path / "v", TENSORS, 2)
    (tmp_path / "v.data-00001-of-00002").unlink()
    bundle = TensorBundle(tmp_path / "v")
    assert bundle.read("layer/bias").tolist() == [1, 2]
    with pytest.raises(ConvertError, match=r"v\.data-00001-of-00002: cannot be read: No such file"):
        bundle.read("layer/kernel")
