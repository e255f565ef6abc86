"""The steps from a file to a first result, and how long each takes, for whoever asks."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

NAMES = {
    "file": "the file is mapped",
    "recall": "what is kept of a file that has been seen before is looked up: then most of the others are left out",
    "model": "the model is read and verified",
    "resolver": "operators are found by their names and versions",
    "subgraphs": "subgraphs are built: tensors and nodes",
    "delegates": "delegates choose their nodes, and lower them to the kernel graph",
    "prepare": "operators are prepared, shapes worked out, memory planned and allocated",
    "plan": "the kernel graph of a partition becomes a program",
    "compile": "kernels that no archive has are compiled",
    "pack": "weights are brought into the order in which kernels read them",
}
"""The phases in the order in which they begin, and what is done in each."""

_watching: ContextVar[Phases | None] = ContextVar("phases", default=None)


class Phases:
    """The seconds that phases took in a ``with`` statement, in this thread, each without those within it."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(NAMES, 0.0)
        self._open: list[str] = []
        self._since = 0.0
        self._token: Token[Phases | None] | None = None

    def __enter__(self) -> Phases:
        """Begin; a watch that began before does not go on until this one ends."""
        self._token = _watching.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        if self._token is not None:
            _watching.reset(self._token)

    def begin(self, name: str) -> None:
        """A phase begins."""
        self._note()
        self._open.append(name)

    def end(self) -> None:
        """The phase that began last is over."""
        self._note()
        self._open.pop()

    def _note(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


def phase(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a function that is one of `NAMES`. Where nobody watches, it does nothing."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def watched(*args: P.args, **settings: P.kwargs) -> R:
            watch = _watching.get()
            if watch is None:
                return function(*args, **settings)
            watch.begin(name)
            try:
                return function(*args, **settings)
            finally:
                watch.end()

        return watched

    return decorate
