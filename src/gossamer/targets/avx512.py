"""x86-64 with AVX-512 (x86-64-v4: Skylake-X, Zen 4 and later): 32 registers of 16 floats, masks in registers."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.targets.avx2 import TARGET as AVX2
from gossamer.targets.target import Target

TARGET = Target(
    name="avx512",
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v4",
    features=("-prefer-256-bit",),
    requires=AVX2.requires | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    vector_bits=512,
    registers=32,
)

TILES: Mapping[str, tuple[tuple[int, int], ...]] = {
    # Rows times vectors, the best first: all within 3 % of each other (on Zen 4 those of one vector, too), so the one
    # that wastes least of a shape wins. 7x4 needs a register more than there are.
    "gemm": (
        *((14, 2), (9, 3), (8, 3), (7, 3), (12, 2), (10, 2), (6, 4), (5, 4)),
        *((14, 1), (7, 2), (4, 4), (3, 4), (2, 4)),
    ),
    # The same of bytes: sums, weights and two more registers.
    "quantized_gemm": (
        *((14, 2), (6, 4), (12, 2), (8, 3), (13, 2), (10, 2), (7, 3), (5, 4)),
        *((14, 1), (12, 1), (8, 2), (7, 2), (4, 4), (3, 4), (2, 4)),
        *((1, 8), (1, 4), (4, 2), (2, 2), (4, 1), (2, 1), (1, 1)),
    ),
    # Pixels times vectors, the best first.
    "depthwise": ((7, 1), (4, 1), (8, 1), (5, 1), (6, 1), (3, 1), (2, 1), (1, 1)),
}
