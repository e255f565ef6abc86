"""Chunks through a predictor in this process, by threads that have an interpreter each."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Lock
from typing import Any

from gossamer.batch.predictor import Predictor
from gossamer.batch.sources import Chunk

TURN = 0.0005
"""Seconds after which a thread that waits for Python's lock is given it. One that prepares a picture often lets go of
it, but so shortly that another has not woken up when it is taken again, and would wait until all of that is done."""


def answers(predictor: Predictor, chunks: Iterator[Chunk], jobs: int) -> Generator[tuple[int, Any], None, None]:
    """The `pyarrow.RecordBatch` of the rows of each chunk with what the model says, in their order, each with the
    number of the row of the source behind it.

    The first chunk is worked on by this thread alone: what it has planned and packed is there for all then, once in
    memory. At most twice as many chunks as threads are ahead of the one that is waited for. What is raised ends
    everything, and so does Ctrl-C.
    """

    def work(chunk: Chunk) -> tuple[int, Any]:
        return chunk.first + chunk.rows, predictor.answer(chunk.kept, chunk.cells)

    if jobs == 1:
        yield from map(work, chunks)
        return
    yield from map(work, islice(chunks, 1))
    pool = ThreadPoolExecutor(jobs)
    with _turns:
        try:
            ahead: deque[Future[tuple[int, Any]]] = deque(
                pool.submit(work, chunk) for chunk in islice(chunks, 2 * jobs)
            )
            while ahead:
                answer = ahead.popleft().result()
                ahead.extend(pool.submit(work, chunk) for chunk in islice(chunks, 1))
                yield answer
        except BaseException:
            predictor.cancel()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


class _Turns:
    """Meanwhile threads wait no longer than `TURN` for Python's lock, until the last who asks for it is done."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asking = 0
        self._usual = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._asking:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, TURN))
            self._asking += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._asking -= 1
            if not self._asking:
                sys.setswitchinterval(self._usual)


_turns = _Turns()
