"""What stands on the command line into arrays that fit the inputs of a model.

An INPUT is a file or a value, for the inputs in order, or ``name=...`` for one of them. With more of them than the
model has inputs, the model runs again for each further set. A value is text for a string input, numbers separated by
commas for any other (real numbers, also for a quantized input), or ``zeros``. A folder or a pattern stands for its
files, ``-`` for a file in standard input.
"""

from __future__ import annotations

import glob
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click
import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError, did_you_mean
from gossamer.inputs import features, pictures, sounds
from gossamer.inputs.arrays import fit, load_archive, load_array, position_of
from gossamer.inputs.port import Port
from gossamer.inputs.samples import Preparation, files_in
from gossamer.inputs.wav import is_wav
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
    """The arrays of one run and where they came from; ``window`` is the part of a sound among them."""

    values: tuple[Array, ...]
    sources: tuple[str, ...]
    picture: pictures.Picture | None = None
    window: sounds.Window | None = None


@record(frozen=True)
class InputSet:
    """What the model runs on once, or once for each window of a sound.

    ``sources`` are the arguments by the names of the inputs; ``read`` raises `InputError` and `Failure` for what does
    not fit or is not there.
    """

    sources: Mapping[str, str]
    read: Callable[[], list[Call]]


@record(frozen=True)
class _Read:
    # What one argument gives: an array for each window.
    values: list[Array]
    sources: list[str]
    picture: pictures.Picture | None = None
    windows: list[sounds.Window] = field(default_factory=list)


