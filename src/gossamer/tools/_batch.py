"""Many inputs through one model, in their order, some of them at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import SimpleQueue
from typing import TypeVar

from gossamer.inputs.session import Session

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def in_order(
    function: Callable[[Session, Item], Outcome],
    session: Session,
    items: Sequence[Item],
    jobs: int,
    succeeded: Callable[[Outcome], bool],
) -> Iterator[Outcome]:
    """``function(session, item)`` of each item, by ``jobs`` threads that have a session each.

    Until one has succeeded there is one thread: what it has planned and packed is there for all then, once in memory.
    Threads are enough, as decoding a picture and machine code leave the interpreter of Python to others. At most twice
    as many items as threads are ahead of the one that is waited for. What a function raises ends everything, and so
    does Ctrl-C.
    """
    rest = iter(items)
    for item in rest:
        outcome = function(session, item)
        yield outcome
        if jobs > 1 and succeeded(outcome):
            break
    sessions = [session, *(session.clone() for _ in range(min(jobs, len(items)) - 1))]
    idle: SimpleQueue[Session] = SimpleQueue()
    for one in sessions:
        idle.put(one)

    def work(item: Item) -> Outcome:
        mine = idle.get()
        try:
            return function(mine, item)
        finally:
            idle.put(mine)

    pool = ThreadPoolExecutor(len(sessions))
    try:
        ahead: deque[Future[Outcome]] = deque(pool.submit(work, item) for item in islice(rest, 2 * len(sessions)))
        while ahead:
            outcome = ahead.popleft().result()
            ahead.extend(pool.submit(work, item) for item in islice(rest, 1))
            yield outcome
    except BaseException:
        for one in sessions:
            one.interpreter.cancel()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
