"""A model whose main subgraph initialises a variable once, reads it, and adds its input to it."""

from __future__ import annotations

import numpy as np

from gossamer.schema import CallOnceOptions, TensorType, VarHandleOptions
from tests.runtime.graphs import ModelMaker


def accumulator(initial: float = 10.0, initialise: bool = True) -> bytes:
    make = ModelMaker()
    x = make.tensor((1,), name="x")
    handle = make.tensor((1,), TensorType.RESOURCE)
    before, after, y = make.tensor((1,)), make.tensor((1,)), make.tensor((1,))
    if initialise:
        make.op("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=1))
    make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
    make.op("READ_VARIABLE", [handle], [before])
    make.op("ADD", [before, x], [after])
    make.op("ASSIGN_VARIABLE", [handle, after], [])
    make.op("READ_VARIABLE", [handle], [y])
    make.io([x], [y])
    if initialise:
        make.subgraph("init")
        start = make.constant([initial], np.float32, TensorType.FLOAT32)
        handle = make.tensor((1,), TensorType.RESOURCE)
        make.op("VAR_HANDLE", [], [handle], VarHandleOptions(shared_name="total"))
        make.op("ASSIGN_VARIABLE", [handle, start], [])
        make.io([], [])
    return make.model()
