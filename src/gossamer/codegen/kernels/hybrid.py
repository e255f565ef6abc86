"""`hybrid`: float results of quantized activations and weights of bytes.

`HybridGemm` is XNNPACK's ``qd8-f32-qc8w``. A row brings its scale and its zero point
(`gossamer.codegen.kernels.dynamic`). The sum of products is exact; then

    y = fma(float32(sum of level * weight - zero point * sum of weights) * row scale, weight scale, bias)

in this order, so that results are determined bit by bit. Drivers and panels are those of `quantized_contract`, with the
sums of the weights where the bias is there (it is packed with a bias of 0 and an offset of -1), and channels in their
order. The bias is float32 and stays outside, as in `contract`.

`HybridDepthwiseRow` is LiteRT's own ``DepthwiseConvHybridPerChannel``, whose integers are small enough for floats: 514
products of 255 and 128 stay below 2^24. An image brings its scale; its levels are less their zero point, and so its
border is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import ClassVar

from gossamer.codegen.dots import Dots
from gossamer.codegen.expression import apply, operand_count
from gossamer.codegen.ir import F32, I32, Arguments, Function, Module, Part, Value
from gossamer.codegen.kernels.contract import rows_at
from gossamer.codegen.kernels.depthwise import DepthwiseRow
from gossamer.codegen.kernels.dynamic import HEADER as ROW_HEADER
from gossamer.codegen.kernels.dynamic import ZERO_POINT
from gossamer.codegen.kernels.quantized_contract import HEADER, QuantizedGemm, Walk
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.records import record, replace
from gossamer.targets import Target


@record(frozen=True)
class HybridGemm(QuantizedGemm):
    """A microkernel: c = epilogue(bias + a b) in float32, for mr rows and nv vectors of channels.

    ``void k(ptr a, ptr b, ptr bias, ptr c, ptr residual, ptr next, ptr shape)``; a points to the first level of a row,
    behind its header; b is a panel. ``shape`` is as in `QuantizedGemm`; ``tail`` are the channels in the last vector,
    if the kernel is ragged. Of the fields, ``mr``, ``nv``, ``epilogue``, ``walk``, ``short``, ``ragged`` and
    ``prefetch`` mean something here. ``image``: all rows are of an image that has one ``header``.
    """

    image: bool = False

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        depth="i64",
        taps="i64",
        tap_offsets="ptr",
        a_stride="i64",
        c_stride="i64",
        residual_stride="i64",
        tail="i64",
        header="ptr",
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", "hybrid", "image" * self.image, *super().parts)

    def general(self) -> Iterator[KernelSpec]:
        walk: Walk = self.walk or "taps"
        for prefetch, other in product(dict.fromkeys((self.prefetch, 0)), dict.fromkeys((self.walk, walk))):
            yield replace(self, prefetch=prefetch, walk=other)

    def emit(self, target: Target) -> str:
        self._check(target)
        module = Module(target)
        f = module.microkernel("a", "b", "bias", "c", "residual", "next", "shape")
        a, b, bias, c, residual, following, shape_pointer = f.parameters
        shape = f.arguments(self.arguments, shape_pointer)
        dots = Dots(f, self.type)
        mr, nv, size = self.mr, self.nv, 4 * f.lanes
        parts = [Part(f, f.f32) for _ in range(nv)]
        if self.ragged:
            parts[-1] = Part(f, f.f32, shape.tail)
        has_residual = operand_count(self.epilogue) > 1
        rows = rows_at(f, c, shape.c_stride, mr)
        residual_rows = rows_at(f, residual, shape.residual_stride, mr) if has_residual else []
        for row in residual_rows:
            for v in range(nv):
                f.prefetch(f.offset(row, size * v))

        zero = f.constant(dots.words, 0)
        sums = self._sums(f, dots, shape, a, f.offset(b, HEADER * nv * size), following, [zero] * (mr * nv))
        of_weights = [f.load(dots.words, f.offset(b, size * v)) for v in range(nv)]
        scales = [f.load(f.f32, f.offset(b, size * (nv + v))) for v in range(nv)]
        biases = [part.load(f.offset(bias, size * v)) for v, part in enumerate(parts)]
        if self.image:
            grids = [self._grid(f, dots, shape.header)] * mr
        else:
            headers = rows_at(f, f.offset(a, -ROW_HEADER), shape.a_stride, mr)
            grids = [self._grid(f, dots, header) for header in headers]
        for i, (scale, point) in enumerate(grids):
            for v, part in enumerate(parts):
                exact = f.wrapping("sub", sums[i * nv + v], f.wrapping("mul", of_weights[v], point))
                real: Value = f.emit(f.f32, f"sitofp {exact} to {f.f32}") * scale
                operands = [f.fma(real, scales[v], biases[v])]
                if has_residual:
                    operands.append(part.load(f.offset(residual_rows[i], size * v)))
                part.store(apply(self.epilogue, f, operands), f.offset(rows[i], size * v))
        return module.text()

    def _grid(self, f: Function, dots: Dots, header: Value) -> tuple[Value, Value]:
        """The scale and the zero point of levels as they are multiplied, in every lane."""
        zero_point = f.load(I32, f.offset(header, ZERO_POINT))
        if dots.flips:
            zero_point = zero_point + (128 if self.type == "i8" else -128)
        return f.splat(f.load(F32, header)), f.splat(zero_point)


MAX_TAPS = 514
"""Elements of the largest filter of which sums are exact."""


@record(frozen=True)
class HybridDepthwiseRow(DepthwiseRow):
    """A microkernel: y = epilogue((sum of x w) * weight scale * image scale + bias) for one row, as `DepthwiseRow`.

    The last channels, ``channels`` modulo 4, are multiplied by the image's scale first, as LiteRT does it. Behind
    ``bias`` by ``scales`` bytes are the weights' scales; ``scale`` points to that of the image.
    """

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        **{argument.name: argument.type for argument in DepthwiseRow.arguments}, scales="i64", scale="ptr"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("hybrid", *super().parts)

    def _around(self, f: Function, shape: Arguments, part: Part, bias: Value) -> tuple[Value, Callable[[Value], Value]]:
        of_weights, of_image = part.load(f.offset(bias, shape.scales)), part.splat(f.load(F32, shape.scale))
        own = part.load(bias)
        first, second = of_weights, of_image
        if part.type.lanes == 1:
            first, second = of_image, of_weights
        elif part.count is not None:
            whole = Part(f, part.type, part.count & -4).mask
            first, second = (
                f.emit(part.type, f"select {whole}, {one}, {other}")
                for one, other in ((of_weights, of_image), (of_image, of_weights))
            )
        return part.constant(0.0), lambda sum: sum * first * second + own
