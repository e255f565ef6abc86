"""`conv3d`: a convolution of a padded volume. It is a contraction with more taps.

Operands are [N, D, H, W, C], weights [O, d, h, w, C] and a bias [O]; settings ``stride`` and ``dilation`` of the three
dimensions.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.contract import contraction
from gossamer.codegen.commands.tiled import Pixels, matrix, moved, multiply, tap_offsets
from gossamer.codegen.expression import operand_count
from gossamer.codegen.graph import Kernel


def commands(node: Kernel, build: Build) -> None:
    """One command for each sample."""
    x, weights, bias = node.operands[:3]
    stride, dilation = node.settings["stride"], node.settings["dilation"]
    residual = node.extras[0] if operand_count(node.epilogue) > 1 else None
    samples, *output, _ = node.y.shape
    a, c = build.strides(x), build.strides(node.y)
    r = build.strides(residual) if residual is not None else ()
    steps = tuple(s * step for s, step in zip(stride, a[1:4], strict=True))
    plane = tap_offsets(weights.shape[2:], dilation[1:], a[2:4])
    offsets = [depth * dilation[0] * a[1] + offset for depth in range(weights.shape[1]) for offset in plane]
    products = []
    for sample in range(samples):
        added = None
        if residual is not None:
            added = Pixels(moved(build.address(residual), sample * r[0]), r[1:4])
        products.append(
            contraction(
                build,
                node.epilogue,
                tuple(output),
                Pixels(moved(build.address(x), sample * a[0]), steps),
                Pixels(moved(build.address(node.y), sample * c[0]), c[1:4]),
                added,
                matrix(build, weights),
                build.address(bias),
                offsets,
            )
        )
    multiply(products, build)
