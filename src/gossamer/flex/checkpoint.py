"""Checkpoints written, in the form that `gossamer.convert.sources.tensor_bundle` reads and describes."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gossamer.convert.crc32c import crc32c, masked
from gossamer.convert.messages.tensorflow import (
    BundleEntryProto,
    BundleHeaderProto,
    DataType,
    TensorShapeProto,
    VersionDef,
)
from gossamer.convert.sources.tensor_bundle import FOOTER, MAGIC, VERSION
from gossamer.convert.wire import write
from gossamer.flex.kernels import Array


def write_checkpoint(prefix: Path, tensors: Mapping[str, tuple[DataType, Array]]) -> None:
    """Write ``PREFIX.index`` and ``PREFIX.data-00000-of-00001``. Raises `OSError`."""
    header = BundleHeaderProto(num_shards=1, version=VersionDef(producer=VERSION))
    entries, parts, at = [(b"", write(header))], [], 0
    for name, (type, value) in sorted(tensors.items(), key=lambda item: item[0].encode()):
        part, checksum = _stored(value)
        shape = TensorShapeProto(dim=tuple([TensorShapeProto.Dim(size=size) for size in value.shape]))
        entry = BundleEntryProto(dtype=type, shape=shape, offset=at, size=len(part), crc32c=checksum)
        entries.append((name.encode(), write(entry)))
        parts.append(part)
        at += len(part)
    _replace(Path(f"{prefix}.data-00000-of-00001"), b"".join(parts))
    _replace(Path(f"{prefix}.index"), _table(entries))


def _replace(path: Path, content: bytes) -> None:
    """Write a file as a whole: who reads meanwhile sees the one before."""
    made = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        made.write_bytes(content)
        made.replace(path)
    finally:
        made.unlink(missing_ok=True)


def _stored(value: Array) -> tuple[bytes, int]:
    """The bytes of a tensor and their checksum."""
    if value.dtype != object:
        content = np.ascontiguousarray(value).tobytes()
        return content, masked(crc32c(content))
    items = value.reshape(-1).tolist()
    sizes = b"".join([len(item).to_bytes(4, "little") for item in items])
    behind = struct.pack("<I", masked(crc32c(sizes))) + b"".join(items)
    return b"".join([_varint(len(item)) for item in items]) + behind, masked(crc32c(sizes + behind))


def _table(entries: list[tuple[bytes, bytes]]) -> bytes:
    """A table of LevelDB with one block of entries."""
    content, handles = b"", []
    for block in (_block(entries), _block([])):
        handles.append(_varint(len(content)) + _varint(len(block) - 5))
        content += block
    index = _block([(entries[-1][0], handles[0])])
    footer = handles[1] + _varint(len(content)) + _varint(len(index) - 5)
    return content + index + footer.ljust(FOOTER - 8, b"\0") + struct.pack("<Q", MAGIC)


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
    """Entries that share nothing, where the first is, a byte for no compression, and the checksum."""
    stored = [_varint(0) + _varint(len(key)) + _varint(len(value)) + key + value for key, value in entries]
    block = b"".join(stored) + struct.pack("<II", 0, 1) + b"\0"
    return block + struct.pack("<I", masked(crc32c(block)))


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
