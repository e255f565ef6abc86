"""What runs a model, as its interpreter sees it."""

from __future__ import annotations

from typing import Protocol

from gossamer.delegates.delegate import DelegateKernel


class Executor(Protocol):
    """The first subgraph of a model, with its nodes (`Subgraph`), or without (`KnownGraph`)."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    busy: bool
    """Whether it runs now."""
    sole: DelegateKernel | None
    """What runs all of it, if it has run and all is as it was then: see `DelegateKernel.again`."""

    @property
    def is_invokable(self) -> bool:
        """Whether it is allocated and ready to run."""

    def allocate_tensors(self) -> None:
        """Prepare what runs, and give every tensor its memory. Does nothing if nothing changed since the last time."""

    def invoke(self) -> None:
        """Run it once."""
