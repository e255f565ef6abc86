"""Arrays of files in the type and shape of an input."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError, did_you_mean
from gossamer.inputs.port import Port

Array = NDArray[Any]


def load_array(path: str, content: bytes | None = None) -> Array:
    """The array of a .npy file; ``content``: what it would hold, which ``path`` then only names. Raises `InputError`
    for anything else."""
    try:
        array = np.load(path if content is None else io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not an array of numbers ({error}).") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: an .npz archive under the name of an .npy array.")
    return array


def load_archive(path: str, content: bytes | None = None) -> dict[str, Array]:
    """The arrays of an .npz file by name; ``content`` as of `load_array`. Raises `InputError` for anything else."""
    try:
        with np.load(path if content is None else io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: not an .npz archive of arrays ({error}).") from None


def position_of(name: str, ports: Sequence[Port], where: str) -> int:
    """The position of the input that an array of this name is for. Raises `InputError` if there is none."""
    position = next((port.position for port in ports if port.answers_to(name)), None)
    if position is None and name.removeprefix("arr_").isdigit():
        # np.savez names what it gets without a name arr_0, arr_1 ...
        position = int(name.removeprefix("arr_"))
    if position is None or position >= len(ports):
        names = [name for port in ports for name in (port.name, *port.aliases)]
        raise InputError(
            f"{where}: {name!r} is no input of the model{did_you_mean(name, names)} Its inputs are {', '.join(names)}."
        )
    return position


def fit(array: Array, port: Port, where: str) -> Array:
    """An array in the type and shape of an input. Raises `InputError` rather than change a value.

    The shape may lack dimensions of 1; dimensions that the model leaves free take any size. Arrays of real numbers are
    quantized for a quantized input; integers are taken for the input's own numbers if they have its type.
    """
    values = _in_type(array, port, where)
    shape = port.signature
    if values.ndim < len(shape):
        # Leading ones, as for a batch, or a flat list for a shape of as many elements.
        values = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
        if not _fits(values.shape, shape) and array.ndim == 1 and min(shape) >= 0 and array.size == math.prod(shape):
            values = values.reshape(shape)
    if not _fits(values.shape, shape):
        wanted = ", ".join("?" if known < 0 else str(known) for known in shape)
        raise InputError(f'{where}: shape {list(array.shape)}, the input "{port.name}" is [{wanted}].')
    return np.ascontiguousarray(values).reshape(values.shape)


def _fits(shape: Sequence[int], signature: Sequence[int]) -> bool:
    return len(shape) == len(signature) and all(known in (-1, n) for n, known in zip(shape, signature, strict=True))


def _in_type(array: Array, port: Port, where: str) -> Array:
    if array.dtype == port.dtype:
        return array
    if port.is_text:
        texts = array.reshape(-1).tolist()
        if array.dtype.kind in "SUO" and all(isinstance(text, (str, bytes)) for text in texts):
            encoded = np.empty(len(texts), object)
            encoded[:] = [text.encode() if isinstance(text, str) else text for text in texts]
            return encoded.reshape(array.shape)
    elif port.is_quantized and array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise InputError(f"{where}: NaN or infinite values cannot be quantized for the input {port.describe()}.")
        return port.quantize(array)
    elif array.dtype.kind in "fiub" and port.is_float:
        with np.errstate(over="ignore"):
            return array.astype(port.dtype)
    elif (
        array.dtype.kind in "fiub" and port.dtype.kind in "iub" and not (port.is_quantized and port.dtype.itemsize < 4)
    ):
        with np.errstate(invalid="ignore"):
            converted = array.astype(port.dtype)
        same = converted == array
        if bool(np.all(same)):
            return converted
        changed = array[~same].reshape(-1)[0]
        raise InputError(f"{where}: {changed} is no {port.type_name}, which the input {port.describe()} takes.")
    also = " as they are, or real numbers (float32)" if port.is_quantized else ""
    raise InputError(
        f"{where}: values are {array.dtype.name}, the input {port.describe()} takes {port.type_name}{also}."
    )
