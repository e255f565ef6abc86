"""Chunks through a predictor on a Ray cluster, by Ray Data's ``map_batches``.

There is one actor for each node, with a thread for each CPU and an interpreter for each thread: machine code, packed
weights, Python and its libraries are in memory once a node. What is predicted is sent to a node once, under the hash of
the model, and kernels and plans come from the archive and the cache there. The rows are read where they are worked on,
so that a node needs the inputs under the same names as the others; only answers travel.
"""

from __future__ import annotations

import logging
import pickle
import signal
import socket
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any

from gossamer.batch import local, tables
from gossamer.batch.predictor import Predictor
from gossamer.batch.sources import Chunk, Source
from gossamer.errors import GossamerError, InputError, InvokeError, explain

_SPAN_CHUNKS = 16
"""As many chunks are a task of Ray at most."""

_TASKS = 32
"""As many tasks each thread should have at least, so that all are done at about the same time."""

_PATIENCE = 10.0
"""Seconds to wait for a cluster to be reached; Ray itself would wait for minutes."""

_LEAVING = 60.0
"""Seconds to wait for the threads of Ray Data when a run is left; a step of theirs takes some milliseconds, or seconds
on a machine that is busy."""

_THREADS = ("StreamingExecutor", "iter_threaded")
"""What Ray Data calls its threads that ask the cluster for something. Those it calls ``Prefetcher`` have nothing to do
where nothing is fetched ahead."""


