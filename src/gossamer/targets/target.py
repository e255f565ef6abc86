"""What code is emitted for: a triple, a CPU and its features, and what a host must have to run it."""

from __future__ import annotations

from collections.abc import Collection

from gossamer.records import record


@record(frozen=True)
class Target:
    """One CPU family, as the code generator and the loader see it. Shapes of tiles stand beside it, in its file.

    ``features`` are LLVM's, with their signs; ``requires`` are the same facts as the host tells them
    (`gossamer.programs.host.cpu_features`). ``cpu`` chooses scheduling and nothing else.
    """

    name: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    requires: frozenset[str]
    vector_bits: int
    registers: int
    """Vector registers."""

    def lanes(self, bits: int = 32) -> int:
        """Elements of ``bits`` bits in a vector register."""
        return self.vector_bits // bits

    def runs_on(self, host_features: Collection[str]) -> bool:
        """Whether a host with these features executes every instruction that may be emitted."""
        return self.requires <= set(host_features)
