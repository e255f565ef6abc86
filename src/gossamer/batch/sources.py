"""What there is to be predicted: tables, folders of pictures and sounds, archives of arrays, as a stream of chunks.

A source has rows with numbers from 0 on, and is read from any of them on, so that a run that was ended goes on there.
Nothing of it is in memory but a chunk, and the names of the files where it is files.
"""

from __future__ import annotations

import glob
import hashlib
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

import numpy as np

from gossamer.arrays import NDArray
from gossamer.batch import tables
from gossamer.errors import InputError, did_you_mean, explain
from gossamer.inputs import sounds
from gossamer.inputs.arrays import position_of
from gossamer.inputs.port import Port
from gossamer.inputs.samples import SUFFIXES, files_in
from gossamer.records import record

if TYPE_CHECKING:
    import pyarrow

    from gossamer.batch.predictor import Predictor

Array = NDArray[Any]

PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
ARRAYS = (".npy", ".npz")
CHUNK_BYTES, CHUNK_ROWS = 8 << 20, 256
"""How large the inputs and outputs of a chunk may become, as far as that is known, and how many rows it may have."""

_TABLE_SUFFIXES = (*PARQUET, *ARROW)

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Hive and Spark write for null in the name of a folder."""


@record(frozen=True)
class Chunk:
    """Some rows, behind one another. ``first``: the number of the first. ``kept``: a `pyarrow.RecordBatch` of what is
    carried along. ``cells``: for each input of the model a sequence of what it is given."""

    first: int
    kept: Any
    cells: Sequence[Sequence[Any]]

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.cells[0])


class Source(Protocol):
    """Rows that can be read in chunks. ``total``: how many there are; ``None`` if only reading tells. ``ends``: the
    number of the row behind the last of each part; no chunk has rows of two of them."""

    total: int | None
    ends: list[int]

    def kept_schema(self) -> pyarrow.Schema:
        """The types of what is carried along."""

    def chunks(self, first: int, rows: int) -> Iterator[Chunk]:
        """All rows from one on, so many in a chunk. Raises `InputError` and `OSError` for what cannot be read."""

    def fingerprint(self) -> str:
        """What changes if the rows do: the names, sizes and times of all files."""

    def has_sounds(self) -> bool:
        """Whether rows are sounds, of which one may be several windows."""

    def row_bytes(self) -> int:
        """How large a row is on the average, about."""


def open_source(
    paths: Sequence[str], predictor: Predictor, keys: Sequence[str] = (), keep: Sequence[str] = ()
) -> Source:
    """The rows of files: tables (``.parquet``, ``.arrow``, ``.feather``), arrays whose first axis is the row (``.npy``,
    ``.npz``), or pictures, sounds and arrays that are a row each; a folder or a pattern stands for the files in it.

    ``keys``: columns of tables that say which row is which, else the number of the row; with files, their names.
    ``keep``: further columns that are carried along. Raises `InputError` for what is not there, is of unknown or of
    different kinds, or does not have what the model takes.
    """
    if not paths:
        raise InputError("there is nothing to read: name files or folders.")
    if not predictor.inputs:
        raise InputError(f"{predictor.model.name} takes no inputs, so rows make no difference to it.")
    files, folders = _files(paths)
    kinds = {_kind(path, path in folders) for path in files}
    if len(kinds) > 1:
        raise InputError(
            f"the inputs are of different kinds ({', '.join(sorted(kinds))}); give those of one at a time."
        )
    kind = kinds.pop()
    if kind == "tables":
        return TableSource(files, predictor, keys, keep)
    if keys or keep:
        raise InputError(f"only tables have columns to keep; the inputs are {kind}.")
    return ArraySource(files, predictor) if kind == "arrays" else FileSource(files, predictor)


def refuse_mixing(paths: Sequence[str], output: str) -> None:
    """Raise `InputError` for an output that is, or holds, what is read; or lies in a folder of tables, where it would
    be read the next time."""
    place = Path(os.path.realpath(output))
    for path in paths:
        real = Path(os.path.realpath(path))
        is_within = place.is_relative_to(real) and any(name.lower().endswith(_TABLE_SUFFIXES) for name in _names(real))
        if is_within or real.is_relative_to(place):
            raise InputError(f"{output}: the output lies where the inputs are ({path}); name another place.")


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def _files(paths: Sequence[str]) -> tuple[list[str], set[str]]:
    """All files that paths stand for, in their order; and which of them stand in a folder that was given."""
    files: list[str] = []
    within: set[str] = set()
    for path in paths:
        if os.path.isdir(path):
            found = [name for name in files_in(path, (*SUFFIXES, *_TABLE_SUFFIXES)) if not _is_aside(name, path)]
            if not found:
                known = ", ".join((*SUFFIXES, *_TABLE_SUFFIXES))
                raise InputError(f"{path}: the folder has no files that can be read ({known}).")
            files += found
            within.update(found)
        elif os.path.exists(path):
            files.append(path)
        elif glob.has_magic(path):
            found = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
            if not found:
                raise InputError(f"{path}: no file has a name of this pattern.")
            files += found
        else:
            raise InputError(f"input {path!r} does not exist.")
    return files, within


def _is_aside(path: str, folder: str) -> bool:
    """Whether a table in a folder is none of its data, but of those who keep it, as in ``_delta_log``: what begins with
    ``_`` is that for Hive and Spark, if it is no column."""
    if not path.lower().endswith(_TABLE_SUFFIXES):
        return False
    return any(part.startswith("_") and "=" not in part for part in Path(path).relative_to(folder).parts)


def _kind(path: str, in_folder: bool) -> str:
    suffix = Path(path).suffix.lower()
    if suffix in _TABLE_SUFFIXES:
        return "tables"
    if suffix in ARRAYS and not in_folder:
        return "arrays"
    if suffix in SUFFIXES:
        return "files"
    known = ", ".join((*_TABLE_SUFFIXES, *SUFFIXES))
    raise InputError(f"{path}: unknown kind of file {suffix!r}; known are {known}.")


def _digest(files: Sequence[str]) -> str:
    """Of the names, sizes and times of files; a link to nothing has only its name."""
    digest = hashlib.sha256()
    for path in files:
        with suppress(FileNotFoundError):
            found = os.stat(path)
            digest.update(f"{found.st_size} {found.st_mtime_ns} ".encode())
        digest.update(os.fsencode(path) + b"\0")
    return digest.hexdigest()


def shown(path: str) -> str:
    """The name of a file as text; bytes of it that are no UTF-8 are written ``\\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class FileSource:
    """Files that are a row each, with their names as keys."""

    def __init__(self, files: Sequence[str], predictor: Predictor) -> None:
        if len(predictor.inputs) != 1:
            names = ", ".join(port.name for port in predictor.inputs)
            raise InputError(
                f"{files[0]}: which of the inputs {names} it is for cannot be told; give a table with a column, or an "
                ".npz file with an array, for each."
            )
        self.files = files
        self.total: int | None = len(files)
        self.ends = [len(files)]
        self._shape = predictor.inputs[0]

    def kept_schema(self) -> pyarrow.Schema:
        """The name of the file."""
        pa = tables.arrow()
        return pa.schema([(tables.FILE, pa.string())])

    def chunks(self, first: int, rows: int) -> Iterator[Chunk]:
        """See `Source`: the cells are paths, and what is wrong with a file is the error of its row."""
        pa = tables.arrow()
        for start in range(first, len(self.files), rows):
            files = self.files[start : start + rows]
            kept = pa.record_batch([pa.array(map(shown, files), pa.string())], schema=self.kept_schema())
            yield Chunk(start, kept, [files])

    def fingerprint(self) -> str:
        """See `Source`."""
        return _digest(self.files)

    def has_sounds(self) -> bool:
        """Whether there is a sound among them."""
        return any(path.lower().endswith(sounds.SUFFIXES) for path in self.files)

    def row_bytes(self) -> int:
        """Of what the model is given; the files are read one after another."""
        return _bytes_of(self._shape)


