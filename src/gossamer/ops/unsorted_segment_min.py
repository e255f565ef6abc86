"""UNSORTED_SEGMENT_MIN: least elements of the elements with the same segment id, in any order.

``segment_ids`` covers the first dimensions of ``data``; the output is [num_segments, the other dimensions]. Negative
ids are left out, ids of ``num_segments`` or more refused. An empty segment has the greatest number of the type.
Dynamic unless ids and ``num_segments`` are constant (TFLite's UNSORTED_SEGMENT_MIN).
"""

from __future__ import annotations

import numpy as np

from gossamer.dtypes import numpy_dtype
from gossamer.ops._segments import TYPES, lower_segments, prepare_segments, reduced
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import Array, Context, InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema.options import UnsortedSegmentMinOptions

op = OpDef(
    "UNSORTED_SEGMENT_MIN",
    inputs=("data", "segment_ids", "num_segments"),
    outputs=("output",),
    versions=versions("2.11.0"),
    types=TYPES,
    options=UnsortedSegmentMinOptions,
    tells_shapes=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    prepare_segments(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return reduced(ctx, np.minimum, _initial(ctx))


@op.lower
def lower(graph: Lowering) -> None:
    lower_segments(graph, "min", _initial(graph))


def _initial(ctx: Context) -> float:
    dtype = numpy_dtype(ctx.input(0).type)
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return limits.max
