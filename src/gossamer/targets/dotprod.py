"""AArch64 with dot products of bytes (Armv8.2 and later: Cortex-A55, A76, Neoverse, every Apple silicon)."""

from __future__ import annotations

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
