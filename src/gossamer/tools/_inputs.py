"""What stands on the command line into arrays that fit the inputs of a model.

An INPUT is a file or a value, for the inputs in order, or ``name=...`` for one of them. With more of them than the
model has inputs, the model runs again for each further set. A value is text for a string input, numbers separated by
commas for any other (real numbers, also for a quantized input), or ``zeros``.
"""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from gossamer.arrays import NDArray
from gossamer.records import field, record
from gossamer.tools import _audio, _images
from gossamer.tools._command import Failure, did_you_mean, existing_file, plural
from gossamer.tools._session import Port

Array = NDArray[Any]

ARRAY_SUFFIXES = (".npy", ".npz")
TEXT_SUFFIXES = (".csv", ".txt")
FILE_SUFFIXES = (*_images.SUFFIXES, *_audio.SUFFIXES, *ARRAY_SUFFIXES, *TEXT_SUFFIXES)


@record(frozen=True)
class Options:
    """How files become arrays."""

    images: _images.Options = field(default_factory=_images.Options)
    audio: _audio.Options = field(default_factory=_audio.Options)


@record(frozen=True)
class Call:
    """The arrays of one run and where they came from; ``rate`` is that of a sound among them, in hertz."""

    values: tuple[Array, ...]
    sources: tuple[str, ...]
    picture: _images.Picture | None = None
    rate: int | None = None


@record(frozen=True)
class _Read:
    # What one argument gives: an array for each window.
    values: list[Array]
    sources: list[str]
    picture: _images.Picture | None = None
    rate: int | None = None


def plan_calls(arguments: Sequence[str], ports: Sequence[Port], options: Options) -> list[Callable[[], list[Call]]]:
    """For each set of inputs a function that reads it: the runs are one, or one for each window of a sound.

    Raises a usage error for a wrong count, and `Failure`, as the functions do, for what does not fit.
    """
    named, unnamed = _assign(arguments, ports)
    fixed: dict[int, _Read] = {}
    for port, argument in named:
        _put(fixed, port, _read(argument, port, options))
    queue: list[str] = []
    for argument in unnamed:
        if argument.lower().endswith(".npz"):
            for position, read in _read_npz(argument, ports).items():
                _put(fixed, ports[position], read)
        else:
            queue.append(argument)
    free = [port for port in ports if port.position not in fixed]
    if (free and not queue) or (queue and (not free or len(queue) % len(free))):
        raise click.UsageError(_wrong_count(len(arguments), ports, free))
    sets = [queue[i : i + len(free)] for i in range(0, len(queue), len(free))] if free else [[]]
    return [partial(_read_set, fixed, free, chosen, ports, options) for chosen in sets]


def _put(reads: dict[int, _Read], port: Port, read: _Read) -> None:
    if port.position in reads:
        raise click.UsageError(f'The input "{port.name}" is given twice.')
    reads[port.position] = read


def _read_set(
    fixed: dict[int, _Read], free: Sequence[Port], arguments: Sequence[str], ports: Sequence[Port], options: Options
) -> list[Call]:
    reads = dict(fixed)
    for port, argument in zip(free, arguments, strict=True):
        reads[port.position] = _read(argument, port, options)
    return _windows([reads[port.position] for port in ports])


def _wrong_count(given: int, ports: Sequence[Port], free: Sequence[Port]) -> str:
    listed = "\n".join(f"  {port.describe()}: {expectation(port)}" for port in ports)
    still = f" ({', '.join(port.name for port in free)} still to be given)" if 0 < len(free) < len(ports) else ""
    return f"The model takes {plural(len(ports), 'input')}, got {given}{still}. It takes\n{listed}"


def expectation(port: Port) -> str:
    """Which files and values an input takes, in words."""
    if port.is_text:
        return "text, or a .txt file"
    ways = ["a .npy file", "numbers separated by commas", "zeros"]
    if _images.Layout.of(port) is not None and (port.is_float or port.dtype.kind in "iub"):
        ways.insert(0, "a picture")
    elif _audio.looks_like_sound(port):
        ways.insert(0, "a .wav file")
    return f"{', '.join(ways[:-1])} or {ways[-1]}"


def _assign(arguments: Sequence[str], ports: Sequence[Port]) -> tuple[list[tuple[Port, str]], list[str]]:
    named, unnamed = [], []
    names = [name for port in ports for name in (port.name, *port.aliases)]
    for argument in arguments:
        # A name may contain "=", so the longest name that fits is meant.
        fitting = [name for name in names if argument.startswith(f"{name}=")]
        if fitting:
            name = max(fitting, key=len)
            port = next(port for port in ports if port.answers_to(name))
            named.append((port, argument[len(name) + 1 :]))
        elif "=" in argument and not os.path.exists(argument) and not any(port.is_text for port in ports):
            name = argument.partition("=")[0]
            raise click.UsageError(
                f"The model has no input {name!r}{did_you_mean(name, names)} Its inputs are {', '.join(names)}."
            )
        else:
            unnamed.append(argument)
    return named, unnamed


def _windows(reads: Sequence[_Read]) -> list[Call]:
    count = max((len(read.values) for read in reads), default=1)
    for read in reads:
        if len(read.values) not in (1, count):
            raise Failure(f"{read.sources[0]}: {len(read.values)} windows of sound, another input has {count}.")
    calls = []
    for i in range(count):
        here = [min(i, len(read.values) - 1) for read in reads]
        calls.append(
            Call(
                tuple(read.values[k] for read, k in zip(reads, here, strict=True)),
                tuple(read.sources[k] for read, k in zip(reads, here, strict=True)),
                next((read.picture for read in reads if read.picture), None),
                next((read.rate for read in reads if read.rate), None),
            )
        )
    return calls


