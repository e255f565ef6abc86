"""VAR_HANDLE: the id of a resource variable.

Every (container, shared name) stands for one variable in the whole interpreter; ids count from 0 in the order in which
names are first met. The id is known when the model is prepared.
"""

from __future__ import annotations

import numpy as np

from gossamer.ops._resource import HANDLE_TYPES
from gossamer.ops.op_def import InvokeContext, OpDef, PrepareContext, versions
from gossamer.schema import VarHandleOptions

op = OpDef(
    "VAR_HANDLE",
    inputs=(),
    outputs=("handle",),
    versions=versions("2.6.0"),
    types={"handle": HANDLE_TYPES},
    options=VarHandleOptions,
    side_effects=True,
)


@op.prepare
def prepare(ctx: PrepareContext) -> None:
    options: VarHandleOptions = ctx.options
    ids = ctx.resources.ids
    number = ids.setdefault((options.container, options.shared_name), len(ids))
    shape = ctx.output().shape
    ctx.require(shape in ((), (1,)), f"handle must have shape [] or [1], got {list(shape)}")
    ctx.set_constant(0, np.full(shape, number, np.int32))


@op.reference
def reference(ctx: InvokeContext) -> tuple[None]:
    return (None,)
