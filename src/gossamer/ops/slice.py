"""SLICE: a box of the input: ``size`` elements from ``begin`` on along each dimension.

``begin`` and ``size`` are int32 or int64 vectors with one entry for each dimension; a size of -1 means all that is
left. The box must lie inside the input.

The output's shape: if ``begin`` and ``size`` are constant it follows from them, unless the stored shape signatures of
both input and output leave dimensions open; if they are not constant, the shape stored in the file is believed where
it is complete (and checked when the model runs). Otherwise the output is dynamic (TFLite's SLICE).
"""

from __future__ import annotations

from collections.abc import Sequence

from gossamer.affine import Affine, Stretch
from gossamer.ops._layout import INDEX_TYPES, WHOLE_BYTE_TYPES, integers, require_output_type, require_shape
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, Shape, Version
from gossamer.ops.op_signature import input_type, rank_above
from gossamer.schema.enums import TensorType
from gossamer.schema.options import SliceOptions
from gossamer.views import View

TYPES = (*WHOLE_BYTE_TYPES, TensorType.INT4, TensorType.STRING)

op = OpDef(
    "SLICE",
    inputs=("input", "begin", "size"),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "1.14.0", input_type(0, TensorType.STRING)),
        Version(4, "2.4.0", input_type(0, TensorType.INT16)),
        Version(5, "2.5.0", rank_above(0, 4)),
        Version(6, "2.14.0", input_type(0, TensorType.UINT32)),
        Version(7, "2.21.0", input_type(0, TensorType.INT4)),
        Version(8, "2.23.0", input_type(0, TensorType.FLOAT16)),
    ),
    types={"input": TYPES, "begin": INDEX_TYPES, "size": INDEX_TYPES, "output": TYPES},
    options=SliceOptions,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    source, output = ctx.input(0), ctx.output()
    require_output_type(ctx)
    require_shape(ctx, "begin", ctx.input(1), (len(source.shape),))
    require_shape(ctx, "size", ctx.input(2), (len(source.shape),))
    begin, size = ctx.constant(1), ctx.constant(2)
    stored = bool(output.shape) and -1 not in output.shape_signature
    if begin is not None and size is not None and (stored or -1 not in source.shape_signature):
        ctx.set_shape(0, [box.stop - box.start for box in _box(ctx, source.shape, begin, size)])
    elif stored:
        ctx.set_shape(0, output.shape)
    else:
        ctx.set_dynamic(0)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    value = ctx.value(0)
    return value[_box(ctx, value.shape, ctx.value(1), ctx.value(2))]


@op.lower
def lower(graph: Lowering) -> None:
    part, begin, size = graph.value(0), graph.constant(1), graph.constant(2)
    if begin is not None and size is not None:
        for axis, box in enumerate(_box(graph, part.shape, begin, size)):
            part = part.slice(axis, box.start, box.stop - box.start)
        graph.result(part)
    elif size is not None and -1 not in size:
        _lower_box(graph, part, integers(size))
    else:
        _lower_open(graph, part)


def _lower_box(graph: Lowering, x: View, sizes: Sequence[int]) -> None:
    output = graph.outputs[0]
    if not output.is_dynamic and tuple(sizes) != output.shape:
        graph.refuse("begin is only known when the model runs, and so is a size")
    graph.result(graph.gather(x, graph.value(1), range(len(sizes)), sizes))


def _lower_open(graph: Lowering, x: View) -> None:
    """What of begins and sizes is computed, or is all that is left."""
    begins, sizes = graph.numbers(1), graph.numbers(2)
    ends = []
    for begin, size, extent in zip(begins, sizes, x.shape, strict=True):
        if not size.is_constant and not graph.is_at_most(0, size):
            graph.refuse("a size may be -1, all that is left")
        ends.append(Affine(extent) if size == Affine(-1) else begin + size)
    lengths = [end - begin for begin, end in zip(begins, ends, strict=True)]
    if all(length.is_constant for length in lengths):
        _lower_box(graph, x, [length.constant for length in lengths])
        return
    (axis, *others) = [axis for axis, length in enumerate(lengths) if not length.is_constant]
    if others or not all(begin.is_constant for number, begin in enumerate(begins) if number != axis):
        graph.refuse("sizes of several dimensions are only known when the model runs")
    for number, (begin, length) in enumerate(zip(begins, lengths, strict=True)):
        if number != axis:
            x = x.slice(number, begin.constant, length.constant)
    stop = graph.value(2).slice(0, axis, 1) if begins[axis] == Affine(0) else None
    graph.stretch(Stretch(x, axis, begins[axis], ends[axis], stop))


def _box(ctx: Context, shape: Shape, begin: Array, size: Array) -> tuple[slice, ...]:
    box = []
    for axis, (extent, first, length) in enumerate(zip(shape, integers(begin), integers(size), strict=True)):
        last = extent if length == -1 else first + length
        if not 0 <= first <= last <= extent:
            ctx.fail(f"begin {first} and size {length} of dimension {axis} reach outside its size {extent}")
        box.append(slice(first, last))
    return tuple(box)
