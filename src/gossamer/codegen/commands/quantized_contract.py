"""`quantized_contract`: convolutions and fully connected layers of bytes, as tiles of a matrix product.

Operands are an NHWC image, weights [O, h, w, C / groups] and a bias [O] of int32; settings a
`gossamer.codegen.graph.Quantized`.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build, quantized_winograd
from gossamer.codegen.commands.byte_products import byte_of, epilogue_operands
from gossamer.codegen.commands.contract import Pixels, matrix, moved, tap_offsets
from gossamer.codegen.commands.tile_contract import contraction
from gossamer.codegen.graph import Kernel, Quantized
from gossamer.codegen.layout import item_bytes
from gossamer.schema.enums import TensorType


def commands(node: Kernel, build: Build) -> None:
    """One command for each group of channels."""
    if quantized_winograd.suits(node, build):
        quantized_winograd.multiply(node, build)
        return
    x, weights, bias = node.operands[:3]
    settings: Quantized = node.settings
    geometry = settings.geometry
    channels, depth = weights.shape[0], weights.shape[3]
    groups = x.shape[3] // depth
    share = channels // groups
    x_strides, y_strides = build.strides(x), build.strides(node.y)
    residual, parameters = epilogue_operands(node, build)
    before = geometry.before[0] * x_strides[1] + geometry.before[1] * x_strides[2]
    steps = (x_strides[0], geometry.stride[0] * x_strides[1], geometry.stride[1] * x_strides[2])
    scales = build.constant(settings.requantizing.scales)
    for group in range(groups):
        inward, outward = group * depth, group * share * item_bytes(node.y.buffer)
        added = None
        if residual is not None:
            added = Pixels(moved(build.address(residual), outward), build.strides(residual)[:3])
        made = contraction(
            build,
            node.epilogue,
            node.y.shape[:3],
            Pixels(moved(build.address(x), inward - before), steps),
            Pixels(moved(build.address(node.y), outward), y_strides[:3]),
            added,
            matrix(build, weights.slice(0, group * share, share) if groups > 1 else weights, 1),
            weights,
            moved(build.address(bias), 4 * group * share),
            moved(scales, 4 * group * share * (settings.requantizing.scales.size > 1)),
            settings.requantizing,
            tap_offsets(weights.shape[1:], geometry.dilation, x_strides[1:3], 1),
            byte_of(x),
            parameters,
            node.y.type == TensorType.INT32,
        )
        made.multiply(barrier=group == groups - 1)
