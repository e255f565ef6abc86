"""The Open Inference Protocol (KServe v2, Triton) without a transport: datatypes, requests, answers, errors.

https://github.com/kserve/open-inference-protocol, with the binary tensor data extension's form of raw tensors: elements
in C order, little-endian; BYTES as one 4-byte little-endian length before each string.

Tensors are NumPy arrays everywhere behind the transport: those of BYTES are arrays of `bytes` objects, those of BF16
have the dtype of ``ml_dtypes``.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import GossamerError
from gossamer.records import field, record

Array = NDArray[Any]
Buffer = bytes | bytearray | memoryview
Parameter = bool | int | float | str

MAX_SIZE = 2**31 - 1
"""The largest size of a dimension: TFLite counts in 32 bits."""

MAX_RANK = 32
"""The most dimensions that a tensor may have, as in NumPy 1."""


class RequestError(GossamerError):
    """A request that is not answered. ``http_status`` and ``grpc_code`` (a name of ``grpc.StatusCode``) say how a
    transport says it."""

    http_status: ClassVar[int] = 500
    grpc_code: ClassVar[str] = "INTERNAL"


class InvalidRequest(RequestError, ValueError):
    """The request is wrong: what it names is not there, or types, shapes or sizes do not fit."""

    http_status = 400
    grpc_code = "INVALID_ARGUMENT"


class Unauthorized(RequestError):
    """The server wants a token, and this is none of those it knows."""

    http_status = 401
    grpc_code = "UNAUTHENTICATED"


class Forbidden(RequestError):
    """Clients may not do that on this server."""

    http_status = 403
    grpc_code = "PERMISSION_DENIED"


class UnknownModel(RequestError, LookupError):
    """There is no such model, or not in this version."""

    http_status = 404
    grpc_code = "NOT_FOUND"


class NotReady(RequestError):
    """The model is there and cannot run, now or at all: it is being loaded, could not be, or the server ends."""

    http_status = 503
    grpc_code = "UNAVAILABLE"


class Overloaded(RequestError):
    """As many requests are waiting as may. ``retry_after``: seconds after which there should be room."""

    http_status = 503
    grpc_code = "RESOURCE_EXHAUSTED"

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(RequestError, TimeoutError):
    """The deadline has passed; what was running for it is ended."""

    http_status = 504
    grpc_code = "DEADLINE_EXCEEDED"


class TooLarge(RequestError):
    """More elements, rows or bytes than this server takes."""

    http_status = 413
    grpc_code = "RESOURCE_EXHAUSTED"


class Abandoned(RequestError):
    """Whoever asked has gone; nobody reads the answer."""

    http_status = 499
    grpc_code = "CANCELLED"


class InferenceFailed(RequestError):
    """The request is right, and the model failed nevertheless."""


@record(frozen=True)
class Datatype:
    """An element type of the protocol. ``size``: bytes of an element, 0 for BYTES. ``contents``: the field of the gRPC
    message ``InferTensorContents`` that has such elements, ``None`` where only raw ones are allowed."""

    name: str
    size: int
    contents: str | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of arrays of it."""
        if self.name == "BF16":
            import ml_dtypes

            bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        return _DTYPES[self.name]


_DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "BYTES": np.dtype(np.object_),
}

_CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}

DATATYPES: dict[str, Datatype] = {
    name: Datatype(name, 0 if dtype.hasobject else dtype.itemsize, _CONTENTS.get(name))
    for name, dtype in _DTYPES.items()
} | {"BF16": Datatype("BF16", 2, None)}
"""Every element type of the protocol by its name."""

_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def datatype_of(dtype: np.dtype[Any]) -> str | None:
    """The protocol's name for the elements of an array, ``None`` where it has none (complex numbers, float8)."""
    name = _NAMES.get(dtype)
    if name is None and dtype.name == "bfloat16":
        return "BF16"
    return "BYTES" if dtype.kind in "SU" else name


