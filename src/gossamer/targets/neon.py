"""AArch64 with NEON, which every one of them has: 32 registers of 4 floats, multiplication by an element."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.targets.target import Target

TARGET = Target(
    name="neon",
    triple="aarch64-unknown-linux-gnu",
    cpu="generic",
    features=("+neon", "+reserve-x18"),  # x18 belongs to the system on macOS and Windows
    requires=frozenset({"neon"}),
    vector_bits=128,
    registers=32,
    by_element=True,
)

TILES: Mapping[str, tuple[tuple[int, int], ...]] = {
    # Rows times vectors, the best first: no spills, not timed.
    "gemm": ((8, 2), (5, 4), (7, 3), (4, 4), (8, 1), (4, 2), (2, 4), (1, 4)),
    # The same of bytes; 5x4 spills.
    "quantized_gemm": ((4, 4), (8, 2), (3, 4), (2, 4), (1, 4), (4, 2), (2, 2), (8, 1), (4, 1), (2, 1), (1, 1)),
    # Pixels times vectors, the best first.
    "depthwise": ((7, 1), (4, 1), (8, 1), (5, 1), (6, 1), (3, 1), (2, 1), (1, 1)),
}
