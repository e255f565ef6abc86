"""ZIP files whose members are read where they lie.

What frameworks pack is stored, not compressed, so that a member is a stretch of the mapped file and arrays are views of
it. The directory of the file is Python's ``zipfile`` to read; nothing is ever unpacked to a disk.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.convert.files import map_file
from gossamer.errors import ConvertError

Source = str | os.PathLike[str] | bytes
"""A path, or what the file holds."""

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # the signature, and the lengths of the name and of the extra field behind it
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # encrypted
    EOFError,
    OSError,
    ValueError,
    OverflowError,
)
_LARGEST_TEXT = 1 << 30
"""Bytes of a member that is read as a whole: more would be a bomb, not a description of a model."""


def mapped(source: Source) -> NDArray[np.uint8]:
    """The bytes of a source: the file is mapped, not read. Raises `ConvertError` if it cannot be, or is empty."""
    memory = np.frombuffer(source if isinstance(source, bytes) else map_file(source), np.uint8)
    if not memory.size:
        raise ConvertError(f"{name_of(source)} is empty")
    return memory


def name_of(source: Source) -> str:
    """What messages call it."""
    return "the source" if isinstance(source, bytes) else os.fspath(source)


class Window(io.RawIOBase):
    """Bytes in memory as the file that zipfile and h5py read; `io.BytesIO` would copy them."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._memory = memory
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The position of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See `io.IOBase.seek`."""
        start = (0, self._position, self._memory.size)[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase.readinto`."""
        found = self._memory[self._position : self._position + len(buffer)]
        buffer[: found.size] = found.tobytes()
        self._position += found.size
        return found.size


class Archive:
    """A ZIP file: ``names`` of its members in their order, ``memory`` the bytes of all of it.

    Raises `ConvertError` for what is none, here and when a damaged member is read.
    """

    def __init__(self, source: Source, kind: str) -> None:
        self.memory = mapped(source)
        self._place = name_of(source)
        try:
            self._zip = zipfile.ZipFile(Window(self.memory))
            self.names = self._zip.namelist()
        except _DAMAGE as error:
            raise ConvertError(f"{self._place} is no {kind}, or a part of one: {error}") from error

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """The bytes of a member, compressed or not, checked against its CRC."""
        size = self._info(name).file_size
        if size > _LARGEST_TEXT:
            raise ConvertError(
                f"{self._place}: {name} claims {size} bytes, more than the {_LARGEST_TEXT} that are read"
            )
        try:
            return self._zip.read(name)
        except _DAMAGE as error:
            raise ConvertError(f"{self._place}: {name} is damaged: {error}") from error

    def stored(self, name: str) -> NDArray[np.uint8] | None:
        """The bytes of a member where they lie in the file, read-only; ``None`` if it is compressed.

        They are not checked against the CRC, which would read all of them.
        """
        info = self._info(name)
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            return None
        header = self.memory[max(info.header_offset, 0) :][: _LOCAL_HEADER.size].tobytes()
        if len(header) == _LOCAL_HEADER.size:
            signature, name_length, extra_length = _LOCAL_HEADER.unpack(header)
            start = info.header_offset + _LOCAL_HEADER.size + name_length + extra_length
            data = self.memory[start : start + info.file_size]
            if signature == b"PK\3\4" and data.size == info.file_size == info.compress_size:
                return data
        raise ConvertError(
            f"{self._place}: {name} is damaged: its {info.file_size} bytes are not where the file has it"
        )

    def _info(self, name: str) -> zipfile.ZipInfo:
        if name not in self:
            raise ConvertError(f"{self._place}: {name} is missing")
        return self._zip.getinfo(name)
