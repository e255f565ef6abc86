"""A model as a function of batches of rows: what Ray Data's ``map_batches``, Spark and Beam call, and `run` itself."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer.arrays import NDArray
from gossamer.batch import tables
from gossamer.batch.model_file import ModelFile
from gossamer.errors import CancelledError, GossamerError, InputError, InvokeError, PrepareError, did_you_mean, explain
from gossamer.inputs import sounds
from gossamer.inputs.port import Port, named_by_signature
from gossamer.inputs.random_values import random_input
from gossamer.inputs.samples import Preparation, Reading
from gossamer.inputs.session import Session
from gossamer.model import Model
from gossamer.records import record

if TYPE_CHECKING:
    import pyarrow

Array = NDArray[Any]

ERROR = "error"
"""The column that says why a row has no outputs."""

SPAN = ("start_seconds", "end_seconds")
"""The columns that say which part of a sound a row is about."""

_ROUNDING = 0.01
"""By how much a row may differ when it is alone, relative to the largest of an output; float16 has 11 bits."""

_TOGETHER = 32
"""Rows through the model at once, if nothing else is said: products of matrices take less time for each of many."""

_AHEAD, _AHEAD_BYTES = 16, 1 << 20
"""So many files are being read by the system ahead of the one that is worked on, and so much of each at most."""


@record(frozen=True)
class Prediction:
    """What the model says of a row, or of one window of a sound in it: outputs by name, or an error.

    ``row``: its number in the batch. ``span``: seconds in the sound.
    """

    row: int
    outputs: Mapping[str, Array] | None
    error: str | None = None
    span: tuple[float, float] | None = None


class Predictor:
    """A ``.tflite`` model that takes batches of rows, columns by name, and gives batches of rows.

    ``model``: a path, the bytes, a `Model` or a `ModelFile`. ``signature``: the key of one; without it the first
    subgraph, with the names that a signature gives its inputs and outputs, ``serving_default`` if several do.
    ``preparation``: how pictures and sounds become numbers. ``columns``: the column of an input, by the name of the
    input, where it has not its name and is not the only one that may be it. ``keep``: the columns that are carried
    along; by default all that are not inputs. ``windows``: a sound that is longer than the input gives a row for each
    of its windows, ``hop`` seconds apart, with columns ``start_seconds`` and ``end_seconds``; without it such a sound
    is an error of its row. ``dequantize``: quantized outputs as the real numbers that they stand for. ``batch_size``:
    as many rows go through the model at once, if its first dimension is open and they do not change each other; by
    default 32, or one if it has convolutions, which use their weights often enough in one row. ``threads``: of one run.

    A cell of an input is an encoded picture or sound (`bytes`, or a dictionary with these under ``bytes``), the path of
    a file (`str`), a number, or an array or nested list of the input's shape, whose first 1 it may lack; for an input
    of strings, text. A row of an output lacks the first dimension where that is 1 or the batch's.

    It may be called by several threads at once: each has an interpreter of its own, and those of one process share the
    mapped file, machine code and packed weights. It can be pickled: see `ModelFile`.

    Raises `InputError` for arguments that the model cannot have, and what `Interpreter` raises.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes | Model | ModelFile,
        signature: str | None = None,
        preparation: Preparation | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        keep: Sequence[str] | None = None,
        windows: bool = False,
        hop: float | None = None,
        dequantize: bool = False,
        batch_size: int | None = None,
        threads: int = 1,
    ) -> None:
        self.model = model if isinstance(model, ModelFile) else ModelFile(model)
        self.signature = signature
        self.preparation = preparation or Preparation()
        self.columns = dict(columns or {})
        self.keep = None if keep is None else tuple(keep)
        self.windows = windows
        self.hop = hop
        self.dequantize = dequantize
        self.batch_size = batch_size
        self.threads = threads
        self._start()

    def _start(self) -> None:
        self._is_cancelled = False
        self._shared = _shared_session(self.model, self.signature, self.threads)
        first = self._shared.session
        self._reading = Reading.of(first.interpreter, self.signature, self.preparation, self.hop)
        self.inputs, self.outputs = first.inputs, first.outputs
        if self.signature is None:
            self.inputs, self.outputs = named_by_signature(first.model, first.inputs, first.outputs)
        self.output_names = _unique([port.name for port in self.outputs])
        for name in self.columns:
            if not any(port.answers_to(name) for port in self.inputs):
                names = [port.name for port in self.inputs]
                raise InputError(
                    f"{name!r} is no input of the model{did_you_mean(name, names)} Its inputs are {', '.join(names)}."
                )

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("_is_cancelled", "_shared", "_reading", "inputs", "outputs", "output_names")
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    def __call__(self, batch: Any) -> Any:
        """The rows of a batch with what the model says of them.

        A dictionary of columns, arrays [N, ...] or lists of N, gives such a dictionary: the columns that are kept, an
        array for each output, ``error`` (text, or ``None`` where all is well). An output is [N, ...] where all rows
        have one shape, else an array of N objects, ``None`` for rows that failed. A `pyarrow.Table` or `RecordBatch`
        gives its like, with the types of `schema` and nulls for rows that failed.

        Raises `InputError` for a batch without a column for an input, and `PrepareError` for a model that cannot run.
        """
        if not isinstance(batch, Mapping):
            return self._of_table(batch)
        columns = {name: _cells(column) for name, column in batch.items()}
        counts = {len(column) for column in columns.values()}
        if len(counts) > 1:
            told = ", ".join(f"{name}: {len(column)}" for name, column in columns.items())
            raise InputError(f"the columns of a batch have as many rows as each other; got {told}.")
        chosen = self.input_columns({name: _is_plain(column) for name, column in columns.items()})
        found = list(self.predictions([columns[name] for name in chosen]))
        rows = [one.row for one in found]
        answer: dict[str, Any] = {name: _picked(batch[name], rows) for name in self.kept_columns(list(columns), chosen)}
        if self.windows:
            for place, name in enumerate(SPAN):
                answer[name] = np.array([one.span[place] if one.span else np.nan for one in found], np.float64)
        for name in self.output_names:
            answer[name] = _stacked([one.outputs[name] if one.outputs is not None else None for one in found])
        answer[ERROR] = np.empty(len(found), object)
        answer[ERROR][:] = [one.error for one in found]
        return answer

    def _of_table(self, table: Any) -> Any:
        pa = tables.arrow()
        if not isinstance(table, (pa.Table, pa.RecordBatch)):
            raise TypeError(f"a batch is a dictionary of columns, or a table of pyarrow; got {type(table).__name__}")
        names = table.schema.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two columns are named {twice!r}.")
        chosen = self.input_columns({field.name: tables.is_plain(field.type) for field in table.schema})
        kept = self.kept_columns(names, chosen)
        return self.answer(table.select(kept), [tables.cells(table.column(name)) for name in chosen])

    def answer(self, kept: Any, columns: Sequence[Sequence[Any]]) -> Any:
        """The rows of a `pyarrow.Table` or `RecordBatch` with what the model says of them; ``columns`` has a sequence
        of cells for each input. Raises `PrepareError` for a model that cannot run."""
        pa = tables.arrow()
        found = list(self.predictions(columns))
        rows = [one.row for one in found]
        if kept.num_columns and rows != list(range(kept.num_rows)):
            kept = kept.take(pa.array(rows, pa.int64()))
        added = self.schema()
        made = []
        for field in added:
            if field.name == ERROR:
                made.append(pa.array([one.error for one in found], pa.string()))
            elif self.windows and field.name in SPAN:
                place = SPAN.index(field.name)
                made.append(pa.array([one.span[place] if one.span else None for one in found], pa.float64()))
            else:
                outputs = [None if one.outputs is None else one.outputs[field.name] for one in found]
                made.append(tables.column_of(outputs, field.type))
        return type(kept).from_arrays([*kept.columns, *made], schema=pa.schema([*kept.schema, *added]))

    def schema(self) -> pyarrow.Schema:
        """The Arrow types of what is added to a row: the span of a sound if there are windows, the outputs by name,
        ``error``. Raises `InputError` for an output of complex numbers, and where pyarrow is missing."""
        pa = tables.arrow()
        fields = [(name, pa.float64()) for name in SPAN] if self.windows else []
        for name, port in zip(self.output_names, self.outputs, strict=True):
            kind = tables.element_type(port, self.dequantize)
            for size in reversed(self.row_shape(port)):
                kind = pa.list_(kind, size) if size >= 0 else pa.list_(kind)
            fields.append((name, kind))
        return pa.schema([*fields, (ERROR, pa.string())])

    def input_columns(self, plain: Mapping[str, bool]) -> list[str]:
        """The column of each input, among columns of these names: that of ``columns``, of the input's name, or the only
        one that may be it. ``plain``: of each whether it holds only text, integers or truth values, one in a row.

        Raises `InputError` if there is none.
        """
        given = {self._port(name).position: column for name, column in self.columns.items()}
        found: list[str | None] = [
            given.get(port.position) or next((name for name in plain if port.answers_to(name)), None)
            for port in self.inputs
        ]
        if found == [None]:
            likely = [name for name, is_plain in plain.items() if self.inputs[0].is_text or not is_plain]
            likely = likely if len(likely) == 1 else list(plain)
            found = [likely[0] if len(likely) == 1 else None]
        known = [name for name in found if name is not None]
        names = ", ".join(plain) or "none"
        missing = [port.name for port, name in zip(self.inputs, found, strict=True) if name is None]
        if missing:
            raise InputError(
                f"no column is named {', '.join(missing)}, which the model takes; the columns are {names}. Say which "
                f"column it is, as {missing[0]}=COLUMN."
            )
        unknown = [name for name in known if name not in plain]
        if unknown:
            raise InputError(f"there is no column {unknown[0]!r}{did_you_mean(unknown[0], plain)} There are {names}.")
        return known

    def kept_columns(self, names: Sequence[str], chosen: Sequence[str]) -> list[str]:
        """The columns among these that are carried along, where some are chosen for the inputs. Raises `InputError` for
        one that is not there, and for one that has the name of an output."""
        kept = [name for name in names if name not in chosen] if self.keep is None else list(self.keep)
        for name in kept:
            if name not in names:
                there = ", ".join(names)
                raise InputError(f"there is no column {name!r} to keep{did_you_mean(name, names)} There are {there}.")
        self.refuse_clashes(kept)
        return kept

    def refuse_clashes(self, kept: Sequence[str]) -> None:
        """Raise `InputError` for columns that have the name of one which is added, or of each other."""
        for place, name in enumerate(kept):
            if name in (*self.output_names, ERROR, *(SPAN if self.windows else ()), *kept[:place]):
                raise InputError(f"the column {name!r} would be kept beside another one of that name; leave it out.")

    @property
    def rows_at_once(self) -> int:
        """As many rows as go through the model together."""
        if not self._shared.has_open_batch:
            return 1
        return self.batch_size or (1 if self._shared.has_convolutions else _TOGETHER)

    def _port(self, name: str) -> Port:
        return next(port for port in self.inputs if port.answers_to(name))

    def cancel(self) -> None:
        """End what other threads do with it, between two rows: they get `CancelledError`, and so does who calls it
        from now on."""
        self._is_cancelled = True

    def predictions(self, columns: Sequence[Sequence[Any]]) -> Iterator[Prediction]:
        """What the model says of rows, in their order; ``columns`` has a sequence of cells for each input.

        Raises `PrepareError` for a model that cannot run, and `CancelledError` after `cancel`.
        """
        ready = self._as_they_are(columns)
        with self._shared.one() as session:
            if ready is not None:
                yield from self._run_ready(session, ready)
                return
            group: list[_Item] = []
            for row, cells in enumerate(self._read_ahead(zip(*columns, strict=True))):
                if self._is_cancelled:
                    raise CancelledError("the batch was cancelled")
                try:
                    items = self._items(row, cells)
                except (GossamerError, ValueError, OSError, MemoryError, OverflowError) as error:
                    yield from self._run(session, group)
                    group = []
                    yield Prediction(row, None, explain(error))
                    continue
                for item in items:
                    if group and not self._together(group, item):
                        yield from self._run(session, group)
                        group = []
                    group.append(item)
            yield from self._run(session, group)

    def _as_they_are(self, columns: Sequence[Sequence[Any]]) -> list[Array] | None:
        """Columns that need only be cut into rows, as arrays [N, ...] of the inputs' types and shapes; ``None`` if not
        all are."""
        found: list[Array] = []
        for column, port in zip(columns, self.inputs, strict=True):
            if not isinstance(column, np.ndarray) or column.dtype != port.dtype or port.is_text:
                return None
            shape = port.signature
            if not shape or shape[0] > 1 or column.ndim not in (len(shape), len(shape) + 1):
                return None
            values = column if column.ndim == len(shape) else column.reshape(len(column), *column.shape[2:])
            is_row = column.ndim == len(shape) or column.shape[1] == 1
            if not is_row or any(n not in (-1, m) for n, m in zip(shape[1:], values.shape[1:], strict=True)):
                return None
            found.append(values)
        is_cut = self._shared.has_open_batch or all(port.signature[0] == 1 for port in self.inputs)
        return found if found and is_cut else None

    def _run_ready(self, session: Session, columns: Sequence[Array]) -> Iterator[Prediction]:
        size, count = self.rows_at_once, len(columns[0])
        for first in range(0, count, size):
            if self._is_cancelled:
                raise CancelledError("the batch was cancelled")
            rows = range(first, min(first + size, count))
            group = [_Item(row, [column[row : row + 1] for column in columns], None) for row in rows]
            yield from self._run(session, group)

    def _read_ahead(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """The rows, with the system told of the files that they name some rows before they are read: then nothing waits
        for a disk or a network where something could be worked out."""
        waiting: deque[tuple[Any, ...]] = deque()
        for cells in rows:
            for cell, port in zip(cells, self.inputs, strict=True):
                if isinstance(cell, str) and not port.is_text:
                    _announce(cell)
            waiting.append(cells)
            if len(waiting) > _AHEAD:
                yield waiting.popleft()
        yield from waiting

    def _items(self, row: int, cells: Sequence[Any]) -> list[_Item]:
        """The runs that a row needs: one, or one for each window of a sound."""
        read = [self._read(cell, port) for cell, port in zip(cells, self.inputs, strict=True)]
        count = max((len(one) for one in read), default=1)
        if count > 1 and not self.windows:
            raise InputError(f"a sound of {count} windows; only with windows=True does each get a row.")
        if any(len(one) not in (1, count) for one in read):
            raise InputError("the sounds of a row have different numbers of windows.")
        items = []
        for place in range(count):
            here = [one[min(place, len(one) - 1)] for one in read]
            if self._shared.has_open_batch and any(len(_values(one)) != 1 for one in here):
                raise InputError("several rows for the model in one row of the batch; give each a row of its own.")
            span = next(((one.start, one.end) for one in here if isinstance(one, sounds.Window)), None)
            items.append(_Item(row, [_values(one) for one in here], span))
        return items

    def _read(self, cell: Any, port: Port) -> Sequence[Array | sounds.Window]:
        return self._reading.windows(cell, port, f"input {port.name!r}")

    def _together(self, group: Sequence[_Item], item: _Item) -> bool:
        """Whether an item can go through the model with those of a group."""
        if len(group) >= self.rows_at_once:
            return False
        shapes = [value.shape[1:] for value in group[0].values]
        return [value.shape[1:] for value in item.values] == shapes

    def _run(self, session: Session, group: Sequence[_Item]) -> Iterator[Prediction]:
        if not group:
            return
        values = (
            group[0].values
            if len(group) == 1
            else [np.concatenate(column) for column in zip(*(item.values for item in group), strict=True)]
        )
        try:
            session.reset()
            outputs = session.call(values)
        except (InvokeError, PrepareError) as error:
            if len(group) > 1:  # so that only those fail that fail alone
                for item in group:
                    yield from self._run(session, [item])
                return
            if isinstance(error, PrepareError) and all(-1 not in port.signature for port in self.inputs):
                raise  # no row has a say in it
            yield Prediction(group[0].row, None, str(error), group[0].span)
            return
        if self.dequantize:
            outputs = [port.dequantize(values) for port, values in zip(self.outputs, outputs, strict=True)]
        cut = [
            self.is_batch(port) and values.ndim > 0 and len(values) == len(group)
            for port, values in zip(self.outputs, outputs, strict=True)
        ]
        wrong: str | None = None
        for place, item in enumerate(group):
            rows = [values[place, ...] if is_row else values for values, is_row in zip(outputs, cut, strict=True)]
            if place == 0:  # the others have the same shapes
                wrong = self._unforeseen(rows)
            found = None if wrong else dict(zip(self.output_names, rows, strict=True))
            yield Prediction(item.row, found, wrong, item.span)

    def _unforeseen(self, rows: Sequence[Array]) -> str | None:
        """What is wrong with the shapes of outputs, which a column must have foreseen."""
        for port, values in zip(self.outputs, rows, strict=True):
            shape = self.row_shape(port)
            if values.shape != shape and (
                values.ndim != len(shape) or any(n not in (-1, m) for n, m in zip(shape, values.shape, strict=True))
            ):
                return f"the output {port.describe()} has the shape {list(values.shape)} in this row."
        return None

    def is_batch(self, port: Port) -> bool:
        """Whether the first dimension of an output is the row's: 1, or as many as there are rows."""
        return bool(port.signature) and (
            port.signature[0] == 1 or (port.signature[0] < 0 and self._shared.has_open_batch)
        )

    def row_shape(self, port: Port) -> tuple[int, ...]:
        """The shape of an output in a row, -1 for what may differ."""
        return port.signature[1:] if self.is_batch(port) else port.signature


@record(frozen=True)
class _Item:
    row: int
    values: Sequence[Array]
    span: tuple[float, float] | None


def _announce(path: str) -> None:
    """Have the system read a file in the background, where it can; what is wrong with it who reads it says."""
    if not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError, ValueError):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for who writes it
        try:
            os.posix_fadvise(file, 0, _AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(file)


def _values(one: Array | sounds.Window) -> Array:
    return one.values if isinstance(one, sounds.Window) else one


class _Shared:
    """The sessions of a model in this process."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.has_open_batch = _has_open_batch(session)
        model = session.model
        self.has_convolutions = any(
            "CONV" in model.operator_name(op) for part in model.subgraphs for op in part.operators
        )
        self._idle = [session]
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Session]:
        """A session that nobody else has meanwhile."""
        with self._lock:
            mine = self._idle.pop() if self._idle else None
        if mine is None:
            mine = self.session.clone()
        try:
            yield mine
        finally:
            with self._lock:
                self._idle.append(mine)


def _has_open_batch(session: Session) -> bool:
    """Whether a model takes several rows at once: the first dimension of all inputs is open, that of all outputs is as
    large as theirs, and a row has the same outputs whatever the other one holds."""
    ends = (*session.inputs, *session.outputs)
    if not ends or any(not port.signature or port.signature[0] >= 0 for port in ends):
        return False
    if session.writes_resources:
        return False
    if all(len(port.signature) == 1 for port in session.inputs):
        return False  # as many numbers as there are, of a sound for instance, are one row
    try:
        alone, one, other = (_first_outputs(session, count, seed) for count, seed in ((1, 0), (2, 1), (2, 1000)))
    except (GossamerError, TypeError):
        return False
    if any(len(values) != 1 for values in alone) or any(len(values) != 2 for values in (*one, *other)):
        return False
    return all(
        _same_bits(first[0], second[0]) and _about_equal(first[0], only[0])
        for only, first, second in zip(alone, one, other, strict=True)
    )


def _first_outputs(session: Session, rows: int, scale: int) -> list[Array]:
    """The outputs for random rows, of which the first is always the same and the others are multiplied by ``scale``."""
    values = []
    for port in session.inputs:
        shape = tuple(max(size, 1) for size in port.signature[1:])
        bounds = (0.0, 1.0) if port.dtype.kind in "iu" and port.dtype.itemsize > 1 else None  # which may be indices
        made = [random_input(port, (1, *shape), bounds, (0 if row == 0 else scale,)) for row in range(rows)]
        if port.is_text:
            made = [np.full((1, *shape), b"%d" % (0 if row == 0 else scale), object) for row in range(rows)]
        elif port.is_float:
            made[1:] = [(value * scale).astype(port.dtype) for value in made[1:]]
        values.append(np.concatenate(made))
    session.reset()
    return session.call(values)


def _same_bits(one: Array, other: Array) -> bool:
    if one.dtype.hasobject:
        return bool(np.array_equal(one, other))
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _about_equal(one: Array, other: Array) -> bool:
    """Whether values are the same, floats but for rounding: matrix products of several rows add in another order."""
    if _same_bits(one, other):
        return True
    if one.shape != other.shape or one.dtype.kind in "iubO":
        return False
    left, right = one.astype(np.complex128), other.astype(np.complex128)
    return bool(np.abs(left - right).max() <= _ROUNDING * np.abs(right).max())


_sessions: dict[tuple[str, str | None, int], _Shared] = {}
_starting = threading.Lock()


def _shared_session(model: ModelFile, signature: str | None, threads: int) -> _Shared:
    key = (model.sha256, signature, threads)
    with _starting:
        if key not in _sessions:
            session = Session(model.path, signature, threads)
            _sessions[key] = _Shared(session)
        return _sessions[key]


def _unique(names: Sequence[str]) -> list[str]:
    """Names of outputs as columns: what is there twice, or has the name of one of ours, has its position behind it."""
    taken: list[str] = []
    for position, name in enumerate(names):
        taken.append(f"{name}#{position}" if name in (*taken, ERROR, tables.FILE, tables.ROW, *SPAN) else name)
    return taken


def _cells(column: Any) -> Any:
    return column if isinstance(column, (np.ndarray, list, tuple)) else list(column)


def _is_plain(column: Sequence[Any]) -> bool:
    """Whether cells are only text, integers or truth values, one in a row."""
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        return column.ndim == 1 and column.dtype.kind in "iubU"
    first = next((cell for cell in column if cell is not None), None)
    return isinstance(first, (str, bool, int, np.integer, np.bool_))


def _picked(column: Any, rows: Sequence[int]) -> Any:
    if rows == list(range(len(column))):
        return column
    return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]


def _stacked(values: Sequence[Array | None]) -> Array:
    known = [value for value in values if value is not None]
    if known and len(known) == len(values) and len({value.shape for value in known}) == 1:
        return np.stack(known)
    answer = np.empty(len(values), object)
    for place, value in enumerate(values):
        answer[place] = value
    return answer
