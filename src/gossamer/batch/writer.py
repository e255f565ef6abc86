"""Parquet out, in parts, with a manifest of what is done: a run that was ended at any point goes on behind it.

A part is written under a hidden name, synced, renamed, and then named in the manifest, which is replaced as a whole:
what the manifest does not name was never there. For an output ``x.parquet`` the parts lie in ``x.parquet.parts`` and
become that file at the end; any other output is a folder that keeps its parts, as Spark, Ray and pandas read it.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gossamer.batch import tables
from gossamer.batch.sources import PARQUET
from gossamer.errors import InputError
from gossamer.programs.host import file_lock

if TYPE_CHECKING:
    import pyarrow

PART_BYTES, PART_SECONDS = 64 << 20, 30.0
"""A part is ended with as much in it, or after this time: as much is lost at most."""

_GROUP_BYTES = 16 << 20
"""A row group of a part."""

_MANIFEST, _LOCK = "_gossamer.json", "_lock"
_METADATA = b"gossamer"
_FORMAT = 1


class Output:
    """The rows of a run, on their way to a file or folder.

    ``job``: what the rows depend on, plain values. ``first``: the number of the row of the input to go on with.
    ``rows``, ``errors``: of those that are written, and how many of them failed. ``is_complete``: all of them.

    Raises `InputError` for a name that is neither of a Parquet file nor of a folder; where there is something of
    another job or of somebody else, unless ``overwrite``, which begins anew; and where another process writes.
    """

    def __init__(self, path: str, schema: pyarrow.Schema, job: Mapping[str, Any], overwrite: bool) -> None:
        self.path = Path(path)
        self.is_file = self.path.suffix.lower() in PARQUET
        if path == "-":
            raise InputError(f"{path!r}: an output is the name of a file .parquet, or of a folder of such files.")
        is_folder = self.path.is_dir()
        if self.is_file and is_folder:
            raise InputError(f"{path}: this is a folder; a name that ends in {self.path.suffix} is of a file.")
        if not self.is_file and not is_folder and self.path.suffix and not path.endswith(("/", os.sep)):
            raise InputError(
                f"{path}: an output is a file .parquet, or a folder of such files, never {self.path.suffix}; "
                f"a folder of that name is {path}/."
            )
        self.parts = self.path.with_name(f"{self.path.name}.parts") if self.is_file else self.path
        self._schema = schema
        self._job = json.loads(json.dumps(job))
        self._overwrite = overwrite
        self.first = self.rows = self.errors = 0
        self.is_complete = False
        self._files: list[str] = []
        self._part: _Part | None = None

    @contextmanager
    def opened(self) -> Iterator[Output]:
        """To be written to. What is done stays, whatever is raised meanwhile."""
        if self._is_finished_file():
            yield self
            return
        if not self.is_file and self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: an output is a name that ends in .parquet, or a folder; this is a file.")
        is_new = not self.parts.exists()
        self.parts.mkdir(parents=True, exist_ok=True)
        self._refuse_strangers()
        with ExitStack() as held:
            try:
                held.enter_context(file_lock(self.parts / _LOCK, 0))
            except TimeoutError:
                raise InputError(f"{self.path}: another run writes it at the moment.") from None
            self._resume()
            try:
                yield self
            finally:
                self._end_part()
                if is_new and not self._files:  # as where there is no such cluster
                    shutil.rmtree(self.parts, ignore_errors=True)

    def write(self, batch: Any, first: int) -> None:
        """Rows that belong to those of the input up to ``first``, which is not one of them. Raises `OSError`."""
        if self._part is None:
            self._part = _Part(self.parts, len(self._files), self._schema)
        with _naming(self.path):
            self._part.write(batch, first)
        if self._part.bytes >= PART_BYTES or time.monotonic() - self._part.begun >= PART_SECONDS:
            self._end_part()

    def finish(self) -> None:
        """Say that there is no more. Raises `OSError`."""
        if self.is_complete:
            return
        if self._part is None and not self._files:
            self._part = _Part(self.parts, 0, self._schema)
        self._end_part()
        self.is_complete = True
        if not self.is_file:
            self._keep_manifest()
            return
        part = self.parts / ".whole.parquet"
        with _naming(self.path):
            _merge([self.parts / name for name in self._files], part, self._schema, self._finished())
            os.replace(part, self.path)
        os.unlink(self.parts / _MANIFEST)  # first, so that nobody looks for parts that are gone
        shutil.rmtree(self.parts, ignore_errors=True)

    def _end_part(self) -> None:
        part, self._part = self._part, None
        if part is None:
            return
        if not part.is_sound:
            part.drop()
            return
        try:
            with _naming(self.path):
                name = part.end()
        except BaseException:
            part.drop()
            raise
        self._files.append(name)
        self.first, self.rows, self.errors = part.first, self.rows + part.rows, self.errors + part.errors
        self._keep_manifest()

    def _is_finished_file(self) -> bool:
        """Whether the file is there and of this job. Raises `InputError` if it is of another."""
        if not self.is_file or self._overwrite or not self.path.exists():
            return False
        if (self.parts / _MANIFEST).exists():
            return False  # what will replace it is under way
        from pyarrow import parquet

        pa = tables.arrow()
        try:
            stored = json.loads((parquet.read_metadata(self.path).metadata or {})[_METADATA])
        except (pa.ArrowException, OSError, KeyError, ValueError):
            raise InputError(
                f"{self.path} is there, and no output of gossamer batch; --overwrite replaces it."
            ) from None
        self._refuse_another(stored)
        self.rows, self.errors, self.is_complete = stored["rows"], stored["errors"], True
        return True

    def _refuse_strangers(self) -> None:
        known = (_MANIFEST, _LOCK)
        foreign = [
            entry.name
            for entry in os.scandir(self.parts)
            if entry.name not in known and not entry.name.startswith((".", "part-"))
        ]
        if foreign or (
            not self._overwrite and not (self.parts / _MANIFEST).exists() and any(self.parts.glob("part-*"))
        ):
            what = foreign[0] if foreign else "a part without a manifest"
            raise InputError(f"{self.parts}: the folder holds {what!r}, which is no output of gossamer batch.")

    def _resume(self) -> None:
        """Find what is done, and delete what was under way."""
        manifest = self.parts / _MANIFEST
        stored: dict[str, Any] = {}
        if manifest.exists() and not self._overwrite:
            try:
                stored = json.loads(manifest.read_text(encoding="utf-8"))
                self._refuse_another(stored)
                self._files = list(stored["parts"])
                self.first, self.rows, self.errors = stored["first"], stored["rows"], stored["errors"]
                self.is_complete = stored["complete"]
            except (ValueError, KeyError, TypeError) as error:
                if isinstance(error, InputError):
                    raise
                raise InputError(f"{manifest}: damaged ({error!r}); --overwrite begins anew.") from None
        missing = [name for name in self._files if not (self.parts / name).is_file()]
        if missing:
            raise InputError(f"{self.parts}: the part {missing[0]} is gone; --overwrite begins anew.")
        for entry in list(os.scandir(self.parts)):
            is_ours = entry.name.startswith(("part-", ".part-", ".whole", f".{_MANIFEST}"))
            if is_ours and entry.name not in self._files:
                os.unlink(entry.path)
        self._keep_manifest()

    def _refuse_another(self, stored: Mapping[str, Any]) -> None:
        there = stored.get("job", {})
        for name in dict.fromkeys((*self._job, *there)):
            if there.get(name) != self._job.get(name):
                if name == "inputs":  # of which there is but a hash
                    raise InputError(
                        f"{self.path} was begun with other inputs: a name, a size or a time of a file was another. "
                        "Name another output, or begin anew with --overwrite."
                    )
                then, now = (_short(one.get(name)) for one in (there, self._job))
                raise InputError(
                    f"{self.path} was begun with another {name}: {then}, now it is {now}. Name another output, or "
                    "begin anew with --overwrite."
                )

    def _finished(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "job": self._job,
            "first": self.first,
            "rows": self.rows,
            "errors": self.errors,
            "complete": self.is_complete,
        }

    def _keep_manifest(self) -> None:
        content = json.dumps({**self._finished(), "parts": self._files}, indent=1)
        part = self.parts / f".{_MANIFEST}"
        with open(part, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.parts / _MANIFEST)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """What the system says of writing to an open file, as that a disk is full, with the name of the output."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:36]}..."


