"""AVX-512 with dot products and permutations of bytes, and shifts of two words as one (Ice Lake, Zen 4 and later)."""

from __future__ import annotations

from gossamer.records import replace
from gossamer.targets.avx512 import TARGET as AVX512

TARGET = replace(
    AVX512,
    name="avx512vnni",
    features=(*AVX512.features, "+avx512vnni", "+avx512vbmi", "+avx512vbmi2"),
    requires=AVX512.requires | {"avx512vnni", "avx512vbmi", "avx512vbmi2"},
    dot="unsigned",
    base=AVX512,
)
