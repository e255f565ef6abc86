"""Where a sliding window falls: output sizes and padding as TFLite computes them, and which elements each tap meets.

A window of ``filter`` taps, ``dilation`` apart, stands at ``output`` places, ``stride`` apart, over an axis of
``input`` elements; the first place begins ``before`` elements ahead of the axis. Tap ``k`` of place ``o`` meets
element ``o * stride + k * dilation - before``. Where that lies outside the axis there is nothing: a convolution adds
zero there and a pool leaves it out of its count. So no kernel here pads; each goes through the taps and treats, for
one tap, all places at which it meets an element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from gossamer.ops.op_def import Context, Shape
from gossamer.records import record
from gossamer.schema.enums import Padding
from gossamer.views import Geometry

Slices = tuple[slice, ...]

INT16_MAX = (1 << 15) - 1
ALL: Slices = (slice(None),)


@record(frozen=True)
class Window:
    """A window along one axis: sizes in elements, ``before`` the padding ahead of the axis (see the module)."""

    input: int
    filter: int
    stride: int
    dilation: int
    output: int
    before: int

    @property
    def is_identity(self) -> bool:
        """Place ``o`` is element ``o`` and nothing else."""
        return self.filter == 1 and self.stride == 1 and self.before == 0 and self.output == self.input

    def tap(self, index: int) -> tuple[slice, slice]:
        """The elements that a tap meets and the places from which it meets them; both empty if there are none."""
        offset = index * self.dilation - self.before
        first = max(0, -(offset // self.stride))
        last = min(self.output - 1, (self.input - 1 - offset) // self.stride)
        if first > last:
            return slice(0, 0), slice(0, 0)
        start = first * self.stride + offset
        stop = last * self.stride + offset + 1
        return slice(start, stop, self.stride), slice(first, last + 1)

    def taps(self) -> list[int]:
        """The taps that meet any element at all. A large filter or dilation may leave few of them."""
        reach = (self.output - 1) * self.stride
        first = max(0, -((reach - self.before) // self.dilation))
        last = min(self.filter - 1, (self.input - 1 + self.before) // self.dilation)
        return [tap for tap in range(first, last + 1) if self.tap(tap)[1].stop]

    def part(self, start: int, stop: int) -> Window:
        """The same window at places ``start`` to ``stop`` only."""
        return Window(
            self.input, self.filter, self.stride, self.dilation, stop - start, self.before - start * self.stride
        )


class Phase(NamedTuple):
    """What every ``stride``-th element of a transposed convolution is: an ordinary one with some of the taps.

    The elements are ``first``, ``first + stride``, ...: ``output`` of them. They meet the taps ``tap``, ``tap + step``,
    ...: ``taps`` of them, maybe none. The last of these comes first, and meets place ``o - before`` of the ``o``-th
    element; the others are ``dilation`` places apart.
    """

    first: int
    output: int
    tap: int
    step: int
    taps: int
    dilation: int
    before: int


def phases(window: Window) -> list[Phase]:
    """The elements of a transposed convolution, sorted by the taps that they meet."""
    stride, found = window.stride, []
    common = math.gcd(window.dilation, stride)
    step, dilation = stride // common, window.dilation // common
    for first in range(min(stride, window.input)):
        reached = (
            tap
            for tap in range(min(step, window.filter))
            if (first + window.before - tap * window.dilation) % stride == 0
        )
        tap = next(reached, window.filter)
        taps = len(range(tap, window.filter, step))
        place = (first + window.before - tap * window.dilation) // stride  # that of the first tap
        output = len(range(first, window.input, stride))
        found.append(Phase(first, output, tap, step, taps, dilation, (taps - 1) * dilation - place))
    return found


def geometry(windows: tuple[Window, Window]) -> Geometry:
    """The windows over rows and columns as kernels take them."""
    rows, columns = windows
    return Geometry(
        (rows.filter, columns.filter),
        (rows.stride, columns.stride),
        (rows.dilation, columns.dilation),
        (rows.before, columns.before),
        (rows.output, columns.output),
    )


def window(ctx: Context, axis: str, size: int, filter_size: int, stride: int, dilation: int, padding: int) -> Window:
    """The window along an axis of ``size`` elements. Raises through ``ctx`` what cannot be one.

    SAME: one place for each ``stride`` elements begun, the odd element of padding behind. VALID: as many places as
    the window has room for; one that is just too large has none, and one that is larger by a stride or more is an
    error, because TFLite divides ``size + stride - extent`` by ``stride`` rounding towards zero. Padding that does not
    fit TFLite's 16 bits is an error too.
    """
    if padding not in (Padding.SAME, Padding.VALID):
        ctx.fail(f"padding must be SAME (0) or VALID (1), got {int(padding)}")
    for what, value in (("filter size", filter_size), ("stride", stride), ("dilation", dilation)):
        if value < 1:
            ctx.fail(f"{axis}: {what} must be at least 1, got {value}")
    extent = (filter_size - 1) * dilation + 1
    if padding == Padding.VALID:
        if size + stride - extent <= -stride:
            ctx.fail(f"{axis}: a window of {extent} (VALID padding) does not fit the input of {size}")
        return Window(size, filter_size, stride, dilation, max(0, (size + stride - extent) // stride), 0)
    output = -(-size // stride)
    before = max((output - 1) * stride + extent - size, 0) // 2
    if before > INT16_MAX:
        ctx.fail(f"{axis}: a window of {extent} needs {before} elements of padding, at most {INT16_MAX} are possible")
    return Window(size, filter_size, stride, dilation, output, before)


def taps(*windows: Window) -> Iterator[tuple[tuple[int, ...], Slices, Slices]]:
    """Each combination of taps that meets anything: its index in the filter, the elements, the places.

    With ``image`` indexed by elements and ``grid`` by places, ``grid[places] += image[elements] * filter[index]`` is
    a convolution, and the same with the two exchanged is a transposed one.
    """
    axes = [[(tap, *window.tap(tap)) for tap in window.taps()] for window in windows]
    for combination in itertools.product(*axes):
        index, elements, places = zip(*combination, strict=True)
        yield index, elements, places


def image_windows(ctx: Context, image: Shape, filter_size: Shape, options: Any) -> tuple[Window, Window]:
    """The windows of Conv2DOptions or DepthwiseConv2DOptions over the height and width of an NHWC image."""
    windows = []
    for position, axis in enumerate(("height", "width")):
        stride = getattr(options, f"stride_{axis[0]}")
        dilation = getattr(options, f"dilation_{axis[0]}_factor")
        for what, value in (("stride", stride), ("dilation", dilation)):
            if value > INT16_MAX:
                ctx.fail(f"{axis}: {what} must be at most {INT16_MAX}, got {value}")
        size = image[1 + position]
        windows.append(window(ctx, axis, size, filter_size[position], stride, dilation, options.padding))
    return windows[0], windows[1]


def volume_windows(ctx: Context, volume: Shape, filter_size: Shape, options: Any) -> tuple[Window, ...]:
    """The windows of Conv3DOptions over depth, height and width."""
    strides = (options.stride_d, options.stride_h, options.stride_w)
    dilations = (options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor)
    axes = ("depth", "height", "width")
    return tuple(
        window(ctx, *sizes, options.padding)
        for sizes in zip(axes, volume, filter_size, strides, dilations, strict=True)
    )


def check_volume_options(ctx: Context, options: Any) -> None:
    """Raise for what no volume could have, before its size is known."""
    for name in ("stride_d", "stride_h", "stride_w", "dilation_d_factor", "dilation_h_factor", "dilation_w_factor"):
        value = getattr(options, name)
        ctx.require(value > 0, f"{name} must be at least 1, got {value}")


def check_sizes(ctx: Context, name: str, shape: Shape, rank: int, *, empty: Collection[int] = ()) -> None:
    """Raise unless a shape has this rank and no dimension of size 0, but for those in ``empty``."""
    if len(shape) != rank:
        ctx.fail(f"{name} must have {rank} dimensions, got {len(shape)} {list(shape)}")
    if 0 in shape:
        for dimension, size in enumerate(shape):
            if size == 0 and dimension not in empty:
                ctx.fail(f"{name} {list(shape)} must not be empty along dimension {dimension}")
