"""What stands on the command line into arrays that fit the inputs of a model.

An INPUT is a file or a value, for the inputs in order, or ``name=...`` for one of them. With more of them than the
model has inputs, the model runs again for each further set. A value is text for a string input, numbers separated by
commas for any other (real numbers, also for a quantized input), or ``zeros``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click
import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError, did_you_mean
from gossamer.inputs import pictures, sounds
from gossamer.inputs.arrays import fit, load_archive, load_array, position_of
from gossamer.inputs.port import Port
from gossamer.inputs.samples import Preparation
from gossamer.records import field, record
from gossamer.tools._command import existing_file, plural

Array = NDArray[Any]

ARRAY_SUFFIXES = (".npy", ".npz")
TEXT_SUFFIXES = (".csv", ".txt")
FILE_SUFFIXES = (*pictures.SUFFIXES, *sounds.SUFFIXES, *ARRAY_SUFFIXES, *TEXT_SUFFIXES)


@record(frozen=True)
class Options:
    """How files become arrays."""

    images: pictures.Options = field(default_factory=pictures.Options)
    audio: sounds.Options = field(default_factory=sounds.Options)


@record(frozen=True)
class Call:
    """The arrays of one run and where they came from; ``rate`` is that of a sound among them, in hertz."""

    values: tuple[Array, ...]
    sources: tuple[str, ...]
    picture: pictures.Picture | None = None
    rate: int | None = None


@record(frozen=True)
class _Read:
    # What one argument gives: an array for each window.
    values: list[Array]
    sources: list[str]
    picture: pictures.Picture | None = None
    rate: int | None = None


def preparation_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the options that say how pictures and sounds become numbers, given as one ``preparation``."""

    @wraps(function)
    def collected(
        letterbox: bool,
        resample: str,
        mean: list[float] | None,
        std: list[float] | None,
        rate: int | None,
        **options: Any,
    ) -> Any:
        asked = None if mean is None and std is None else (mean or [0.0], std or [1.0])
        return function(preparation=Preparation(letterbox, resample, asked, rate), **options)

    for option in reversed(_PREPARATION):
        collected = option(collected)
    return collected


def _per_channel(ctx: click.Context, parameter: click.Parameter, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} must be a number, or one for each channel as 123.7,116.3,103.5.") from None
    if parameter.name == "std" and 0 in numbers:
        raise click.BadParameter("a pixel cannot be divided by 0.")
    return numbers


_PREPARATION = (
    click.option("--letterbox", is_flag=True, help="Keep the proportions of a picture, filling up with black."),
    click.option(
        "--resample",
        type=click.Choice(pictures.RESAMPLERS),
        default="bicubic",
        show_default=True,
        help="How to resize a picture: bicubic as label_image.py of TFLite, nearest as its RESIZE_NEAREST_NEIGHBOR.",
    ),
    click.option("--mean", callback=_per_channel, metavar="M[,M...]", help="To subtract from each pixel (0 to 255)."),
    click.option("--std", callback=_per_channel, metavar="S[,S...]", help="What to divide it by then."),
    click.option("--rate", type=click.IntRange(min=1), metavar="HZ", help="Resample sounds to what the model expects."),
)


def plan_calls(arguments: Sequence[str], ports: Sequence[Port], options: Options) -> list[Callable[[], list[Call]]]:
    """For each set of inputs a function that reads it: the runs are one, or one for each window of a sound.

    Raises a usage error for a wrong count, and `InputError`, as the functions do, for what does not fit.
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
    if pictures.Layout.of(port) is not None and (port.is_float or port.dtype.kind in "iub"):
        ways.insert(0, "a picture")
    elif sounds.looks_like_sound(port):
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
            raise InputError(f"{read.sources[0]}: {len(read.values)} windows of sound, another input has {count}.")
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
    if suffix in pictures.SUFFIXES:
        picture, values = pictures.read_picture(argument, port, options.images)
        return _Read([values], [argument], picture)
    if suffix in sounds.SUFFIXES:
        windows = sounds.read_sound(argument, port, options.audio)
        labels = [f"{argument} {w.start:.2f}-{w.end:.2f} s" for w in windows] if len(windows) > 1 else [argument]
        return _Read([window.values for window in windows], labels, rate=windows[0].rate)
    if suffix == ".npy":
        return _Read([fit(load_array(argument), port, argument)], [argument])
    if suffix in TEXT_SUFFIXES:
        text = Path(argument).read_text(encoding="utf-8")
        numbers = _numbers(text.replace(",", " ").replace(";", " ").split())
        if numbers is None:
            raise InputError(f"{argument}: not a list of numbers, which the input {port.describe()} needs.")
        return _Read([fit(numbers, port, argument)], [argument])
    if suffix == ".npz":
        raise InputError(f"{argument}: an .npz file names its inputs itself; give it without a name.")
    raise InputError(
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
        raise InputError(
            f"{argument!r}: {plural(len(lines), 'line')} of text, the input {port.describe()} takes "
            f"{plural(count, 'string')}, one on a line."
        )
    values = np.empty(len(lines), object)
    values[:] = [line.encode() for line in lines]
    return _Read([values.reshape(shape)], [argument])


def _read_npz(path: str, ports: Sequence[Port]) -> dict[int, _Read]:
    arrays = load_archive(existing_file(path, "input"))
    reads: dict[int, _Read] = {}
    for name, array in arrays.items():
        position = position_of(name, ports, path)
        reads[position] = _Read([fit(array, ports[position], f"{path}:{name}")], [f"{path}:{name}"])
    return reads