def preparation_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the options that say how pictures and sounds become numbers, given as one ``preparation``."""

    @wraps(function)
    def collected(
        letterbox: bool,
        resample: str,
        mean: list[float] | None,
        std: list[float] | None,
        rate: int | None,
        features: tuple[str, float, float] | None,
        **options: Any,
    ) -> Any:
        asked = None if mean is None and std is None else (mean or [0.0], std or [1.0])
        return function(preparation=Preparation(letterbox, resample, asked, rate, features), **options)

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


def _features(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, float, float] | None:
    try:
        return None if text is None else features.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


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
    click.option(
        "--features",
        callback=_features,
        metavar="KIND[:WINDOW:STEP]",
        help=f"What the model takes of a sound: {', '.join(features.KINDS)}; milliseconds.  [default: by the input]",
    ),
)

hop_option = click.option(
    "--hop",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="From one window of a sound to the next.  [default: a window]",
)


def plan_calls(arguments: Sequence[str], ports: Sequence[Port], options: Options) -> list[InputSet]:
    """The sets of inputs that arguments name, in their order.

    Raises a usage error for a wrong count, and what `InputSet.read` raises for a pattern or folder without files and
    for an input that all sets share.
    """
    named, unnamed = _assign(arguments, ports)
    stdin = _standard_input([*unnamed, *(argument for _, argument in named)])
    columns: dict[int, list[str]] = {}
    for port, argument in named:
        _put(columns, port, _expanded(argument, port))
    archives, queue = [], []
    for argument in unnamed:
        if _suffix(argument, stdin) == ".npz":
            archives += _matching(argument) or [argument]
        elif len(ports) > 1 and os.path.isdir(argument) and (inside := files_in(argument, (".npz",))):
            archives += inside
        else:
            queue.append(argument)
    if len(archives) > 1 and not queue and len(_read_npz(archives[0], ports, stdin)) == len(ports):
        # Each has all inputs.
        return [
            InputSet(
                dict.fromkeys((port.name for port in ports), archive), partial(_read_archive, archive, ports, stdin)
            )
            for archive in archives
        ]
    fixed: dict[int, _Read] = {}
    for archive in archives:
        for position, read in _read_npz(archive, ports, stdin).items():
            _put(fixed, ports[position], read)
            if position in columns:
                raise _twice(ports[position])
    free = [port for port in ports if port.position not in fixed and port.position not in columns]
    if (free and not queue) or (queue and (not free or len(queue) % len(free))):
        raise click.UsageError(_wrong_count(len(arguments), ports, free))
    for first in range(0, len(queue), max(len(free), 1)):
        group = [_expanded(argument, port) for port, argument in zip(free, queue[first:], strict=False)]
        for port, column in zip(free, _alike(group), strict=True):
            columns.setdefault(port.position, []).extend(column)
    together = _alike(list(columns.values()))
    count = len(together[0]) if together else 1
    if count > 1:
        for position, column in columns.items():
            if len(column) == 1:  # named, and the same in every run
                fixed[position] = _read(column[0], ports[position], options, stdin)
    return [
        InputSet(
            {ports[position].name: column[i] for position, column in zip(columns, together, strict=True)},
            partial(
                _read_set,
                fixed,
                {p: column[i] for p, column in zip(columns, together, strict=True) if p not in fixed},
                ports,
                options,
                stdin,
            ),
        )
        for i in range(count)
    ]


def listed(path: str) -> list[str]:
    """The names in a list of files, one on each line, or with a NUL behind each as ``find -print0`` writes them; the
    list in standard input for ``-``. Raises `Failure` if there is none."""
    content = _stdin() if path == "-" else Path(existing_file(path, "list of inputs")).read_bytes()
    lines = content.split(b"\0") if b"\0" in content else content.splitlines()
    return [os.fsdecode(line) for line in lines if line.strip()]


def _expanded(argument: str, port: Port) -> list[str]:
    """The files of a folder that an input takes, or those that a pattern names, sorted; anything else as it is.

    Raises `InputError` if there are none.
    """
    if os.path.isdir(argument):
        suffixes = _suffixes(port)
        found = files_in(argument, suffixes)
        if not found:
            raise InputError(
                f"{argument}: the folder has no files ({', '.join(suffixes)}) for the input {port.describe()}."
            )
        return found
    matching = _matching(argument)
    if matching is None or (not matching and port.is_text):
        return [argument]
    if not matching:
        raise InputError(f"{argument}: no file has a name of this pattern.")
    return matching


def _matching(argument: str) -> list[str] | None:
    """The files that a pattern names; ``None`` if it is none."""
    if not glob.has_magic(argument) or os.path.exists(argument):
        return None
    found: dict[tuple[str, str], str] = {}
    for path in sorted(filter(os.path.isfile, glob.glob(argument, recursive=True)), key=len):
        folder, name = os.path.split(path)
        found.setdefault((os.path.realpath(folder), name), path)  # once, whatever links lead to its folder
    return sorted(found.values())


def _suffixes(port: Port) -> tuple[str, ...]:
    """Of the files of a folder that an input takes."""
    if port.is_text:
        return (".txt",)
    looks = (*pictures.SUFFIXES,) if _shows(port) else ()
    return (*looks, *(sounds.SUFFIXES if sounds.takes_sound(port) else ()), ".npy")


def _alike(columns: Sequence[list[str]]) -> list[list[str]]:
    """Columns of one length: those with one entry repeat it. Raises a usage error if others differ."""
    count = max((len(column) for column in columns), default=0)
    wrong = next((column for column in columns if len(column) not in (1, count)), None)
    if wrong is not None:
        raise click.UsageError(
            f"{wrong[0]} and further are {len(wrong)} files for one input, there are {count} for another."
        )
    return [column * count if len(column) == 1 else column for column in columns]


def _put(columns: dict[int, Any], port: Port, given: object) -> None:
    if port.position in columns:
        raise _twice(port)
    columns[port.position] = given


def _twice(port: Port) -> click.UsageError:
    return click.UsageError(f'The input "{port.name}" is given twice.')


def _standard_input(arguments: Sequence[str]) -> bytes | None:
    """What is in standard input, if an argument asks for it."""
    if arguments.count("-") > 1:
        raise click.UsageError("Standard input (-) is one file, and is given twice.")
    return _stdin() if "-" in arguments else None


def _stdin() -> bytes:
    return sys.stdin.buffer.read()


def _suffix(argument: str, stdin: bytes | None) -> str:
    """The suffix of a file, in small letters; for standard input that which its content should have."""
    if argument != "-" or stdin is None:
        return Path(argument).suffix.lower()
    if is_wav(stdin):
        return ".wav"
    for beginning, suffix in _BEGINNINGS.items():
        if stdin.startswith(beginning):
            return suffix
    return ".txt" if re.fullmatch(rb"[\s0-9eEinfa.,;+-]+", stdin) else pictures.SUFFIXES[0]


_BEGINNINGS = {
    b"\x93NUMPY": ".npy",
    b"PK\3\4": ".npz",
    b"fLaC": ".flac",
    b"OggS": ".ogg",
    b"ID3": ".mp3",
}
"""Of files that are neither pictures, which Pillow tells apart, nor text."""


def _read_set(
    fixed: Mapping[int, _Read],
    chosen: Mapping[int, str],
    ports: Sequence[Port],
    options: Options,
    stdin: bytes | None,
) -> list[Call]:
    reads = [
        fixed[port.position] if port.position in fixed else _read(chosen[port.position], port, options, stdin)
        for port in ports
    ]
    return _windows(reads)


def _read_archive(path: str, ports: Sequence[Port], stdin: bytes | None) -> list[Call]:
    reads = _read_npz(path, ports, stdin)
    missing = [port.name for port in ports if port.position not in reads]
    if missing:
        raise InputError(f"{path}: there is no array for the inputs {', '.join(missing)}.")
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
    if _shows(port):
        ways.insert(0, "a picture")
    if sounds.takes_sound(port):
        ways.insert(0, "a .wav file")
    return f"{', '.join(ways[:-1])} or {ways[-1]}"


def _shows(port: Port) -> bool:
    """Whether pictures are what an input is for, as far as its shape and type tell. Truth values are masks more often,
    as of attention, though they take pictures too."""
    return (port.is_float or port.dtype.kind in "iu") and pictures.Layout.of(port) is not None


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
                next((read.windows[i] for read in reads if read.windows), None),
            )
        )
    return calls


def _read(argument: str, port: Port, options: Options, stdin: bytes | None) -> _Read:
    content = stdin if argument == "-" else None
    suffix = _suffix(argument, content)
    if port.is_text:
        return _read_text(argument, port, content)
    if argument == "zeros":
        zero = port.zero_point if port.is_quantized else 0
        return _Read([np.full(_least_shape(port), zero, port.dtype)], [argument])
    if content is not None:
        argument = "standard input"
    elif not os.path.exists(argument) and suffix not in FILE_SUFFIXES:
        numbers = _numbers(argument.split(","))
        if numbers is not None:
            return _Read([fit(numbers, port, argument)], [argument])
    if content is None:
        existing_file(argument, "input", f'The input "{port.name}" takes {expectation(port)}.')
    if suffix in pictures.SUFFIXES:
        picture, values = pictures.read_picture(argument, port, options.images, content)
        return _Read([values], [argument], picture)
    if suffix in sounds.SUFFIXES:
        windows = sounds.read_sound(argument, port, options.audio, content)
        labels = [f"{argument} {w.start:.2f}-{w.end:.2f} s" for w in windows] if len(windows) > 1 else [argument]
        return _Read([window.values for window in windows], labels, windows=windows)
    if suffix == ".npy":
        return _Read([fit(load_array(argument, content), port, argument)], [argument])
    if suffix in TEXT_SUFFIXES:
        text = (Path(argument).read_bytes() if content is None else content).decode("utf-8")
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


def _read_text(argument: str, port: Port, content: bytes | None) -> _Read:
    text = argument
    if content is not None:
        argument, text = "standard input", content.decode("utf-8")
    elif os.path.isfile(argument):
        text = Path(argument).read_text(encoding="utf-8")
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


def _read_npz(path: str, ports: Sequence[Port], stdin: bytes | None) -> dict[int, _Read]:
    content = stdin if path == "-" else None
    arrays = load_archive(existing_file(path, "input") if content is None else "standard input", content)
    reads: dict[int, _Read] = {}
    for name, array in arrays.items():
        position = position_of(name, ports, path)
        reads[position] = _Read([fit(array, ports[position], f"{path}:{name}")], [f"{path}:{name}"])
    return reads