@record(frozen=True)
class TensorMetadata:
    """An input or output of a model; -1 in ``shape`` is a size that is open.

    ``parameters``: ``scale`` and ``zero_point`` of a quantized tensor, whose elements q stand for
    ``scale * (q - zero_point)``.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


@record(frozen=True)
class ModelMetadata:
    """What a client is told of a model: ``versions`` are those that can be asked for. ``properties``: texts about it,
    among them the other signatures as JSON."""

    name: str
    versions: tuple[str, ...]
    platform: str
    inputs: tuple[TensorMetadata, ...]
    outputs: tuple[TensorMetadata, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@record(frozen=True)
class IndexEntry:
    """A version of a model in a repository. ``state``: ``LOADING``, ``READY``, ``UNLOADING`` or ``UNAVAILABLE``, for
    which there is a ``reason``."""

    name: str
    version: str
    state: str
    reason: str = ""


@record
class InferenceRequest:
    """What a client wants: ``inputs`` by name; the names of ``outputs``, ``None`` for all of them.

    ``model_version``: "" for the newest. ``parameters``: ``signature`` names a signature that is not the default one.
    ``deadline``: `time.monotonic` seconds after which nobody wants the answer.
    """

    model_name: str
    inputs: Mapping[str, Array]
    model_version: str = ""
    id: str = ""
    outputs: Sequence[str] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    deadline: float | None = None


@record
class InferenceResponse:
    """The answer: ``outputs`` by name, in the order in which they were asked for."""

    model_name: str
    model_version: str
    id: str
    outputs: dict[str, Array]
    parameters: Mapping[str, Any] = field(default_factory=dict)


def named_once(names: Iterable[str], what: str) -> None:
    """Raise `InvalidRequest` if one of the names of ``what`` ("input", "output") comes twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise InvalidRequest(f'{what} "{name}" is given twice')
        seen.add(name)


def checked_datatype(name: str, datatype: Any) -> Datatype:
    """The element type that a tensor says it has. Raises `InvalidRequest`."""
    found = DATATYPES.get(datatype) if isinstance(datatype, str) else None
    if found is None:
        known = ", ".join(DATATYPES)
        raise InvalidRequest(f'tensor "{name}": datatype must be one of {known}; got {_shown(datatype)}')
    return found


def checked_shape(name: str, shape: Any) -> tuple[int, ...]:
    """The sizes that a tensor says it has. Raises `InvalidRequest`."""
    if isinstance(shape, str | bytes | Mapping) or not isinstance(shape, Iterable):
        raise InvalidRequest(f'tensor "{name}": shape must be a list of integers, got {_shown(shape)}')
    sizes = tuple(shape)
    if len(sizes) > MAX_RANK:
        raise InvalidRequest(f'tensor "{name}" has {len(sizes)} dimensions; at most {MAX_RANK} are allowed')
    for size in sizes:
        if type(size) is not int or not 0 <= size <= MAX_SIZE:
            raise InvalidRequest(
                f'tensor "{name}": shape {_shown(list(sizes))}: sizes are integers from 0 to {MAX_SIZE}'
            )
    return sizes


def array_from_raw(name: str, datatype: Any, shape: Any, raw: Buffer) -> Array:
    """The tensor whose raw contents these are; of numbers a read-only view of them, not a copy.

    Raises `InvalidRequest`: no such datatype, no shape, not as many bytes as they say, a boolean that is not 0 or 1.
    """
    kind, sizes = checked_datatype(name, datatype), checked_shape(name, shape)
    count = math.prod(sizes)
    if kind.size == 0:
        return _reshaped(name, _strings(name, count, raw), sizes)
    size = len(raw) if isinstance(raw, bytes | bytearray) else raw.nbytes
    if size != count * kind.size:
        raise InvalidRequest(
            f'tensor "{name}": {kind.name} {list(sizes)} takes {count * kind.size} bytes; its contents have {size}'
        )
    array: Array = np.frombuffer(raw, kind.dtype, count)
    if sys.byteorder == "big":
        array = array.byteswap()
    if kind.name == "BOOL" and count and array.view(np.uint8).max() > 1:
        raise InvalidRequest(f'tensor "{name}": bytes of BOOL are 0 or 1, got {array.view(np.uint8).max()}')
    return _reshaped(name, array, sizes)


def array_from_values(name: str, datatype: Any, shape: Any, values: Any) -> Array:
    """The tensor with these values: a flat list in C order, or nested lists with the sizes of the shape.

    BYTES take `bytes`, or `str`, of which they are the UTF-8. Raises `InvalidRequest`: no such datatype, no shape, more
    or fewer values than it says, values of another type or that the datatype cannot hold.
    """
    kind, sizes = checked_datatype(name, datatype), checked_shape(name, shape)
    count = math.prod(sizes)
    if not isinstance(values, list):
        raise InvalidRequest(f'tensor "{name}": data must be a list, got {_shown(values)}')
    flat = _flat(name, values, sizes)
    if len(flat) != count:
        raise InvalidRequest(f'tensor "{name}": shape {list(sizes)} has {count} elements; its data have {len(flat)}')
    allowed = _ALLOWED[kind.name if kind.name in _ALLOWED else kind.name[:2]]
    types = set(map(type, flat))
    if not types <= allowed:
        wrong = next(value for value in flat if type(value) not in allowed)
        raise InvalidRequest(f'tensor "{name}": {_shown(wrong)} is no element of {kind.name}')
    try:
        array = _array(kind, flat)
    except (OverflowError, UnicodeEncodeError) as error:
        raise InvalidRequest(f'tensor "{name}": a value does not fit {kind.name}: {error}') from None
    return _reshaped(name, array, sizes)


