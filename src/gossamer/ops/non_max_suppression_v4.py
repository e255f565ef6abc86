"""NON_MAX_SUPPRESSION_V4: the best boxes that do not overlap a better one.

``boxes`` [n, 4] are corners (y1, x1, y2, x2), any diagonal; ``scores`` [n]. A box over ``score_threshold`` is kept
unless its intersection over union with one kept before reaches ``iou_threshold``; at most ``max_output_size`` are.
Outputs: their indices, filled up with zeros to ``max_output_size``, and how many there are. The indices are dynamic
if ``max_output_size`` is not constant (TFLite's NON_MAX_SUPPRESSION_V4).

As in TFLite a box without area, which overlaps nothing, not even itself, is selected again and again.
"""

from __future__ import annotations

from gossamer.ops._boxes import SUPPRESSION_TYPES, lower_suppressed, prepare_suppression, suppressed
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import NonMaxSuppressionV4Options

op = OpDef(
    "NON_MAX_SUPPRESSION_V4",
    inputs=("boxes", "scores", "max_output_size", "iou_threshold", "score_threshold"),
    outputs=("indices", "count"),
    versions=versions("2.1.0"),
    types=SUPPRESSION_TYPES,
    options=NonMaxSuppressionV4Options,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_suppression(ctx)


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array]:
    indices, _, count = suppressed(ctx, 0.0)
    return indices, count


@op.lower
def lower(graph: Lowering) -> None:
    taken = lower_suppressed(graph, 0)
    for position, view in enumerate((taken.indices, taken.number)):
        graph.result(graph.reshape(view, graph.output(position).shape), position)
