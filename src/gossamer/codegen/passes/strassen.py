"""Large matrix products with seven eighths of the multiplications, by Strassen's algorithm.

Measured on Zen 4 with AVX-512, one thread, where a direct product is at 98 % of the peak of the CPU: 196 pixels of 512
channels to 512 0.80 ms, directly 0.89, 784 of 256 to 256 0.81 and 0.89, 128 of 256 to 1024 0.52 and 0.58; but 3136 of
64 to 256 0.90 and 0.91, and 128 of 128 to 128 35 us and 37, or 44 and 39 with weights from memory. Whole models: 1.03
(MobileNetV1), 1.08 (a transformer's encoder), 1.02 (ResNet-50). Sums are off by 1e-6 of the largest, directly by 3e-7.
The price is memory: seven quarters of the weights.

Where there is much to multiply, the seven products are made of seven each: of the time of one level, 196 pixels of 512
channels to 512 take 0.93, 784 of 256 to 256 0.96, 128 of 1024 to 256 0.95, of 256 to 1024 0.97, of 256 to 256 0.98. The
multiplications are 0.875; the rest goes into sums, four and four stores for each seven products. Errors become 1.6 to
2.4 times as large (1.8e-6 to 3.1e-6 of the largest, RMS 2.3e-7 to 4.7e-7; numbers drawn from a normal distribution),
and weights take 49 sixteenths of their memory.
"""

from __future__ import annotations

from gossamer.codegen.graph import CONTRACT, Kernel, KernelGraph
from gossamer.schema.enums import TensorType

KIND = "strassen"
"""What it makes."""

CHANNELS = 128
"""Input and output channels from which the sums pay."""

MULTIPLE = 32
"""Of which both are: two halves of whole vectors of every target."""

PIXELS = 64
"""Pixels from which they pay. Below, it is the weights that are waited for, of which there are more: 49 pixels are 8 %
quicker where these are in the cache, but MobileNetV2 is not, and 4 % slower with two threads."""

MULTIPLICATIONS = 6 << 20
"""From which they pay."""

TWICE_PIXELS, TWICE_CHANNELS = 96, 256
"""Pixels, and input and output channels, from which the seven products are made of seven each: a depth of less than 64
is lost to the beginnings and ends of tiles."""

TWICE_BYTES = 384 << 10
"""Bytes of the seven products that are made of seven, of panels that share the sums of their factors."""


def run(graph: KernelGraph) -> None:
    """Take every product that it suits."""
    for kernel in graph.kernels:
        if kernel.kind == CONTRACT and kernel.arity == 3 and _suits(kernel):
            kernel.kind = KIND


def _suits(kernel: Kernel) -> bool:
    x, weights = kernel.operands[:2]
    channels, depth = weights.shape[0], weights.shape[3]
    pixels = kernel.y.size // channels
    plain = weights.is_constant and weights.is_dense and weights.buffer.type == TensorType.FLOAT32
    alone = kernel.settings.is_pointwise and x.shape[3] == depth and x.shape[:3] == kernel.y.shape[:3]
    whole = channels % MULTIPLE == 0 == depth % MULTIPLE
    wide = min(channels, depth) >= CHANNELS
    return plain and alone and whole and wide and pixels >= PIXELS and pixels * channels * depth >= MULTIPLICATIONS
