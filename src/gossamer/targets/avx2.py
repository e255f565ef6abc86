"""x86-64 with AVX2 and FMA (x86-64-v3: Haswell, Zen and later): 16 registers of 8 floats, masks in vectors."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.targets.target import Target

TARGET = Target(
    name="avx2",
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v3",
    features=(),
    requires=frozenset(
        (
            *("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"),
            *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
        )
    ),
    vector_bits=256,
    registers=16,
)

TILES: Mapping[str, tuple[tuple[int, int], ...]] = {
    # Rows times vectors, the best first. Of the peak of Zen 4 they reach 97 % (6x2, 4x3), 93 (5x2), 91 (3x3, 4x2), 87
    # (2x4), 82 (10x1), 81 (8x1), 79 (7x1) and 74 (3x2); 12x1 spills.
    "gemm": (
        *((6, 2), (4, 3), (5, 2), (3, 3), (4, 2), (2, 4)),
        *((10, 1), (8, 1), (7, 1), (3, 2), (2, 2), (1, 4)),
    ),
    # The same of bytes.
    "quantized_gemm": (
        *((6, 2), (4, 2), (3, 2), (2, 4), (8, 1), (6, 1), (4, 1), (1, 8), (1, 4)),
        *((2, 2), (2, 1), (1, 2), (1, 1)),
    ),
    # Those with half of the multiplications: sums, two vectors of weights for each, and four more registers. The last
    # one of a row of pixels may be any.
    "inner_products": ((4, 2), (3, 2), (2, 2), (1, 2), (4, 1), (3, 1), (2, 1), (1, 1)),
    # Pixels times vectors, the best first.
    "depthwise": ((7, 1), (4, 1), (8, 1), (5, 1), (6, 1), (3, 1), (2, 1), (1, 1)),
}
