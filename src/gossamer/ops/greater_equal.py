"""GREATER_EQUAL: ``x >= y``, element by element, with broadcasting; bool comes out.

uint8 and int8 are rescaled to real values first, with rounding (see ``_comparison.py``). int16 is compared as it is,
quantised or not. Nothing holds of NaN.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._comparison import NUMBERS, Rescaled, compare, lower_comparison, prepare_comparison
from gossamer.ops.lowering import Lowering
from gossamer.ops.op_def import INT, Array, InvokeContext, OpDef, PrepareContext, Version
from gossamer.ops.op_signature import input_type
from gossamer.schema.enums import TensorType
from gossamer.schema.options import GreaterEqualOptions

_TYPES = NUMBERS

op = OpDef(
    "GREATER_EQUAL",
    inputs=("x", "y"),
    outputs=("output",),
    versions=(
        Version(1, "1.14.0"),
        Version(2, "1.14.0", input_type(0, TensorType.INT8)),
        Version(3, "2.13.0", input_type(0, TensorType.INT16)),
    ),
    types={"x": _TYPES, "y": _TYPES, "output": (TensorType.BOOL,)},
    options=GreaterEqualOptions,
    quantizes=INT,
)


@op.prepare
def prepare(ctx: PrepareContext) -> Rescaled | None:
    return prepare_comparison(ctx)


@op.reference
def reference(ctx: InvokeContext) -> Array:
    return compare(ctx, np.greater_equal)


@op.lower
def lower(graph: Lowering) -> None:
    lower_comparison(graph, "greaterequal")
