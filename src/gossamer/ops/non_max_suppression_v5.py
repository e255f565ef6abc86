"""NON_MAX_SUPPRESSION_V5: as V4, and overlapping boxes that stay lose score (soft suppression).

With ``sigma`` over 0, the score of a box shrinks by ``exp(-0.5 / sigma * overlap ** 2)`` for each better box; one
that falls to ``score_threshold`` is dropped. Outputs: indices and new scores, filled up with zeros to
``max_output_size``, and how many there are (TFLite's NON_MAX_SUPPRESSION_V5).
"""

from __future__ import annotations

from gossamer.ops._boxes import SUPPRESSION_TYPES, lower_suppressed, prepare_suppression, suppressed
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import NonMaxSuppressionV5Options

op = OpDef(
    "NON_MAX_SUPPRESSION_V5",
    inputs=("boxes", "scores", "max_output_size", "iou_threshold", "score_threshold", "sigma"),
    outputs=("indices", "selected_scores", "count"),
    versions=versions("2.1.0"),
    types=SUPPRESSION_TYPES,
    options=NonMaxSuppressionV5Options,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_suppression(ctx)


@op.reference
def reference(ctx: InvokeContext) -> tuple[Array, Array, Array]:
    sigma = float(ctx.value(5))
    ctx.require(sigma >= 0, f"sigma must not be negative, got {sigma:g}")
    return suppressed(ctx, sigma)


@op.lower
def lower(graph: Lowering) -> None:
    sigma = float(graph.known(5))
    if sigma < 0:
        graph.refuse("sigma is negative")
    taken = lower_suppressed(graph, sigma)
    for position, view in enumerate(taken):
        graph.result(graph.reshape(view, graph.output(position).shape), position)
