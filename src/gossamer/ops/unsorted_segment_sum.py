"""UNSORTED_SEGMENT_SUM: sums of the elements with the same segment id, in any order.

``segment_ids`` covers the first dimensions of ``data``; the output is [num_segments, the other dimensions]. Negative
ids are left out, ids of ``num_segments`` or more refused. The sum of an empty segment is 0; int32 wraps. Dynamic
unless ids and ``num_segments`` are constant (TFLite's UNSORTED_SEGMENT_SUM).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._segments import TYPES, lower_segments, prepare_segments, reduced
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import UnsortedSegmentSumOptions

op = OpDef(
    "UNSORTED_SEGMENT_SUM",
    inputs=("data", "segment_ids", "num_segments"),
    outputs=("output",),
    versions=versions("2.10.0"),
    types=TYPES,
    options=UnsortedSegmentSumOptions,
    tells_shapes=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_segments(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return reduced(ctx, np.add, 0)


@op.lower
def lower(graph: Lowering) -> None:
    lower_segments(graph, "add", 0)
