"""Requests and answers as they are sent over HTTP: JSON, and behind it the raw contents of tensors, if any.

https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md and
https://github.com/kserve/open-inference-protocol/blob/main/specification/extensions/binary_data_extension.md
"""

from __future__ import annotations

import json
import math
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from gossamer.records import record
from gossamer.serve.protocol import (
    Array,
    InferenceRequest,
    InferenceResponse,
    InvalidRequest,
    ModelMetadata,
    TensorMetadata,
    TooLarge,
    array_from_raw,
    array_from_values,
    datatype_of,
    named_once,
    raw_from_array,
    values_from_array,
)

HEAD_LENGTH = "Inference-Header-Content-Length"
"""The header that tells how many bytes of a body are JSON, where raw tensors are behind it."""

LARGE = 256 << 10
"""Bytes of JSON from which reading it is no work for an event loop: it takes about 16 ms for each MiB."""

MANY = 1 << 14
"""Elements that are written at a time: as JSON about 8 ms."""

_SHARED_MEMORY = "shared_memory_region"


@record(frozen=True)
class Form:
    """How an answer is to look: whether outputs are raw (``raw``, for those that are not in ``raw_by_name``)."""

    raw: bool
    raw_by_name: Mapping[str, bool]

    def is_raw(self, name: str) -> bool:
        """Whether this output is raw."""
        return self.raw_by_name.get(name, self.raw)

    def takes_long(self, response: InferenceResponse) -> bool:
        """Whether writing this answer is no work for an event loop."""
        return any(array.size > MANY and not self.is_raw(name) for name, array in response.outputs.items())


def read_request(
    body: bytes,
    head_length: int | None,
    model_name: str,
    model_version: str,
    metadata: Callable[[], ModelMetadata],
    timeout: float | None,
) -> tuple[InferenceRequest, Form]:
    """The request that a body holds, and how its answer is to look. Raises `InvalidRequest`.

    ``head_length``: bytes of the JSON, ``None`` if that is all. ``metadata``: of the model; it is asked where the JSON
    is left out (0 bytes) and the body is the one input. ``timeout``: the most seconds until the deadline; the request's
    parameter ``timeout``, microseconds, can only be earlier.
    """
    if head_length is None:
        head, raw = object_of(parsed(body), "the request"), memoryview(b"")
    elif head_length > len(body):
        raise InvalidRequest(f"{HEAD_LENGTH} is {head_length}, and the body has {len(body)} bytes")
    elif head_length == 0:
        return _bare(body, model_name, model_version, metadata(), timeout)
    else:
        head, raw = object_of(parsed(body[:head_length]), "the request"), memoryview(body)[head_length:]
    parameters = object_of(head.get("parameters", {}), "parameters")
    refuse_sequences(parameters)
    identity = head.get("id", "")
    if not isinstance(identity, str):
        raise InvalidRequest("id must be a string")
    wanted, form = _outputs(_list(head.get("outputs", []), "outputs"), parameters)
    request = InferenceRequest(
        model_name,
        _inputs(_list(head.get("inputs", None), "inputs"), raw),
        model_version,
        identity,
        wanted,
        parameters,
        deadline(parameters, timeout),
    )
    return request, form


def deadline(parameters: Mapping[str, Any], timeout: float | None) -> float | None:
    """The `time.monotonic` seconds at which a request that is here now ends: by the parameter ``timeout``, in
    microseconds, or after ``timeout`` seconds if that is earlier. Raises `InvalidRequest`."""
    wanted = parameters.get("timeout")
    if wanted is not None:
        if type(wanted) is not int or wanted < 0:
            raise InvalidRequest("the parameter timeout must be a number of microseconds")
        if wanted > 0:  # 0 is none in Triton
            limit = min(wanted, 1 << 50) / 1e6
            timeout = limit if timeout is None else min(timeout, limit)
    return None if timeout is None else time.monotonic() + timeout


def refuse_sequences(parameters: Mapping[str, Any]) -> None:
    """Raise `InvalidRequest` for a request that would have what others have left behind."""
    if parameters.get("sequence_id"):
        raise InvalidRequest("this server has no sequence extension: requests do not depend on each other")


