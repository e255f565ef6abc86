"""SLICE: a box of the input: ``size`` elements from ``begin`` on along each dimension.

``begin`` and ``size`` are int32 or int64 vectors with one entry for each dimension; a size of -1 means all that is
left. The box must lie inside the input.

The output's shape: if ``begin`` and ``size`` are constant it follows from them, unless the stored shape signatures of
both input and output leave dimensions open; if they are not constant, the shape stored in the file is believed where
it is complete (and checked when the model runs). Otherwise the output is dynamic (TFLite's SLICE).
"""

from __future__ import annotations

from gossamer.affine import Affine
from gossamer.ops._layout import INDEX_TYPES, WHOLE_BYTE_TYPES, integers, require_output_type, require_shape
from gossamer.ops._slices import sliced
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import SAME_SCALE, Array, Context, InvokeContext, OpDef, PrepareContext, Shape, Version
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
    tells_shapes=True,
    quantizes=SAME_SCALE,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    source, output = ctx.input(0), ctx.output()
    require_output_type(ctx)
    require_shape(ctx, "begin", ctx.input(1), (len(source.shape),))
    require_shape(ctx, "size", ctx.input(2), (len(source.shape),))
    begin, size = ctx.constant(1), ctx.constant(2)
    stored = bool(output.shape) and -1 not in output.shape_signature
    if begin is not None and size is not None and (stored or not ctx.is_left_open(0)):
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
        for axis, inside in enumerate(_box(graph, part.shape, begin, size)):
            part = part.slice(axis, inside.start, inside.stop - inside.start)
        graph.result(part)
        return
    first, sizes = graph.numbers(1), graph.numbers(2)
    last = []
    for number, length, extent in zip(first, sizes, part.shape, strict=True):
        if not length.is_constant and not graph.is_at_most(0, length):
            graph.refuse("whether a size is -1, all that is left, is only known when the model runs")
        last.append(Affine(extent) if length == Affine(-1) else number + length)
        if number.is_constant and last[-1].is_constant and not 0 <= number.constant <= last[-1].constant <= extent:
            graph.refuse("it reaches outside")

    def end(axis: int) -> View:  # sizes that begin at 0
        if first[axis] != Affine(0):
            graph.refuse("where it ends is only known when the model runs")
        return graph.element(2, axis)

    box = sliced(graph, part, first, last, lambda axis: graph.element(1, axis), end)
    if box is None:
        return
    if not graph.outputs[0].is_dynamic and box.shape != graph.output().shape:
        graph.refuse("begin is only known when the model runs, and so is a size")
    graph.result(box)


def _box(ctx: Context, shape: Shape, begin: Array, size: Array) -> tuple[slice, ...]:
    box = []
    for axis, (extent, first, length) in enumerate(zip(shape, integers(begin), integers(size), strict=True)):
        last = extent if length == -1 else first + length
        if not 0 <= first <= last <= extent:
            ctx.fail(f"begin {first} and size {length} of dimension {axis} reach outside its size {extent}")
        box.append(slice(first, last))
    return tuple(box)
