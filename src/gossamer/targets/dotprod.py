"""AArch64 with dot products of bytes (Armv8.2 and later: Cortex-A55, A76, Neoverse, every Apple silicon)."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.records import replace
from gossamer.targets.neon import TARGET as NEON

TARGET = replace(
    NEON,
    name="dotprod",
    features=(*NEON.features, "+dotprod"),
    requires=NEON.requires | {"dotprod"},
    dot="signed",
    base=NEON,
)

TILES: Mapping[str, tuple[tuple[int, int], ...]] = {
    # Rows times vectors, the best first: no spills, not timed.
    "quantized_gemm": ((5, 4), (4, 4), (8, 2), (2, 4), (1, 4), (4, 2), (2, 2), (8, 1), (4, 1), (2, 1), (1, 1)),
}
