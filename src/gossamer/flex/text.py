"""Tensors as texts, as TensorFlow prints them."""

from __future__ import annotations

import numpy as np

from gossamer.flex.kernels import Array

_ESCAPES = {ord(character): f"\\{name}".encode() for character, name in zip("\n\r\t\"'\\", "nrt\"'\\", strict=True)}


def summary(value: Array, most: int) -> bytes:
    """A tensor in nested brackets: of each dimension ``most`` elements at both ends, all of them if that is negative
    (tensor.cc, SummarizeValue)."""
    return _nested(value, value.ndim, value.size if most < 0 else most)


def escaped(text: bytes) -> bytes:
    """A text as C would have it between quotation marks; what is no ASCII stays."""
    return b"".join([_ESCAPES.get(byte, bytes([byte]) if 32 <= byte != 127 else b"\\%03o" % byte) for byte in text])


def _nested(value: Array, rank: int, most: int) -> bytes:
    if not value.ndim:
        return _element(value)
    depth = rank - value.ndim
    between = b" " if value.ndim == 1 else b"\n" * (value.ndim - 1) + b" " * (depth + 1)
    count = len(value)
    parts = [_nested(value[at : at + 1].reshape(value.shape[1:]), rank, most) for at in range(min(most, count))]
    if count > 2 * most:
        parts.append(b"...")
    last = range(max(most, count - most), count)
    parts += [_nested(value[at : at + 1].reshape(value.shape[1:]), rank, most) for at in last]
    return b"[" + (between if count and not most else b"") + between.join(parts) + b"]"


def _element(value: Array) -> bytes:
    item = value.item()
    if isinstance(item, bytes):
        return b'"' + escaped(item) + b'"'
    if value.dtype.kind in "biu":
        return b"%d" % item
    if value.dtype == np.float64:
        return _shortest(item, 15, 17, float).encode()
    if value.dtype.kind == "f" or value.dtype.name == "bfloat16":
        return _shortest(float(item), 6, 9, np.float32).encode()
    return b"?"


def _shortest(number: float, digits: int, most: int, type: type[float] | type[np.float32]) -> str:
    """A number in few digits, if they tell it, else in ``most``."""
    if number != number:
        return "-nan" if np.signbit(number) else "nan"
    text = f"{number:.{digits}g}"
    return text if type(text) == number else f"{number:.{most}g}"