class TableSource:
    """Rows of Parquet and Arrow files of one schema."""

    def __init__(self, files: Sequence[str], predictor: Predictor, keys: Sequence[str], keep: Sequence[str]) -> None:
        self.files = files
        stored = [_opened(path) for path in files]
        added, values = _partitions(files)
        self._tables = [_Partitioned(table, added, here) for table, here in zip(stored, values, strict=True)]
        self.ends: list[int] = np.cumsum([table.rows for table in self._tables]).tolist()
        self.total: int | None = self.ends[-1]
        schema = self._tables[0].schema
        names = schema.names
        for name in {*keys, *keep, *predictor.columns.values()}:
            if names.count(name) != 1:
                what = "no column" if name not in names else "more than one column"
                raise InputError(f"{files[0]}: there is {what} {name!r}{did_you_mean(name, names)} {_listed(names)}")
        try:
            self._inputs = predictor.input_columns({field.name: tables.is_plain(field.type) for field in schema})
        except InputError as error:
            raise InputError(f"{files[0]}: {error}") from None
        twice = [name for name in self._inputs if names.count(name) > 1]
        if twice:
            raise InputError(f"{files[0]}: there is more than one column {twice[0]!r}.")
        self._kept = [*dict.fromkeys((*keys, *keep))]
        self._is_numbered = not keys
        predictor.refuse_clashes([field.name for field in self.kept_schema()])
        wanted = {name: schema.field(name).type for name in (*self._inputs, *self._kept)}
        for path, table in zip(files, self._tables, strict=True):
            for name, kind in wanted.items():
                there = [field.type for field in table.schema if field.name == name]
                if there != [kind]:
                    got = f"{there[0]}" if there else "not there"
                    raise InputError(f"{path}: the column {name!r} is {got}, in {files[0]} it is {kind}.")

    def kept_schema(self) -> pyarrow.Schema:
        """The keys, else the number of the row (and the file, if there are several), and what is kept."""
        pa = tables.arrow()
        numbers = [pa.field(tables.FILE, pa.string())] if len(self.files) > 1 else []
        numbers.append(pa.field(tables.ROW, pa.int64()))
        schema = self._tables[0].schema
        return pa.schema([*(numbers if self._is_numbered else []), *(schema.field(name) for name in self._kept)])

    def chunks(self, first: int, rows: int) -> Iterator[Chunk]:
        """See `Source`."""
        pa = tables.arrow()
        schema = self.kept_schema()
        columns = [*dict.fromkeys((*self._inputs, *self._kept))]
        start = 0
        for path, table in zip(self.files, self._tables, strict=True):
            if start + table.rows > first:
                number = max(first - start, 0)
                for batch in table.batches(number, rows, columns):
                    numbers = pa.array(range(number, number + batch.num_rows), pa.int64())
                    names = [pa.repeat(pa.scalar(shown(path)), batch.num_rows)] if len(self.files) > 1 else []
                    kept = [batch.column(name) for name in self._kept]
                    kept = [*names, numbers, *kept] if self._is_numbered else kept
                    cells = [tables.cells(batch.column(name)) for name in self._inputs]
                    yield Chunk(start + number, pa.record_batch(kept, schema=schema), cells)
                    number += batch.num_rows
            start += table.rows

    def fingerprint(self) -> str:
        """See `Source`."""
        return _digest(self.files)

    def has_sounds(self) -> bool:
        """Whether the first cell of an input is a sound."""
        for table in self._tables:
            for batch in table.batches(0, 16, self._inputs):
                found = [cell for name in self._inputs for cell in batch.column(name).to_pylist() if cell is not None]
                for cell in found:
                    content = cell.get("bytes") or cell.get("path") if isinstance(cell, dict) else cell
                    if isinstance(content, bytes) and sounds.is_sound(content):
                        return True
                    if isinstance(content, str) and content.lower().endswith(sounds.SUFFIXES):
                        return True
                if found:
                    return False
        return False

    def row_bytes(self) -> int:
        """See `Source`."""
        return sum(os.path.getsize(path) for path in self.files) // max(self.total or 0, 1)