def _read(argument: str, port: Port, options: Options) -> _Read:
    suffix = Path(argument).suffix.lower()
    if port.is_text:
        return _read_text(argument, port)
    if argument == "zeros":
        zero = port.zero_point if port.is_quantized else 0
        return _Read([np.full(_least_shape(port), zero, port.dtype)], [argument])
    if not os.path.exists(argument) and suffix not in FILE_SUFFIXES:
        numbers = _numbers(argument.split(","))
        if numbers is not None:
            return _Read([fit(numbers, port, argument)], [argument])
    existing_file(argument, "input", f'The input "{port.name}" takes {expectation(port)}.')
    if suffix in _images.SUFFIXES:
        picture, values = _images.read_picture(argument, port, options.images)
        return _Read([values], [argument], picture)
    if suffix in _audio.SUFFIXES:
        windows = _audio.read_sound(argument, port, options.audio)
        labels = [f"{argument} {w.start:.2f}-{w.end:.2f} s" for w in windows] if len(windows) > 1 else [argument]
        return _Read([window.values for window in windows], labels, rate=windows[0].rate)
    if suffix == ".npy":
        return _Read([fit(load_array(argument), port, argument)], [argument])
    if suffix in TEXT_SUFFIXES:
        text = Path(argument).read_text(encoding="utf-8")
        numbers = _numbers(text.replace(",", " ").replace(";", " ").split())
        if numbers is None:
            raise Failure(f"{argument}: not a list of numbers, which the input {port.describe()} needs.")
        return _Read([fit(numbers, port, argument)], [argument])
    if suffix == ".npz":
        raise Failure(f"{argument}: an .npz file names its inputs itself; give it without a name.")
    raise Failure(
        f"{argument}: unknown kind of file {suffix!r}; the input {port.describe()} takes {expectation(port)}."
    )


def _numbers(words: Sequence[str]) -> Array | None:
    try:
        return np.array([float(word) for word in words], np.float64) if words else None
    except ValueError:
        return None


def _least_shape(port: Port) -> tuple[int, ...]:
    return tuple(1 if known < 0 else size for size, known in zip(port.shape, port.signature, strict=True))


def _read_text(argument: str, port: Port) -> _Read:
    text = Path(argument).read_text(encoding="utf-8") if os.path.isfile(argument) else argument
    shape = port.signature
    free = [axis for axis, known in enumerate(shape) if known < 0]
    count = math.prod(known for known in shape if known >= 0)
    lines = [text.rstrip("\r\n")] if count == 1 and not free else text.splitlines()
    if free:
        # One free dimension takes as many lines as there are; others are 1.
        rows = max(1, len(lines) // max(count, 1))
        shape = tuple((rows if axis == free[0] else 1) if axis in free else known for axis, known in enumerate(shape))
        count *= rows
    if len(lines) != count:
        raise Failure(
            f"{argument!r}: {plural(len(lines), 'line')} of text, the input {port.describe()} takes "
            f"{plural(count, 'string')}, one on a line."
        )
    values = np.empty(len(lines), object)
    values[:] = [line.encode() for line in lines]
    return _Read([values.reshape(shape)], [argument])


def load_array(path: str) -> Array:
    """The array of a .npy file. Raises `Failure` for anything else."""
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise Failure(f"{path}: not an array of numbers ({error}).") from None
    if not isinstance(array, np.ndarray):
        raise Failure(f"{path}: an .npz archive under the name of an .npy array.")
    return array


def _read_npz(path: str, ports: Sequence[Port]) -> dict[int, _Read]:
    existing_file(path, "input")
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise Failure(f"{path}: not an .npz archive of arrays ({error}).") from None
    names = [name for port in ports for name in (port.name, *port.aliases)]
    reads: dict[int, _Read] = {}
    for name, array in arrays.items():
        position = next((port.position for port in ports if port.answers_to(name)), None)
        if position is None and name.removeprefix("arr_").isdigit():
            # np.savez names what it gets without a name arr_0, arr_1 ...
            position = int(name.removeprefix("arr_"))
        if position is None or position >= len(ports):
            raise Failure(
                f"{path}: {name!r} is no input of the model{did_you_mean(name, names)} "
                f"Its inputs are {', '.join(names)}."
            )
        reads[position] = _Read([fit(array, ports[position], f"{path}:{name}")], [f"{path}:{name}"])
    return reads


def fit(array: Array, port: Port, where: str) -> Array:
    """An array in the type and shape of an input. Raises `Failure` rather than change a value.

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
        raise Failure(f'{where}: shape {list(array.shape)}, the input "{port.name}" is [{wanted}].')
    return np.ascontiguousarray(values).reshape(values.shape)


def _fits(shape: Sequence[int], signature: Sequence[int]) -> bool:
    return len(shape) == len(signature) and all(known in (-1, n) for n, known in zip(shape, signature, strict=True))


def _in_type(array: Array, port: Port, where: str) -> Array:
    if array.dtype == port.dtype:
        return array
    if port.is_text:
        if array.dtype.kind in "SU":
            return np.array(
                [v.encode() if isinstance(v, str) else v for v in array.reshape(-1).tolist()], object
            ).reshape(array.shape)
    elif port.is_quantized and array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise Failure(f"{where}: NaN or infinite values cannot be quantized for the input {port.describe()}.")
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
        raise Failure(f"{where}: {changed} is no {port.type_name}, which the input {port.describe()} takes.")
    also = " as they are, or real numbers (float32)" if port.is_quantized else ""
    raise Failure(f"{where}: values are {array.dtype.name}, the input {port.describe()} takes {port.type_name}{also}.")
