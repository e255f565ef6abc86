"""TensorFlow's checkpoints: ``PREFIX.index`` says where in ``PREFIX.data-*`` each tensor lies.

The index is a table of LevelDB. Its last 48 bytes are the footer: offset and size of two blocks as varints, padding,
and the magic number; the second of these blocks is the index of the blocks with entries. A block is a list of entries
(how many bytes of the key before are shared, how many follow, how long the value is, all varints; the rest of the key,
the value), an array of uint32 with the positions of keys that share nothing, and how many these are. Behind a block
stand a byte for its compression and the masked CRC-32C of block and byte.

The empty key has the header of the bundle. Numbers lie in the data as they are in memory. Of strings, the lengths come
first as varints, then the masked CRC-32C of the lengths as uint32 numbers, then the bytes; what is checked is the
lengths as uint32, that checksum and the bytes.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.crc32c import LONG, crc32c, joined, masked, unmasked
from gossamer.convert.elements import from_bytes, known_shape, of_strings
from gossamer.convert.files import map_file
from gossamer.convert.messages.tensorflow import BundleEntryProto, BundleHeaderProto, DataType, Endianness
from gossamer.convert.sources.tensor_proto import numpy_dtype
from gossamer.convert.wire import read
from gossamer.errors import ConvertError

FOOTER = 48
MAGIC = 0xDB4775248B80FB57
TRAILER = 5
VERSION = 1
"""The newest version of the format that is known."""

EXPANSION = 64
"""Bytes of keys per byte of an index: keys share their beginnings, but every sixteenth is written in full."""


class TensorBundle:
    """A checkpoint that is mapped; tensors are views of it.

    ``entries`` are the stored ones by key. Raises `ConvertError` for an index that is missing or damaged.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        self.prefix = os.fspath(prefix)
        self.entries: dict[str, BundleEntryProto] = {}
        self._shards: dict[int, memoryview] = {}
        self._groups: dict[str, list[BundleEntryProto]] = {}
        self._whole: dict[tuple[int, int], bool] = {}
        self.header = None
        path = f"{self.prefix}.index"
        for key, value in _table(map_file(path), path):
            if not key:
                self.header = read(BundleHeaderProto, value, f"{path}: header")
                continue
            name = str(key, "utf-8", "surrogateescape")
            self.entries[name] = read(BundleEntryProto, value, f"{path}: {name!r}")
        if self.header is None:
            raise ConvertError(f"{path}: there is no header (an entry with the empty key)")
        if self.header.endianness != Endianness.LITTLE:
            raise ConvertError(f"{path}: numbers are big-endian; little-endian is read")
        needed = self.header.version.min_consumer if self.header.version is not None else 0
        if needed > VERSION:
            raise ConvertError(f"{path}: needs a reader of version {needed}, this one is of {VERSION}")

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def read(self, key: str) -> NDArray[Any]:
        """The tensor with this key: a read-only view of the file, or of strings a new array of ``bytes`` objects.

        Raises `KeyError` if there is none, `ConvertError` if it is damaged, its checksum is wrong, or it was saved in
        slices.
        """
        entry = self.entries[key]
        what = f"{self.prefix}: {key!r}"
        if entry.slices:
            raise ConvertError(f"{what} is saved in {len(entry.slices)} slices, which are not read")
        dtype = numpy_dtype(entry.dtype, what)
        shape = known_shape([dim.size for dim in entry.shape.dim] if entry.shape is not None else (), dtype, what)
        shard = self._shard(entry.shard_id, what)
        if min(entry.offset, entry.size) < 0 or entry.offset + entry.size > len(shard):
            raise ConvertError(
                f"{what} is at bytes {entry.offset} to {entry.offset + entry.size} of a file that has {len(shard)}"
            )
        raw = shard[entry.offset : entry.offset + entry.size]
        if dtype.hasobject:
            return _strings(raw, shape, entry.crc32c, what)
        array = from_bytes(raw, dtype, shape, what)
        if not self._is_whole(key, shard):
            _check(raw, entry.crc32c, what)
        return array

    def _is_whole(self, key: str, shard: memoryview) -> bool:
        """Whether the checksum of a tensor and its neighbours together is right: small ones one by one take long."""
        if not self._groups:
            self._groups = dict(_grouped(self.entries))
        group = self._groups.get(key, [])
        if len(group) < 2:
            return False
        place = group[0].shard_id, group[0].offset
        if place not in self._whole:
            start, stop = group[0].offset, group[-1].offset + group[-1].size
            wanted = joined([unmasked(entry.crc32c) for entry in group], [entry.size for entry in group])
            self._whole[place] = stop <= len(shard) and crc32c(shard[start:stop]) == wanted
        return self._whole[place]

    def _shard(self, number: int, what: str) -> memoryview:
        count = self.header.num_shards if self.header is not None else 0
        if not 0 <= number < count:
            raise ConvertError(f"{what} is in file {number} of {count}")
        if number not in self._shards:
            self._shards[number] = map_file(f"{self.prefix}.data-{number:05d}-of-{count:05d}")
        return self._shards[number]


