"""What runs a model, as its interpreter sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from gossamer.runtime.cancellation import Cancellation


class Repeatable(Protocol):
    """What has run, and does so again in less time: see `gossamer.delegates.delegate.DelegateKernel.again`."""

    @property
    def again(self) -> Callable[[], object] | None: ...


class Nothing:
    """What runs a graph without nodes."""

    @staticmethod
    def again() -> None:
        """Do nothing."""


class Whole(NamedTuple):
    """What runs all nodes of a graph, one after the other."""

    again: Callable[[], None]


class Executor(Protocol):
    """The first subgraph of a model, with its nodes (`Subgraph`), or without (`KnownGraph`)."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    busy: bool
    """Whether it runs now."""
    cancellation: Cancellation
    sole: Repeatable | None
    """What runs all of it, if it has run and all is as it was then."""

    @property
    def is_invokable(self) -> bool:
        """Whether it is allocated and ready to run."""

    def allocate_tensors(self) -> None:
        """Prepare what runs, and give every tensor its memory. Does nothing if nothing changed since the last time."""

    def invoke(self) -> None:
        """Run it once."""

    def unsettle(self) -> None:
        """Have the next invocation look at everything again."""
