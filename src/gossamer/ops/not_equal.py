"""NOT_EQUAL: ``x != y``, element by element, with broadcasting; bool comes out.

uint8, int8 and quantised int16 are rescaled to real values first, with rounding (see ``_comparison.py``); other types,
among them int16 without quantization, are compared as they are. (LiteRT writes nothing for these.) Strings compare byte
by byte. NaN equals nothing.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._comparison import NUMBERS, Rescaled, compare, lower_comparison, prepare_comparison
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import NotEqualOptions

_TYPES = (*NUMBERS, TensorType.BOOL, TensorType.STRING)

op = OpDef(
    "NOT_EQUAL",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.3.0", input_type(0, TensorType.STRING)),
        Version(4, "2.21.0", input_type(0, TensorType.INT16)),
    ),
    types={"x": _TYPES, "y": _TYPES, "output": (TensorType.BOOL,)},
    options=NotEqualOptions,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Rescaled | None:
    return prepare_comparison(ctx, rescale_int16=True)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return compare(ctx, np.not_equal)


@op.lower
def lower(graph: Lowering) -> None:
    lower_comparison(graph, "notequal")