def _partitions(files: Sequence[str]) -> tuple[pyarrow.Schema, list[dict[str, Any]]]:
    """The columns that folders named ``column=value`` stand for, as Hive and Spark lay tables out: their types, int64
    where all values are integers, else text; and the values of each file."""
    pa = tables.arrow()
    found: list[dict[str, Any]] = []
    for path in files:
        pairs = (part.split("=", 1) for part in Path(path).parts[:-1] if "=" in part)
        named = {unquote(name): unquote(value) for name, value in pairs}
        found.append({name: None if value == _NO_VALUE else value for name, value in named.items()})
    fields = []
    for name in dict.fromkeys(name for one in found for name in one):
        values = [one[name] for one in found if one.get(name) is not None]
        are_integers = values and all(re.fullmatch(r"-?[0-9]{1,18}", value) for value in values)
        fields.append(pa.field(name, pa.int64() if are_integers else pa.string()))
        if are_integers:
            found = [{**one, name: int(one[name])} if one.get(name) is not None else one for one in found]
    return pa.schema(fields), found


class _Partitioned:
    """A table with columns of one value each, where it has none of their names."""

    def __init__(self, table: _Table, fields: pyarrow.Schema, values: Mapping[str, Any]) -> None:
        pa = tables.arrow()
        self._table = table
        self._added = {field.name: field for field in fields if field.name not in table.schema.names}
        self._values = values
        self.rows = table.rows
        self.schema = pa.schema([*table.schema, *self._added.values()], table.schema.metadata)

    def batches(self, first: int, rows: int, columns: Sequence[str]) -> Iterator[Any]:
        """See `_Table`."""
        pa = tables.arrow()
        schema = pa.schema([self.schema.field(name) for name in columns])
        for batch in self._table.batches(first, rows, [name for name in columns if name not in self._added]):
            yield pa.record_batch(
                [
                    pa.array([self._values.get(name)] * batch.num_rows, self._added[name].type)
                    if name in self._added
                    else batch.column(name)
                    for name in columns
                ],
                schema=schema,
            )