def write_response(response: InferenceResponse, form: Form, limit: float = math.inf) -> tuple[list[bytes], int | None]:
    """An answer's body in pieces, and how many bytes of it are JSON if there are others. Raises `InvalidRequest` for
    strings that JSON cannot hold, `TooLarge` for tensors that take more than ``limit`` characters of it.

    JSON has no NaN and no infinities: ``null`` stands for them. Raw outputs have them as they are.
    """
    outputs: list[str] = []
    contents: list[bytes] = []
    for name, array in response.outputs.items():
        tensor: dict[str, Any] = {"name": name, "datatype": datatype_of(array.dtype), "shape": list(array.shape)}
        if form.is_raw(name):
            contents.append(raw_from_array(array))
            tensor["parameters"] = {"binary_data_size": len(contents[-1])}
            outputs.append(_text(tensor))
        else:
            outputs.append(f'{_text(tensor)[:-1]},"data":[{_elements(name, array, limit)}]}}')
    head: dict[str, Any] = {"model_name": response.model_name, "model_version": response.model_version}
    if response.id:
        head["id"] = response.id
    if response.parameters:
        head["parameters"] = dict(response.parameters)
    text = f'{_text(head)[:-1]},"outputs":[{",".join(outputs)}]}}'.encode()
    return [text, *contents], len(text) if contents else None


def tensor_metadata(tensor: TensorMetadata) -> dict[str, Any]:
    """What is told of an input or output of a model."""
    told: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
    if tensor.parameters:
        told["parameters"] = dict(tensor.parameters)
    return told


def model_metadata(model: ModelMetadata) -> dict[str, Any]:
    """What is told of a model."""
    told: dict[str, Any] = {
        "name": model.name,
        "versions": list(model.versions),
        "platform": model.platform,
        "inputs": [tensor_metadata(tensor) for tensor in model.inputs],
        "outputs": [tensor_metadata(tensor) for tensor in model.outputs],
    }
    if model.properties:
        told["properties"] = dict(model.properties)
    return told


def parsed(text: bytes) -> Any:
    """JSON, strictly: NaN and infinities, which Python's has besides, are refused. Raises `InvalidRequest`."""
    try:
        return (_SHARING if len(text) > LARGE else _DECODER).decode(text.decode())
    except RecursionError:
        raise InvalidRequest("the request is not JSON that can be read: it is nested too deep") from None
    except ValueError as error:
        raise InvalidRequest(f"the request is not JSON: {error}") from None


def inflated(body: bytes, encoding: str, limit: int) -> bytes:
    """What a compressed body holds, at most ``limit`` bytes. ``encoding``: ``gzip`` or ``deflate``.

    Raises `InvalidRequest`, `TooLarge`.
    """
    if encoding not in ("gzip", "deflate"):
        raise InvalidRequest(f"Content-Encoding must be gzip or deflate, got {encoding[:80]!r}")
    inflate = zlib.decompressobj(31 if encoding == "gzip" else 15)
    try:
        plain = inflate.decompress(body, limit + 1)
    except zlib.error as error:
        raise InvalidRequest(f"the body is not {encoding}: {error}") from None
    if len(plain) > limit:
        raise TooLarge(f"the body inflates to more than {limit} bytes")
    if not inflate.eof or inflate.unused_data:
        raise InvalidRequest(
            f"the body is not {encoding}: it {'goes on behind' if inflate.eof else 'ends before'} its end"
        )
    return plain


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON; send it as binary data")


def _float(text: str) -> float:
    return float(text)


def _int(text: str) -> int:
    return int(text)


_DECODER = json.JSONDecoder(parse_constant=_refuse)

_SHARING = json.JSONDecoder(parse_constant=_refuse, parse_float=_float, parse_int=_int)
"""One that other threads can interrupt: between functions of Python, where the other is one call of C."""


def object_of(value: Any, what: str) -> dict[str, Any]:
    """A value of JSON that must be an object. Raises `InvalidRequest`."""
    if type(value) is not dict:
        raise InvalidRequest(f"{what} must be a JSON object")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if type(value) is not list:
        raise InvalidRequest(f"{what} must be a list" if value is not None else f"the request has no {what}")
    return value


