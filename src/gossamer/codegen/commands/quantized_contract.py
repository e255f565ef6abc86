"""`quantized_contract`: convolutions and fully connected layers of integers, as tiles of a matrix product.

Operands are an NHWC image of bytes or int16, weights [O, h, w, C / groups] of bytes and a bias [O]; settings a
`gossamer.codegen.graph.Quantized`.
"""

from __future__ import annotations

from gossamer.codegen.commands import Build, pair_products, quantized_strassen, quantized_winograd
from gossamer.codegen.commands.byte_products import byte_of, epilogue_operands
from gossamer.codegen.commands.contract import groups_of
from gossamer.codegen.commands.tile_contract import contraction
from gossamer.codegen.commands.tiled import matrix, moved
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.outputs import Requantized, Sums
from gossamer.schema.enums import TensorType
from gossamer.views import Requantization


def commands(node: Kernel, build: Build) -> None:
    """One command for each group of channels."""
    if node.operands[0].type == TensorType.INT16:
        pair_products.convolve(node, build)
        return
    if quantized_winograd.suits(node, build):
        quantized_winograd.multiply(node, build)
        return
    if quantized_strassen.suits(node, build):
        quantized_strassen.multiply(node, build)
        return
    x, weights, bias = node.operands[:3]
    numbers: Requantization = node.settings.requantization
    residual, parameters = epilogue_operands(node, build)
    scales = build.constant(numbers.scales)
    groups = groups_of(node, build, node.settings.geometry, residual)
    for group in groups:
        made = contraction(
            build,
            node.epilogue,
            node.y.shape[:3],
            group.a,
            group.c,
            group.residual,
            matrix(build, group.weights, 1),
            weights,
            moved(build.address(bias), 4 * group.first),
            moved(scales, 4 * group.first * (numbers.scales.size > 1)),
            numbers,
            group.offsets,
            byte_of(x),
            parameters,
            Sums if node.y.type == TensorType.INT32 else Requantized,
        )
        made.multiply(barrier=group is groups[-1])
