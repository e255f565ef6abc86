"""The file of a kernel archive: how kernels lie in it and what is checked. Only what is looked for is read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from gossamer.errors import CompileError
from gossamer.records import record

# A file is a header, the day each kernel was last used, their hashes in ascending order, a record for each, the key,
# their names, and from the next page on their code. Names and code are in alphabetical order: neighbours are alike, and
# a wheel compresses them well. The check of the header covers all in front of the code but the days; that of a record
# covers name, place and code, so that code under another name is as wrong as damaged code.
_MAGIC = b"GOSSAMER KERNELS"
_FORMAT = 2
_HEADER = Struct("<16sIIIIQI")  # magic, format, kernels, bytes of the key, bytes of the names, bytes of all, check
_DAY = Struct("<I")
_HASH = Struct("<I")
_RECORD = Struct("<QIIIIII")  # offset of the code, its bytes, entry, alignment, name (offset, bytes), check
_PAGE = 4096
_LARGEST_ALIGNMENT = _PAGE

HEADER_SIZE = _HEADER.size
"""Bytes that no two archives of different kernels have in common."""


@record(frozen=True)
class Blob:
    """Position-independent machine code without external references; ``entry`` is the offset of its function."""

    code: bytes
    entry: int
    alignment: int = 64


class Record(NamedTuple):
    """Where a kernel lies in a file, and what its check should be. Sizes and offsets in bytes."""

    number: int
    offset: int
    size: int
    entry: int
    alignment: int
    name_at: int
    name_size: int
    check: int


class KernelFile:
    """The kernels of a file, looked at one by one when they are asked for.

    Raises `ValueError`, with the rest of a sentence that says what is wrong, for bytes that are no archive of this
    format, or not all of one. Code is checked by `is_sound`, not here.
    """

    def __init__(self, content: memoryview) -> None:
        if len(content) < _HEADER.size:
            raise ValueError("is too short")
        magic, version, count, key_size, names_size, size, check = _HEADER.unpack_from(content)
        if magic != _MAGIC or version != _FORMAT:
            raise ValueError("is not an archive of kernels of this format")
        if size != len(content):
            raise ValueError("is truncated")
        hashes_at = _HEADER.size + count * _DAY.size
        records_at = hashes_at + count * _HASH.size
        key_at = records_at + count * _RECORD.size
        names_at = key_at + key_size
        index = content[hashes_at : names_at + names_size]
        if _check_index((count, key_size, names_size, size), index) != check:
            raise ValueError("is damaged")
        self.content = content
        self.key = bytes(content[key_at:names_at]).decode()
        self._days = content[_HEADER.size : hashes_at].cast("I")
        self._hashes = content[hashes_at:records_at].cast("I")
        self._records_at = records_at
        self._names_at = names_at

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[tuple[str, Record]]:
        for number in range(len(self)):
            record = self._record(number)
            yield bytes(self._name(record)).decode(), record

    def find(self, name: str) -> Record | None:
        """The record of a kernel, if it is here."""
        wanted, hashes = name.encode(), self._hashes
        hashed = crc32(wanted)
        number = bisect_left(hashes, hashed)
        while number < len(hashes) and hashes[number] == hashed:
            record = self._record(number)
            if self._name(record) == wanted:
                return record
            number += 1
        return None

    def code(self, record: Record) -> memoryview:
        """The machine code of a kernel."""
        return self.content[record.offset : record.offset + record.size]

    def is_sound(self, name: str, record: Record) -> bool:
        """Whether the code is what was written under this name."""
        return _check_kernel(name, record.entry, record.alignment, self.code(record)) == record.check

    def day(self, record: Record) -> int:
        """The day of the last use, counted from 1970."""
        return self._days[record.number]

    def kernels(self) -> dict[str, Blob]:
        """Copies of the kernels that are sound."""
        return {
            name: Blob(bytes(self.code(record)), record.entry, record.alignment)
            for name, record in self
            if self.is_sound(name, record)
        }

    def days(self) -> dict[str, int]:
        """The days of last use of all kernels."""
        return {name: self.day(record) for name, record in self}

    def _record(self, number: int) -> Record:
        return Record(number, *_RECORD.unpack_from(self.content, self._records_at + number * _RECORD.size))

    def _name(self, record: Record) -> memoryview:
        at = self._names_at + record.name_at
        return self.content[at : at + record.name_size]


def encode(key: str, kernels: Mapping[str, Blob], days: Mapping[str, int]) -> bytes:
    """The bytes of a file of these kernels. Raises `CompileError` for a blob that cannot be one."""
    names = sorted(kernels)
    hash_of = {name: crc32(name.encode()) for name in names}
    by_hash = sorted(names, key=hash_of.__getitem__)
    encoded_key, encoded_names = key.encode(), "".join(names).encode()
    front = _HEADER.size + len(names) * (_DAY.size + _HASH.size + _RECORD.size) + len(encoded_key) + len(encoded_names)
    start = front + -front % _PAGE
    code = bytearray()
    records = {}
    name_at = 0
    for name in names:
        blob = kernels[name]
        if not 0 < blob.alignment <= _LARGEST_ALIGNMENT or not 0 <= blob.entry < len(blob.code):
            raise CompileError(f"Kernel {name} has entry {blob.entry} and alignment {blob.alignment}.")
        code += b"\xcc" * (-len(code) % blob.alignment)
        place = (start + len(code), len(blob.code), blob.entry, blob.alignment, name_at, len(name.encode()))
        records[name] = _RECORD.pack(*place, _check_kernel(name, blob.entry, blob.alignment, blob.code))
        code += blob.code
        name_at += len(name.encode())
    hashes = (_HASH.pack(hash_of[name]) for name in by_hash)
    index = b"".join((*hashes, *(records[name] for name in by_hash), encoded_key, encoded_names))
    sizes = (len(names), len(encoded_key), len(encoded_names), start + len(code))
    header = _HEADER.pack(_MAGIC, _FORMAT, *sizes, _check_index(sizes, index))
    stamps = b"".join(_DAY.pack(days[name]) for name in by_hash)
    return b"".join((header, stamps, index, bytes(start - front), code))


def day_place(record: Record, day: int) -> tuple[int, bytes]:
    """Where the day of the last use of a kernel is written, and what: the one thing that changes in a file."""
    return _HEADER.size + _DAY.size * record.number, _DAY.pack(day)


def _check_index(sizes: tuple[int, ...], index: bytes | memoryview) -> int:
    return crc32(index, crc32(repr((_FORMAT, *sizes)).encode()))


def _check_kernel(name: str, entry: int, alignment: int, code: bytes | memoryview) -> int:
    about = f"{name} {len(code)} {entry} {alignment}".encode()
    return crc32(code, crc32(about))