def raw_from_array(array: Array) -> bytes:
    """The raw contents of a tensor: `array_from_raw` backwards."""
    if array.dtype.hasobject:
        items = array.ravel().tolist()
        return b"".join([part for item in items for part in (len(item).to_bytes(4, "little"), item)])
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def values_from_array(name: str, array: Array) -> list[Any]:
    """The elements of a tensor in C order, as JSON has them: numbers, booleans, and texts for BYTES.

    Raises `InvalidRequest` for strings that are no UTF-8, which only raw contents can hold.
    """
    values: list[Any] = array.ravel().tolist()
    if array.dtype.hasobject:
        try:
            return [value.decode() for value in values]
        except UnicodeDecodeError:
            raise InvalidRequest(
                f'output "{name}" has strings that are not UTF-8, which JSON cannot hold: ask for binary data'
            ) from None
    return values


_NUMBERS = frozenset((int, float))
_ALLOWED: dict[str, frozenset[type]] = {
    "BOOL": frozenset((bool,)),
    "BYTES": frozenset((bytes, str)),
    "IN": frozenset((int,)),
    "UI": frozenset((int,)),
    "FP": _NUMBERS,
    "BF": _NUMBERS,
}


def _array(kind: Datatype, flat: list[Any]) -> Array:
    """A list of values of the right types. Raises `OverflowError`, `UnicodeEncodeError`."""
    dtype = kind.dtype
    if kind.size == 0:
        made = np.empty(len(flat), object)
        made[:] = [value if type(value) is bytes else value.encode() for value in flat]
        return made
    if kind.name == "BOOL":
        return np.array(flat, dtype)
    if dtype.kind in "iu":
        wide = np.array(flat, np.uint64 if kind.name == "UINT64" else np.int64)
        limits = np.iinfo(dtype)
        if wide.size and not limits.min <= int(wide.min()) <= int(wide.max()) <= limits.max:
            wrong = next(value for value in flat if not limits.min <= value <= limits.max)
            raise OverflowError(f"{wrong} is not from {limits.min} to {limits.max}")
        return wide.astype(dtype)
    exact = np.array(flat, np.float64)
    with np.errstate(over="ignore"):
        real: Array = exact.astype(dtype)
    lost = np.isinf(real) & ~np.isinf(exact)
    if lost.any():
        raise OverflowError(f"{float(exact[lost][0])} is too large")
    return real


def _flat(name: str, values: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Nested lists, which have the sizes of the shape, or a list that is flat already."""
    if not values or type(values[0]) is not list:
        return values
    level: list[Any] = [values]
    for axis, size in enumerate(shape):
        for part in level:
            if type(part) is not list or len(part) != size:
                got = f"{len(part)} elements" if type(part) is list else _shown(part)
                raise InvalidRequest(
                    f'tensor "{name}": nested data do not have shape {list(shape)}: {got} where axis {axis} has {size}'
                )
        level = list(itertools.chain.from_iterable(level))
    return level


def _strings(name: str, count: int, raw: Buffer) -> Array:
    """So many strings, each behind its length."""
    data = raw if isinstance(raw, bytes) else bytes(raw)
    size, items, at = len(data), [], 0
    if 4 * count > size:
        raise InvalidRequest(f'tensor "{name}": {count} strings of BYTES take at least {4 * count} bytes, got {size}')
    for number in range(count):
        end = at + 4
        stop = end + int.from_bytes(data[at:end], "little")
        if end > size or stop > size:
            raise InvalidRequest(f'tensor "{name}": string {number} of {count} goes beyond its {size} bytes')
        items.append(data[end:stop])
        at = stop
    if at != size:
        raise InvalidRequest(f'tensor "{name}": {size - at} bytes are left behind its {count} strings')
    made = np.empty(count, object)
    made[:] = items
    return made


def _reshaped(name: str, array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return array.reshape(shape)
    except ValueError:  # without elements, and yet too large for NumPy to count
        raise InvalidRequest(f'tensor "{name}": shape {list(shape)} is too large') from None


def _shown(value: Any) -> str:
    """What somebody sent, short."""
    try:
        text = repr(value[:8] if isinstance(value, list | str | bytes) else value)
    except ValueError:  # an integer of thousands of digits
        return "a value"
    return text if len(text) <= 80 else f"{text[:77]}..."
