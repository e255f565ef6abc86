"""UNSORTED_SEGMENT_PROD: products of the elements with the same segment id, in any order.

``segment_ids`` covers the first dimensions of ``data``; the output is [num_segments, the other dimensions]. Negative
ids are left out, ids of ``num_segments`` or more refused. The product of an empty segment is 1; int32 wraps. Dynamic
unless ids and ``num_segments`` are constant (TFLite's UNSORTED_SEGMENT_PROD).
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._segments import TYPES, lower_segments, prepare_segments, reduced
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import UnsortedSegmentProdOptions

op = OpDef(
    "UNSORTED_SEGMENT_PROD",
    inputs=("data", "segment_ids", "num_segments"),
    outputs=("output",),
    versions=versions("2.10.0"),
    types=TYPES,
    options=UnsortedSegmentProdOptions,
    tells_shapes=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_segments(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return reduced(ctx, np.multiply, 1)


@op.lower
def lower(graph: Lowering) -> None:
    lower_segments(graph, "mul", 1)