def _tensor(value: Any, what: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The name of an input or output, the object, and its parameters."""
    tensor = object_of(value, f"each of {what}s")
    name = tensor.get("name")
    if type(name) is not str:
        raise InvalidRequest(f"each of {what}s must have a name, which is a string")
    parameters = object_of(tensor.get("parameters", {}), f'parameters of {what} "{name}"')
    if _SHARED_MEMORY in parameters:
        raise InvalidRequest(f'{what} "{name}": this server has no shared memory extension')
    return name, tensor, parameters


def _inputs(tensors: list[Any], raw: memoryview) -> dict[str, Array]:
    inputs: dict[str, Array] = {}
    at = 0
    for value in tensors:
        name, tensor, parameters = _tensor(value, "input")
        if name in inputs:
            named_once((name, name), "input")
        datatype, shape = tensor.get("datatype"), tensor.get("shape")
        size = parameters.get("binary_data_size")
        if size is None:
            if "data" not in tensor:
                raise InvalidRequest(f'input "{name}" has neither data nor the parameter binary_data_size')
            inputs[name] = array_from_values(name, datatype, shape, tensor["data"])
            continue
        if "data" in tensor:
            raise InvalidRequest(f'input "{name}" has both data and the parameter binary_data_size')
        if type(size) is not int or not 0 <= size <= len(raw) - at:
            raise InvalidRequest(
                f'input "{name}": binary_data_size must be a number of bytes, of which {len(raw) - at} are left in the '
                f"body; {HEAD_LENGTH} must be there and tell how many of the body are JSON"
            )
        inputs[name] = array_from_raw(name, datatype, shape, raw[at : at + size])
        at += size
    if at != len(raw):
        raise InvalidRequest(f"{len(raw) - at} bytes of the body belong to no input")
    return inputs


def _outputs(tensors: list[Any], parameters: dict[str, Any]) -> tuple[list[str] | None, Form]:
    everything = _flag(parameters.get("binary_data_output", False), "the parameter binary_data_output")
    wanted: dict[str, bool] = {}
    for value in tensors:
        name, _, own = _tensor(value, "output")
        if name in wanted:
            named_once((name, name), "output")
        if own.get("classification"):
            raise InvalidRequest(f'output "{name}": this server has no classification extension')
        wanted[name] = _flag(own.get("binary_data", everything), f'binary_data of output "{name}"')
    return list(wanted) or None, Form(everything, wanted)


def _flag(value: Any, what: str) -> bool:
    if type(value) is not bool:
        raise InvalidRequest(f"{what} must be true or false")
    return value


def _bare(
    body: bytes, model_name: str, model_version: str, model: ModelMetadata, timeout: float | None
) -> tuple[InferenceRequest, Form]:
    """A request without JSON: the body is the one input of the model; the answer is raw too."""
    if len(model.inputs) != 1:
        raise InvalidRequest(f"a body without JSON is for models of one input; {model.name} has {len(model.inputs)}")
    tensor = model.inputs[0]
    if tensor.datatype == "BYTES":
        count, body = 1, len(body).to_bytes(4, "little") + body
    else:
        count = len(body) // np.dtype(array_from_values("", tensor.datatype, [0], []).dtype).itemsize
    known = 1
    for size in tensor.shape:
        known *= size if size >= 0 else 1
    if tensor.shape.count(-1) > 1:
        raise InvalidRequest(
            f'a body without JSON is for one open size; input "{tensor.name}" has {list(tensor.shape)}'
        )
    shape = [size if size >= 0 else count // max(known, 1) for size in tensor.shape]
    inputs = {tensor.name: array_from_raw(tensor.name, tensor.datatype, shape, body)}
    return InferenceRequest(model_name, inputs, model_version, deadline=deadline({}, timeout)), Form(True, {})


def _elements(name: str, array: Array, limit: float) -> str:
    """The elements of a tensor as JSON, in pieces: writing one lets no other thread run."""
    flat = array.reshape(-1)
    pieces, size = [], 0
    for at in range(0, flat.size, MANY):
        pieces.append(_text(_numbers(name, flat[at : at + MANY]))[1:-1])
        size += len(pieces[-1])
        if size > limit:
            raise TooLarge(f'output "{name}" of shape {list(array.shape)} is too large for JSON: ask for binary data')
    return ",".join(pieces)


def _numbers(name: str, array: Array) -> list[Any]:
    values = values_from_array(name, array)
    if array.dtype.kind in "fV" and not np.isfinite(array).all():
        return [value if np.isfinite(value) else None for value in values]
    return values


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
