"""`quantized_matmul`: products of matrices of bytes.

Operands are [..., M, K] and [..., K, N] of the same leading dimensions; settings are a
`gossamer.views.Requantization`. Of the last two dimensions of the second operand, one has neighbouring elements.
"""

from __future__ import annotations

from typing import Any

from gossamer.codegen.commands import Build, pair_products
from gossamer.codegen.commands.byte_products import ByteContraction, byte_of, epilogue_operands
from gossamer.codegen.commands.matmul import batches, products
from gossamer.codegen.commands.tile_contract import contraction
from gossamer.codegen.commands.tiled import multiply
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.outputs import Requantized, Sums
from gossamer.schema.enums import TensorType


def commands(node: Kernel, build: Build) -> None:
    """Two commands, one that packs the second matrices and one that multiplies, for a batch evenly apart."""
    x, y, zeros = node.operands[:3]
    if x.type == TensorType.INT16:
        pair_products.multiply(node, build)
        return
    numbers = node.settings.requantization
    residual, parameters = epilogue_operands(node, build)
    bias = build.address(zeros)
    scales = build.constant(numbers.scales)
    output = Sums if node.y.type == TensorType.INT32 else Requantized

    def make(*batch: Any) -> ByteContraction:
        further = (y, bias, scales, numbers, [0], byte_of(x), parameters, output)
        return contraction(build, node.epilogue, *batch, *further)

    multiply(products(batches(node, build, residual, 1), make), build)
