"""How an invocation ends before it is done: a function is asked, somebody cancels it, or its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from gossamer.errors import CancelledError, DeadlineExceededError


class Cancellation:
    """What the subgraphs of one interpreter ask between nodes, and operators that run long in between.

    ``check`` is the caller's function: ``True`` ends the invocation. ``pending``: there is something to ask; as long as
    it is false nobody need call `poll`. As a context manager it ends the `invocation` that has begun.
    """

    def __init__(self) -> None:
        self.check: Callable[[], bool] | None = None
        self.pending = False
        self._running = False
        self._cancelled = False
        self._timeout: float | None = None
        self._deadline = 0.0

    def invocation(self, timeout: float | None = None) -> AbstractContextManager[None]:
        """An invocation, that may take so many seconds; one inside another ends with it."""
        if self._running:
            return nullcontext()
        self._cancelled, self._timeout = False, timeout
        if timeout is not None:
            self._deadline = time.monotonic() + timeout
        self.pending = timeout is not None or self.check is not None
        self._running = True
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self._running = self.pending = False
        self._timeout = None

    def cancel(self, *, is_running: bool = False) -> None:
        """End the invocation that is under way; without one, do nothing. ``is_running``: there is one, of which nobody
        has told here, since it takes the short way."""
        if self._running or is_running:
            self._cancelled = self.pending = True

    def poll(self, place: str) -> None:
        """Raise `CancelledError` if the invocation is to end here; ``place`` stands in the message."""
        if self._cancelled or (self.check is not None and self.check()):
            raise CancelledError(f"Client requested cancel during Invoke() {place}")
        if self._timeout is not None and time.monotonic() >= self._deadline:
            raise DeadlineExceededError(f"Invoke() took longer than the {self._timeout:g} s of its timeout {place}")
