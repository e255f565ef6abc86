"""`hybrid_depthwise`: a depthwise convolution of images on grids, with int8 weights, to floats.

Operands are images [N, H, W, C], levels less their zero point as floats, weights int8 [h, w, C * m], their scales and a
bias, float32 [C * m], and the headers of the images; settings a `Geometry`.
"""

from __future__ import annotations

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.depthwise import multiply
from gossamer.codegen.commands.tiled import moved
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.depthwise import HybridDepthwiseRow
from gossamer.codegen.kernels.dynamic import HEADER
from gossamer.codegen.kernels.elementwise import Map, operands_of
from gossamer.programs.program import Address
from gossamer.views import View


def commands(node: Kernel, build: Build) -> None:
    """One command for each image."""
    _, weights, scales, bias, headers = node.operands[:5]
    floats, images, channels = _floats(build, weights), node.y.shape[0], weights.shape[2]
    table = build.constant(np.stack([bias.buffer.array, scales.buffer.array]))  # type: ignore[list-item]
    for image in range(images):
        multiply(
            node,
            build,
            HybridDepthwiseRow,
            floats,
            table,
            image,
            1,
            barrier=image == images - 1,
            weight_column=4 * channels,
            scales=4 * channels,
            scale=moved(build.address(headers), HEADER * image),
        )


def _floats(build: Build, weights: View) -> Address:
    """Constant weights as float32, made once."""
    source = build.address(weights)
    known = build.packed((source, weights.size, "floats"))
    if known is not None:
        return known
    place = build.weights(4 * weights.size, (source, weights.size, "floats"))
    build.pack(
        Map(build.target.name, 0, "v", ("i8", "f32")),
        y=place,
        rows=1,
        columns=1,
        count=weights.size,
        block=weights.size,
        blocks=1,
        y_row=0,
        y_column=0,
        **operands_of((source, 0, 0)),
    )
    return place