def answers(
    predictor: Predictor, source: Source, first: int, rows: int, jobs: int | None, address: str
) -> Generator[tuple[int, Any], None, None]:
    """The rows of a source from one on with what the model says: `pyarrow.RecordBatch`es in their order, each with the
    number of the row of the source behind it; ``rows`` are a chunk. They are the same as of `gossamer.batch.local`.

    ``jobs``: threads on a node; by default as many as the smallest has CPUs. ``address``: of a cluster, as `ray.init`
    takes it; ``local`` starts one on this machine. A process that is connected stays so, whatever the address.

    What a node was working on when it was lost is done again by the others. Raises `InputError` where Ray is missing,
    there is no such cluster or it has no CPUs, `InvokeError` if it is lost, and what the predictor raises.
    """
    try:
        import ray
        import ray.data
    except ImportError:
        raise InputError("a run on a cluster needs Ray; install gossamer[ray].") from None
    with _connected(address):
        cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        cpus = [count for count in cpus if count > 0]
        if not cpus:
            raise InputError(f"no node of the Ray cluster {address!r} has a CPU.")
        jobs = jobs or min(cpus)
        chunks = -(-(source.ends[-1] - first) // rows)
        size = rows * max(1, min(_SPAN_CHUNKS, chunks // (_TASKS * len(cpus) * jobs)))
        spans = [{"first": start, "end": end} for start, end in _spans(source.ends, first, size)]
        if not spans:
            return
        work = ray.put((predictor, source, rows))
        dataset = ray.data.from_items(spans, override_num_blocks=len(spans)).map_batches(
            Worker,
            fn_constructor_args=(work,),
            batch_size=None,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(
                size=min(len(cpus), len(spans)),
                max_tasks_in_flight_per_actor=2 * jobs,
                max_concurrent_calls_per_actor=jobs,
                enable_true_multi_threading=True,
            ),
            # Half of the CPUs that it uses, as Ray Data spreads actors over the nodes: so that of a lost node finds a
            # place at once, and what comes behind its rows need not wait for it until all others are done.
            num_cpus=min(jobs, *cpus) / 2,
        )
        dataset.context.enable_progress_bars = False
        dataset.context.execution_options.preserve_order = True
        try:
            for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
                for row in range(table.num_rows):
                    yield _unpacked(table, row)
        except ray.exceptions.RayError as error:
            raise InvokeError(f"the Ray cluster {address!r} could not finish: {error}") from None


class Worker:
    """The actor of a node. Called with tables of spans, ``first`` and ``end``, it gives a row for each chunk of them:
    ``end``, and ``answer``, which is an Arrow stream, or ``error``, a pickled exception."""

    def __init__(self, work: Any) -> None:
        sys.setswitchinterval(local.TURN)  # the process is the actor's
        self._work = work
        self._lock = threading.Lock()
        self._made: tuple[Predictor, Source, int] | None = None
        self._is_warm = False

    def __call__(self, spans: Any) -> Iterator[Any]:
        pa = tables.arrow()
        for span in spans.to_pylist():
            end, answer, error = span["first"], b"", b""
            try:
                for end, batch in self._answers(span["first"], span["end"]):
                    sink = pa.BufferOutputStream()
                    with pa.ipc.new_stream(sink, batch.schema) as stream:
                        stream.write_batch(batch)
                    answer = sink.getvalue().to_pybytes()
                    yield pa.table({"end": [end], "answer": pa.array([answer], pa.large_binary()), "error": [b""]})
            except GossamerError as raised:
                error = pickle.dumps(raised)
            if error:
                yield pa.table({"end": [end], "answer": pa.array([b""], pa.large_binary()), "error": [error]})
                return

    def _answers(self, first: int, end: int) -> Iterator[tuple[int, Any]]:
        predictor, source, rows = self._ready()
        for chunk in source.chunks(first, rows):
            if chunk.first >= end:
                return
            yield chunk.first + chunk.rows, self._answer(predictor, chunk)

    def _ready(self) -> tuple[Predictor, Source, int]:
        with self._lock:
            if self._made is None:
                import ray

                self._made = ray.get(self._work)
            return self._made

    def _answer(self, predictor: Predictor, chunk: Chunk) -> Any:
        """Until one chunk is done the others wait: what it has planned and packed is there for all then, once."""
        if not self._is_warm:
            with self._lock:
                if not self._is_warm:
                    answer = predictor.answer(chunk.kept, chunk.cells)
                    self._is_warm = True
                    return answer
        return predictor.answer(chunk.kept, chunk.cells)


def _unpacked(table: Any, row: int) -> tuple[int, Any]:
    pa = tables.arrow()
    error = table.column("error")[row].as_py()
    if error:
        raise pickle.loads(error)
    with pa.ipc.open_stream(table.column("answer")[row].as_buffer()) as stream:
        return table.column("end")[row].as_py(), stream.read_next_batch()


def _spans(ends: Sequence[int], first: int, size: int) -> Iterator[tuple[int, int]]:
    """The rows from one on, so many at a time, but never of two files: so chunks are those of a run without Ray."""
    start = 0
    for end in ends:
        for place in range(max(first, start), end, size):
            yield place, min(place + size, end)
        start = end


@contextmanager
def _connected(address: str) -> Iterator[None]:
    import ray

    if ray.is_initialized():
        yield
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if port.isdigit():
            socket.create_connection((host, int(port)), _PATIENCE).close()
    except OSError as error:
        raise InputError(f"there is no Ray cluster at {address!r} ({explain(error)}).") from None
    options: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    logger = logging.getLogger("ray.data")
    level = logger.level
    logger.setLevel(logging.ERROR)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, ValueError) as error:
        raise InputError(f"there is no Ray cluster at {address!r} ({error}).") from None
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # that of Ray aborts
    others = set(threading.enumerate())
    try:
        yield
    finally:
        if _ended(others):
            ray.shutdown()
        logger.setLevel(level)


def _ended(others: AbstractSet[threading.Thread]) -> bool:
    """Whether the threads of Ray Data that began beside the others have ended, waiting for them: after a run that was
    left in the middle, Ray waits for two seconds only, and the process ends at once if one of them asks for something
    when it is no longer connected. It stays connected if they do not end."""
    begun = [thread for thread in threading.enumerate() if thread not in others and thread.name.startswith(_THREADS)]
    until = time.monotonic() + _LEAVING
    for thread in begun:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in begun)
