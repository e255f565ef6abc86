"""Variables that change. Those that nobody writes are constants, and are read where they are found (`identity`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.convert.blocks import shapes
from gossamer.convert.graph import Refused
from gossamer.convert.lowerings.tensorflow import Call, Variable, lowers
from gossamer.schema.enums import TensorType


def written(call: Call) -> Variable:
    """The variable that the first input is. Raises `Refused` if it is none."""
    found = call.inputs[0]
    if not isinstance(found, Variable):
        raise Refused(f"it writes {found!r}, which is no variable of the file")
    return found


@lowers("AssignVariableOp")
def assign(call: Call) -> Any:
    variable = written(call)
    call.graph.add_many("ASSIGN_VARIABLE", [variable.of(call.graph), call.value(1)], 0)
    return []


UPDATES = {"AssignAddVariableOp": "ADD", "AssignSubVariableOp": "SUB"}


@lowers(*UPDATES)
def update(call: Call) -> Any:
    variable = written(call)
    new = call.add(UPDATES[call.op], variable.read(call.graph), call.value(1))
    call.graph.add_many("ASSIGN_VARIABLE", [variable.of(call.graph), new], 0)
    return []


@lowers("VarIsInitializedOp")
def is_initialized(call: Call) -> Any:
    return call.graph.constant(np.array(True))


@lowers("VariableShape")
def shape(call: Call) -> Any:
    type = call.attributes.type("out_type", TensorType.INT32)
    return shapes.size_vector(call.graph, written(call).read(call.graph), type)
