"""Numbers and bytes as texts and messages."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np

from gossamer.convert.messages.tensorflow import TensorProto, TensorShapeProto
from gossamer.convert.wire import write
from gossamer.flex.kernels import Array, Call, kernel, like_first
from gossamer.flex.kernels._checks import checked_shape, number
from gossamer.flex.objects import strings


def _ordered(call: Call) -> np.dtype[Any]:
    """The type of the result in the byte order that the attribute says."""
    return call.dtype("out_type").newbyteorder("<" if call.attributes.bool("little_endian") else ">")


@kernel("DecodeRaw")
def decode_raw(call: Call, contents: Array) -> Array:
    """The numbers that the bytes of each string are, as a last dimension; all strings have one length."""
    dtype = _ordered(call)
    texts: list[bytes] = contents.reshape(-1).tolist()
    length = len(texts[0]) if texts else 0
    call.require(all(len(text) == length for text in texts), "strings must have one length")
    call.require(length % dtype.itemsize == 0, f"{length} bytes are no whole number of {dtype.itemsize}")
    return np.frombuffer(b"".join(texts), dtype).reshape(*contents.shape, length // dtype.itemsize)


@kernel("DecodePaddedRaw")
def decode_padded_raw(call: Call, contents: Array, fixed_length: Array) -> Array:
    """The same of strings cut or filled with zeros to ``fixed_length`` bytes."""
    dtype = _ordered(call)
    length = number(call, "fixed_length", fixed_length)
    call.require(
        length > 0 and length % dtype.itemsize == 0,
        f"fixed_length must be a positive multiple of {dtype.itemsize}, got {length}",
    )
    checked_shape(call, [contents.size, length])
    texts = [text[:length].ljust(length, b"\0") for text in contents.reshape(-1).tolist()]
    return np.frombuffer(b"".join(texts), dtype).reshape(*contents.shape, length // dtype.itemsize)


@kernel("EncodeBase64", shape=like_first)
def encode_base64(call: Call, x: Array) -> Array:
    """Base64 with ``-`` and ``_`` (RFC 4648), with ``=`` at the end if ``pad``."""
    texts = [base64.urlsafe_b64encode(text) for text in x.reshape(-1).tolist()]
    return strings(texts if call.attributes.bool("pad") else [text.rstrip(b"=") for text in texts], x.shape)


@kernel("DecodeBase64", shape=like_first)
def decode_base64(call: Call, x: Array) -> Array:
    """The inverse, with or without ``=``."""
    return strings([_decoded(call, text) for text in x.reshape(-1).tolist()], x.shape)


def _decoded(call: Call, text: bytes) -> bytes:
    bare = text.rstrip(b"=")
    plain = bare.replace(b"-", b"").replace(b"_", b"").isalnum() or not bare
    whole = len(bare) % 4 != 1 and (bare == text or (len(text) % 4 == 0 and len(text) - len(bare) <= 2))
    call.require(plain and whole and bare.isascii(), f"{text[:40]!r} is no base64 with '-' and '_'")
    try:
        return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
    except binascii.Error as error:
        call.fail(f"{text[:40]!r} is no base64 ({error})")


@kernel("SerializeTensor", shape=lambda node, shapes: [()])
def serialize_tensor(call: Call, tensor: Array) -> Array:
    """The tensor as a TensorProto."""
    sizes = tuple([TensorShapeProto.Dim(size=size) if size else TensorShapeProto.Dim() for size in tensor.shape])
    header = {"dtype": call.attributes.values["T"].type, "tensor_shape": TensorShapeProto(dim=sizes)}
    if tensor.dtype == object:
        message = TensorProto(**header, string_val=tuple(tensor.reshape(-1).tolist()))
    elif not tensor.size:
        message = TensorProto(**header)
    else:
        message = TensorProto(**header, tensor_content=memoryview(np.ascontiguousarray(tensor).tobytes()))
    return strings([write(message)], ())
