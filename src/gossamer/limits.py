"""How much memory a tensor, or an arena, may take: whoever runs models for others says so for the runs of a thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def memory_limit(size: int) -> Iterator[None]:
    """Have `require_memory` refuse more bytes at a time than this, in this thread."""
    token = _most.set(size)
    try:
        yield
    finally:
        _most.reset(token)


def require_memory(size: int) -> None:
    """Raise `MemoryError` for more bytes than are given. Called before they are allocated."""
    most = _most.get()
    if most is not None and size > most:
        raise MemoryError(f"{size} bytes are wanted at a time, at most {most} are given")
