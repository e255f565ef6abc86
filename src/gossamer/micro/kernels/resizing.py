"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR on a device (resize_bilinear.cc, resize_nearest_neighbor.cc)."""

from __future__ import annotations

from gossamer.micro.context import MicroPrepareContext
from gossamer.micro.kernels.kernel import FLOAT32, INT8, INT16, MicroKernel, inputs_and_output, require_constant


def _prepare(ctx: MicroPrepareContext) -> None:
    require_constant(ctx, 1, "size")
    inputs_and_output(ctx)


KERNELS = (
    MicroKernel("RESIZE_BILINEAR", (FLOAT32, INT8), prepare=_prepare),
    MicroKernel("RESIZE_NEAREST_NEIGHBOR", (FLOAT32, INT8, INT16), prepare=_prepare),
)
