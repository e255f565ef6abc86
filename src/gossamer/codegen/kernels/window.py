"""`window`: the maximum, the mean or the root mean square of windows of an image, of their elements inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from gossamer.codegen.basis import RELU, RELU6
from gossamer.codegen.expression import IDENTITY, Expression, apply, name_of, operand_count
from gossamer.codegen.ir import Module, Part, Value
from gossamer.codegen.spec import ArgumentBlock, KernelSpec
from gossamer.errors import CompileError
from gossamer.records import record
from gossamer.targets import Target

LOWEST = -3.4028234663852886e38
"""The maximum of no elements, and of elements that are all NaN or -inf (as in TFLite)."""

FLOATS = 64
"""Channels that one walk over a window reduces, if there are so many."""

CHANNELS = 256
"""Channels of a task."""


def unrolled(target: Target) -> list[int]:
    """Vectors of channels that are reduced at the same time: as many as `FLOATS`, half of them, and so on to 1."""
    most = min(FLOATS // target.lanes(), target.registers // 2)
    return [1 << k for k in reversed(range(most.bit_length()))]


Reduction = Literal["max", "mean", "l2"]


@record(frozen=True)
class Window(KernelSpec):
    """A pool over NHWC: y = epilogue(the reduction of each window).

    The window of output pixel (i, j) begins at row i x ``stride_rows`` - ``pad_rows``, and likewise for columns; it
    has ``window_rows`` x ``window_columns`` elements, of which those inside the ``height`` x ``width`` image count.
    There is at least one. Strides in bytes; threads share images x rows x blocks of `CHANNELS` channels.
    """

    reduction: Reduction
    epilogue: Expression = IDENTITY

    choices: ClassVar[Mapping[str, Sequence[Any]]] = {"epilogue": (IDENTITY, RELU, RELU6)}

    arguments: ClassVar[ArgumentBlock] = ArgumentBlock(
        "*x *y images rows columns channels height width window_rows window_columns stride_rows stride_columns "
        "pad_rows pad_columns x_image x_row x_column y_image y_row y_column"
    )

    @property
    def parts(self) -> tuple[str, ...]:
        return ("f32", {"max": "maxpool", "mean": "avgpool", "l2": "l2pool"}[self.reduction], name_of(self.epilogue))

    def emit(self, target: Target) -> str:
        if operand_count(self.epilogue) > 1:
            raise CompileError(f"{self.name}: the epilogue of a pool has no operand but the result.")
        module = Module(target)
        f = module.driver()
        a = f.arguments(self.arguments)
        start = LOWEST if self.reduction == "max" else 0.0

        def clip(at: Value, stride: Value, pad: Value, size: Value, limit: Value) -> tuple[Value, Value]:
            first = at * stride - pad
            return f.greatest(first, 0), f.least(first + size, limit)

        blocks = (a.channels + (CHANNELS - 1)) // CHANNELS
        with f.share(a.images * a.rows * blocks) as task:
            line = task // blocks
            channel = (task - line * blocks) * CHANNELS
            image = line // a.rows
            row = line - image * a.rows
            top, bottom = clip(row, a.stride_rows, a.pad_rows, a.window_rows, a.height)
            x = f.at(f.offset(a.x, image * a.x_image), channel)
            y = f.at(f.offset(a.y, image * a.y_image + row * a.y_row), channel)
            with f.loop(0, a.columns) as columns:
                left, right = clip(columns.index, a.stride_columns, a.pad_columns, a.window_columns, a.width)
                corner = f.offset(x, top * a.x_row + left * a.x_column)
                to = f.offset(y, columns.index * a.y_column)
                number = f.to_float((bottom - top) * (right - left))

                def reduce(at: Value, parts: list[Part], _: list[Value]) -> None:
                    first = f.offset(corner, at)
                    with f.loop(top, bottom, carry=[*(part.constant(start) for part in parts), first]) as down:
                        with f.loop(left, right, carry=down.values) as across:
                            *sums, pixel = across.values
                            for v, part in enumerate(parts):
                                value = part.load(f.at(pixel, v * f.lanes))
                                if self.reduction == "max":
                                    sums[v] = f.maximum(value, sums[v])
                                elif self.reduction == "l2":
                                    sums[v] = f.fma(value, value, sums[v])
                                else:
                                    sums[v] = sums[v] + value
                            across.hand_on([*sums, f.offset(pixel, a.x_column)])
                        down.hand_on([*across.results[:-1], f.offset(down.values[-1], a.x_row)])
                    for v, (part, value) in enumerate(zip(parts, down.results, strict=False)):
                        if self.reduction != "max":
                            value = value / part.splat(number)
                        if self.reduction == "l2":
                            value = f.intrinsic("llvm.sqrt", value)
                        part.store(apply(self.epilogue, f, [value]), f.at(f.offset(to, at), v * f.lanes))

                f.vectors(f.least(a.channels - channel, CHANNELS), reduce, unrolled(target))
        return module.text()
