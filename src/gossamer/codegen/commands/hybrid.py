"""`hybrid`: quantized rows or images times constant weights of bytes, to floats.

Operands are rows [N, H, W, header and levels] as `gossamer.codegen.kernels.dynamic` makes them, weights int8
[O, *depth], their scales float32 [O] or [1], and a bias float32 [O]. y is [N, H, W, O].

With a ``geometry`` among the settings, they are padded images [N, H, W, C] of levels and weights [O, h, w, C / groups];
the fifth operand holds the headers of the images.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.byte_products import ByteContraction
from gossamer.codegen.commands.contract import Group, groups_of
from gossamer.codegen.commands.tiled import Pixels, matrix, moved
from gossamer.codegen.expression import operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.dynamic import HEADER, levels_of
from gossamer.codegen.kernels.outputs import Dequantized
from gossamer.records import replace
from gossamer.views import Geometry, Requantization


def commands(node: Kernel, build: Build) -> None:
    """One command; or one for each image and group of channels."""
    levels, weights, scales, bias = node.operands[:4]
    geometry: Geometry | None = node.settings.get("geometry")
    residual = node.extras[0] if operand_count(node.epilogue) > 1 else None
    shape, headers, images = node.y.shape[:3], [], 1
    if geometry is None:
        rows, y = (Pixels(build.address(view), build.strides(view)[:3]) for view in (levels, node.y))
        added = None if residual is None else Pixels(build.address(residual), build.strides(residual)[:3])
        groups = [Group(0, rows._replace(start=moved(rows.start, HEADER)), y, added, weights, [0])]
    else:  # padding is stored among the levels
        images, shape = shape[0], (1, *shape[1:])
        groups = groups_of(node, build, replace(geometry, before=(0, 0)), residual)
        headers = [moved(build.address(node.operands[4]), HEADER * image) for image in range(images)]
    # A turn of a loop that reads its weights from the second-level cache would read zeros from there, too.
    has_biases = not (build.is_repeated and bias.is_constant and not np.any(bias.buffer.array))
    for image, group in product(range(images), groups):
        ByteContraction(
            build,
            node.epilogue,
            shape,
            group.a.image(image),
            group.c.image(image),
            None if group.residual is None else group.residual.image(image),
            matrix(build, group.weights, 1),
            group.weights,
            moved(build.address(bias), 4 * group.first),
            moved(build.address(scales), 4 * group.first * (scales.size > 1)),
            Requantization(-1, 0, np.zeros(scales.size, np.float32), 0, 0, 0),
            group.offsets,
            levels_of(build.dots),
            None,
            Dequantized,
            headers[image] if headers else None,
            has_biases,
        ).multiply(barrier=image == images - 1 and group is groups[-1])
