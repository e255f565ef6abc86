"""STRIDED_SLICE: ``input[begin:end:strides]`` with NumPy's rules, given as vectors and masks.

Entry i of ``begin``, ``end`` and ``strides`` (int32 vectors, at most 31 entries) speaks of one dimension, in order;
dimensions without an entry are taken whole. Bit i of a mask changes entry i:

- ``ellipsis_mask`` (one bit at most): the entry stands for as many whole dimensions as the other entries leave over,
  at least one; entries left without a dimension are ignored.
- ``new_axis_mask``: no dimension of the input, a new dimension of size 1. The ellipsis has precedence.
- ``begin_mask``, ``end_mask``: begin or end at the first or last element, whichever the stride's sign asks for.
- ``shrink_axis_mask``: only the element at ``begin``, and the dimension is dropped.

Negative begins and ends count from the end; both are then clamped to the dimension. With the option ``offset``,
``end`` counts from ``begin``, so the output's shape, ``ceil(end / stride)``, does not depend on ``begin``.

The output is dynamic unless strides and end, and without ``offset`` begin, are constant. If the input and all three
are constant the output is too (TFLite's STRIDED_SLICE). An index that ``shrink_axis_mask`` selects outside the
input, which leaves TFLite's output undefined, is refused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gossamer.affine import Affine
from gossamer.ops._gather import slices
from gossamer.ops._layout import (
    WHOLE_BYTE_TYPES,
    checked_shape,
    elements,
    require_output_type,
    require_rank,
    require_shape,
)
from gossamer.ops._slices import sliced
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import input_type, option, rank_above
from gossamer.quantization import INT32_MIN
from gossamer.records import record
from gossamer.schema.enums import TensorType
from gossamer.schema.options import StridedSliceOptions
from gossamer.sizes import is_open, whole
from gossamer.views import View

MAX_ENTRIES = 31
TYPES = (*WHOLE_BYTE_TYPES, TensorType.STRING)

op = OpDef(
    "STRIDED_SLICE",
    inputs=("input", "begin", "end", "strides"),
    outputs=("output",),
    versions=(
        Version(1, "1.6.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.1.0", input_type(0, TensorType.BOOL)),
        Version(4, "2.2.0", rank_above(0, 4)),
        Version(5, "2.5.0", input_type(0, TensorType.STRING)),
        Version(6, "2.6.0", option("ellipsis_mask") | option("new_axis_mask")),
        Version(7, "2.14.0", input_type(0, TensorType.UINT32)),
        Version(8, "2.14.0", option("offset")),
    ),
    types={
        "input": TYPES,
        "begin": (TensorType.INT32,),
        "end": (TensorType.INT32,),
        "strides": (TensorType.INT32,),
        "output": TYPES,
    },
    options=StridedSliceOptions,
    tells_shapes=True,
    reference_version=4,
    quantizes=SAME_SCALE,
)


@record(frozen=True)
class _Axis:
    """One dimension of the input with the new axes put in: its size, and the entry that speaks of it (-1: whole)."""

    size: int
    entry: int


class _Steps(NamedTuple):
    """What ``range`` says, of sizes that may be open."""

    start: int
    stop: int
    step: int = 1

    @property
    def number(self) -> int:
        """How many there are."""
        return max(0, -((self.start - self.stop) // self.step))


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    for position, name in enumerate(op.inputs[1:], 1):
        require_rank(ctx, name, ctx.input(position), 1)
        require_shape(ctx, name, ctx.input(position), ctx.input(1).shape)
    entries = ctx.input(1).shape[0]
    ctx.require(entries <= MAX_ENTRIES, f"begin may have {MAX_ENTRIES} entries, got {entries}")
    ctx.require(
        ctx.options.ellipsis_mask & (ctx.options.ellipsis_mask - 1) == 0,
        f"ellipsis_mask may have one bit, got {ctx.options.ellipsis_mask:#b}",
    )
    require_output_type(ctx)
    known, (begin, end, strides) = ctx.all_known(0, 1, 2, 3), (ctx.constant(position) for position in (1, 2, 3))
    if strides is None or end is None or (begin is None and not ctx.options.offset):
        ctx.set_dynamic(0)
    elif begin is None:
        ctx.set_shape(0, _offset_shape(ctx, end, strides))
    elif known is None or is_open(_shape(ctx, _ranges(ctx, begin, end, strides))):
        ctx.set_shape(0, _shape(ctx, _ranges(ctx, begin, end, strides)))
    else:
        ctx.set_constant(0, _selected(ctx, *known))


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return _selected(ctx, ctx.value(0), ctx.value(1), ctx.value(2), ctx.value(3))


@op.lower
def lower(graph: Lowering) -> None:
    if graph.constant(1) is None or graph.constant(2) is None:
        _lower_open(graph)
        return
    ranges = _ranges(graph, graph.known(1), graph.known(2), graph.known(3))
    part = graph.reshape(graph.value(0), [axis.size for axis, _ in ranges])
    for number, (_, steps) in enumerate(ranges):
        part = part.slice(number, steps.start, steps.number, steps.step)
    graph.result(graph.reshape(part, _shape(graph, ranges)))


def _lower_open(graph: Lowering) -> None:
    """A box of which begins and ends are computed, and neither count from the end nor are clamped, but for those of
    dimensions of which an element is left."""
    begins, ends, strides = graph.numbers(1), graph.numbers(2), graph.known(3)
    options, axes = graph.options, _axes(graph)
    x = graph.reshape(graph.value(0), [axis.size for axis in axes])
    first, last = [Affine(0) for _ in axes], [Affine(axis.size) for axis in axes]
    for number, axis in enumerate(axes):
        if axis.entry < 0:
            continue
        if _stride(graph, axis, strides) != 1:
            graph.refuse("begin or end, with a stride, is only known when the model runs")
        begin = Affine(0) if options.begin_mask >> axis.entry & 1 else begins[axis.entry]
        shrinks = _shrinks(graph, axis)
        if shrinks and not begin.is_constant and not graph.is_at_most(0, begin):
            x, last[number] = _element_of(graph, x, number, axis), Affine(1)
            continue
        first[number] = begin = _inside(graph, begin, axis.size, is_checked=shrinks)
        if shrinks:
            last[number] = begin + 1
        elif not options.end_mask >> axis.entry & 1:
            last[number] = _inside(graph, ends[axis.entry] + (begin if options.offset else 0), axis.size)

    def end(number: int) -> View:
        if options.offset:
            graph.refuse("where it ends is only known when the model runs")
        return graph.element(2, axes[number].entry)

    box = sliced(graph, x, first, last, lambda number: graph.element(1, axes[number].entry), end)
    kept = [number for number, axis in enumerate(axes) if not _shrinks(graph, axis)]
    if box is not None:
        graph.result(graph.reshape(box, [box.shape[number] for number in kept]))
    elif len(kept) < len(axes):
        graph.refuse("a dimension goes, and the size of another is only known when the model runs")


def _element_of(graph: Lowering, x: View, number: int, axis: _Axis) -> View:
    """x with one element left of a dimension, that at a begin which counts from the end if it is less than 0."""
    size = graph.worked_out((1,), TensorType.INT32, np.full, 1, axis.size, np.int32)
    zero = graph.array(np.zeros(1, np.int32))
    index = ("max", ("select", ("less", 0, 2), ("add", 0, 1), 0), 2)
    return slices(graph, x, graph.map(index, graph.element(1, axis.entry), size, zero), number)


def _inside(graph: Lowering, number: Affine, size: int, *, is_checked: bool = False) -> Affine:
    """A begin or an end, if it is known to be in a dimension of this size; constants count from the end."""
    if number.is_constant:
        constant = number.constant + size if number.constant < 0 else number.constant
        return Affine(min(max(constant, 0), size))
    is_inside = graph.is_at_most(0, number) and (is_checked or graph.is_at_most(number, size))
    if not is_inside and not graph.guesses:
        graph.refuse("whether begin or end is outside is only known when the model runs")
    return number


def _axes(ctx: Context) -> list[_Axis]:
    options = ctx.options
    sizes = list(ctx.input(0).shape)
    entries = ctx.input(1).shape[0]
    axes: list[_Axis] = []
    for entry in range(entries):
        if options.ellipsis_mask >> entry & 1:
            for _ in range(max(1, len(sizes) - _remaining(ctx, entry, entries))):
                if sizes:
                    axes.append(_Axis(sizes.pop(0), -1))
        elif options.new_axis_mask >> entry & 1:
            axes.append(_Axis(1, -1))
        elif sizes:
            axes.append(_Axis(sizes.pop(0), entry))
    return axes + [_Axis(size, -1) for size in sizes]


def _remaining(ctx: Context, entry: int, entries: int) -> int:
    # Dimensions that the entries behind this one speak of.
    return sum(1 for later in range(entry + 1, entries) if not ctx.options.new_axis_mask >> later & 1)


def _shrinks(ctx: Context, axis: _Axis) -> bool:
    return axis.entry >= 0 and bool(ctx.options.shrink_axis_mask >> axis.entry & 1)


def _stride(ctx: Context, axis: _Axis, strides: Array) -> int:
    stride = int(strides[axis.entry])
    ctx.require(stride != 0 and stride != INT32_MIN, f"stride of entry {axis.entry} must not be {stride}")
    return stride


def _ranges(ctx: Context, begin: Array, end: Array, strides: Array) -> list[tuple[_Axis, _Steps]]:
    options = ctx.options
    ranges = []
    for axis in _axes(ctx):
        if axis.entry < 0:
            ranges.append((axis, _Steps(0, axis.size)))
            continue
        stride = _stride(ctx, axis, strides)
        low, high = (0, axis.size) if stride > 0 else (-1, axis.size - 1)
        first = whole(begin[axis.entry])
        first = min(max(first + axis.size if first < 0 else first, low), high)
        if options.begin_mask >> axis.entry & 1:
            first = 0 if stride > 0 else axis.size - 1
        if _shrinks(ctx, axis):
            last = first + 1 if first < axis.size else first
        elif options.end_mask >> axis.entry & 1:
            last = axis.size if stride > 0 else -1
        else:
            last = whole(end[axis.entry]) + (first if options.offset else 0)
            last = min(max(last + axis.size if last < 0 else last, low), high)
        ranges.append((axis, _Steps(first, last, stride)))
    return ranges


def _shape(ctx: Context, ranges: list[tuple[_Axis, _Steps]]) -> Shape:
    shape = [steps.number for axis, steps in ranges if not _shrinks(ctx, axis)]
    for axis, steps in ranges:
        ctx.require_shapes(
            steps.number or not _shrinks(ctx, axis) or not elements(shape),
            f"entry {axis.entry} (shrink_axis_mask) selects an index outside a dimension of size {axis.size}",
        )
    return checked_shape(ctx, shape)


def _offset_shape(ctx: Context, end: Array, strides: Array) -> Shape:
    shape = []
    for axis in _axes(ctx):
        if axis.entry < 0:
            shape.append(axis.size)
        elif not _shrinks(ctx, axis):
            shape.append(_Steps(0, whole(end[axis.entry]), _stride(ctx, axis, strides)).number)
    return checked_shape(ctx, shape)


def _selected(ctx: Context, value: Array, begin: Array, end: Array, strides: Array) -> Array:
    ranges = _ranges(ctx, begin, end, strides)
    shape = _shape(ctx, ranges)
    slices = []
    for _, steps in ranges:
        # A stop of -1 would count from the end.
        slices.append(
            slice(steps.start, steps.stop if steps.stop >= 0 else None, steps.step) if steps.number else slice(0)
        )
    return value.reshape([axis.size for axis, _ in ranges])[tuple(slices)].reshape(shape)