class _Part:
    """A file of rows that nobody sees before it is ended."""

    def __init__(self, folder: Path, number: int, schema: pyarrow.Schema) -> None:
        self._folder, self._name = folder, f"part-{number:05d}.parquet"
        self._hidden = folder / f".{self._name}"
        self._file = open(self._hidden, "wb")  # noqa: SIM115 (closed in `end` and `drop`)
        self._writer: Any = None
        try:
            self._writer = _writer(self._file, schema)
        except BaseException:
            self.drop()
            raise
        self._schema = schema
        self._waiting: list[tuple[Any, int]] = []
        self._waiting_bytes = 0
        self.first = self.rows = self.errors = self.bytes = 0
        self.begun = time.monotonic()
        self.is_sound = True
        """Whether nothing has ended it, as Ctrl-C may at any point, while something was half written."""

    def write(self, batch: Any, first: int) -> None:
        """Rows, and the number of the row of the input behind them: both or neither. Raises `OSError`."""
        self._waiting.append((batch, first))
        self._waiting_bytes += batch.nbytes
        self.bytes += batch.nbytes
        if self._waiting_bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        pa = tables.arrow()
        self.is_sound = False
        batches = [batch for batch, _ in self._waiting]
        self._writer.write_table(pa.Table.from_batches(batches, self._schema))
        self.first = self._waiting[-1][1]
        self.rows += sum(batch.num_rows for batch in batches)
        self.errors += sum(batch.num_rows - batch.column(batch.num_columns - 1).null_count for batch in batches)
        self._waiting, self._waiting_bytes = [], 0
        self.is_sound = True

    def end(self) -> str:
        """Its name, under which it is there from now on. Raises `OSError`."""
        if self._waiting:
            self._write_group()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._hidden, self._folder / self._name)
        return self._name

    def drop(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError, ValueError):
            if self._writer is not None:
                self._writer.close()  # else it would be when Python likes
        with suppress(OSError, ValueError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._hidden)


def _writer(file: Any, schema: pyarrow.Schema) -> Any:
    from pyarrow import parquet

    # Numbers that a model gives repeat too seldom for a dictionary; names of files and errors do not.
    repeated = [field.name for field in schema if str(field.type) in ("string", "large_string")]
    return parquet.ParquetWriter(file, schema, use_dictionary=repeated or False)


def _merge(parts: list[Path], target: Path, schema: pyarrow.Schema, facts: Mapping[str, Any]) -> None:
    """One file of the rows of all parts. Raises `OSError`."""
    from pyarrow import parquet

    with open(target, "wb") as file:
        with _writer(file, schema.with_metadata({**(schema.metadata or {}), _METADATA: json.dumps(facts)})) as writer:
            for path in parts:
                with parquet.ParquetFile(path) as part:
                    for group in range(part.metadata.num_row_groups):
                        writer.write_table(part.read_row_group(group).cast(schema))
        file.flush()
        os.fsync(file.fileno())