def _grouped(entries: Mapping[str, BundleEntryProto]) -> Iterator[tuple[str, list[BundleEntryProto]]]:
    """The tensors that lie around each without a gap, so many that their checksum is worth it."""
    group: list[BundleEntryProto] = []
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].shard_id, item[1].offset, item[1].size)):
        if entry.slices or entry.dtype == DataType.DT_STRING:  # have other checksums
            continue
        last = group[-1] if group else entry
        full = sum(one.size for one in group) >= LONG
        if full or (entry.shard_id, entry.offset) != (last.shard_id, last.offset + last.size):
            group = []
        group.append(entry)
        yield name, group


def _check(data: Any, stored: int, what: str) -> None:
    found = masked(crc32c(data))
    if found != stored:
        raise ConvertError(f"{what} is damaged: its checksum is {found:#010x}, must be {stored:#010x}")


def _strings(raw: memoryview, shape: tuple[int, ...], checksum: int, what: str) -> NDArray[Any]:
    count = math.prod(shape)
    if count > len(raw):
        raise ConvertError(f"{what} has {len(raw)} bytes, which cannot hold {count} strings")
    at, lengths = 0, []
    for _ in range(count):
        length, at = _varint(raw, at, what)
        lengths.append(length)
    if at + 4 + sum(lengths) != len(raw):
        raise ConvertError(f"{what} has {len(raw)} bytes; its strings take {at + 4 + sum(lengths)}")
    sizes = b"".join([length.to_bytes(4 if length < 1 << 32 else 8, "little") for length in lengths])
    _check(sizes, int.from_bytes(raw[at : at + 4], "little"), f"{what} (lengths)")
    _check(sizes + bytes(raw[at:]), checksum, what)
    ends = np.cumsum([at + 4, *lengths], dtype=np.int64).tolist()
    return of_strings([bytes(raw[ends[i] : ends[i + 1]]) for i in range(count)]).reshape(shape)


def _varint(data: memoryview, at: int, what: str) -> tuple[int, int]:
    """The number at ``at``, and where it ends."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ConvertError(f"{what}: the number at byte {at} does not end")


def _table(data: memoryview, path: str) -> Iterator[tuple[bytes, memoryview]]:
    """The entries of a LevelDB table in order."""
    if len(data) < FOOTER or struct.unpack("<Q", data[-8:])[0] != MAGIC:
        raise ConvertError(f"{path}: no index of a checkpoint: {len(data)} bytes that do not end with its magic number")
    footer = data[-FOOTER:]
    at = 0
    for _ in range(2):  # of the metaindex, which is empty
        _, at = _varint(footer, at, f"{path}: footer")
    left = EXPANSION * len(data)
    behind = 0
    for _, handle in _block(data, footer[at:], path):
        start = _varint(handle, 0, path)[0]
        if start < behind:
            raise ConvertError(f"{path}: a block begins at byte {start}, in another one that ends at {behind}")
        behind = start + _varint(handle, _varint(handle, 0, path)[1], path)[0]
        for key, value in _block(data, handle, path):
            left -= len(key)
            if left < 0:
                raise ConvertError(f"{path}: keys take more than {EXPANSION} times the {len(data)} bytes of the file")
            yield key, value


def _block(data: memoryview, handle: memoryview, path: str) -> Iterator[tuple[bytes, memoryview]]:
    """The entries of the block that a handle (offset and size as varints) points to."""
    start, at = _varint(handle, 0, path)
    size, _ = _varint(handle, at, path)
    what = f"{path}: block at byte {start}"
    if size < 4 or start + size + TRAILER > len(data):
        raise ConvertError(f"{what} has {size} bytes; the file has {len(data)}")
    _check(data[start : start + size + 1], struct.unpack_from("<I", data, start + size + 1)[0], what)
    if data[start + size]:
        raise ConvertError(f"{what} has compression {data[start + size]}; 0 (none) is read")
    block = data[start : start + size]
    restarts = struct.unpack("<I", block[-4:])[0]
    end = size - 4 - 4 * restarts
    if end < 0:
        raise ConvertError(f"{what} has {size} bytes, which cannot hold {restarts} restarts")
    at, key = 0, b""
    while at < end:
        shared, at = _varint(block, at, what)
        fresh, at = _varint(block, at, what)
        length, at = _varint(block, at, what)
        if shared > len(key) or fresh + length > end - at:
            raise ConvertError(f"{what}: the entry at byte {at} ends outside of it")
        key = key[:shared] + bytes(block[at : at + fresh])
        yield key, block[at + fresh : at + fresh + length]
        at += fresh + length
