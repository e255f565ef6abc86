"""Many samples for the inputs of a model: a folder of pictures, sounds or arrays, an .npz, .npy, .csv or .parquet file.

In one file the first axis, or the row, is the sample. Samples are read when they are asked for, one after another.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gossamer.arrays import NDArray
from gossamer.errors import InputError
from gossamer.inputs import pictures, sounds
from gossamer.inputs.arrays import fit, load_archive, load_array, position_of
from gossamer.inputs.port import Port, ports
from gossamer.inputs.properties import properties
from gossamer.model import Model
from gossamer.model.metadata import exporter_facts, model_metadata
from gossamer.model.writer import write_model
from gossamer.records import record
from gossamer.runtime.interpreter import Interpreter

if TYPE_CHECKING:
    from typing_extensions import Buffer

Array = NDArray[Any]
Arrays = list[Array]
"""One array for each input, in their order."""

SUFFIXES = (*pictures.SUFFIXES, *sounds.SUFFIXES, ".npy", ".npz")
"""Of the files of a folder that are samples."""


@record(frozen=True)
class Preparation:
    """How pictures and sounds become numbers: what `gossamer.inputs.pictures.Options` and
    `gossamer.inputs.sounds.Options` say.

    ``normalization``: what is subtracted from pixels of 0 to 255, and what they are divided by then.
    """

    letterbox: bool = False
    resample: str = "bicubic"
    normalization: pictures.Normalization | None = None
    rate: int | None = None
    features: tuple[str, float, float] | None = None


class _Source(NamedTuple):
    """``total`` places with samples, and what reads those of some of them: more than one where a place is a sound."""

    total: int
    read: Callable[[Sequence[int]], Iterator[Arrays]]


class Samples:
    """The samples of a file or folder, read anew by each iteration: dictionaries by the names of the inputs, with the
    signature's key before them in a tuple, or lists for a model that has no signatures.

    ``total``: how many there are; ``None`` if only reading tells, as with sounds of several windows.
    """

    def __init__(self, path: str, interpreter: Interpreter, preparation: Preparation, count: int | None) -> None:
        """Raises `InputError` if it cannot be what the inputs take: the first sample of each signature is read."""
        self._count = count
        keys = list(interpreter.model.signatures)
        places = {None: path} if not keys else {keys[0]: path} if len(keys) == 1 else _by_name(path, keys, "signatures")
        self._sources = {key: _opened(place, interpreter, key, preparation) for key, place in places.items()}
        sounding = any(_windows(place) for place in places.values())
        for _, source in self._sources.values():
            next(source.read([0]))
        counts = [len(self._chosen(source)) for _, source in self._sources.values()]
        self.total = None if sounding else sum(counts)

    def __iter__(self) -> Iterator[Any]:
        """Raises `InputError` for a sample that cannot be read, naming it."""
        for key, (names, source) in self._sources.items():
            for number, arrays in enumerate(source.read(self._chosen(source))):
                if number == self._count:
                    break
                yield arrays if key is None else (key, dict(zip(names, arrays, strict=True)))

    def _chosen(self, source: _Source) -> list[int]:
        """As many places as are wanted, spread evenly: what is sorted by class gives samples of all."""
        if self._count is None or self._count >= source.total:
            return list(range(source.total))
        return [number * source.total // self._count for number in range(self._count)]


def samples_from(
    path: str | os.PathLike[str],
    model: Model | str | os.PathLike[str] | Buffer,
    *,
    count: int | None = None,
    preparation: Preparation | None = None,
) -> Samples:
    """The samples for a ``.tflite`` model in a file or folder.

    A folder has pictures, sounds (``.wav``), ``.npy`` or ``.npz`` files (arrays by the names of the inputs), also in
    folders of it; for a model with several inputs there may be a folder of files for each. In an ``.npz``, ``.npy`` or
    ``.csv`` file the first axis is the sample, in a ``.parquet`` file the row. For a model with several signatures, the
    folder has a folder or file of the name of each. ``count``: how many to take, spread evenly.

    Raises `InputError` for what cannot be the model's inputs, naming the file; of each signature the first sample is
    read at once.
    """
    if isinstance(model, Model):
        model = write_model(model)
    if isinstance(model, (str, os.PathLike)):
        interpreter = Interpreter(model_path=os.fspath(model))
    else:
        interpreter = Interpreter(model_content=model)
    return Samples(os.fspath(path), interpreter, preparation or Preparation(), count)


def _opened(
    path: str, interpreter: Interpreter, key: str | None, preparation: Preparation
) -> tuple[list[str], _Source]:
    """The names of the inputs, and what reads them."""
    reading = Reading.of(interpreter, key, preparation)
    return [port.name for port in reading.ports], reading.source(path)


def _by_name(path: str, names: Sequence[str], what: str) -> dict[str | None, str]:
    """The folders and files of a folder that have these names. Raises `InputError` if there are none."""
    entries = {entry.stem if entry.is_file() else entry.name: str(entry) for entry in _visible(path)}
    found: dict[str | None, str] = {name: entries[name] for name in names if name in entries}
    if not found:
        raise InputError(
            f"{path}: the model has the {what} {', '.join(names)}; give a folder that has a folder or a file of "
            "samples of the name of each."
        )
    return found


def _visible(path: str) -> list[Path]:
    if not os.path.isdir(path):
        return []
    return sorted(entry for entry in Path(path).iterdir() if not entry.name.startswith("."))


def files_in(path: str, suffixes: Sequence[str] = SUFFIXES) -> list[str]:
    """The files of some kinds in a folder, and in folders in it, in alphabetical order; none that is hidden."""
    found: list[str] = []
    here = Path(path).resolve()
    for entry in _visible(path):
        if not entry.is_dir():
            if entry.suffix.lower() in suffixes and (entry.is_file() or not entry.exists()):  # no pipe, which may wait
                found.append(str(entry))
        elif not here.is_relative_to(entry.resolve()):  # a link to a folder that this one is in would go on for ever
            found += files_in(str(entry), suffixes)
    return found


def _windows(path: str) -> bool:
    """Whether a place may give more than one sample."""
    return os.path.isdir(path) and any(file.lower().endswith(sounds.SUFFIXES) for file in files_in(path))


class Reading:
    """What reads files, and cells of tables, for the inputs of a model."""

    @staticmethod
    def of(interpreter: Interpreter, key: str | None, preparation: Preparation, hop: float | None = None) -> Reading:
        """For the first subgraph of an interpreter, or for one of its signatures. ``hop``: as
        `gossamer.inputs.sounds.Options` has it."""
        model = interpreter.model
        inputs, outputs = ports(interpreter, key)
        subgraph = 0 if key is None else model.signatures[key].subgraph_index
        known = properties(model_metadata(model), exporter_facts(model), model, subgraph, inputs, outputs)
        asked = preparation.normalization
        pixels = pictures.Options(preparation.letterbox, preparation.resample, asked, known.normalization)
        return Reading(inputs, pixels, sounds.Options(preparation.rate or known.rate, hop, preparation.features))

    def __init__(self, ports: Sequence[Port], pixels: pictures.Options, sound: sounds.Options) -> None:
        self.ports = ports
        self.pixels = pixels
        self.sound = sound

    def source(self, path: str) -> _Source:
        """The source that a path is. Raises `InputError`."""
        kinds = {".npz": self._archive, ".npy": self._array, ".csv": self._csv, ".parquet": self._parquet}
        if os.path.isdir(path):
            found = self._folder(path)
        else:
            kind = kinds.get(Path(path).suffix.lower())
            if kind is None or not os.path.isfile(path):
                wrong = f"of an unknown kind; known are folders, {', '.join(kinds)}" if kind is None else "not there"
                raise InputError(f"samples {path!r} are {wrong}.")
            found = kind(path)
        if not found.total:
            raise InputError(f"{path}: there are no samples in it.")
        return found

    def _only(self, path: str) -> Port:
        """The input of a model that has one."""
        if len(self.ports) != 1:
            names = ", ".join(port.name for port in self.ports)
            raise InputError(
                f"{path}: which of the inputs {names} it is for cannot be told; give an .npz or .parquet file with an "
                "array or a column for each, or a folder with a folder of files for each."
            )
        return self.ports[0]

    def _folder(self, path: str) -> _Source:
        entries = {entry.name: str(entry) for entry in _visible(path) if entry.is_dir()}
        if len(self.ports) > 1 and all(port.name in entries for port in self.ports):
            files = [files_in(entries[port.name]) for port in self.ports]
            if len({len(one) for one in files}) != 1:
                counts = ", ".join(f"{len(one)} for {p.name}" for p, one in zip(self.ports, files, strict=True))
                raise InputError(f"{path}: each input needs as many files as the others; there are {counts}.")
            return _Source(len(files[0]), partial(self._side_by_side, files))
        found = files_in(path)
        if any(not file.lower().endswith(".npz") for file in found):
            self._only(path)
        return _Source(len(found), partial(self._one_by_one, found))

    def _side_by_side(self, files: Sequence[Sequence[str]], numbers: Sequence[int]) -> Iterator[Arrays]:
        for number in numbers:
            yield [self.of_file(one[number], port)[0] for one, port in zip(files, self.ports, strict=True)]

    def _one_by_one(self, files: Sequence[str], numbers: Sequence[int]) -> Iterator[Arrays]:
        for number in numbers:
            file = files[number]
            if file.lower().endswith(".npz"):
                arrays = self._by_position(load_archive(file), file)
                yield [fit(arrays[port.position], port, f"{file}:{port.name}") for port in self.ports]
            else:
                yield from ([array] for array in self.of_file(file, self.ports[0]))

    def of_file(self, file: str, port: Port) -> Arrays:
        """The samples in a file: several in a sound."""
        name = file.lower()
        if name.endswith(pictures.SUFFIXES):
            return [pictures.read_picture(file, port, self.pixels)[1]]
        if name.endswith(sounds.SUFFIXES):
            return [window.values for window in sounds.read_sound(file, port, self.sound)]
        return [fit(load_array(file), port, file)]

    def _by_position(self, arrays: Mapping[str, Array], where: str) -> list[Array]:
        found = {position_of(name, self.ports, where): array for name, array in arrays.items()}
        missing = [port.name for port in self.ports if port.position not in found]
        if missing:
            raise InputError(f"{where}: there is no array for the inputs {', '.join(missing)}.")
        return [found[port.position] for port in self.ports]

    def _archive(self, path: str) -> _Source:
        return self._rows(self._by_position(load_archive(path), path), path)

    def _array(self, path: str) -> _Source:
        self._only(path)
        return self._rows([load_array(path)], path)

    def _rows(self, arrays: Sequence[Array], path: str) -> _Source:
        """Samples along the first axis; where the input has such an axis too, as many rows are one as it has."""
        steps = [
            max(port.signature[0], 1) if port.signature and array.ndim == len(port.signature) else 0
            for port, array in zip(self.ports, arrays, strict=True)
        ]
        counts = [len(array) // max(step, 1) if array.ndim else 0 for array, step in zip(arrays, steps, strict=True)]
        if len(set(counts)) != 1:
            told = ", ".join(f"{port.name}: {n}" for port, n in zip(self.ports, counts, strict=True))
            raise InputError(f"{path}: arrays must have one first size, the number of samples; got {told}.")

        def read(numbers: Sequence[int]) -> Iterator[Arrays]:
            for n in numbers:
                rows = [array[n * s : (n + 1) * s] if s else array[n] for array, s in zip(arrays, steps, strict=True)]
                yield [fit(row, port, f"{path}, sample {n}") for row, port in zip(rows, self.ports, strict=True)]

        return _Source(counts[0], read)

    def _csv(self, path: str) -> _Source:
        """A sample in each line, but the first if that has names."""
        self._only(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            header = re.search("[A-Za-df-z_]", file.readline()) is not None
        try:
            rows = np.loadtxt(path, np.float32, delimiter=",", ndmin=2, skiprows=int(header))
        except ValueError as error:
            raise InputError(f"{path}: not a table of numbers ({error}).") from None
        return self._rows([rows], path)

    def _parquet(self, path: str) -> _Source:
        """A column for each input; encoded pictures are bytes, or have them in a field ``bytes``."""
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise InputError(f"{path}: .parquet files need pyarrow; install gossamer[parquet].") from None
        try:
            with parquet.ParquetFile(path) as file:
                total, columns = file.metadata.num_rows, self._columns(file.schema_arrow, path)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{path}: not a .parquet file that can be read ({error}).") from None

        def read(numbers: Sequence[int]) -> Iterator[Arrays]:
            wanted, first = set(numbers), 0
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=64, columns=columns):
                    for row in range(batch.num_rows):
                        if first + row in wanted:
                            yield [
                                self._of_cell(batch.column(column)[row].as_py(), port, f"{path}, row {first + row}")
                                for column, port in zip(columns, self.ports, strict=True)
                            ]
                    first += batch.num_rows

        return _Source(total, read)

    def _columns(self, schema: Any, path: str) -> list[str]:
        """The column of each input: of its name, or the only one that may be it."""
        named = [next((name for name in schema.names if port.answers_to(name)), None) for port in self.ports]
        likely = [field.name for field in schema if not str(field.type).startswith(("int", "uint", "string", "bool"))]
        if len(self.ports) == 1 and named == [None]:
            named = likely if len(likely) == 1 else named
        found = [name for name in named if name is not None]
        if len(found) != len(self.ports):
            missing = ", ".join(p.name for p, name in zip(self.ports, named, strict=False) if name is None)
            raise InputError(f"{path}: no column is named {missing}; its columns are {', '.join(schema.names)}.")
        return found

    def windows(self, cell: Any, port: Port, where: str) -> Sequence[Array | sounds.Window]:
        """What a cell of a table gives an input: one array, or the windows of a sound.

        A cell is an encoded picture or sound (bytes, also in a dictionary under ``bytes``), the path of a file (text,
        also under ``path``), an array or a list of numbers, or text for an input of strings. Raises `InputError` for
        anything else, and `OSError`.
        """
        if isinstance(cell, dict):
            cell = cell.get("bytes") if cell.get("bytes") is not None else cell.get("path")
        if cell is None:
            raise InputError(f"{where}: there is no value.")
        if isinstance(cell, (bytearray, memoryview)):
            cell = bytes(cell)
        if port.is_text:
            return [fit(np.array([cell] if isinstance(cell, (str, bytes)) else cell, object), port, where)]
        if isinstance(cell, bytes) and sounds.is_sound(cell):
            return sounds.read_sound(where, port, self.sound, cell)
        if isinstance(cell, str):
            if cell.lower().endswith(sounds.SUFFIXES):
                return sounds.read_sound(cell, port, self.sound)
            return self.of_file(cell, port)
        return [self._of_cell(cell, port, where)]

    def _of_cell(self, cell: Any, port: Port, where: str) -> Array:
        content = cell.get("bytes") if isinstance(cell, dict) else cell
        if isinstance(content, bytes):
            return pictures.read_picture(where, port, self.pixels, content)[1]
        try:
            array = np.asarray(content, None if content is not None else np.float32)
        except ValueError:
            array = np.empty(0, object)
        if content is None or array.dtype.kind not in "fiub":
            raise InputError(f"{where}: no numbers and no picture for the input {port.describe()}.")
        return fit(array, port, where)
