"""`hybrid`: quantized rows or images times constant weights of bytes, to floats.

Operands are rows [N, H, W, header and levels] as `gossamer.codegen.kernels.dynamic` makes them, weights int8
[O, *depth], their scales float32 [O] or [1], and a bias float32 [O]. y is [N, H, W, O].

With a ``geometry`` among the settings, they are padded images [N, H, W, C] of levels and weights [O, h, w, C / groups];
the fifth operand holds the headers of the images.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.codegen.commands import Build
from gossamer.codegen.commands.byte_products import QuantizedContraction
from gossamer.codegen.commands.contract import Pixels, matrix, moved, tap_offsets
from gossamer.codegen.expression import operand_count
from gossamer.codegen.graph import Kernel
from gossamer.codegen.kernels.dynamic import HEADER, levels_of
from gossamer.codegen.kernels.hybrid import HybridGemm
from gossamer.programs.program import Address, Word
from gossamer.records import record
from gossamer.views import Geometry, Requantizing, View


def commands(node: Kernel, build: Build) -> None:
    """One command; or one for each image and group of channels."""
    levels, weights, scales, bias = node.operands[:4]
    geometry: Geometry | None = node.settings.get("geometry")
    residual = node.extras[0] if operand_count(node.epilogue) > 1 else None
    strides = build.strides(levels)[:3]
    if geometry is None:
        _Part(node, build, residual, node.y.shape[:3], 0, 0).multiply(
            Pixels(moved(build.address(levels), HEADER), strides), weights, build.address(scales), build.address(bias)
        )
        return
    headers = build.address(node.operands[4])
    steps = (strides[0], geometry.stride[0] * strides[1], geometry.stride[1] * strides[2])
    offsets = tap_offsets(weights.shape[1:], geometry.dilation, strides[1:3], 1)
    images, channels, depth = levels.shape[0], weights.shape[0], weights.shape[3]
    groups = levels.shape[3] // depth
    share = channels // groups
    for image, group in np.ndindex(images, groups):
        first = group * share
        _Part(node, build, residual, (1, *node.y.shape[1:3]), image, first).multiply(
            Pixels(moved(build.address(levels), image * strides[0] + group * depth), steps),
            weights.slice(0, first, share) if groups > 1 else weights,
            moved(build.address(scales), 4 * first * (scales.size > 1)),
            moved(build.address(bias), 4 * first),
            offsets,
            moved(headers, HEADER * image),
            barrier=(image, group) == (images - 1, groups - 1),
        )


@record
class _Part:
    """The results of some pixels, from an image and a channel on."""

    node: Kernel
    build: Build
    residual: View | None
    shape: tuple[int, ...]
    image: int
    channel: int

    def multiply(
        self,
        a: Pixels,
        weights: View,
        scales: Address,
        bias: Address,
        offsets: Sequence[int] = (0,),
        header: Address | None = None,
        barrier: bool = True,
    ) -> None:
        """The command that computes them."""
        build, node = self.build, self.node
        HybridContraction(
            build,
            node.epilogue,
            self.shape,
            a,
            self._pixels(node.y),
            None if self.residual is None else self._pixels(self.residual),
            matrix(build, weights, 1),
            weights,
            bias,
            scales,
            Requantizing(-1, 0, np.zeros(node.operands[2].size, np.float32), 0, 0, 0),
            list(offsets),
            levels_of(build.dots),
            None,
            sums=True,
            header=header,
        ).multiply(barrier=barrier)

    def _pixels(self, view: View) -> Pixels:
        strides = self.build.strides(view)[:3]
        return Pixels(moved(self.build.address(view), self.image * strides[0] + 4 * self.channel), strides)


@record
class HybridContraction(QuantizedContraction):
    """c = epilogue(bias + a weights) of rows that bring a scale and a zero point, or of an image that has a header."""

    header: Address | None = None

    def _outward(self) -> dict[str, Word]:
        words = super()._outward()
        return words | {"bias": self.bias, "panel_bias": words["panel_c"]}

    def _gemm(self, mr: int, nv: int, is_last: bool, prefetch: int = 0) -> HybridGemm:
        return HybridGemm(
            self.build.dots.name,
            mr,
            nv,
            self.type,
            self.epilogue,
            walk=self.walk,
            short=self.short,
            ragged=is_last and self.panels.tail != self.build.dots.lanes(),
            prefetch=prefetch,
            image=self.header is not None,
        )

    def _shape(self) -> Address:
        return self.build.block(
            HybridGemm.arguments,
            depth=self.tap_depth,
            taps=len(self.table),
            tap_offsets=self.build.table(self.table),
            a_stride=self.a_steps[2],
            c_stride=self.c_steps[2],
            residual_stride=self.r_steps[2],
            tail=self.panels.tail,
            header=0 if self.header is None else self.header,
        )

    @property
    def _zero(self) -> int:
        return -1  # which leaves the sums of the weights where the bias would be

    def _packing(self, place: Address) -> dict[str, Word]:
        nothing = self.build.constant(np.zeros(1, np.int32))
        return super()._packing(place) | {"bias": nothing, "bias_step": 0}
