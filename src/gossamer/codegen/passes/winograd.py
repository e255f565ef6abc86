"""3x3 convolutions with a third of the multiplications, by Winograd's minimal filtering.

Measured on Zen 4 with AVX-512, one thread: 56x56x64 to 64 channels 0.58 ms, directly 2.03 (at the peak of the CPU),
28x28 with 128 channels 0.56 and 2.02, 14x14 with 256 0.74 and 2.00, 7x7 with 512 1.30 and 2.3. Sums are off by 1e-6 to
3e-6 of the largest, directly by 2e-7. The price is memory: transformed weights are four times as large as the model's.
"""

from __future__ import annotations

from typing import Literal

from gossamer.codegen.graph import CONTRACT, Kernel, KernelGraph
from gossamer.records import record
from gossamer.views import Geometry

KIND = "winograd"
"""What it makes."""

CHANNELS = 32
"""Input and output channels from which the transformations pay."""

MULTIPLE = 16
"""Of which the input channels are: whole vectors of every target."""

PIXELS = 7
"""Rows and columns from which they pay."""

LARGEST = 10 << 20
"""Bytes of weights for tiles of 4 x 4 pixels, which are quicker but need more weights than those of 2 x 2."""


@record(frozen=True, eq=False)
class Tiles:
    """``size`` x ``size`` output pixels are computed at a time."""

    geometry: Geometry
    size: Literal[2, 4]


def run(graph: KernelGraph) -> None:
    """Take every convolution that it suits."""
    for kernel in graph.kernels:
        if kernel.kind == CONTRACT and kernel.arity == 3 and _suits(kernel):
            channels, _, _, depth = kernel.operands[1].shape
            size: Literal[2, 4] = 4 if 36 * 4 * channels * depth <= LARGEST else 2
            kernel.kind, kernel.settings = KIND, Tiles(kernel.settings, size)


def _suits(kernel: Kernel) -> bool:
    x, weights = kernel.operands[:2]
    geometry: Geometry = kernel.settings
    channels, _, _, depth = weights.shape
    plain = geometry.stride == geometry.dilation == (1, 1) and x.shape[3] == depth and weights.is_dense
    large = channels >= CHANNELS and depth >= CHANNELS and min(kernel.y.shape[1:3]) >= PIXELS
    return weights.is_constant and geometry.kernel == (3, 3) and plain and large and depth % MULTIPLE == 0
