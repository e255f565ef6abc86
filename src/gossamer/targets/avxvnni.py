"""AVX2 with dot products of bytes (AVX-VNNI: Alder Lake, Zen 5 and later, where there is no AVX-512)."""

from __future__ import annotations

from gossamer.records import replace
from gossamer.targets.avx2 import TARGET as AVX2

TARGET = replace(
    AVX2,
    name="avxvnni",
    features=(*AVX2.features, "+avxvnni"),
    requires=AVX2.requires | {"avxvnni"},
    dot="unsigned",
    base=AVX2,
)
