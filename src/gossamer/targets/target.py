"""What code is emitted for: a triple, a CPU and its features, and what a host must have to run it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from gossamer.records import record


@record(frozen=True)
class Target:
    """One CPU family, as the code generator and the loader see it. Shapes of tiles stand beside it, in its file.

    ``features`` are LLVM's, with their signs; ``requires`` are the same facts as the host tells them
    (`gossamer.programs.host.cpu_features`). ``cpu`` chooses scheduling and nothing else.

    A target may extend another, its ``base``, by instructions that only some kernels gain from: those that have them
    are emitted for it, all others for the plain target at the end of the chain, and so they ship once.
    """

    name: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    requires: frozenset[str]
    vector_bits: int
    registers: int
    """Vector registers."""
    dot: Literal["", "unsigned", "signed"] = ""
    """Whether there are sums of four products of bytes in 32 bits, and what the first factor is; the second is signed.
    """
    base: Target | None = None
    tiles: bool = False
    """Whether there are registers of tiles of bytes (AMX). Only kernels that compute with those are made for it."""
    by_element: bool = False
    """Whether products take a factor from an element of a register: several of them are loaded at once then."""
    bf16: bool = False
    """Whether there are sums of two products of bfloat16 in float32 (`gossamer.targets.reduced`). Only kernels that
    compute with those are made for it."""

    def __hash__(self) -> int:
        return hash(self.name)  # no other has it; a target is a key of many tables

    @property
    def plain(self) -> Target:
        """The target that it extends, directly or not; itself if it extends none."""
        return self if self.base is None else self.base.plain

    @property
    def exact(self) -> Target:
        """What products of float32 are computed as such on: itself, unless it adds those of bfloat16 to its base."""
        return self if self.base is None or not self.bf16 else self.base

    @property
    def without_tiles(self) -> Target:
        """What kernels of bytes are made for that compute with vectors: itself, unless it adds tiles to its base."""
        return self if self.base is None or not self.tiles else self.base.without_tiles

    def family(self) -> Iterator[Target]:
        """Itself, and what it extends."""
        yield self
        if self.base is not None:
            yield from self.base.family()

    def has(self, feature: str) -> bool:
        """Whether it, and not only what it extends, is made for a feature: LLVM's name without sign."""
        return f"+{feature}" in self.features

    def lanes(self, bits: int = 32) -> int:
        """Elements of ``bits`` bits in a vector register."""
        return self.vector_bits // bits

    def runs_on(self, host_features: Collection[str]) -> bool:
        """Whether a host with these features executes every instruction that may be emitted."""
        return self.requires <= set(host_features)