class _Table(Protocol):
    rows: int
    schema: Any

    def batches(self, first: int, rows: int, columns: Sequence[str]) -> Iterator[Any]:
        """Batches [rows] of some columns from a row on."""


def _opened(path: str) -> _Table:
    pa = tables.arrow(path)
    try:
        return _Parquet(path) if Path(path).suffix.lower() in PARQUET else _Arrow(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a table that can be read ({explain(error)}).") from None


class _Parquet:
    def __init__(self, path: str) -> None:
        from pyarrow import parquet

        self._path = path
        with parquet.ParquetFile(path) as file:
            self.rows: int = file.metadata.num_rows
            self.schema = file.schema_arrow

    def batches(self, first: int, rows: int, columns: Sequence[str]) -> Iterator[Any]:
        """See `_Table`; of row groups before the row nothing is read."""
        from pyarrow import parquet

        # Through a buffer: else a column of a row group, which may be the whole file, is read at once.
        with parquet.ParquetFile(self._path, buffer_size=1 << 20, pre_buffer=False) as file:
            groups, skipped = list(range(file.metadata.num_row_groups)), 0
            while groups and skipped + file.metadata.row_group(groups[0]).num_rows <= first:
                skipped += file.metadata.row_group(groups.pop(0)).num_rows
            left = first - skipped
            found = file.iter_batches(rows, row_groups=groups, columns=list(columns), use_threads=False)
            yield from _of_size(_without(left, found), rows)


class _Arrow:
    def __init__(self, path: str) -> None:
        pa = tables.arrow(path)
        self._path = path
        with pa.memory_map(path) as mapped:
            try:
                with pa.ipc.open_file(mapped) as file:
                    self.schema = file.schema
                    self.rows = sum(file.get_batch(k).num_rows for k in range(file.num_record_batches))
            except pa.ArrowInvalid:
                mapped.seek(0)
                with pa.ipc.open_stream(mapped) as stream:
                    self.schema = stream.schema
                    self.rows = sum(batch.num_rows for batch in stream)

    def batches(self, first: int, rows: int, columns: Sequence[str]) -> Iterator[Any]:
        """See `_Table`; the file is mapped."""
        pa = tables.arrow()
        with pa.memory_map(self._path) as mapped:
            try:
                file = pa.ipc.open_file(mapped)
                found = (file.get_batch(k) for k in range(file.num_record_batches))
            except pa.ArrowInvalid:
                mapped.seek(0)
                found = iter(pa.ipc.open_stream(mapped))
            yield from _of_size((batch.select(list(columns)) for batch in _without(first, found)), rows)


def _without(count: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Batches without the first rows."""
    for batch in batches:
        if count < batch.num_rows:
            yield batch.slice(count)
        count = max(count - batch.num_rows, 0)


def _of_size(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """The same rows, so many in a batch, but in the last. So chunks are the same wherever a run begins anew."""
    waiting: list[Any] = []
    count = 0
    for batch in batches:
        place = 0
        while place < batch.num_rows:
            part = batch.slice(place, rows - count)
            place += part.num_rows
            count += part.num_rows
            waiting.append(part)
            if count == rows:
                yield _joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: Sequence[Any]) -> Any:
    pa = tables.arrow()
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).combine_chunks()
    columns = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


class ArraySource:
    """Rows of .npy and .npz files: the first axis. An .npz file has an array for each input."""

    def __init__(self, files: Sequence[str], predictor: Predictor) -> None:
        self.files = files
        self._ports = predictor.inputs
        self._members: list[list[_Member]] = []
        self._counts: list[int] = []
        for path in files:
            found = _members(path)
            by_position: dict[int, _Member] = {}
            if Path(path).suffix.lower() == ".npy":
                if len(self._ports) != 1:
                    names = ", ".join(port.name for port in self._ports)
                    raise InputError(f"{path}: the model takes {names}; give an .npz file with an array for each.")
                by_position[0] = found[None]
            else:
                for name, member in found.items():
                    by_position[position_of(str(name), self._ports, path)] = member
            missing = [port.name for port in self._ports if port.position not in by_position]
            if missing:
                raise InputError(f"{path}: there is no array for the inputs {', '.join(missing)}.")
            members = [by_position[port.position] for port in self._ports]
            counts = [member.rows(port) for member, port in zip(members, self._ports, strict=True)]
            if len(set(counts)) != 1:
                told = ", ".join(f"{port.name}: {count}" for port, count in zip(self._ports, counts, strict=True))
                raise InputError(f"{path}: arrays must have one first size, the number of rows; got {told}.")
            self._members.append(members)
            self._counts.append(counts[0])
        self.ends: list[int] = np.cumsum(self._counts).tolist()
        self.total: int | None = self.ends[-1]

    def kept_schema(self) -> pyarrow.Schema:
        """The number of the row, and the file, if there are several."""
        pa = tables.arrow()
        return pa.schema([*([(tables.FILE, pa.string())] if len(self.files) > 1 else []), (tables.ROW, pa.int64())])

    def chunks(self, first: int, rows: int) -> Iterator[Chunk]:
        """See `Source`."""
        pa = tables.arrow()
        start = 0
        for path, members, count in zip(self.files, self._members, self._counts, strict=True):
            number = max(first - start, 0)
            if number < count:
                readers = [m.read(number, rows, port) for m, port in zip(members, self._ports, strict=True)]
                for cells in zip(*readers, strict=True):
                    size = len(cells[0])
                    names = [pa.repeat(pa.scalar(shown(path)), size)] if len(self.files) > 1 else []
                    numbers = pa.array(range(number, number + size), pa.int64())
                    yield Chunk(start + number, pa.record_batch([*names, numbers], schema=self.kept_schema()), cells)
                    number += size
            start += count

    def fingerprint(self) -> str:
        """See `Source`."""
        return _digest(self.files)

    def has_sounds(self) -> bool:
        """They are arrays."""
        return False

    def row_bytes(self) -> int:
        """See `Source`."""
        return sum(map(_bytes_of, self._ports))


@record(frozen=True)
class _Member:
    """An array in a file; ``name``: what it is called in an archive."""

    path: str
    name: str | None
    shape: tuple[int, ...]
    dtype: Any
    is_fortran: bool

    def step(self, port: Port) -> int:
        """How many places of the first axis are a row: as many as the input has, if it has that axis too, else 0, which
        stands for one without the axis."""
        return max(port.signature[0], 1) if port.signature and len(self.shape) == len(port.signature) else 0

    def rows(self, port: Port) -> int:
        """How many there are for an input."""
        return self.shape[0] // max(self.step(port), 1)

    def read(self, first: int, rows: int, port: Port) -> Iterator[list[Array]]:
        """Rows from one on, so many at a time."""
        step = self.step(port)
        for values in self._blocks(first * max(step, 1), rows * max(step, 1), self.rows(port) * max(step, 1)):
            yield [values[k : k + step] for k in range(0, len(values), step)] if step else list(values)

    def _blocks(self, first: int, size: int, end: int) -> Iterator[Array]:
        if self.name is None:
            mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
            for start in range(first, end, size):
                yield np.array(mapped[start : min(start + size, end)])
            return
        if self.is_fortran:  # not row by row in the file
            try:
                with np.load(self.path, allow_pickle=False) as archive:
                    values = archive[self.name]
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                raise InputError(f"{self.path}: damaged ({error}).") from None
            for start in range(first, end, size):
                yield values[start : min(start + size, end)]
            return
        width = math.prod(self.shape[1:]) * self.dtype.itemsize
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as stream:
            _header(stream)
            left = first * width
            while left:
                left -= len(_exactly(stream, min(left, 1 << 20), self.path))
            for start in range(first, end, size):
                count = min(size, end - start)
                content = _exactly(stream, count * width, self.path)
                yield np.frombuffer(content, self.dtype).reshape(count, *self.shape[1:])


def _exactly(stream: Any, size: int, path: str) -> bytes:
    try:
        content: bytes = stream.read(size)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"{path}: damaged ({error}).") from None
    if len(content) != size:
        raise InputError(f"{path}: the array ends before its end.")
    return content


def _header(stream: Any) -> tuple[tuple[int, ...], bool, Any]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError("Python objects are not read")
    return shape, is_fortran, dtype


def _members(path: str) -> Mapping[str | None, _Member]:
    """The arrays of a file by their names, ``None`` for the only one of an .npy file. Raises `InputError`."""
    try:
        if Path(path).suffix.lower() == ".npy":
            with open(path, "rb") as file:
                shape, is_fortran, dtype = _header(file)
                if os.fstat(file.fileno()).st_size < file.tell() + math.prod(shape) * dtype.itemsize:
                    raise ValueError("it ends before its end")
            if not shape:
                raise ValueError("a number has no rows")
            return {None: _Member(path, None, shape, dtype, is_fortran)}
        found: dict[str | None, _Member] = {}
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                with archive.open(entry) as stream:
                    shape, is_fortran, dtype = _header(stream)
                if not shape:
                    raise ValueError(f"{entry}: a number has no rows")
                name = entry.removesuffix(".npy")
                found[name] = _Member(path, name, shape, dtype, is_fortran)
        return found
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: no arrays of numbers ({error}).") from None


def _bytes_of(port: Port) -> int:
    """Of an input or output of one row, where open dimensions have the size that is stored."""
    return math.prod(port.shape) * max(port.dtype.itemsize, 1)


def _listed(names: Sequence[str]) -> str:
    return f"The columns are {', '.join(names)}."


def rows_of_chunk(source: Source, predictor: Predictor) -> int:
    """How many rows a chunk has: as many as `CHUNK_BYTES` hold with their outputs, a multiple of what goes through the
    model at once."""
    size = source.row_bytes() + sum(map(_bytes_of, (*predictor.inputs, *predictor.outputs)))
    rows = max(1, min(CHUNK_ROWS, CHUNK_BYTES // max(size, 1)))
    together = predictor.rows_at_once
    return max(rows // together, 1) * together
