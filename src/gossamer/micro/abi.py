"""How a C++ compiler lays out structures: the sizes of TFLite Micro's own objects on a device and on a PC."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Abi(NamedTuple):
    """Bytes of a pointer (and of ``size_t``) and of a small enumeration.

    Compilers for bare-metal ARM give an enumeration the smallest integer that holds it (``-fshort-enums``), others an
    ``int``. Everything else has the same size and alignment on all targets of TFLite Micro. ``compression``: whether it
    is built for compressed tensors (USE_TFLM_COMPRESSION), for which some structures have more fields.
    """

    pointer: int
    enumeration: int
    compression: bool = False


ARM = Abi(pointer=4, enumeration=1)
"""arm-none-eabi: Cortex-M."""

X86_64 = Abi(pointer=8, enumeration=4)
"""A PC, and every other target with 64-bit pointers."""


def abi(pointer_size: int, *, compression: bool = False) -> Abi:
    """The ABI for pointers of 4 or 8 bytes. Raises `ValueError` for any other size."""
    for known in (ARM, X86_64):
        if known.pointer == pointer_size:
            return known._replace(compression=compression)
    raise ValueError(f"pointer_size must be 4 or 8, got {pointer_size}")


class CType(Protocol):
    """A C type that knows its size and alignment in bytes."""

    def size(self, abi: Abi) -> int: ...

    def alignment(self, abi: Abi) -> int: ...


class Scalar(NamedTuple):
    """A type of a fixed number of bytes, aligned to its size."""

    bytes: int

    def size(self, abi: Abi) -> int:
        return self.bytes

    def alignment(self, abi: Abi) -> int:
        return self.bytes


class _Pointer(NamedTuple):
    def size(self, abi: Abi) -> int:
        return abi.pointer

    def alignment(self, abi: Abi) -> int:
        return abi.pointer


class _Enumeration(NamedTuple):
    def size(self, abi: Abi) -> int:
        return abi.enumeration

    def alignment(self, abi: Abi) -> int:
        return abi.enumeration


class Array(NamedTuple):
    """``length`` elements of one type."""

    element: CType
    length: int

    def size(self, abi: Abi) -> int:
        return self.element.size(abi) * self.length

    def alignment(self, abi: Abi) -> int:
        return self.element.alignment(abi)


class WithCompression(NamedTuple):
    """A field that there is only for compressed tensors."""

    type: CType

    def size(self, abi: Abi) -> int:
        return self.type.size(abi) if abi.compression else 0

    def alignment(self, abi: Abi) -> int:
        return self.type.alignment(abi) if abi.compression else 1


class Struct:
    """A structure: its fields by name, in order. A base class comes first, a class with virtual functions begins with
    the pointer to their table."""

    def __init__(self, **fields: CType) -> None:
        self.fields = fields

    def size(self, abi: Abi) -> int:
        """Bytes of one, padded so that a second one can follow."""
        end = _end(self.fields.values(), abi)
        return align_up(end, self.alignment(abi))

    def alignment(self, abi: Abi) -> int:
        """That of the field with the strictest."""
        return max((field.alignment(abi) for field in self.fields.values()), default=1)


def _end(fields: Iterable[CType], abi: Abi) -> int:
    end = 0
    for field in fields:
        end = align_up(end, field.alignment(abi)) + field.size(abi)
    return end


def align_up(value: int, alignment: int) -> int:
    """The first multiple of ``alignment`` that is not below ``value``."""
    return -(-value // alignment) * alignment


def align_down(value: int, alignment: int) -> int:
    """The last multiple of ``alignment`` that is not above ``value``."""
    return value // alignment * alignment


int8 = boolean = Scalar(1)
int16 = Scalar(2)
int32 = float32 = Scalar(4)
float64 = int64 = uint64 = Scalar(8)
pointer = size = _Pointer()
enumeration = _Enumeration()
